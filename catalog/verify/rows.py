"""What each row must say of itself: I1, I2 and I5."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from catalog.commit.rows import DIGEST_SQL
from catalog.delta.layout import (
    BEFORE_SLASH,
    NAME_BUCKETS,
    OPERATION_BUCKETS,
    SCHEMA_BUCKETS,
    bucket_sql,
)
from catalog.errors import InvalidSchema
from catalog.schema import Schema
from catalog.verify.report import Findings, Sort

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Operations may have staged changes of one key side by side, and several parts of one operation,
# too; any other row is known by kind and key alone.
IDENTITY = (
    "kind",
    "key",
    "IF(kind = 'staged', target, NULL) AS target",
    "IF(kind = 'staged', operation, NULL) AS operation",
    "IF(kind = 'staged', part, NULL) AS part",
)
_IDENTITY = "kind, key, target, operation, part"


def check_rows(found: Findings, pinned: str, buckets: int) -> None:
    """Definitions, uniqueness, places and digests at one version."""
    _check_definitions(found, pinned)
    found.expect_none(
        "I2",
        "more than one row for a key of a kind",
        f"SELECT {_IDENTITY}, count(*) AS rows FROM (SELECT {', '.join(IDENTITY)} FROM {pinned}) "
        f"GROUP BY {_IDENTITY} HAVING count(*) > 1",
    )
    _check_contents(found, pinned, buckets)


def check_uniqueness(found: Findings, events: DataFrame) -> None:
    """I2 at every version: `events` says for each row when it came (1) and went (-1)."""
    per_version = events.groupBy(*_IDENTITY.split(", "), "version").agg(F.sum("delta").alias("net"))
    totals = per_version.selectExpr(
        *_IDENTITY.split(", "),
        "version",
        f"sum(net) OVER (PARTITION BY {_IDENTITY} ORDER BY version) AS rows",
    )
    found.expect_none(
        "I2", "a key of a kind did not have one row or none", totals.where("rows NOT IN (0, 1)")
    )


def _bucket(buckets: int) -> str:
    """The bucket in which a row must stand; null for a change of what does not exist."""
    by_schema = bucket_sql("key", SCHEMA_BUCKETS)
    by_datasource = bucket_sql(BEFORE_SLASH, buckets)
    by_operation = bucket_sql(BEFORE_SLASH, OPERATION_BUCKETS)
    by_name = bucket_sql(BEFORE_SLASH, NAME_BUCKETS)
    staged = (
        f"CASE WHEN target IN ('segment', 'datasource') THEN {by_datasource} "
        "WHEN target = 'object' THEN 0 END"
    )
    return (
        f"CASE WHEN kind IN ('schema', 'retired') THEN {by_schema} "
        f"WHEN kind IN ('segment', 'datasource') THEN {by_datasource} "
        f"WHEN kind = 'staged' THEN {staged} "
        f"WHEN kind IN ('operation', 'part') THEN {by_operation} "
        f"WHEN kind IN ('named', 'version') THEN {by_name} "
        "WHEN kind IN ('object', 'epoch', 'guard', 'setting') THEN 0 ELSE bucket END"
    )


def _check_contents(found: Findings, pinned: str, buckets: int) -> None:
    """Places and digests, in one scan."""
    misplaced = (
        f"NOT bucket <=> {_bucket(buckets)} OR (kind = 'segment' "
        "AND NOT datasource <=> substring_index(key, '/', 1))"
    )
    altered = f"kind = 'segment' AND digest <> {DIGEST_SQL}"
    # The terms name their schema by its fingerprint, which clean-ups look for in the column.
    forged = (
        "kind = 'datasource' AND payload IS NOT NULL AND (NOT digest <=> sha2(payload, 256) "
        "OR NOT fingerprint <=> get_json_object(payload, '$.fingerprint'))"
    )
    rows = found.session.sql(
        f"SELECT kind, bucket, key, digest, {misplaced} AS misplaced, {altered} AS altered, "
        f"{forged} AS forged FROM {pinned}"
    )
    found.expect_no_flags(
        rows,
        [
            Sort("I2", "a row stands in a bucket where nobody looks for its key", "misplaced"),
            Sort("I5", "a segment's content does not have its digest", "altered"),
            Sort("I5", "a contract's terms do not have their digest or their schema", "forged"),
        ],
    )


# --- definitions ----------------------------------------------------------------------------------


def _check_definitions(found: Findings, pinned: str) -> None:
    rows = found.session.sql(
        f"SELECT kind, key, digest, payload FROM {pinned} WHERE kind IN ('schema', 'retired')"
    )
    wrong = rows.mapInArrow(_wrong_definitions, "kind STRING, key STRING, problem STRING")
    found.expect_none("I1", "a fingerprint does not stand for its definition", wrong)
    found.expect_none(
        "I1",
        "a live and a retired schema share a fingerprint but not a definition",
        rows.groupBy("key")
        .agg(F.count_distinct("digest").alias("definitions"))
        .where("definitions > 1"),
    )


def _wrong_definitions(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        wrong = [
            {"kind": row["kind"], "key": row["key"], "problem": problem}
            for row in batch.to_pylist()
            if (problem := _problem(row)) is not None
        ]
        schema = pa.schema([("kind", pa.string()), ("key", pa.string()), ("problem", pa.string())])
        yield pa.RecordBatch.from_pylist(wrong, schema=schema)


def _problem(row: dict[str, Any]) -> str | None:
    try:
        schema = Schema.from_payload(row["payload"] or "")
    except InvalidSchema as error:
        return f"the payload cannot be read: {error.message}"
    if schema.fingerprint != row["key"]:
        return f"the payload has the fingerprint {schema.fingerprint}"
    if schema.digest != row["digest"]:
        return f"the payload has the digest {schema.digest}, the row {row['digest']}"
    return None
