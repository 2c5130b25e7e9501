"""Rows of the `entries` table as sources of commits, built without a session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from catalog.commit.operation_rows import (
    EPOCH_BUCKET,
    OBJECT_BUCKET,
    STABLE,
    EpochRow,
    OperationRow,
    operation_bucket,
)
from catalog.delta.changes import RowChange, change_rows
from catalog.delta.layout import COLUMNS, ENTRY_COLUMNS, SCHEMA_BUCKETS, bucket_of
from catalog.delta.statements import ASKING, DATASOURCE, Partition, Statement
from catalog.model import Kind, Segment
from catalog.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from catalog.delta.store import Store

TIME: pa.DataType = pa.timestamp("us", tz="UTC")
_ARROW: dict[str, pa.DataType] = {
    "STRING": pa.string(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": TIME,
}
# What the source of a general commit has besides the columns of the table: see `delta/changes.py`.
_CHANGE_TYPES = {
    **{column.name: column.type for column in COLUMNS},
    "change": "STRING",
    "seen": "STRING",
    "fresh": "BOOLEAN",
    "shared": "BOOLEAN",
}


def _arrow_schema(types: Mapping[str, str]) -> pa.Schema:
    return pa.schema([(name, _ARROW[kind]) for name, kind in types.items()])


ENTRY = _arrow_schema({column.name: column.type for column in ENTRY_COLUMNS})
CHANGE_ENTRY = _arrow_schema(_CHANGE_TYPES)
_OF_SEGMENTS = ("num_rows", "size_bytes", "location", "starts_at", "ends_at", "state")

# The key of the guard: every commit that changes an object changes this row.
OBJECTS = "objects"
_LAST = "\U0010ffff"

# The text that `Segment.digest` hashes, in SQL, for rows that never pass through Python objects.
_TEXT = (
    "concat_ws('|', coalesce(fingerprint, '-'), coalesce(CAST(num_rows AS STRING), '-'), "
    "coalesce(CAST(size_bytes AS STRING), '-'), "
    "coalesce(CAST(unix_micros(starts_at) AS STRING), '-'), "
    "coalesce(CAST(unix_micros(ends_at) AS STRING), '-'), "
    "CASE WHEN location IS NULL THEN '-' ELSE concat('=', location) END)"
)
DIGEST_SQL = f"sha2(concat(IF(state <=> 'inferred', '~', ''), {_TEXT}), 256)"
# For rows of a publish whose segments lack one; a datasource without a contract has none.
MISSING_DIGEST_SQL = f"IF(kind = 'segment', coalesce(digest, {DIGEST_SQL}), digest)"
# Of rows in staging, which have no state.
STAGED_DIGEST_SQL = f"sha2({_TEXT}, 256)"


def segment_bucket(segment_id: str, buckets: int) -> int:
    """The bucket of a segment: by its datasource, so that ids are unique in the catalog."""
    return bucket_of(segment_id.partition("/")[0], buckets)


def schema_bucket(fingerprint: str) -> int:
    """The bucket of a schema."""
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

    `actors` has one for each segment. Without `digests` those of the segments are left null, for
    the engine to compute by `DIGEST_SQL`: that is faster for many.
    """
    pairs = list(schemas.values())
    datasources = [segment.datasource for segment in segments]
    bucket_by_datasource = {name: bucket_of(name, buckets) for name in set(datasources)}
    n, m = len(pairs), len(segments)
    # Arrow repeats single values: to convert 100,000 equal times takes longer than all the rest.
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
        "datasource": [*[None] * n, *datasources],
        **{
            name: [*[None] * n, *(getattr(segment, name) for segment in segments)]
            for name in _OF_SEGMENTS
        },
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
    """Two rows for each datasource: its own, to check its contract, and one that asks for claims.

    `terms` has the digests of the contracts that the segments were checked by.
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
    """Target, bucket and key of claims on these segments and datasources."""
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
    """Keys of rows: kind, bucket, key, and the commit id that the row was read with."""
    return pa.table(
        {
            "kind": pa.array([kind.value] * len(keys), pa.string()),
            "bucket": pa.array([bucket for bucket, _ in keys.values()], pa.int32()),
            "key": pa.array(list(keys), pa.string()),
            "commit_id": pa.array([seen for _, seen in keys.values()], pa.string()),
        }
    )


# --- general commits -----------------------------------------------------------------------------


@dataclass
class RowSet:
    """The rows of a general commit, with the partitions and ranges of keys that it reads."""

    commit_id: str
    now: datetime
    actor: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    partitions: set[Partition] = field(default_factory=set)
    bounds: dict[str, tuple[str, str]] = field(default_factory=dict)
    schemas: set[str] = field(default_factory=set)
    # Whether there is more than inserts. A probe counts: an insert-only MERGE would skip it.
    _changing: bool = False

    def add(
        self,
        kind: Kind | str,
        bucket: int,
        key: str,
        change: RowChange,
        *,
        read: bool = True,
        **columns: Any,
    ) -> None:
        """Adds a row; `read` is false if by rule Z nobody else can have written the key."""
        self._changing |= change in (RowChange.UPDATE, RowChange.DELETE, RowChange.PROBE)
        self.rows.append(
            {
                "kind": str(kind),
                "bucket": bucket,
                "key": key,
                "commit_id": self.commit_id,
                "revision": 1,
                "published_at": self.now,
                "changed_at": self.now,
                "changed_by": self.actor,
                "change": change.value,
                "fresh": False,
                "shared": False,
                **columns,
            }
        )
        if read:
            self.reads(kind, [bucket], key, key)

    def reads(self, kind: Kind | str, buckets: Iterable[int], low: str, high: str) -> None:
        """Adds partitions and a range of keys to what the statement reads."""
        self.partitions |= {(str(kind), bucket) for bucket in buckets}
        before = self.bounds.get(str(kind), (low, high))
        self.bounds[str(kind)] = min(low, before[0]), max(high, before[1])

    def reads_all(self, kind: Kind | str, buckets: Iterable[int]) -> None:
        """The same, for all keys of the partitions."""
        self.reads(kind, buckets, "", _LAST)

    # --- rows of one kind -------------------------------------------------------------------------

    def operation(self, row: OperationRow, before: OperationRow | None) -> None:
        """Writes an operation's row, in place of the one that was read."""
        self.add(
            Kind.OPERATION,
            operation_bucket(row.id),
            row.id,
            RowChange.INSERT if before is None else RowChange.UPDATE,
            seen=None if before is None else before.commit_id,
            state=row.state.value,
            payload=row.payload(),
            operation=row.id,
        )

    def expect_operation(self, row: OperationRow) -> None:
        """Refuses the statement if the operation is no longer as it was read."""
        self.expect(Kind.OPERATION, operation_bucket(row.id), row.id, row.commit_id)

    def expect(self, kind: Kind, bucket: int, key: str, seen: str) -> None:
        """Refuses the statement if the row is not the one that was read."""
        self.add(kind, bucket, key, RowChange.EXPECT, seen=seen)

    def epoch(self, row: EpochRow, before: EpochRow) -> None:
        """Writes the stable epoch; the same again if only the set of ready operations changes."""
        self.add(
            Kind.EPOCH,
            EPOCH_BUCKET,
            STABLE,
            RowChange.INSERT if before.commit_id is None else RowChange.UPDATE,
            seen=before.commit_id,
            payload=row.payload(),
        )

    def guard(self, seen: str | None, change: bool, rise: int = 1) -> None:
        """Expects that no object has changed since they were read; with `change` this commit does.

        `rise` is added to the guard's revision, so that no object ever has a higher one.
        """
        if seen is None:
            self.add(Kind.GUARD, OBJECT_BUCKET, OBJECTS, RowChange.INSERT, revision=rise)
        else:
            how = RowChange.UPDATE if change else RowChange.EXPECT
            self.add(Kind.GUARD, OBJECT_BUCKET, OBJECTS, how, seen=seen, revision=rise)

    def schema(self, schema: Schema) -> None:
        """Adds a definition, once; it is inserted if it is absent."""
        if schema.fingerprint in self.schemas:
            return
        self.schemas.add(schema.fingerprint)
        self.add(
            Kind.SCHEMA,
            schema_bucket(schema.fingerprint),
            schema.fingerprint,
            RowChange.INSERT,
            fingerprint=schema.fingerprint,
            digest=schema.digest,
            payload=schema.payload,
        )

    # --- the statement ----------------------------------------------------------------------------

    def table(self) -> pa.Table:
        """The rows as the source of the statement."""
        columns = {name: [row.get(name) for row in self.rows] for name in CHANGE_ENTRY.names}
        return pa.table(columns, schema=CHANGE_ENTRY)

    def statement(
        self,
        point: str,
        store: Store,
        clash: str = "false",
        more: Iterable[DataFrame] = (),
        bulk: bool = False,
        changing: bool = False,
    ) -> Statement:
        """The MERGE of the rows and of frames with the same columns.

        `changing` says that the frames update or delete.
        """
        # Spark makes no frame of an Arrow table without rows.
        own = [store.session.createDataFrame(self.table())] if self.rows else []
        source, *others = [*own, *more]
        for frame in others:
            source = source.unionByName(frame)
        sql = change_rows(
            store.relation,
            self.partitions,
            self.bounds,
            clash,
            inserts_only=not (self._changing or changing),
        )
        return Statement(point, sql, source, bulk=bulk)


def as_changes(frame: DataFrame, columns: dict[str, str]) -> DataFrame:
    """A frame as source rows of a general commit: these expressions, and null for the rest."""
    return frame.selectExpr(
        *(
            f"{columns[name]} AS {name}" if name in columns else f"CAST(NULL AS {kind}) AS {name}"
            for name, kind in _CHANGE_TYPES.items()
        )
    )
