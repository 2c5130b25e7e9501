"""Keys of segments: those that Spark computes, whatever holds the ids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from catalog.cache.keys import KEY_COLUMNS, key_of, keys_of
from catalog.errors import InvalidInput


def spark_xxhash64(*texts: str) -> int:
    """Spark's xxhash64: 42 is the first seed, and each hash is the seed of the next."""
    seed = 42
    for text in texts:
        seed = xxhash.xxh64_intdigest(text.encode(), seed)
    return seed - (1 << 64) if seed >= 1 << 63 else seed


def check(ids: Any, texts: list[str]) -> None:
    """Compares the keys of many ids with the key of each text."""
    k1, k2 = keys_of(ids)
    assert (k1.dtype, k2.dtype) == (np.int64, np.int64)
    assert list(zip(k1.tolist(), k2.tolist(), strict=True)) == [key_of(text) for text in texts]


def test_the_hash_of_these_tests_is_the_one_that_spark_documents() -> None:
    assert spark_xxhash64("ABC") == 4105715581806190027
    assert spark_xxhash64("ABC", "DEF") == 3233247871021311208


@given(st.text())
def test_a_key_is_the_pair_of_hashes_that_spark_computes(text: str) -> None:
    assert key_of(text) == (spark_xxhash64(text), spark_xxhash64("strata", text))


@pytest.mark.parametrize("column", KEY_COLUMNS)
def test_spark_is_asked_for_the_same_hashes(column: str) -> None:
    assert column in ("xxhash64(key) AS k1", "xxhash64('strata', key) AS k2")


@given(st.lists(st.text()))
def test_keys_of_many_are_the_keys_of_each(texts: list[str]) -> None:
    check(texts, texts)


# So many of each that they are hashed together.
MANY = 600


@given(st.lists(st.text(max_size=80), min_size=1, max_size=5), st.integers(0, 3), st.data())
def test_keys_of_very_many_are_the_keys_of_each(
    texts: list[str], others: int, data: st.DataObject
) -> None:
    texts = texts * MANY + ["x" * n for n in range(others)]
    array = pa.array(texts)
    first = data.draw(st.integers(0, 3))
    last = data.draw(st.integers(len(texts) - 3, len(texts)))
    check(array.slice(first, last - first), texts[first:last])
    check(pa.chunked_array([array.slice(0, first), array.slice(first)]), texts)


@pytest.mark.parametrize("length", [0, 1, 41, 255, 256, 257, 70_000])
def test_ids_of_one_length_have_their_keys(length: int) -> None:
    texts = [f"{n:03d}".ljust(length, "é")[:length] for n in range(3)] * 200
    check(pa.array(texts), texts)


def test_ids_of_many_lengths_have_their_keys() -> None:
    texts = [f"{n % 7}" * (n % 300) for n in range(3_000)] + ["a" * 70_001, "b" * 70_000]
    check(pa.array(texts), texts)


TEXTS = ["orders/1", None, "", "köln/2", "orders/1", "a" * 50]
HELD = {
    "list": TEXTS,
    "tuple": tuple(TEXTS),
    "iterator": iter(TEXTS),
    "object array": np.array(TEXTS, object),
    "series": pd.Series(TEXTS),
    "string series": pd.Series(TEXTS, dtype="string"),
    "categories": pd.Series(TEXTS, dtype="category"),
    "string": pa.array(TEXTS),
    "large string": pa.array(TEXTS, pa.large_string()),
    "string view": pa.array(TEXTS, pa.string_view()),
    "dictionary": pa.array(TEXTS).dictionary_encode(),
    "dictionary of views": pa.DictionaryArray.from_arrays(
        pa.array([0, None, 1, 2, 0, 3]),
        pa.array(["orders/1", "", "köln/2", "a" * 50], pa.string_view()),
    ),
    "chunks": pa.chunked_array([TEXTS[:2], [], TEXTS[2:]]),
    "chunks of dictionaries": pa.chunked_array(
        [pa.array(part).dictionary_encode() for part in (TEXTS[:3], TEXTS[3:])]
    ),
    "slice": pa.array(["?", *TEXTS, "?"]).slice(1, len(TEXTS)),
    "large slice": pa.array(["?", *TEXTS, "?"], pa.large_string()).slice(1, len(TEXTS)),
}


@pytest.mark.parametrize("ids", HELD.values(), ids=HELD)
def test_ids_have_their_keys_whatever_holds_them_and_a_null_that_of_the_empty_id(ids: Any) -> None:
    check(ids, [text or "" for text in TEXTS])


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary("int32", "string")]
)
def test_very_many_nulls_have_the_key_of_the_empty_id(kind: Any) -> None:
    check(pa.array(TEXTS * MANY).cast(kind), [text or "" for text in TEXTS] * MANY)


def test_what_lies_behind_a_null_does_not_matter() -> None:
    hidden = pa.array(["ab", "cd", "ef"] * MANY)
    valid = pa.array([True, False, True] * MANY)
    buffers = [valid.buffers()[1], *hidden.buffers()[1:]]
    check(pa.Array.from_buffers(pa.string(), len(hidden), buffers), ["ab", "", "ef"] * MANY)


@pytest.mark.parametrize("ids", [[], pa.array([], pa.string()), pa.chunked_array([], pa.string())])
def test_no_ids_have_no_keys(ids: Any) -> None:
    check(ids, [])


@pytest.mark.parametrize("ids", [[1], ["a", 2], pa.array([1]), np.array([1.5]), ["\ud800"]])
def test_what_is_not_text_is_refused(ids: Any) -> None:
    with pytest.raises(InvalidInput, match="Segment ids are strings, and one of these is not"):
        keys_of(ids)
