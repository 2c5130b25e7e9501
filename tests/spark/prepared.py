"""Rows of operations, objects and names, written by raw SQL, past all that Strata checks."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession

from catalog.contracts.model import Contract, Terms
from catalog.delta.layout import (
    COLUMNS,
    DEFAULT_SEGMENT_BUCKETS,
    NAME_BUCKETS,
    OPERATION_BUCKETS,
    bucket_of,
)
from catalog.evolution.compatibility import Mode
from catalog.names.model import Dropped, NameHead, Reason, Version
from catalog.objects.model import ObjectNode, digest_of

Row = dict[str, Any]
NOW = datetime.now(UTC).replace(microsecond=0)
_IDENTITY = ("kind", "key", "target", "operation", "part")


def operation(
    id: str,
    state: str = "open",
    *,
    name: str = "reindex",
    parts: int | None = 1,
    epoch: int | None = None,
    lease: timedelta = timedelta(hours=1),
    opened_at: datetime = NOW,
) -> Row:
    """An operation; its lease counts from when it was opened."""
    until = int((opened_at + lease).timestamp()) * 1_000_000
    said = {"name": name, "parts": parts, "owner": "ann", "lease_micros": until, "epoch": epoch}
    return {
        "kind": "operation",
        "bucket": bucket_of(id, OPERATION_BUCKETS),
        "key": id,
        "operation": id,
        "state": state,
        "payload": json.dumps({**said, "lease_seconds": lease.total_seconds(), "order": None}),
        "published_at": opened_at,
    }


def named(name: str, *fingerprints: str, breaking: int = 1) -> list[Row]:
    """A named schema with a version for each of these fingerprints; one of them may be breaking."""
    head = NameHead(Mode.BACKWARD, len(fingerprints), breaking, {"sum": Dropped("bigint", 2)})
    rows: list[Row] = [
        {
            "kind": "named",
            "key": name,
            "fingerprint": fingerprints[-1],
            "payload": head.payload(),
        }
    ]
    for number, fingerprint in enumerate(fingerprints, 1):
        broken = number == breaking > 1
        why = (Reason("price", "retyped", None, None, "neither holds the other", number - 1),)
        version = Version(number, fingerprint, not broken, why if broken else (), forced=broken)
        rows.append(
            {
                "kind": "version",
                "key": f"{name}/{number}",
                "fingerprint": fingerprint,
                "payload": version.payload(),
            }
        )
    return [{"bucket": bucket_of(name, NAME_BUCKETS), **row} for row in rows]


def part(id: str, number: int = 0) -> Row:
    """A part of an operation."""
    return {
        "kind": "part",
        "bucket": bucket_of(id, OPERATION_BUCKETS),
        "key": f"{id}/{number}",
        "operation": id,
        "part": number,
    }


def staged(id: str, target: str, key: str, action: str, number: int = 0, **columns: Any) -> Row:
    """A change that a part of an operation has staged."""
    bucket = 0 if target == "object" else bucket_of(key.partition("/")[0], DEFAULT_SEGMENT_BUCKETS)
    row = {"kind": "staged", "bucket": bucket, "key": key, "target": target, "operation": id}
    return {**row, "part": number, "action": action, "base": "absent", **columns}


def stable(epoch: int) -> Row:
    """The stable epoch."""
    return {"kind": "epoch", "bucket": 0, "key": "stable", "payload": json.dumps({"stable": epoch})}


def setting(name: str, value: Any) -> Row:
    """A stored setting."""
    return {"kind": "setting", "bucket": 0, "key": name, "payload": json.dumps(value)}


def datasource(name: str, contract: Contract, buckets: int = DEFAULT_SEGMENT_BUCKETS) -> Row:
    """The row of a datasource that has a contract and no segments."""
    terms = Terms.of(contract)
    row = {"kind": "datasource", "bucket": bucket_of(name, buckets), "key": name}
    return {**row, "digest": terms.digest, "payload": terms.payload()}


def stored(
    key: str,
    revision: int = 1,
    links: Mapping[str, int] | None = None,
    body: str = "{}",
    fingerprint: str | None = None,
    datasource: str | None = None,
) -> Row:
    """An object with the digest of its content."""
    digest = digest_of(body, links or {}, fingerprint, datasource)
    node = ObjectNode(
        key, uuid.uuid4().hex, revision, body, links or {}, fingerprint, datasource, digest
    )
    row = {"kind": "object", "bucket": 0, "key": key, "revision": revision, "digest": digest}
    return {**row, "payload": node.payload(), "fingerprint": fingerprint, "datasource": datasource}


def write(spark: SparkSession, location: str, *rows: Row) -> None:
    """Writes rows in one commit, in place of those that are there."""
    same = " AND ".join(f"t.{name} <=> s.{name}" for name in _IDENTITY)
    _run(
        spark,
        f"MERGE INTO {table(location)} AS t USING {{rows}} AS s ON {same} "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        rows,
    )


def add(spark: SparkSession, location: str, *rows: Row) -> None:
    """Writes rows in one commit, beside those that are there."""
    _run(spark, f"INSERT INTO {table(location)} SELECT * FROM {{rows}}", rows)


def table(location: str) -> str:
    return f"delta.`{location}/entries`"


def _run(spark: SparkSession, statement: str, rows: tuple[Row, ...]) -> None:
    # Without a commit id: the commit has none in its metadata either.
    filled = [{"published_at": NOW, "changed_at": NOW, "changed_by": "raw", **row} for row in rows]
    frame = spark.createDataFrame(
        [tuple(row.get(column.name) for column in COLUMNS) for row in filled],
        ", ".join(f"{column.name} {column.type}" for column in COLUMNS),
    )
    name = f"rows_{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(name)
    spark.sql(statement.format(rows=name))
    spark.catalog.dropTempView(name)
