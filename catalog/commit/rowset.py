"""The rows of a general commit, with the partitions and the range of keys that it reads."""

from __future__ import annotations

from collections.abc import Iterable
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
from catalog.commit.rows import CHANGE_ENTRY, schema_bucket
from catalog.delta.changes import RowChange, change_rows
from catalog.delta.statements import Bounds, Partition, Statement
from catalog.delta.store import Store
from catalog.model import Kind
from catalog.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The guard of the objects: every commit that changes one touches this row.
OBJECTS = "objects"
_LAST = "\U0010ffff"


@dataclass
class RowSet:
    """Collects rows; each that is added is read too, unless it cannot be there."""

    commit_id: str
    now: datetime
    actor: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    partitions: set[Partition] = field(default_factory=set)
    _bounds: dict[str, tuple[str, str]] = field(default_factory=dict)
    schemas: set[str] = field(default_factory=set)
    # Whether more than inserts is wanted. A probe counts: an insert alone would not look at it.
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
        """Adds a row; `read` is false for one that by rule Z nobody else can have written."""
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
        """Widens what the statement reads."""
        self.partitions |= {(str(kind), bucket) for bucket in buckets}
        before = self._bounds.get(str(kind), (low, high))
        self._bounds[str(kind)] = min(low, before[0]), max(high, before[1])

    def reads_all(self, kind: Kind | str, buckets: Iterable[int]) -> None:
        """The same, for rows whose keys are not known beforehand."""
        self.reads(kind, buckets, "", _LAST)

    @property
    def bounds(self) -> Bounds:
        return self._bounds

    # --- rows of one kind -------------------------------------------------------------------------

    def operation(self, row: OperationRow, before: OperationRow | None) -> None:
        """Writes an operation's row in place of what it was."""
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
        """Writes the stable epoch, or the same again because the ready set changed."""
        self.add(
            Kind.EPOCH,
            EPOCH_BUCKET,
            STABLE,
            RowChange.INSERT if before.commit_id is None else RowChange.UPDATE,
            seen=before.commit_id,
            payload=row.payload(),
        )

    def guard(self, seen: str | None, change: bool, rise: int = 1) -> None:
        """Expects that no object has changed since they were read, and says if some do now.

        `rise` is added to its revision, so that no object ever has a higher one.
        """
        if seen is None:
            self.add(Kind.GUARD, OBJECT_BUCKET, OBJECTS, RowChange.INSERT, revision=rise)
        else:
            how = RowChange.UPDATE if change else RowChange.EXPECT
            self.add(Kind.GUARD, OBJECT_BUCKET, OBJECTS, how, seen=seen, revision=rise)

    def schema(self, schema: Schema) -> None:
        """Carries a definition, for the case that it is not there; each once."""
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
        # An Arrow table without rows is nothing that Spark makes a frame of.
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
            f"{columns[name]} AS {name}"
            if name in columns
            else f"CAST(NULL AS {_SQL_TYPES[str(kind)]}) AS {name}"
            for name, kind in zip(CHANGE_ENTRY.names, CHANGE_ENTRY.types, strict=True)
        )
    )


_SQL_TYPES = {"string": "STRING", "int32": "INT", "int64": "BIGINT", "bool": "BOOLEAN"}
