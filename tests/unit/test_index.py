"""The index of the cache against a dictionary."""

from __future__ import annotations

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from catalog.cache.index import KEY_COLUMNS, Index, key_of, keys_of

Key = tuple[int, int]
Model = dict[Key, tuple[int, int]]

# Few first halves, so that many keys share theirs, with the ends of the range among them.
halves = st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1])
keys = st.tuples(halves, st.integers(-3, 3) | halves)
entries = st.tuples(st.integers(-1, 2**31 - 1), st.integers(-1, 2**63 - 1))
models = st.dictionaries(keys, entries, max_size=20)


def index_of(model: Model) -> Index:
    return Index.of(
        [k1 for k1, _ in model],
        [k2 for _, k2 in model],
        [schema for schema, _ in model.values()],
        [rows for _, rows in model.values()],
    )


def columns(wanted: list[Key]) -> tuple[np.ndarray, np.ndarray]:
    return (
        np.array([k1 for k1, _ in wanted], np.int64),
        np.array([k2 for _, k2 in wanted], np.int64),
    )


def content(index: Index) -> list[tuple[Key, tuple[int, int]]]:
    """The entries in the order of the arrays."""
    return [
        ((int(k1), int(k2)), (int(schema), int(rows)))
        for k1, k2, schema, rows in zip(index.k1, index.k2, index.schema, index.rows, strict=True)
    ]


@given(models, st.lists(keys, max_size=20))
def test_every_key_is_found_where_it_is_and_no_other(model: Model, others: list[Key]) -> None:
    index, wanted = index_of(model), [*model, *others]
    places = index.find(*columns(wanted))
    found = content(index)
    for key, place in zip(wanted, places.tolist(), strict=True):
        assert place == index.find_one(*key)
        assert (found[place] if place >= 0 else None) == (
            (key, model[key]) if key in model else None
        )


@given(models)
def test_an_index_is_sorted_whatever_the_order_of_its_entries(model: Model) -> None:
    backwards = dict(reversed(model.items()))
    assert content(index_of(model)) == content(index_of(backwards)) == sorted(model.items())


@given(models, st.lists(keys, max_size=20))
def test_taking_keys_out_is_like_building_without_them(model: Model, gone: list[Key]) -> None:
    left = {key: entry for key, entry in model.items() if key not in gone}
    assert content(index_of(model).without(*columns(gone))) == sorted(left.items())


@given(models, models)
def test_adding_entries_is_like_building_with_them(model: Model, more: Model) -> None:
    new = {key: entry for key, entry in more.items() if key not in model}
    assert content(index_of(model).plus(index_of(new))) == sorted((model | new).items())


@given(models, models)
def test_an_index_never_changes(model: Model, more: Model) -> None:
    index = index_of(model)
    index.without(*columns(list(model))).plus(index_of(more))
    assert content(index) == sorted(model.items())


def test_an_empty_index_finds_nothing_and_takes_anything() -> None:
    empty = Index.empty()
    assert (len(empty), empty.nbytes, empty.find_one(0, 0)) == (0, 0, -1)
    assert empty.find(*columns([(0, 0), (1, 1)])).tolist() == [-1, -1]
    assert content(empty.plus(index_of({(1, 2): (3, 4)}))) == [((1, 2), (3, 4))]


def test_a_segment_takes_at_most_32_bytes() -> None:
    index = index_of({(n, n): (n, n) for n in range(1000)})
    assert index.nbytes / len(index) <= 32


# --- keys ----------------------------------------------------------------------------------------


def spark_xxhash64(*texts: str) -> int:
    """Spark's xxhash64: 42 is the first seed, and each hash is the seed of the next."""
    seed = 42
    for text in texts:
        seed = xxhash.xxh64_intdigest(text.encode(), seed)
    return seed - (1 << 64) if seed >= 1 << 63 else seed


def test_the_hash_of_these_tests_is_the_one_that_spark_documents() -> None:
    assert spark_xxhash64("ABC") == 4105715581806190027
    assert spark_xxhash64("ABC", "DEF") == 3233247871021311208


@given(st.text())
def test_a_key_is_the_pair_of_hashes_that_spark_computes(text: str) -> None:
    assert key_of(text) == (spark_xxhash64(text), spark_xxhash64("strata", text))


@given(st.lists(st.text()))
def test_keys_of_many_are_the_keys_of_each(texts: list[str]) -> None:
    k1, k2 = keys_of(texts)
    assert list(zip(k1.tolist(), k2.tolist(), strict=True)) == [key_of(text) for text in texts]
    assert (k1.dtype, k2.dtype) == (np.int64, np.int64)


@pytest.mark.parametrize("column", KEY_COLUMNS)
def test_spark_is_asked_for_the_same_hashes(column: str) -> None:
    assert column in ("xxhash64(key) AS k1", "xxhash64('strata', key) AS k2")
