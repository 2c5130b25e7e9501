"""Announcements as values: from state to state by deltas, and documents that are none."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog import Schema
from catalog.errors import InvalidInput
from catalog.evolution import merge
from catalog.realtime.announcement import (
    Announced,
    Change,
    Delta,
    Document,
    Gap,
    State,
    apply,
    change,
    replay,
)
from tests.unit.evolution.strategies import related
from tests.unit.realtime import NOON

A = Announced("a INT, s STRING", 5)
B = Announced("b DATE")


def document(base: State | None = None, *deltas: Delta, **given: Any) -> Document:
    heading = {"writer": "w", "session": "s1", "beat": 3, "renewed_at": NOON, "ttl": 120.0}
    return Document(**(heading | given), base=base or State(), deltas=deltas)


def exactly(segments: Any) -> dict[str, tuple[str, int | None]]:
    """Segments with all that equality of schemas does not see: order and comments."""
    return {name: (each.schema.json, each.num_rows) for name, each in segments.items()}


# --- from state to state ---


@settings(max_examples=300)
@given(related(2), st.none() | st.integers(0, 9), st.none() | st.integers(0, 9))
def test_the_change_between_any_two_leads_from_one_to_the_other(
    pair: tuple[Schema, ...], before: int | None, after: int | None
) -> None:
    old, new = Announced(pair[0], before), Announced(pair[1], after)
    each = change(old, new)
    told = {} if each is None else {"o/1": each}
    state = apply(State(4, {"o/1": old}), Delta(5, told))
    assert isinstance(state, State)
    assert exactly(state.segments) == exactly({"o/1": new})


def test_a_segment_that_grows_brings_only_new_and_widened_columns() -> None:
    grown = merge(A.schema, "a BIGINT, s STRING, t ARRAY<INT>")
    each = change(A, Announced(grown, 6))
    assert isinstance(each, Change)
    assert each.columns is not None
    assert each.columns.ddl == "a BIGINT, t ARRAY<INT>"
    assert (each.result, each.num_rows) == (grown.fingerprint, 6)


def test_a_column_that_may_now_be_null_is_widened() -> None:
    each = change(Announced("a INT NOT NULL, b INT"), Announced("a INT, b INT"))
    assert isinstance(each, Change)
    assert each.columns is not None
    assert each.columns.ddl == "a INT"


def test_rows_alone_bring_no_columns_and_nothing_brings_nothing() -> None:
    assert change(A, Announced(A.schema, 6)) == Change(6)
    assert change(A, A) is None
    assert change(None, A) is A


def test_columns_that_went_or_changed_places_make_it_absolute() -> None:
    swapped = Announced("s STRING, a INT", 5)
    assert change(A, swapped) is swapped
    fewer = Announced("a INT", 5)
    assert change(A, fewer) is fewer


GAPS = [
    ("a number is left out", Delta(6), "6 does not follow 4"),
    ("a number comes again", Delta(4), "4 does not follow 4"),
    ("rows of an unknown one", Delta(5, {"o/2": Change(1)}), "o/2: it has no base"),
    (
        "columns of an unknown one",
        Delta(5, {"o/2": Change(1, B.schema, B.schema.fingerprint)}),
        "o/2: it has no base",
    ),
    (
        "another result",
        Delta(5, {"o/1": Change(1, B.schema, B.schema.fingerprint)}),
        f"not {B.schema.fingerprint}",
    ),
    ("no schema at all", Delta(5, {"o/1": Change(1, Schema.of("A INT"), "0")}), "only in case"),
    ("the end of an unknown one", Delta(5, gone=("o/2",)), "o/2, which was not announced"),
]


@pytest.mark.parametrize(("delta", "why"), [each[1:] for each in GAPS], ids=[g[0] for g in GAPS])
def test_a_delta_that_does_not_fit_is_a_gap(delta: Delta, why: str) -> None:
    found = apply(State(4, {"o/1": A}), delta)
    assert isinstance(found, Gap)
    assert why in found.why


def test_a_delta_adds_changes_and_ends_segments_and_leaves_the_state_before_alone() -> None:
    before = State(4, {"o/1": A, "o/2": A})
    after = apply(before, Delta(5, {"o/3": B, "o/1": Change(9)}, gone=("o/2",)))
    assert after == State(5, {"o/1": Announced(A.schema, 9), "o/3": B})
    assert before == State(4, {"o/1": A, "o/2": A})


def test_replaying_passes_by_what_was_seen_and_stops_at_a_gap() -> None:
    deltas = [Delta(5, {"o/1": Change(6)}), Delta(6, {"o/1": Change(7)})]
    for state in (State(4, {"o/1": A}), State(5, {"o/1": A})):
        assert replay(state, deltas) == State(6, {"o/1": Announced(A.schema, 7)})
    assert isinstance(replay(State(3, {"o/1": A}), deltas), Gap)


# --- documents ---


@settings(max_examples=100)
@given(related(4), st.integers(0, 2**63 - 1))
def test_a_document_comes_back_as_it_was(schemas: tuple[Schema, ...], rows: int) -> None:
    a, b, c, d = schemas
    grown = change(Announced(a), Announced(b, rows))
    assert grown is not None or a.json == b.json
    told = {"o/3": Announced(d, rows)} | ({} if grown is None else {"o/1": grown})
    base = State(7, {"o/1": Announced(a), "o/2": Announced(c, 0)})
    there = document(base, Delta(8, told), Delta(9, gone=("o/2",)))
    back = Document.from_json(there.to_json().encode())
    assert back == there
    assert exactly(back.base.segments) == exactly(base.segments)
    for one, other in zip(back.deltas, there.deltas, strict=True):
        assert one == other
    assert isinstance(replay(back.base, back.deltas), State)


def test_a_schema_stands_once_however_many_segments_have_it() -> None:
    base = State(1, {f"o/{number}": A for number in range(50)})
    written = json.loads(document(base, Delta(2, {"o/x": A})).to_json())
    assert written["schemas"] == {A.schema.fingerprint: json.loads(A.schema.json)}
    assert written["base"]["segments"]["o/49"] == {
        "schema": A.schema.fingerprint,
        "num_rows": 5,
    }


def test_one_fingerprint_with_two_orders_of_columns_keeps_both() -> None:
    other = Announced("s STRING, a INT COMMENT 'why'")
    assert other.schema.fingerprint == A.schema.fingerprint
    base = State(1, {"o/1": A, "o/2": other, "o/3": A, "o/4": other})
    back = Document.from_json(document(base).to_json())
    assert exactly(back.base.segments) == exactly(base.segments)


def test_deltas_hold_no_more_than_they_must() -> None:
    grown = Change(6, Schema.of("t DATE"), "f00")
    deltas = (Delta(2, {"o/1": Change(7), "o/2": grown}), Delta(3, gone=("o/1",)))
    written = json.loads(document(State(1, {"o/1": A, "o/2": A}), *deltas).to_json())
    first, second = written["deltas"]
    field = {"name": "t", "type": "date", "nullable": True, "metadata": {}}
    assert first["segments"] == {
        "o/1": {"num_rows": 7},
        "o/2": {"columns": [field], "result": "f00", "num_rows": 6},
    }
    assert second == {"sequence": 3, "segments": {}, "gone": ["o/1"]}


def test_a_document_is_good_until_its_ttl_is_over() -> None:
    there = document(ttl=60.0)
    assert not there.expired(NOON.replace(second=59))
    assert there.expired(NOON.replace(minute=1))


GOOD = document(
    State(1, {"o/1": A, "o/2": B}),
    Delta(2, {"o/1": Change(7), "o/3": A}),
    Delta(3, {"o/1": Change(8, Schema.of("t DATE"), "0" * 32)}, gone=("o/2",)),
).to_json()


def bad(change: Callable[[dict[str, Any]], Any]) -> str:
    good = json.loads(GOOD)
    change(good)
    return json.dumps(good)


def put(*path: Any) -> Callable[[dict[str, Any]], None]:
    """Puts the last of these at the place that the others name."""
    *way, key, value = path

    def change(document: Any) -> None:
        for step in way:
            document = document[step]
        document[key] = value

    return change


SEGMENT = ("base", "segments", "o/1")
BAD = [
    ("nothing", "", "cannot be read"),
    ("half of it", GOOD[: len(GOOD) // 2], "cannot be read"),
    ("not UTF-8", b"\xff\xfe\xff", "cannot be read"),
    ("too deep", "[" * 100_000, "cannot be read"),
    ("a number too long to read", '{"format": ' + "9" * 5000 + "}", "cannot be read"),
    ("a list", "[]", "format 1, not None"),
    ("another object", "{}", "format 1, not None"),
    ("a newer format", bad(put("format", 2)), "format 1, not 2"),
    ("a format that is true", bad(put("format", True)), "format 1, not True"),
    ("no writer", bad(lambda d: d.pop("writer")), "object with writer is expected"),
    ("a session that is none", bad(put("session", 5)), "session must be of type str, not 5"),
    ("a beat that is text", bad(put("beat", "3")), "beat must be of type int, not '3'"),
    ("a beat that is true", bad(put("beat", True)), "beat must be of type int, not True"),
    ("no beat yet", bad(put("beat", 0)), "beat must be a whole number from 1"),
    ("a time of no zone", bad(put("renewed_at", "2024-05-01T10:00:00")), "time zone"),
    ("a time that is none", bad(put("renewed_at", "noon")), "'noon'"),
    ("a ttl of nothing", bad(put("ttl", 0.0)), "ttl must be above 0"),
    ("a ttl for ever", bad(put("ttl", float("inf"))), "ttl must be above 0"),
    ("a ttl that is no number", bad(put("ttl", float("nan"))), "ttl must be above 0"),
    ("no base", bad(lambda d: d.pop("base")), "object with base is"),
    ("a base of no segments", bad(put("base", {"sequence": 1})), "object with segments is"),
    ("a base of no number", bad(put("base", "sequence", None)), "sequence must be of type int"),
    ("a base that only counts", bad(put(*SEGMENT, {"num_rows": 1})), "base is not absolute"),
    ("a segment that is a list", bad(put(*SEGMENT, [])), "with num_rows is expected, not []"),
    ("a segment that is a number", bad(put(*SEGMENT, 5)), "with num_rows is expected, not 5"),
    ("a segment of nothing", bad(put(*SEGMENT, {})), "with num_rows is expected, not {}"),
    ("an id without a datasource", bad(put("base", "segments", "o", {})), "datasource/name"),
    ("an unknown schema", bad(put(*SEGMENT, "schema", "f00")), "not there, not 'f00'"),
    ("a schema by a number", bad(put(*SEGMENT, "schema", 7)), "schema must be of type str"),
    ("rows below zero", bad(put(*SEGMENT, "num_rows", -1)), "num_rows must be a whole number"),
    ("rows in parts", bad(put(*SEGMENT, "num_rows", 1.5)), "num_rows must be of type int"),
    ("too many rows", bad(put(*SEGMENT, "num_rows", 2**63)), "num_rows must be a whole number"),
    ("a schema that is no struct", bad(put("schemas", A.schema.fingerprint, 5)), "INVALID_SCHEMA"),
    (
        "a schema under another's name",
        bad(put("schemas", A.schema.fingerprint, json.loads(B.schema.json))),
        f"schema {A.schema.fingerprint} is {B.schema.fingerprint}",
    ),
    (
        "a schema of a type that is none",
        bad(put("schemas", A.schema.fingerprint, "fields", 0, "type", "integre")),
        "integre",
    ),
    ("no deltas", bad(put("deltas", None)), "deltas must be of type list"),
    (
        "a delta that is text",
        bad(put("deltas", 0, "x")),
        "object with segments is expected, not 'x'",
    ),
    ("a delta of no number", bad(put("deltas", 0, "sequence", 1.0)), "sequence must be of type"),
    ("rows of a delta below zero", bad(put("deltas", 0, "segments", "o/1", "num_rows", -2)), "-2"),
    (
        "columns that are none",
        bad(put("deltas", 1, "segments", "o/1", "columns", [])),
        "at least one column",
    ),
    (
        "columns that lead nowhere",
        bad(lambda d: d["deltas"][1]["segments"]["o/1"].pop("result")),
        "object with result is expected",
    ),
    ("the end of a number", bad(put("deltas", 1, "gone", [4])), "must be a string, not 4"),
    ("the end of all", bad(put("deltas", 1, "gone", "o/2")), "gone must be of type list"),
]


@pytest.mark.parametrize(("text", "says"), [each[1:] for each in BAD], ids=[b[0] for b in BAD])
def test_what_is_no_announcement_is_refused_with_the_reason(text: str | bytes, says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Document.from_json(text)
    assert says in str(refused.value)


def test_the_bad_documents_are_bad_only_in_one_place() -> None:
    assert Document.from_json(bad(lambda d: None)) == Document.from_json(GOOD)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2)
    ),
    max_leaves=4,
)


def places(document: Any, *way: Any) -> list[tuple[Any, ...]]:
    """The way to everything that is inside a document."""
    keys = document if isinstance(document, dict) else range(len(document))
    found = []
    for key in keys:
        found.append((*way, key))
        if isinstance(document[key], dict | list):
            found += places(document[key], *way, key)
    return found


@settings(max_examples=500)
@given(st.sampled_from(places(json.loads(GOOD))), st.none() | st.tuples(JUNK))
def test_whatever_is_put_in_a_document_it_is_read_or_refused(
    place: tuple[Any, ...], junk: tuple[Any] | None
) -> None:
    harmed = holder = json.loads(GOOD)
    for step in place[:-1]:
        holder = holder[step]
    if junk is None:
        del holder[place[-1]]
    else:
        holder[place[-1]] = junk[0]
    try:
        found = Document.from_json(json.dumps(harmed))
    except InvalidInput:
        return
    assert Document.from_json(found.to_json()) == found
    assert isinstance(replay(found.base, found.deltas), State | Gap)


def test_what_is_announced_is_checked_when_it_is_made() -> None:
    with pytest.raises(InvalidInput, match="num_rows must be a whole number"):
        Announced("a INT", True)
    with pytest.raises(InvalidInput, match="at least one column"):
        Announced("")
