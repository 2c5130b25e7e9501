"""Rows of a frame, checked and described on the executors before they are staged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute

from catalog.commit.rows import TIME, schema_bucket
from catalog.delta.layout import bucket_of
from catalog.errors import InvalidSchema
from catalog.model import (
    CONTROL,
    LONGEST_DATASOURCE,
    LONGEST_ID,
    LONGEST_LOCATION,
    Kind,
    micros,
)
from catalog.schema import Schema

# The stubs of pyarrow.compute know fewer array types than its functions take.
pc: Any = pyarrow.compute

INVALID = "invalid"
_FIRST_MICROS = micros(datetime.min.replace(tzinfo=UTC))
_LAST_MICROS = micros(datetime.max.replace(tzinfo=UTC))

_STAGED_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("kind", pa.string()),
    ("bucket", pa.int32()),
    ("key", pa.string()),
    ("fingerprint", pa.string()),
    ("schema_digest", pa.string()),
    ("datasource", pa.string()),
    ("num_rows", pa.int64()),
    ("size_bytes", pa.int64()),
    ("location", pa.string()),
    ("starts_at", TIME),
    ("ends_at", TIME),
    ("payload", pa.string()),
]
STAGED = pa.schema(_STAGED_COLUMNS)
_SQL = {pa.string(): "STRING", pa.int32(): "INT", pa.int64(): "BIGINT", TIME: "TIMESTAMP"}
STAGED_DDL = ", ".join(f"{name} {_SQL[kind]}" for name, kind in _STAGED_COLUMNS)


@dataclass(frozen=True)
class Describe:
    """Turns batches of (segment_id, schema, …) into staged rows; runs on the executors.

    There is a row for each segment, a row for each schema that the task meets for the first time,
    and a row of kind `invalid`, with the reason in `payload`, for a row that breaks a rule.
    """

    buckets: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        seen: set[tuple[str, str]] = set()
        for batch in batches:
            if batch.num_rows:
                yield from self.staged(batch, seen).to_batches()

    def staged(self, batch: pa.RecordBatch, seen: set[tuple[str, str]]) -> pa.Table:
        """The staged rows of one batch; `seen` holds the schemas that have a row already."""
        batch, garbled = _readable(batch)
        ids = batch.column("segment_id").cast(pa.string())
        texts = batch.column("schema").cast(pa.string()).dictionary_encode()
        described = [_describe(str(text)) for text in texts.dictionary.to_pylist()]
        fingerprints = pa.array(
            [d.fingerprint if isinstance(d, Schema) else None for d in described], pa.string()
        ).take(texts.indices)
        complaints = pa.array(
            [None if isinstance(d, Schema) else d for d in described], pa.string()
        ).take(texts.indices)
        datasources = pc.replace_substring_regex(ids, "(?s)/.*", "").dictionary_encode()
        buckets = pa.array(
            [bucket_of(name, self.buckets) for name in datasources.dictionary.to_pylist()],
            pa.int32(),
        ).take(datasources.indices)
        problem = _problem(batch, ids, datasources.cast(pa.string()), complaints)
        problem = pc.if_else(garbled, pa.scalar("has text that is not UTF-8"), problem)
        good = pc.is_null(problem)
        segments = pa.table(
            {
                "kind": pc.if_else(good, Kind.SEGMENT.value, INVALID),
                "bucket": buckets,
                "key": ids,
                "fingerprint": fingerprints,
                "schema_digest": pa.nulls(len(ids), pa.string()),
                "datasource": datasources.cast(pa.string()),
                "num_rows": batch.column("num_rows").cast(pa.int64()),
                "size_bytes": batch.column("size_bytes").cast(pa.int64()),
                "location": batch.column("location").cast(pa.string()),
                "starts_at": batch.column("starts_at").cast(TIME),
                "ends_at": batch.column("ends_at").cast(TIME),
                "payload": problem,
            },
            schema=STAGED,
        )
        return pa.concat_tables([segments, _schema_rows(described, seen)])


def _readable(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Any]:
    """The batch with valid UTF-8, and for each row whether it was invalid before."""
    garbled: Any = pa.repeat(False, batch.num_rows)
    for place, field in enumerate(batch.schema):
        if not pa.types.is_string(field.type) and not pa.types.is_large_string(field.type):
            continue
        column: Any = batch.column(place)
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            raw = column.cast(pa.binary()).to_pylist()
            texts = [None if data is None else data.decode(errors="replace") for data in raw]
            bad = [t is not None and t.encode() != d for t, d in zip(texts, raw, strict=True)]
            garbled = pc.or_(garbled, pa.array(bad))
            batch = batch.set_column(place, field.name, pa.array(texts, pa.string()))
    return batch, garbled


def _describe(text: str) -> Schema | str:
    try:
        return Schema.of(text)
    except InvalidSchema as error:
        return f"has a bad schema: {error.message}"


def _schema_rows(described: Iterable[Schema | str], seen: set[tuple[str, str]]) -> pa.Table:
    # By digest too: the check that follows refuses two definitions with one fingerprint.
    schemas = {(d.fingerprint, d.digest): d for d in described if isinstance(d, Schema)}
    new = [schema for signature, schema in schemas.items() if signature not in seen]
    seen.update(schemas)
    rows = [
        {
            "kind": Kind.SCHEMA.value,
            "bucket": schema_bucket(schema.fingerprint),
            "key": schema.fingerprint,
            "fingerprint": schema.fingerprint,
            "schema_digest": schema.digest,
            "payload": schema.payload,
        }
        for schema in new
    ]
    return pa.Table.from_pylist(rows, schema=STAGED)


def _beyond(times: Any) -> Any:
    """Whether each time is one that Python's datetime cannot hold."""
    count = times.cast(TIME).cast(pa.int64())
    return pc.or_(pc.less(count, _FIRST_MICROS), pc.greater(count, _LAST_MICROS))


def _problem(batch: pa.RecordBatch, ids: Any, datasources: Any, complaints: Any) -> Any:
    """The first rule that each row breaks, in words, or null: the rules of `Segment`, in bulk."""
    location = batch.column("location").cast(pa.string())
    starts, ends = batch.column("starts_at"), batch.column("ends_at")
    shape = pc.match_substring_regex(ids, r"(?s)^[^/]+/.+$")
    rules = [
        (pc.is_null(ids), "has no id"),
        (pc.invert(shape), "must be named datasource/name with both parts filled"),
        (
            pc.or_(
                pc.greater(pc.utf8_length(ids), LONGEST_ID),
                pc.greater(pc.utf8_length(datasources), LONGEST_DATASOURCE),
            ),
            f"has an id longer than {LONGEST_ID} characters "
            f"or a datasource longer than {LONGEST_DATASOURCE}",
        ),
        (pc.match_substring_regex(ids, CONTROL.pattern), "has control characters in its id"),
        (
            pc.and_(pc.is_null(batch.column("num_rows")), pc.is_valid(batch.column("schema"))),
            "has no num_rows",
        ),
        (pc.less(batch.column("num_rows"), 0), "has a negative num_rows"),
        (pc.less(batch.column("size_bytes"), 0), "has a negative size_bytes"),
        (
            pc.or_(
                pc.equal(pc.utf8_length(location), 0),
                pc.greater(pc.utf8_length(location), LONGEST_LOCATION),
            ),
            f"has an empty location or one longer than {LONGEST_LOCATION} characters",
        ),
        (
            pc.match_substring_regex(location, CONTROL.pattern),
            "has control characters in its location",
        ),
        (pc.or_kleene(_beyond(starts), _beyond(ends)), "has a time beyond the years 1 to 9999"),
        (pc.greater_equal(starts, ends), "starts at or after its end"),
        (
            pc.and_(pc.is_null(batch.column("schema")), pc.is_null(location)),
            "has neither a schema nor a location where a backfill finds it",
        ),
    ]
    problem = complaints
    for broken, words in reversed(rules):
        problem = pc.if_else(pc.fill_null(broken, False), pa.scalar(words, pa.string()), problem)
    return problem
