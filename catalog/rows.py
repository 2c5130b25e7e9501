"""Rows of the `entries` table, built without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from catalog.model import (
    Kind,
    Segment,
)
from catalog.schema import Schema
from catalog.table.layout import SCHEMA_BUCKETS, bucket_of

TIME: pa.DataType = pa.timestamp("us", tz="UTC")

_ENTRY_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("kind", pa.string()),
    ("bucket", pa.int32()),
    ("key", pa.string()),
    ("commit_id", pa.string()),
    ("revision", pa.int64()),
    ("fingerprint", pa.string()),
    ("digest", pa.string()),
    ("datasource", pa.string()),
    ("num_rows", pa.int64()),
    ("size_bytes", pa.int64()),
    ("location", pa.string()),
    ("starts_at", TIME),
    ("ends_at", TIME),
    ("state", pa.string()),
    ("payload", pa.string()),
    ("published_at", TIME),
    ("changed_at", TIME),
    ("changed_by", pa.string()),
]
ENTRY = pa.schema(_ENTRY_COLUMNS)

# The same text as `Segment.digest` hashes, in SQL, for rows that never pass through Python objects.
DIGEST_SQL = (
    "sha2(concat_ws('|', fingerprint, CAST(num_rows AS STRING), "
    "coalesce(CAST(size_bytes AS STRING), '-'), "
    "coalesce(CAST(unix_micros(starts_at) AS STRING), '-'), "
    "coalesce(CAST(unix_micros(ends_at) AS STRING), '-'), "
    "CASE WHEN location IS NULL THEN '-' ELSE concat('=', location) END), 256)"
)


@dataclass(frozen=True)
class Signed:
    """A segment with its digest and the name of whoever brought it."""

    segment: Segment
    digest: str
    actor: str


def segment_bucket(segment_id: str, buckets: int) -> int:
    """A segment's bucket follows from its datasource, so ids are unique over the catalog."""
    return bucket_of(segment_id.partition("/")[0], buckets)


def schema_bucket(fingerprint: str) -> int:
    """A schema's bucket follows from its fingerprint."""
    return bucket_of(fingerprint, SCHEMA_BUCKETS)


def entry_table(
    segments: Iterable[Signed],
    schemas: Mapping[str, tuple[Schema, str]],
    buckets: int,
    commit_id: str,
    now: datetime,
) -> pa.Table:
    """The rows of a publish: every schema that the segments use, then the segments."""
    signed = list(segments)
    bucket_by_datasource: dict[str, int] = {}
    for item in signed:
        datasource = item.segment.datasource
        if datasource not in bucket_by_datasource:
            bucket_by_datasource[datasource] = bucket_of(datasource, buckets)
    pairs = list(schemas.values())
    n, m = len(pairs), len(signed)
    none_n: list[Any] = [None] * n
    none_m: list[Any] = [None] * m
    columns: dict[str, list[Any]] = {
        "kind": [Kind.SCHEMA.value] * n + [Kind.SEGMENT.value] * m,
        "bucket": [schema_bucket(schema.fingerprint) for schema, _ in pairs]
        + [bucket_by_datasource[item.segment.datasource] for item in signed],
        "key": [schema.fingerprint for schema, _ in pairs] + [item.segment.id for item in signed],
        "commit_id": [commit_id] * (n + m),
        "revision": [1] * (n + m),
        "fingerprint": [schema.fingerprint for schema, _ in pairs]
        + [item.segment.schema.fingerprint for item in signed],
        "digest": [schema.digest for schema, _ in pairs] + [item.digest for item in signed],
        "datasource": none_n + [item.segment.datasource for item in signed],
        "num_rows": none_n + [item.segment.num_rows for item in signed],
        "size_bytes": none_n + [item.segment.size_bytes for item in signed],
        "location": none_n + [item.segment.location for item in signed],
        "starts_at": none_n + [item.segment.starts_at for item in signed],
        "ends_at": none_n + [item.segment.ends_at for item in signed],
        "state": [None] * (n + m),
        "payload": [schema.payload for schema, _ in pairs] + none_m,
        "published_at": [now] * (n + m),
        "changed_at": [now] * (n + m),
        "changed_by": [actor for _, actor in pairs] + [item.actor for item in signed],
    }
    return pa.table(columns, schema=ENTRY)


def key_table(kind: Kind, keys: Mapping[str, tuple[int, str | None]]) -> pa.Table:
    """Rows that only name others: kind, bucket, key, and the commit id they were seen with."""
    return pa.table(
        {
            "kind": pa.array([kind.value] * len(keys), pa.string()),
            "bucket": pa.array([bucket for bucket, _ in keys.values()], pa.int32()),
            "key": pa.array(list(keys), pa.string()),
            "commit_id": pa.array([seen for _, seen in keys.values()], pa.string()),
        }
    )
