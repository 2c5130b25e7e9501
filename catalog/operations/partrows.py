"""The rows of a part: what it stages, and the row that says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from catalog.commit.operation_rows import (
    ABSENT,
    OBJECT_BUCKET,
    PartRow,
    StagedAction,
    operation_bucket,
    part_key,
)
from catalog.commit.rows import ENTRY, segment_bucket
from catalog.commit.rowset import RowSet, as_changes
from catalog.delta.changes import RowChange
from catalog.delta.layout import bucket_of
from catalog.delta.statements import not_among
from catalog.delta.store import Store
from catalog.model import Kind
from catalog.objects.changes import put_payload
from catalog.operations.content import Content
from catalog.operations.locking import Lock
from catalog.operations.placing import Placed, Placement
from catalog.schema.names import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class PartRows:
    """Adds the rows of one part to a commit."""

    def __init__(
        self, store: Store, buckets: int, operation: str, part: int, content: Content, rows: RowSet
    ) -> None:
        self._store = store
        self._buckets = buckets
        self._id = operation
        self._part = part
        self._content = content
        self._rows = rows

    def add_claim(self, claim: Lock) -> None:
        """Stages a claim on an object or a datasource, with the put that it is for."""
        put = (
            self._content.changes.puts.get(claim.key) if claim.action is StagedAction.PUT else None
        )
        bucket = (
            OBJECT_BUCKET if claim.target == Kind.OBJECT else bucket_of(claim.key, self._buckets)
        )
        self._rows.add(
            Kind.STAGED,
            bucket,
            claim.key,
            RowChange.INSERT,
            **self._named(claim.target, claim.action, claim.base),
            fingerprint=put.fingerprint if put else None,
            datasource=put.datasource if put else None,
            digest=put.digest if put else None,
            payload=put_payload(put) if put else None,
        )

    def segment_frames(self, segments: DataFrame, placed: Placed) -> list[DataFrame]:
        """The staged rows of the segments, and their schemas as they are."""
        assert self._content.segments is not None
        for kind, bounds in self._content.segments.bounds.items():
            buckets = [b for k, b in self._content.segments.partitions if k == kind]
            self._rows.reads(kind, buckets, *bounds)
            if kind == Kind.SEGMENT:
                self._rows.reads(Kind.STAGED, buckets, *bounds)
        found = {k: p for k, p in placed.placements.items() if p.action is not StagedAction.DROP}
        mine = segments.where("kind = 'segment'")
        if found:
            table = pa.table(
                {
                    "key": list(found),
                    "placed_action": [each.action.value for each in found.values()],
                    "placed_base": [each.base for each in found.values()],
                }
            )
            mine = mine.join(self._store.session.createDataFrame(table), "key", "left")
            action = f"coalesce(placed_action, '{StagedAction.PUBLISH}')"
            base = f"coalesce(placed_base, '{ABSENT}')"
        else:
            action, base = f"'{StagedAction.PUBLISH}'", f"'{ABSENT}'"
        kept = {name: name for name in mine.columns if name in ENTRY.names}
        inserted = {"change": f"'{RowChange.INSERT}'", "fresh": "false", "shared": "false"}
        staged = {
            **kept,
            **inserted,
            "kind": "'staged'",
            "payload": "CAST(NULL AS STRING)",
            "target": "'segment'",
            "operation": literal(self._id),
            "part": str(self._part),
            "action": action,
            "base": base,
        }
        # Those that objects of the part bring are among the rows already; twice they would be
        # inserted twice.
        others = not_among("key", self._rows.schemas)
        schemas = segments.where(f"kind = 'schema' AND {others}")
        return [as_changes(mine, staged), as_changes(schemas, {**kept, **inserted})]

    def add_drops(self, placed: Placed) -> None:
        """Stages what is dropped; also what is not there, so that it stays so."""
        for key in self._content.drops:
            placement = placed.placements.get(key, Placement(StagedAction.DROP, ABSENT))
            bucket = segment_bucket(key, self._buckets)
            self._rows.add(
                Kind.STAGED,
                bucket,
                key,
                RowChange.INSERT,
                **self._named(Kind.SEGMENT.value, placement.action, placement.base),
                datasource=key.partition("/")[0],
            )
            self._rows.reads(Kind.SEGMENT, [bucket], key, key)

    def _named(self, target: str, action: StagedAction, base: str) -> dict[str, Any]:
        return {
            "target": target,
            "operation": self._id,
            "part": self._part,
            "action": action.value,
            "base": base,
        }

    def add_part(self, placed: Placed, floor: int) -> None:
        """Adds the row that says that the part is there, last: it knows where the others are."""
        segments = self._content.segments
        based = [key for key, each in placed.placements.items() if each.base != ABSENT]
        staged = {bucket for kind, bucket in self._rows.partitions if kind == Kind.STAGED}
        part = PartRow(
            part=self._part,
            digest=self._content.digest,
            segments=0 if segments is None else segments.count,
            drops=len(self._content.drops),
            objects=len(self._content.changes.keys),
            floor=floor,
            buckets=tuple(sorted(staged)),
            based=tuple(sorted({segment_bucket(key, self._buckets) for key in based})),
            low=min(based, default=None),
            high=max(based, default=None),
        )
        self._rows.add(
            Kind.PART,
            operation_bucket(self._id),
            part_key(self._id, self._part),
            RowChange.INSERT,
            operation=self._id,
            part=self._part,
            digest=part.digest,
            payload=part.payload(),
        )
