"""Snapshots: a fold of the change feed gives what a full read gives, and lookups agree."""

from __future__ import annotations

import pickle
import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.cache.fold import build, fold
from catalog.cache.keys import key_of, keys_of
from catalog.cache.snapshot import Position, Snapshot, StoredSchema
from catalog.errors import AmbiguousFingerprint, InvalidInput, NotInSnapshot, UnknownSchema
from catalog.schema import Schema

SEGMENTS = pa.schema(
    [
        ("k1", pa.int64()),
        ("k2", pa.int64()),
        ("fingerprint", pa.string()),
        ("num_rows", pa.int64()),
        ("datasource", pa.string()),
    ]
)
SCHEMAS = pa.schema(
    [
        ("kind", pa.string()),
        ("key", pa.string()),
        ("payload", pa.string()),
        ("published_micros", pa.int64()),
    ]
)
CHANGES = pa.schema([*SCHEMAS, *SEGMENTS, ("change", pa.string()), ("version", pa.int64())])

Row = dict[str, Any]


@dataclass
class Table:
    """A model of the table: rows by key, and the feed of what was done to them."""

    version: int = 0
    segments: dict[int, Row] = field(default_factory=dict)
    schemas: dict[tuple[str, str], Row] = field(default_factory=dict)
    feed: list[Row] = field(default_factory=list)

    def snapshot(self) -> Snapshot:
        return build(
            Position("t", self.version, f"s{self.version}"),
            pa.Table.from_pylist(list(self.segments.values()), SEGMENTS),
            pa.Table.from_pylist(list(self.schemas.values()), SCHEMAS),
        )

    def put(self, rows: dict[Any, Row], key: Any, row: Row | None, rewrite: bool) -> None:
        """Inserts, updates or deletes; a rewrite deletes and inserts, as a RESTORE does."""
        old = rows.pop(key, None)
        if old is not None:
            gone = "update_preimage" if row is not None and not rewrite else "delete"
            self.feed.append(old | {"change": gone, "version": self.version})
        if row is not None:
            rows[key] = row
            came = "update_postimage" if old is not None and not rewrite else "insert"
            self.feed.append(row | {"change": came, "version": self.version})

    def segment(self, number: int, row: Row | None, rewrite: bool = False) -> None:
        # Two segments in three share the first half of their keys.
        named = {
            "kind": "segment",
            "k1": number % 3,
            "k2": number,
            "datasource": f"d{number % 2}",
        }
        self.put(self.segments, number, None if row is None else named | row, rewrite)

    def schema(self, name: str, kind: str, row: Row | None, rewrite: bool = False) -> None:
        named = {"kind": kind, "key": name}
        self.put(self.schemas, (kind, name), None if row is None else named | row, rewrite)

    def changes(self, since: int, seed: int) -> pa.Table:
        """The feed after a version in any order, in several chunks."""
        rows = [row for row in self.feed if row["version"] > since]
        random.Random(seed).shuffle(rows)
        half = len(rows) // 2
        return pa.concat_tables(
            [pa.Table.from_pylist(part, CHANGES) for part in (rows[:half], rows[half:])]
        )


segment_rows = st.fixed_dictionaries(
    {
        "fingerprint": st.sampled_from(["f1", "f2", "f3", None]),
        "num_rows": st.none() | st.integers(0, 3),
    }
)
schema_rows = st.fixed_dictionaries(
    {"payload": st.sampled_from(["p", "q"]), "published_micros": st.integers(0, 2)}
)
versions = st.fixed_dictionaries(
    {
        "segments": st.dictionaries(
            st.integers(0, 8), st.tuples(st.none() | segment_rows, st.booleans()), max_size=5
        ),
        "schemas": st.dictionaries(
            st.tuples(st.sampled_from(["f1", "f2", "f3"]), st.sampled_from(["schema", "retired"])),
            st.tuples(st.none() | schema_rows, st.booleans()),
            max_size=3,
        ),
        # Segments and schemas that are deleted and inserted again as they were.
        "rewritten": st.sets(st.integers(0, 8), max_size=3),
    }
)


def play(table: Table, history: list[dict[str, Any]]) -> None:
    for version in history:
        table.version += 1
        for number, (row, rewrite) in version["segments"].items():
            table.segment(number, row, rewrite)
        for (name, kind), (row, rewrite) in version["schemas"].items():
            table.schema(name, kind, row, rewrite)
        for number in version["rewritten"] - version["segments"].keys():
            if number in table.segments:
                table.segment(number, dict(table.segments[number]), rewrite=True)


@given(st.lists(versions, max_size=3), st.lists(versions, max_size=4), st.integers(0, 2**16))
def test_a_fold_of_the_feed_gives_what_a_full_read_gives(
    early: list[dict[str, Any]], late: list[dict[str, Any]], seed: int
) -> None:
    table = Table()
    play(table, early)
    before, there = table.snapshot(), set(table.segments)
    remembered = before.content()
    play(table, late)
    after = table.snapshot()

    folded = fold(before, after.position, table.changes(before.version, seed))
    assert folded.snapshot.content() == after.content()
    assert folded.snapshot.position == after.position
    assert before.content() == remembered

    feed = [row for row in table.feed if row["version"] > before.version]
    touched = {row["k2"] for row in feed if row["kind"] == "segment"}
    assert (folded.added, folded.removed, folded.changed) == (
        len(table.segments.keys() - there),
        len(there - table.segments.keys()),
        len(touched & there & table.segments.keys()),
    )
    assert folded.schemas == tuple(sorted({r["key"] for r in feed if r["kind"] != "segment"}))


@given(st.lists(versions, min_size=1, max_size=5), st.integers(0, 2**16))
def test_folding_version_by_version_is_folding_at_once(
    history: list[dict[str, Any]], seed: int
) -> None:
    table = Table()
    stepwise = table.snapshot()
    for version in history:
        play(table, [version])
        changes = table.changes(stepwise.version, seed)
        stepwise = fold(stepwise, Position("t", table.version, ""), changes).snapshot
    at_once = fold(Table().snapshot(), Position("t", table.version, ""), table.changes(0, seed))
    assert stepwise.content() == at_once.snapshot.content() == table.snapshot().content()


def encoded(table: pa.Table) -> pa.Table:
    """The table with its texts as Arrow dictionaries, which differ from chunk to chunk."""
    for number, column in enumerate(table.schema):
        if column.type == pa.string():
            chunks = [chunk.dictionary_encode() for chunk in table.column(number).chunks]
            kind = pa.dictionary(pa.int32(), pa.string())
            table = table.set_column(number, column.name, pa.chunked_array(chunks, kind))
    return table


@given(st.lists(versions, max_size=3), st.lists(versions, max_size=3), st.integers(0, 2**16))
def test_texts_may_come_as_dictionaries(
    early: list[dict[str, Any]], late: list[dict[str, Any]], seed: int
) -> None:
    table = Table()
    play(table, early)
    before = table.snapshot()
    play(table, late)
    changes = table.changes(before.version, seed)
    plain = fold(before, Position("t", table.version, ""), changes)
    coded = fold(before, Position("t", table.version, ""), encoded(changes))
    assert coded.snapshot.content() == plain.snapshot.content()
    assert (coded.added, coded.removed, coded.changed, coded.schemas) == (
        plain.added,
        plain.removed,
        plain.changed,
        plain.schemas,
    )


@pytest.mark.parametrize("order", [1, -1])
def test_a_row_that_a_version_deletes_and_inserts_unchanged_stays(order: int) -> None:
    table = Table(version=1)
    table.segment(4, {"fingerprint": "f1", "num_rows": 7})
    table.schema("f1", "schema", {"payload": "p", "published_micros": 5})
    before = table.snapshot()
    table.version = 2
    table.segment(4, {"fingerprint": "f1", "num_rows": 7}, rewrite=True)
    table.schema("f1", "schema", {"payload": "p", "published_micros": 5}, rewrite=True)
    changes = pa.Table.from_pylist(table.feed[2:][::order], CHANGES)
    assert sorted(changes.column("change").to_pylist()) == ["delete"] * 2 + ["insert"] * 2
    folded = fold(before, Position("t", 2, ""), changes)
    assert folded.snapshot.content() == before.content() | {"version": 2}
    assert folded.snapshot.counts == {"d0": {"f1": 1}}
    assert (folded.added, folded.removed, folded.changed) == (0, 0, 1)


def test_a_schema_that_moves_between_live_and_retired_is_in_one_place() -> None:
    table = Table(version=1)
    table.schema("f1", "schema", {"payload": "p", "published_micros": 5})
    before = table.snapshot()
    table.version = 2
    table.schema("f1", "schema", None)
    table.schema("f1", "retired", {"payload": "p", "published_micros": 5})
    after = fold(before, Position("t", 2, ""), table.changes(1, 0)).snapshot
    assert (after.live, after.retired) == ({}, {"f1": StoredSchema("p", 5)})


def test_a_fold_of_nothing_shares_everything_but_the_position() -> None:
    before = Table(version=1).snapshot()
    folded = fold(before, Position("t", 9, "s"), pa.Table.from_pylist([], CHANGES))
    assert folded.snapshot.version == 9
    assert folded.snapshot.index is before.index
    assert (folded.added, folded.removed, folded.changed, folded.schemas) == (0, 0, 0, ())


# --- what a snapshot answers ---------------------------------------------------------------------

A, B = Schema.of("a INT"), Schema.of("b STRING")


def snapshot(version: int = 7) -> Snapshot:
    """Three segments: one with a live schema, one with a retired one, one with none."""
    rows = [
        ("orders/1", A.fingerprint, 10, "orders"),
        ("orders/2", B.fingerprint, 0, "orders"),
        ("users/1", None, None, "users"),
    ]
    segments = [
        dict(zip(SEGMENTS.names, (*key_of(name), *rest), strict=True)) for name, *rest in rows
    ]
    schemas = [
        {"kind": kind, "key": schema.fingerprint, "payload": schema.payload, "published_micros": 1}
        for kind, schema in (("schema", A), ("retired", B))
    ]
    return build(
        Position("t", version, "s"),
        pa.Table.from_pylist(segments, SEGMENTS),
        pa.Table.from_pylist(schemas, SCHEMAS),
    )


def test_a_segment_leads_to_its_schema_live_or_retired() -> None:
    asked = snapshot()
    assert (asked.schema_of("orders/1"), asked.schema_of("orders/2")) == (A, B)
    assert [asked.num_rows(name) for name in ("orders/1", "orders/2")] == [10, 0]
    assert len(asked) == 3
    assert asked.datasources() == {"orders": 2, "users": 1}


def test_a_segment_without_a_schema_says_so() -> None:
    asked = snapshot()
    assert (asked.fingerprint_of("users/1"), asked.num_rows("users/1")) == (None, None)
    with pytest.raises(NotInSnapshot, match=r"users/1 is published without a schema \(version 7\)"):
        asked.schema_of("users/1")


@pytest.mark.parametrize("verb", ["schema_of", "fingerprint_of", "num_rows"])
def test_a_segment_that_is_not_there_is_refused_with_the_version(verb: str) -> None:
    with pytest.raises(NotInSnapshot, match=r"orders/9 is not in .* version 7") as caught:
        getattr(snapshot(), verb)("orders/9")
    assert caught.value.values == {"segment_id": "orders/9", "version": 7}


def test_a_schema_is_found_by_any_unique_beginning() -> None:
    asked = snapshot()
    assert asked.schema(A.fingerprint) == asked.schema(A.fingerprint[:6].upper()) == A
    assert asked.schema(B.fingerprint[:4]) == B
    with pytest.raises(UnknownSchema):
        asked.schema("0000")


def test_a_beginning_that_fits_two_schemas_is_ambiguous() -> None:
    table = Table()
    table.schema("abcd" + "0" * 28, "schema", {"payload": A.payload, "published_micros": 0})
    table.schema("abcd" + "1" * 28, "retired", {"payload": B.payload, "published_micros": 0})
    with pytest.raises(AmbiguousFingerprint):
        table.snapshot().schema("abcd")


ASKED = ["users/1", "nobody/1", "orders/2", "orders/1", "orders/1"]
ANSWERS = {
    "found": [True, False, True, True, True],
    "fingerprint": [None, None, B.fingerprint, A.fingerprint, A.fingerprint],
    "num_rows": [None, None, 0, 10, 10],
}


@pytest.mark.parametrize(
    "ids",
    [
        ASKED,
        tuple(ASKED),
        np.array(ASKED),
        np.array(ASKED, dtype=object),
        pa.array(ASKED),
        pa.array(ASKED, pa.large_string()),
        pa.array(ASKED, pa.string_view()),
        pa.array(ASKED).dictionary_encode(),
        pa.chunked_array([ASKED[:2], ASKED[2:]]),
        pd.Series(ASKED),
        pd.Series(ASKED, index=[9, 8, 7, 6, 5], dtype="string"),
        iter(ASKED),
    ],
    ids=lambda value: type(value).__name__,
)
def test_many_ids_are_answered_in_the_order_asked_whatever_holds_them(ids: Any) -> None:
    assert snapshot().lookup(ids).to_pydict() == ANSWERS


def test_thousands_are_answered_as_a_dictionary_would() -> None:
    numbers = range(5_000)
    known = {
        f"orders/{n}": (None if n % 5 == 0 else f"f{n % 7}", None if n % 3 == 0 else n)
        for n in numbers
    }
    k1, k2 = keys_of(list(known))
    segments = {
        "k1": k1,
        "k2": k2,
        "fingerprint": [fingerprint for fingerprint, _ in known.values()],
        "num_rows": [rows for _, rows in known.values()],
        "datasource": ["orders"] * len(known),
    }
    asked = build(
        Position("t", 1, "s"),
        pa.table(segments, schema=SEGMENTS),
        pa.Table.from_pylist([], SCHEMAS),
    )
    ids = [f"orders/{n * 7 % 10_000}" for n in range(10_000)]
    answers = asked.lookup(pa.array(ids)).to_pydict()
    assert answers["found"] == [name in known for name in ids]
    assert answers["fingerprint"] == [known.get(name, (None, None))[0] for name in ids]
    assert answers["num_rows"] == [known.get(name, (None, None))[1] for name in ids]
    assert [asked.fingerprint_of(name) for name in known] == [f for f, _ in known.values()]
    assert [asked.num_rows(name) for name in known] == [rows for _, rows in known.values()]


def test_keys_that_spark_computed_are_answered_alike() -> None:
    k1, k2 = keys_of(ASKED)
    asked = snapshot()
    for pair in ((k1, k2), (pa.array(k1), pa.array(k2)), (k1.tolist(), k2.tolist())):
        assert asked.lookup_keys(*pair).to_pydict() == ANSWERS


@pytest.mark.parametrize("asked", [Table().snapshot(), snapshot()])
def test_no_ids_get_no_answers(asked: Snapshot) -> None:
    assert asked.lookup([]).to_pydict() == {"found": [], "fingerprint": [], "num_rows": []}


def test_an_empty_snapshot_answers_that_nothing_is_there() -> None:
    assert Table().snapshot().lookup(["orders/1"]).to_pydict() == {
        "found": [False],
        "fingerprint": [None],
        "num_rows": [None],
    }


def test_answers_have_the_same_types_from_an_empty_snapshot() -> None:
    assert Table().snapshot().lookup(["orders/1"]).schema == snapshot().lookup(ASKED).schema


def test_one_bare_id_is_refused_with_the_way_out() -> None:
    with pytest.raises(InvalidInput, match=r"for one write \['orders/1'\], or use schema_of"):
        snapshot().lookup("orders/1")


def test_a_snapshot_travels_and_answers_the_same() -> None:
    asked = snapshot()
    asked.schema_of("orders/1")
    copy = pickle.loads(pickle.dumps(asked))
    assert copy.content() == asked.content()
    assert copy.position == asked.position
    assert copy.schema_of("orders/1") == A
    assert copy.lookup(ASKED).to_pydict() == ANSWERS


def test_a_snapshot_leaves_at_home_what_it_remembers() -> None:
    asked = snapshot()
    size = len(pickle.dumps(asked))
    asked.schema_of("orders/1")
    asked.lookup(ASKED)
    assert len(pickle.dumps(asked)) == size
