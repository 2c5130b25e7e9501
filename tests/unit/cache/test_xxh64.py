"""XXH64 in numpy against the C library."""

from __future__ import annotations

import random

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from catalog.cache.keys import ByteStrings, hashes

SEEDS = (0, 42, 2**63, 2**64 - 1)


def expected(data: bytes, start: int, width: int, count: int) -> list[list[int]]:
    rows = [data[start + n * width : start + (n + 1) * width] for n in range(count)]
    return [[xxhash.xxh64_intdigest(row, seed) for row in rows] for seed in SEEDS]


@pytest.mark.parametrize("width", range(201))
def test_strings_of_every_length_have_their_hashes(width: int) -> None:
    data = random.Random(width).randbytes(width * 3)
    assert hashes(ByteStrings(data, 0, width, 3), SEEDS).tolist() == expected(data, 0, width, 3)


@given(st.binary(max_size=300), st.integers(0, 40), st.integers(1, 100))
def test_strings_may_lie_anywhere_in_a_buffer(data: bytes, start: int, width: int) -> None:
    count = max(0, len(data) - start) // width
    hashed = hashes(ByteStrings(data, start, width, count), SEEDS)
    assert hashed.tolist() == expected(data, start, width, count)


@pytest.mark.parametrize("count", [16_383, 16_384, 16_385, 40_000])
def test_many_strings_have_the_hashes_of_each(count: int) -> None:
    data = random.Random(count).randbytes(count * 9)
    assert hashes(ByteStrings(data, 0, 9, count), SEEDS).tolist() == expected(data, 0, 9, count)


def test_no_strings_have_no_hashes() -> None:
    assert hashes(ByteStrings(b"", 0, 5, 0), SEEDS).shape == (len(SEEDS), 0)
