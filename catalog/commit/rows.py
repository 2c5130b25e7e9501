"""Rows of the `entries` table, built without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from catalog.delta.layout import SCHEMA_BUCKETS, bucket_of
from catalog.delta.statements import ASKING, DATASOURCE
from catalog.model import (
    Kind,
    Segment,
)
from catalog.schema import Schema

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
# What rows of operations have besides.
_PREPARED_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("target", pa.string()),
    ("operation", pa.string()),
    ("part", pa.int32()),
    ("action", pa.string()),
    ("base", pa.string()),
]
# What the source of a general commit has: see `table/changes.py`.
_CHANGE_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("change", pa.string()),
    ("seen", pa.string()),
    ("fresh", pa.bool_()),
    ("shared", pa.bool_()),
]
CHANGE_ENTRY = pa.schema(_ENTRY_COLUMNS + _PREPARED_COLUMNS + _CHANGE_COLUMNS)

# The text that `Segment.digest` hashes, in SQL, for rows that never pass through Python objects.
_TEXT = (
    "concat_ws('|', coalesce(fingerprint, '-'), coalesce(CAST(num_rows AS STRING), '-'), "
    "coalesce(CAST(size_bytes AS STRING), '-'), "
    "coalesce(CAST(unix_micros(starts_at) AS STRING), '-'), "
    "coalesce(CAST(unix_micros(ends_at) AS STRING), '-'), "
    "CASE WHEN location IS NULL THEN '-' ELSE concat('=', location) END)"
)
DIGEST_SQL = f"sha2(concat(IF(state <=> 'inferred', '~', ''), {_TEXT}), 256)"
# Of the rows of a publish whose segments have none yet; a datasource without a contract has none.
MISSING_DIGEST_SQL = f"IF(kind = 'segment', coalesce(digest, {DIGEST_SQL}), digest)"
# Of rows in staging, which have no state.
STAGED_DIGEST_SQL = f"sha2({_TEXT}, 256)"


def segment_bucket(segment_id: str, buckets: int) -> int:
    """A segment's bucket follows from its datasource, so ids are unique over the catalog."""
    return bucket_of(segment_id.partition("/")[0], buckets)


def schema_bucket(fingerprint: str) -> int:
    """A schema's bucket follows from its fingerprint."""
    return bucket_of(fingerprint, SCHEMA_BUCKETS)


def entry_table(
    segments: Sequence[Segment],
    actors: Sequence[str],
    schemas: Mapping[str, tuple[Schema, str]],
    buckets: int,
    commit_id: str,
    now: datetime,
    digests: bool = True,
) -> pa.Table:
    """The rows of a publish: every schema that the segments use, then the segments.

    `actors` says for each segment who brought it. Without `digests` those of the segments are left
    empty, for the engine to compute by `DIGEST_SQL`: many are quicker there.
    """
    pairs = list(schemas.values())
    datasources = [segment.datasource for segment in segments]
    bucket_by_datasource = {name: bucket_of(name, buckets) for name in set(datasources)}
    n, m = len(pairs), len(segments)

    def only_segments(name: str, values: list[Any]) -> Any:
        return pa.array([None] * n + values, ENTRY.field(name).type)

    # Arrays that hold one value are repeated by Arrow: a hundred thousand equal times would take
    # longer to convert than all the rest.
    same: dict[str, Any] = {
        "commit_id": commit_id,
        "revision": 1,
        "published_at": now,
        "changed_at": now,
    }
    columns: dict[str, Any] = {
        "kind": [Kind.SCHEMA.value] * n + [Kind.SEGMENT.value] * m,
        "bucket": [schema_bucket(schema.fingerprint) for schema, _ in pairs]
        + [bucket_by_datasource[name] for name in datasources],
        "key": [schema.fingerprint for schema, _ in pairs] + [segment.id for segment in segments],
        "fingerprint": [schema.fingerprint for schema, _ in pairs]
        + [segment.fingerprint for segment in segments],
        "digest": [schema.digest for schema, _ in pairs]
        + [segment.digest if digests else None for segment in segments],
        "datasource": only_segments("datasource", datasources),
        "num_rows": only_segments("num_rows", [segment.num_rows for segment in segments]),
        "size_bytes": only_segments("size_bytes", [segment.size_bytes for segment in segments]),
        "location": only_segments("location", [segment.location for segment in segments]),
        "starts_at": only_segments("starts_at", [segment.starts_at for segment in segments]),
        "ends_at": only_segments("ends_at", [segment.ends_at for segment in segments]),
        "state": only_segments("state", [segment.state for segment in segments]),
        "payload": [schema.payload for schema, _ in pairs] + [None] * m,
        "changed_by": [actor for _, actor in pairs] + list(actors),
    }
    for name, value in same.items():
        columns[name] = pa.repeat(pa.scalar(value, ENTRY.field(name).type), n + m)
    return pa.table({name: columns[name] for name in ENTRY.names}, schema=ENTRY)


def datasource_table(
    datasources: Iterable[str],
    buckets: int,
    commit_id: str,
    now: datetime,
    actor: str,
    terms: Mapping[str, str],
) -> pa.Table:
    """Two rows for each datasource: its own, which is what its contract is met by, and one that
    asks for claims. `terms` has the digests of the contracts by which the segments were checked.
    """
    names = sorted(datasources)
    both = names * 2
    columns: dict[str, Any] = dict.fromkeys(ENTRY.names, [None] * len(both))
    columns["kind"] = [DATASOURCE] * len(names) + [ASKING] * len(names)
    columns["bucket"] = [bucket_of(name, buckets) for name in both]
    columns["key"] = both
    columns["digest"] = [terms.get(name) for name in names] + [None] * len(names)
    same = {"commit_id": commit_id, "revision": 1, "published_at": now, "changed_at": now}
    for name, value in {**same, "changed_by": actor}.items():
        columns[name] = [value] * len(both)
    return pa.table(columns, schema=ENTRY)


def claimable(segment_ids: Iterable[str], datasources: Iterable[str], buckets: int) -> pa.Table:
    """What claims on these segments and datasources are found by: target, bucket and key."""
    ids, names = list(segment_ids), sorted(datasources)
    return pa.table(
        {
            "target": pa.array([Kind.SEGMENT.value] * len(ids) + [DATASOURCE] * len(names)),
            "bucket": pa.array(
                [segment_bucket(key, buckets) for key in ids]
                + [bucket_of(name, buckets) for name in names],
                pa.int32(),
            ),
            "key": pa.array(ids + names, pa.string()),
        }
    )


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
