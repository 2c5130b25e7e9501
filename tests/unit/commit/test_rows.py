"""Rows of the table, from segments and from batches of a frame: the same rows, the same rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from catalog.commit.rows import (
    entry_table,
    key_table,
    schema_bucket,
    segment_bucket,
)
from catalog.delta.layout import bucket_of
from catalog.errors import InvalidInput
from catalog.model import Kind, Segment
from catalog.schema import Schema
from catalog.segments.described import INVALID, STAGED, STAGED_DDL, Describe
from tests.unit.builders import batch, segment

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
TIME = pa.timestamp("us", tz="UTC")
FRAME = pa.schema(
    [
        ("segment_id", pa.string()),
        ("schema", pa.string()),
        ("num_rows", pa.int64()),
        ("size_bytes", pa.int64()),
        ("location", pa.string()),
        ("starts_at", TIME),
        ("ends_at", TIME),
    ]
)
GOOD = {
    "segment_id": "orders/1",
    "schema": "a INT",
    "num_rows": 1,
    "size_bytes": None,
    "location": None,
    "starts_at": None,
    "ends_at": None,
}


def frame(*rows: dict[str, Any]) -> pa.RecordBatch:
    """A batch of a frame; what a row does not say is as in `GOOD`."""
    return pa.RecordBatch.from_pylist([GOOD | row for row in rows], schema=FRAME)


def as_segment(row: dict[str, Any]) -> Segment | None:
    """The segment that a row stands for, or nothing if it breaks a rule."""
    given = dict(row)
    try:
        return Segment(given.pop("segment_id"), given.pop("schema"), **given)
    except InvalidInput:
        return None


def staged(*rows: dict[str, Any], buckets: int = 16) -> list[dict[str, Any]]:
    table = Describe(buckets).staged(frame(*rows), set())
    assert table.schema == STAGED
    return table.to_pylist()


def of_kind(rows: list[dict[str, Any]], *kinds: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["kind"] in kinds]


def entries(*segments: Segment, buckets: int = 16) -> list[dict[str, Any]]:
    schemas = {m.schema.fingerprint: (m.schema, "ann") for m in segments if m.schema is not None}
    actors = ["ann"] * len(segments)
    return entry_table(segments, actors, schemas, buckets, "c1", NOON).to_pylist()


# --- the same rules ------------------------------------------------------------------------------

good_ids = st.from_regex(r"[a-c]/[x-z]", fullmatch=True)
ids = st.one_of(
    st.none(),
    good_ids,
    good_ids,
    st.text(st.sampled_from("/a\n\x00\x7f\x85\x9f\xa0é😀 "), max_size=5),
    st.text(max_size=4).map(lambda text: f"a/{text}"),
    st.sampled_from(
        [
            "a" * 255 + "/x",
            "a" * 256 + "/x",
            "😀" * 255 + "/x",
            "a/" + "é" * 1022,
            "a/" + "é" * 1023,
            "a//",
            "//a",
            "a/b/c",
        ]
    ),
)
texts = st.sampled_from(
    ["a INT", "a INT", "a BIGINT", "b STRING, a INT", "a INT, b STRING", "a INTT", "", None]
)
counts = st.one_of(st.none(), st.integers(0, 9), st.integers(-(2**63), 2**63 - 1))
locations = st.one_of(
    st.none(),
    st.none(),
    st.text(max_size=4),
    st.sampled_from(["/data/x", "", "é" * 4096, "é" * 4097, "/a\nb", "/\x80"]),
)
moments = st.none() | st.integers(-3, 3).map(lambda count: NOON + timedelta(microseconds=count))
frame_rows = st.fixed_dictionaries(
    {
        "segment_id": ids,
        "schema": texts,
        "num_rows": st.integers(0, 9) | counts,
        "size_bytes": counts,
        "location": locations,
        "starts_at": moments,
        "ends_at": moments,
    }
)


@given(st.lists(frame_rows, min_size=1, max_size=6))
@example([GOOD | {"schema": None}])
@example([GOOD | {"schema": None, "num_rows": None, "location": "/data/x"}])
def test_a_frame_accepts_exactly_the_rows_that_segments_accept(rows: list[dict[str, Any]]) -> None:
    found = of_kind(staged(*rows), "segment", INVALID)
    assert [row["kind"] for row in found] == [
        INVALID if as_segment(row) is None else "segment" for row in rows
    ]
    assert all((row["kind"] == INVALID) == bool(row["payload"]) for row in found)


@given(st.lists(frame_rows, min_size=1, max_size=6), st.integers(1, 40))
def test_a_frame_stages_the_rows_that_segments_give(
    rows: list[dict[str, Any]], buckets: int
) -> None:
    good = [(row, made) for row in rows if (made := as_segment(row)) is not None]
    found = staged(*(row for row, _ in good), buckets=buckets)
    wanted = entries(*(made for _, made in good), buckets=buckets)
    shared = [name for name in STAGED.names if name not in ("payload", "schema_digest")]
    assert [[row[name] for name in shared] for row in of_kind(found, "segment")] == [
        [row[name] for name in shared] for row in of_kind(wanted, "segment")
    ]
    assert {
        row["key"]: (row["bucket"], row["fingerprint"], row["schema_digest"])
        for row in of_kind(found, "schema")
    } == {
        row["key"]: (row["bucket"], row["fingerprint"], row["digest"])
        for row in of_kind(wanted, "schema")
    }


def raw(column: str, text: bytes) -> pa.RecordBatch:
    """A batch with text that is not UTF-8, as Spark lets it be: `CAST(X'ff' AS STRING)`."""
    _, offsets, data = pa.array([text], pa.binary()).buffers()
    given = frame({})
    return given.set_column(
        given.schema.get_field_index(column),
        FRAME.field(column),
        pa.StringArray.from_buffers(1, offsets, data),
    )


REASONS = [
    ({"segment_id": None}, "has no id"),
    ({"segment_id": "orders"}, "must be named datasource/name with both parts filled"),
    ({"segment_id": "/1"}, "must be named datasource/name with both parts filled"),
    ({"segment_id": "o" * 256 + "/1"}, "a datasource longer than 255"),
    ({"segment_id": "o/" + "x" * 1023}, "an id longer than 1024 characters"),
    ({"segment_id": "orders/\x85"}, "has control characters in its id"),
    ({"schema": None}, "has neither a schema nor a location where a backfill finds it"),
    ({"schema": None, "location": ""}, "has an empty location"),
    ({"schema": ""}, "has a bad schema: a schema must have at least one column"),
    ({"schema": "a INTT"}, "has a bad schema: DDL is malformed at position 3, near 'INTT'"),
    ({"num_rows": None}, "has no num_rows"),
    ({"num_rows": -1}, "has a negative num_rows"),
    ({"size_bytes": -1}, "has a negative size_bytes"),
    ({"location": ""}, "has an empty location"),
    ({"location": "x" * 4097}, "longer than 4096 characters"),
    ({"location": "/a\tb"}, "has control characters in its location"),
    ({"starts_at": NOON, "ends_at": NOON}, "starts at or after its end"),
]


@pytest.mark.parametrize(("changes", "reason"), REASONS)
def test_a_row_that_breaks_a_rule_is_staged_with_the_reason(
    changes: dict[str, Any], reason: str
) -> None:
    (row,) = of_kind(staged(changes), "segment", INVALID)
    assert row["kind"] == INVALID
    assert row["key"] == (GOOD | changes)["segment_id"]
    assert reason in row["payload"]


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("segment_id", b"orders/\xff"),
        ("segment_id", b"ord\xffers/1"),
        ("schema", b"a INT COMMENT '\xff'"),
        ("location", b"/data/\xff"),
    ],
)
def test_text_that_is_not_utf8_breaks_a_rule(column: str, text: bytes) -> None:
    kinds = Describe(16).staged(raw(column, text), set()).column("kind").to_pylist()
    assert (kinds.count(INVALID), kinds.count("segment")) == (1, 0)


@pytest.mark.parametrize("times", [{"ends_at": 2**60}, {"starts_at": -(2**60)}])
def test_a_time_that_a_segment_cannot_hold_breaks_a_rule(times: dict[str, int]) -> None:
    table = Describe(16).staged(frame(times), set())
    assert table.column("kind").to_pylist()[0] == INVALID
    assert table.column("payload").to_pylist()[0] == "has a time beyond the years 1 to 9999"


def test_one_bad_row_leaves_the_others_as_they_are() -> None:
    found = staged({}, {"segment_id": "orders/2", "schema": ""}, {"segment_id": "orders/3"})
    assert [(row["kind"], row["key"]) for row in of_kind(found, "segment", INVALID)] == [
        ("segment", "orders/1"),
        (INVALID, "orders/2"),
        ("segment", "orders/3"),
    ]


def test_an_empty_batch_gives_nothing() -> None:
    empty = frame({}).slice(0, 0)
    assert Describe(16).staged(empty, set()).num_rows == 0
    assert list(Describe(16)(iter([empty, empty]))) == []


def test_batches_are_staged_one_by_one() -> None:
    batches = [frame({}), frame({}).slice(0, 0), frame({"segment_id": "orders/2"})]
    tables = pa.Table.from_batches(list(Describe(16)(iter(batches))), STAGED)
    # The schema of both has its row from the first.
    assert sorted(tables.column("kind").to_pylist()) == ["schema", "segment", "segment"]


def test_definitions_that_are_one_schema_give_one_schema_row() -> None:
    found = staged(
        {"schema": "a INT, b STRING"},
        {"schema": "b string, a integer", "segment_id": "orders/2"},
        {"schema": Schema.of("a INT, b STRING").json, "segment_id": "orders/3"},
    )
    (row,) = of_kind(found, "schema")
    assert row["key"] == row["fingerprint"] == Schema.of("a INT, b STRING").fingerprint
    assert row["schema_digest"] == Schema.of("a INT, b STRING").digest
    assert Schema.from_payload(row["payload"]) == Schema.of("a INT, b STRING")


def test_the_staged_columns_have_the_names_of_their_ddl() -> None:
    assert [part.split()[0] for part in STAGED_DDL.split(", ")] == STAGED.names


# --- rows of a publish ---------------------------------------------------------------------------


def test_a_publish_has_every_schema_once_and_every_segment() -> None:
    made = [segment(f"orders/{n}", ddl) for n, ddl in enumerate(["a INT", "b INT", "a int"])]
    given = batch(*made)
    schemas = {name: (schema, "bob") for name, schema in given.schemas.items()}
    rows = entry_table(made, ["ann"] * 3, schemas, 16, "c1", NOON).to_pylist()
    a, b = Schema.of("a INT"), Schema.of("b INT")
    assert [(row["kind"], row["key"], row["fingerprint"], row["digest"]) for row in rows] == [
        ("schema", a.fingerprint, a.fingerprint, a.digest),
        ("schema", b.fingerprint, b.fingerprint, b.digest),
        ("segment", "orders/0", a.fingerprint, made[0].digest),
        ("segment", "orders/1", b.fingerprint, made[1].digest),
        ("segment", "orders/2", a.fingerprint, made[2].digest),
    ]
    assert [row["payload"] for row in rows] == [a.payload, b.payload, None, None, None]
    assert [row["changed_by"] for row in rows] == ["bob", "bob", "ann", "ann", "ann"]
    assert {row["commit_id"] for row in rows} == {"c1"}
    assert {row["revision"] for row in rows} == {1}
    assert {row["published_at"] for row in rows} == {row["changed_at"] for row in rows} == {NOON}


def test_a_row_holds_every_field_of_its_segment() -> None:
    made = segment("o/1", rows=7, size_bytes=8, location="/x", starts_at=NOON, ends_at=None)
    (row,) = of_kind(entries(made), "segment")
    assert {name: row[name] for name in GOOD if name in row} == {
        "num_rows": 7,
        "size_bytes": 8,
        "location": "/x",
        "starts_at": NOON,
        "ends_at": None,
    }
    assert (row["datasource"], row["state"]) == ("o", None)


def test_a_row_without_a_schema_says_nothing_of_it_and_an_inferred_one_is_marked() -> None:
    (row,) = entries(Segment("o/1", location="/x"))
    assert (row["kind"], row["fingerprint"], row["num_rows"], row["state"]) == (
        "segment",
        None,
        None,
        None,
    )
    (row,) = of_kind(entries(Segment("o/1", "a INT", inferred=True)), "segment")
    assert (row["num_rows"], row["state"]) == (None, "inferred")


def test_digests_of_segments_can_be_left_to_the_engine() -> None:
    made = segment()
    schemas = {made.schema.fingerprint: (made.schema, "ann")}
    rows = entry_table([made], ["ann"], schemas, 16, "c1", NOON, digests=False).to_pylist()
    assert [row["digest"] for row in rows] == [made.schema.digest, None]


def test_a_publish_of_nothing_has_no_rows() -> None:
    assert entries() == []


def test_rows_that_name_others_carry_the_commit_they_were_seen_with() -> None:
    table = key_table(Kind.RETIRED, {"f1": (3, "c1"), "f2": (4, None)})
    assert table.to_pylist() == [
        {"kind": "retired", "bucket": 3, "key": "f1", "commit_id": "c1"},
        {"kind": "retired", "bucket": 4, "key": "f2", "commit_id": None},
    ]
    assert key_table(Kind.SEGMENT, {}).num_rows == 0


# --- buckets -------------------------------------------------------------------------------------


# The first of these stands in Spark's own documentation of xxhash64.
@pytest.mark.parametrize(
    ("text", "hashed"),
    [("ABC", 4105715581806190027), ("Spark", -4294468057691064905)],
)
@pytest.mark.parametrize("buckets", [1, 7, 16, 1000])
def test_a_bucket_is_the_one_that_spark_computes(text: str, hashed: int, buckets: int) -> None:
    pmod = hashed % buckets  # Python's % has the sign of the divisor, as pmod has
    assert bucket_of(text, buckets) == pmod


def test_the_bucket_of_a_segment_follows_from_its_datasource_alone() -> None:
    assert {segment_bucket(f"ABC/{name}", 16) for name in ("1", "2/3", "😀")} == {11}


def test_the_bucket_of_a_schema_is_one_of_sixteen() -> None:
    assert schema_bucket("ABC") == 11


@given(st.text(), st.integers(1, 1000))
def test_a_bucket_is_below_the_number_of_buckets(text: str, buckets: int) -> None:
    assert 0 <= bucket_of(text, buckets) < buckets
