"""The index of the cache against a dictionary."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.cache.index import Directory, Index

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


def check(model: Model, wanted: list[Key]) -> None:
    """Compares what an index finds with what a dictionary finds."""
    index = index_of(model)
    found = content(index)
    for key, place in zip(wanted, index.find(*columns(wanted)).tolist(), strict=True):
        assert place == index.find_one(*key)
        assert (found[place] if place >= 0 else None) == (
            (key, model[key]) if key in model else None
        )


@given(models, st.lists(keys, max_size=20))
def test_every_key_is_found_where_it_is_and_no_other(model: Model, others: list[Key]) -> None:
    check(model, [*model, *others])


def spread(size: int) -> Model:
    """Keys like those of segments: they spread evenly."""
    numbers = random.Random(size)
    return {
        (numbers.randrange(-(2**63), 2**63), numbers.randrange(-(2**63), 2**63)): (n, n)
        for n in range(size)
    }


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5, 6, 7, 1_000, 40_000])
def test_keys_that_spread_are_found_whatever_their_number(size: int) -> None:
    model = spread(size)
    wanted = [*model, *((k1 ^ 1, k2) for k1, k2 in model), *((k1, k2 ^ 1) for k1, k2 in model)]
    random.Random(0).shuffle(wanted)
    check(model, [*wanted, (-(2**63), 0), (0, 0), (2**63 - 1, 0)])


@pytest.mark.parametrize("first", [-(2**63), -1_000, 0, 2**63 - 2_000])
def test_keys_that_crowd_in_one_range_of_the_directory_are_found(first: int) -> None:
    model = {(first + n * 2, n): (n, n) for n in range(1_000)}
    around = [(first + n, n // 2) for n in range(-10, 2_010) if -(2**63) <= first + n < 2**63]
    check(model, [*around, (-(2**63), 5), (2**63 - 1, 5)])


@pytest.mark.parametrize("half", [-(2**63), 0, 2**63 - 1])
def test_keys_that_all_share_their_first_half_are_found(half: int) -> None:
    model = {(half, n * 2): (n, n) for n in range(-300, 300)}
    check(model, [(half, n) for n in range(-605, 605)])


@given(models)
def test_an_index_is_sorted_whatever_the_order_of_its_entries(model: Model) -> None:
    backwards = dict(reversed(model.items()))
    assert content(index_of(model)) == content(index_of(backwards)) == sorted(model.items())


@given(models, st.lists(keys, max_size=20), models)
def test_a_changed_index_is_like_one_built_so(model: Model, gone: list[Key], more: Model) -> None:
    index = index_of(model)
    # What is replaced must go as well.
    places = index.find(*columns([*gone, *more]))
    changed = index.changed(places[places >= 0], index_of(more))
    expected = {key: entry for key, entry in model.items() if key not in gone} | more
    assert content(changed) == sorted(expected.items())
    assert changed.directory.starts.tolist() == Directory.of(changed.k1).starts.tolist()
    assert content(index) == sorted(model.items())


@pytest.mark.parametrize(("size", "gone", "came"), [(900, 200, 300), (900, 900, 0), (100, 0, 900)])
def test_an_index_that_changed_much_finds_what_is_there(size: int, gone: int, came: int) -> None:
    model, more = spread(size), spread(came + 1_000)
    leaving, coming = list(model)[:gone], dict(list(more.items())[:came])
    index = index_of(model)
    changed = index.changed(index.find(*columns(leaving)), index_of(coming))
    expected = {key: model[key] for key in list(model)[gone:]} | coming
    assert content(changed) == sorted(expected.items())
    assert (changed.find(*columns(list(expected))) >= 0).all()
    assert (changed.find(*columns(leaving)) < 0).all()


def test_an_index_that_does_not_change_is_shared() -> None:
    index = index_of({(1, 2): (3, 4)})
    assert index.changed(np.array([], np.int64), Index.empty()) is index


def test_an_index_cannot_be_written() -> None:
    index = index_of({(1, 2): (3, 4)})
    for array in (index.k1, index.k2, index.schema, index.rows, index.directory.starts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 9


def test_an_empty_index_finds_nothing_and_takes_anything() -> None:
    empty = Index.empty()
    assert (len(empty), empty.find_one(0, 0)) == (0, -1)
    assert empty.find(*columns([(0, 0), (1, 1)])).tolist() == [-1, -1]
    fresh = index_of({(1, 2): (3, 4)})
    assert content(empty.changed(np.array([], np.int64), fresh)) == [((1, 2), (3, 4))]


@pytest.mark.parametrize("size", [1_000, 3 * 2**10 - 1, 3 * 2**10])
def test_a_segment_takes_at_most_30_bytes(size: int) -> None:
    index = index_of({(n, n): (n, n) for n in range(size)})
    assert index.nbytes / len(index) <= 30


@given(models)
def test_an_index_travels_without_its_directory(model: Model) -> None:
    index = index_of(model)
    shipped = pickle.dumps(index, protocol=5)
    copy = pickle.loads(shipped)
    assert content(copy) == content(index)
    assert copy.directory.starts.tolist() == index.directory.starts.tolist()


def test_a_pickle_has_28_bytes_a_segment() -> None:
    assert len(pickle.dumps(index_of(spread(10_000)), protocol=5)) < 28 * 10_000 + 1_000
