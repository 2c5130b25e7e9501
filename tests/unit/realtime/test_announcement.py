"""Announcements as values, as JSON documents, and documents that are none."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog import Schema
from catalog.errors import InvalidInput
from catalog.realtime.board import Announced, Announcement
from tests.unit.evolution.strategies import related
from tests.unit.realtime import NOON

A = Announced("a INT, s STRING", 5)
B = Announced("b DATE")


def document(segments: dict[str, Announced] | None = None, **given: Any) -> Announcement:
    heading = {"writer": "w", "session": "s1", "beat": 3, "renewed_at": NOON, "ttl": 120.0}
    return Announcement(**(heading | given), segments=segments or {})


def exactly(segments: Any) -> dict[str, tuple[str, int | None]]:
    """Segments with all that equality of schemas does not see: order and comments."""
    return {name: (each.schema.json, each.num_rows) for name, each in segments.items()}


@settings(max_examples=100)
@given(related(3), st.integers(0, 2**63 - 1))
def test_a_document_comes_back_as_it_was(schemas: tuple[Schema, ...], rows: int) -> None:
    a, b, c = schemas
    segments = {"o/1": Announced(a), "o/2": Announced(b, 0), "o/3": Announced(c, rows)}
    there = document(segments)
    back = Announcement.from_json(there.to_json().encode())
    assert back == there
    assert exactly(back.segments) == exactly(segments)


def test_a_schema_stands_once_however_many_segments_have_it() -> None:
    written = json.loads(document({f"o/{number}": A for number in range(50)}).to_json())
    assert written["schemas"] == {A.schema.fingerprint: json.loads(A.schema.json)}
    assert written["segments"]["o/49"] == {"schema": A.schema.fingerprint, "num_rows": 5}


def test_one_fingerprint_with_two_orders_of_columns_keeps_both() -> None:
    other = Announced("s STRING, a INT COMMENT 'why'")
    assert other.schema.fingerprint == A.schema.fingerprint
    segments = {"o/1": A, "o/2": other, "o/3": A, "o/4": other}
    back = Announcement.from_json(document(segments).to_json())
    assert exactly(back.segments) == exactly(segments)


def test_a_document_is_good_until_its_ttl_is_over() -> None:
    there = document(ttl=60.0)
    assert not there.expired(NOON.replace(second=59))
    assert there.expired(NOON.replace(minute=1))


GOOD = document({"o/1": A, "o/2": B}).to_json()


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


SEGMENT = ("segments", "o/1")
BAD = [
    ("nothing", "", "cannot be read"),
    ("half of it", GOOD[: len(GOOD) // 2], "cannot be read"),
    ("not UTF-8", b"\xff\xfe\xff", "cannot be read"),
    ("too deep", "[" * 100_000, "cannot be read"),
    ("a number too long to read", '{"format": ' + "9" * 5000 + "}", "cannot be read"),
    ("a list", "[]", "format 2, not None"),
    ("another object", "{}", "format 2, not None"),
    ("a newer format", bad(put("format", 3)), "format 2, not 3"),
    ("a format that is true", bad(put("format", True)), "format 2, not True"),
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
    ("no segments", bad(lambda d: d.pop("segments")), "object with segments is"),
    ("segments that are a list", bad(put("segments", [])), "segments must be of type dict"),
    ("a segment of no schema", bad(put(*SEGMENT, {"num_rows": 1})), "object with schema is"),
    ("a segment that is a list", bad(put(*SEGMENT, [])), "with num_rows is expected, not []"),
    ("a segment that is a number", bad(put(*SEGMENT, 5)), "with num_rows is expected, not 5"),
    ("a segment of nothing", bad(put(*SEGMENT, {})), "with num_rows is expected, not {}"),
    ("an id without a datasource", bad(put("segments", "o", {})), "datasource/name"),
    ("an unknown schema", bad(put(*SEGMENT, "schema", "f00")), "is missing, not 'f00'"),
    ("a schema by a number", bad(put(*SEGMENT, "schema", 7)), "schema must be of type str"),
    ("rows below zero", bad(put(*SEGMENT, "num_rows", -1)), "num_rows must be a whole number"),
    ("rows in parts", bad(put(*SEGMENT, "num_rows", 1.5)), "num_rows must be of type int"),
    ("too many rows", bad(put(*SEGMENT, "num_rows", 2**63)), "num_rows must be a whole number"),
    ("a schema that is no struct", bad(put("schemas", A.schema.fingerprint, 5)), "INVALID_SCHEMA"),
    (
        "a schema under another's name",
        bad(put("schemas", A.schema.fingerprint, json.loads(B.schema.json))),
        f"{A.schema.fingerprint} has fingerprint {B.schema.fingerprint}",
    ),
    (
        "a schema of a type that is none",
        bad(put("schemas", A.schema.fingerprint, "fields", 0, "type", "integre")),
        "integre",
    ),
]


@pytest.mark.parametrize(("text", "says"), [each[1:] for each in BAD], ids=[b[0] for b in BAD])
def test_what_is_no_announcement_is_refused_with_the_reason(text: str | bytes, says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Announcement.from_json(text)
    assert says in str(refused.value)


def test_the_bad_documents_are_bad_only_in_one_place() -> None:
    assert Announcement.from_json(bad(lambda d: None)) == Announcement.from_json(GOOD)


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
        found = Announcement.from_json(json.dumps(harmed))
    except InvalidInput:
        return
    assert Announcement.from_json(found.to_json()) == found


def test_what_is_announced_is_checked_when_it_is_made() -> None:
    with pytest.raises(InvalidInput, match="num_rows must be a whole number"):
        Announced("a INT", True)
    with pytest.raises(InvalidInput, match="at least one column"):
        Announced("")
