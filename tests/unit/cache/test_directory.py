"""The directory of sorted numbers: where to begin and where to end."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.cache.index import Directory

LOWEST, HIGHEST = -(2**63), 2**63 - 1
numbers = st.integers(LOWEST, HIGHEST) | st.sampled_from([LOWEST, -1, 0, 1, HIGHEST])
many = st.lists(numbers, max_size=40)


def array(values: list[int]) -> np.ndarray:
    return np.array(sorted(values), np.int64)


@given(many, numbers)
def test_a_number_lies_between_begin_and_end(values: list[int], number: int) -> None:
    known = array(values)
    directory = Directory.of(known)
    begin, end = directory.span(number)
    assert [begin] == directory.begins(array([number])).tolist()
    assert begin <= np.searchsorted(known, number, "left")
    assert np.searchsorted(known, number, "right") <= end <= len(known)


@given(many, many, many)
def test_a_changed_directory_is_the_one_of_the_numbers_there(
    left: list[int], gone: list[int], fresh: list[int]
) -> None:
    after = array(left + fresh)
    changed = Directory.of(array(left + gone)).changed(array(gone), array(fresh), after)
    assert changed.shift == Directory.of(after).shift
    assert changed.starts.tolist() == Directory.of(after).starts.tolist()


@pytest.mark.parametrize(
    ("size", "ranges"), [(0, 2), (1, 2), (11, 2), (12, 4), (23, 4), (24, 8), (3_000, 512)]
)
def test_there_are_at_most_a_third_as_many_ranges_as_numbers(size: int, ranges: int) -> None:
    directory = Directory.of(np.arange(size))
    assert len(directory.starts) == ranges + 1
    assert directory.nbytes == 4 * (ranges + 1)


def test_the_ranges_divide_all_numbers_evenly() -> None:
    directory = Directory.of(array([LOWEST, -(2**62), 0, 2**62] * 3))
    assert directory.starts.tolist() == [0, 3, 6, 9, 12]
    assert [directory.span(n) for n in (LOWEST, -1, 0, HIGHEST)] == [
        (0, 3),
        (3, 6),
        (6, 9),
        (9, 12),
    ]
