"""A part of an operation: what it brings, and the rows that stage it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
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
from catalog.commit.rows import ENTRY, RowSet, as_changes, segment_bucket
from catalog.contracts.enforcement import offences_among
from catalog.contracts.model import Terms
from catalog.delta.changes import RowChange
from catalog.delta.layout import bucket_of
from catalog.delta.statements import Bounds, Partition, not_among
from catalog.delta.store import Store
from catalog.environment import Environment
from catalog.errors import InvalidInput
from catalog.model import Kind, Offence, OnExisting
from catalog.objects.changes import Changes, put_payload
from catalog.operations.placement import Lock, Placed, Placement
from catalog.schema.names import literal
from catalog.segments.batch import Batch, plan_group
from catalog.segments.group import source_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from catalog.segments.frame import FramePublisher
    from catalog.segments.staging import StagedBatch


class PartSegments(ABC):
    """The segments of a part, with every schema that they use.

    Attributes:
        count: the number of segments.
        partitions: of the segments and the schemas.
        bounds: the range of keys of both.
        datasources: each with its bucket.
        digest: of the content, in whatever order.
        bulk: there are so many that the engine should run one large statement.
        ids: of those of a list; the ids of a frame stay in the engine.
    """

    count: int
    partitions: frozenset[Partition]
    bounds: Bounds
    datasources: Mapping[str, int]
    digest: str
    bulk: bool
    ids: Collection[str] = ()

    @abstractmethod
    def rows(self, commit_id: str) -> DataFrame:
        """The rows of kind segment and schema, for a commit."""

    @abstractmethod
    def offences(self, terms: Mapping[str, Terms]) -> tuple[Offence, ...]:
        """The segments that break the terms of their datasources."""


class ListedSegments(PartSegments):
    """The segments of a list that is not empty."""

    def __init__(
        self,
        batch: Batch,
        drops: Iterable[str],
        store: Store,
        buckets: int,
        environment: Environment,
    ) -> None:
        if both := sorted(batch.segments.keys() & set(drops)):
            raise _published_and_dropped(both)
        self._batch = batch
        self._plan = plan = plan_group([batch], {})
        self._store = store
        self._buckets = buckets
        self._environment = environment
        lines = sorted(f"{key} {segment.digest}" for key, segment in batch.segments.items())
        brought = (Kind.SEGMENT, Kind.SCHEMA)
        self.count = len(batch.segments)
        self.partitions = frozenset(p for p in plan.partitions(buckets) if p[0] in brought)
        self.bounds = {kind: b for kind, b in plan.bounds().items() if kind in brought}
        self.datasources = {name: bucket_of(name, buckets) for name in sorted(plan.datasources)}
        self.digest = sha256("\n".join(lines).encode()).hexdigest()
        self.bulk = plan.bulk
        self.ids = batch.segments.keys()

    def rows(self, commit_id: str) -> DataFrame:
        actors, now = [self._batch.caller.actor], self._environment.clock()
        table = self._plan.table(actors, self._buckets, commit_id, now)
        return source_of(self._store, self._plan, table)

    def offences(self, terms: Mapping[str, Terms]) -> tuple[Offence, ...]:
        return offences_among(tuple(self._batch.segments.values()), terms)


class FramedSegments(PartSegments):
    """The segments of a frame, which stays in staging until the part is committed."""

    bulk = True

    def __init__(
        self, batch: StagedBatch, drops: Collection[str], frames: FramePublisher, actor: str
    ) -> None:
        self._batch = batch
        self._frames = frames
        self._actor = actor
        rows = self.rows("").where("kind = 'segment'")
        if drops:
            ids = rows.sparkSession.createDataFrame([(key,) for key in drops], "key STRING")
            if both := rows.join(ids, "key", "left_semi").select("key").limit(5).collect():
                raise _published_and_dropped(sorted(row["key"] for row in both))
        # Sums do not depend on the order of rows; two of them are as good as 128 bits.
        sums = rows.selectExpr(
            "sum(CAST(xxhash64(key, digest) AS DECIMAL(38, 0))) AS one",
            "sum(CAST(xxhash64(digest, key) AS DECIMAL(38, 0))) AS other",
        ).collect()[0]
        text = f"frame {batch.segments} {sums['one']} {sums['other']}"
        self.count = batch.segments
        self.partitions = batch.partitions
        self.bounds = batch.bounds
        found = frames.datasources(batch).collect()
        self.datasources = {row["key"]: row["bucket"] for row in found}
        self.digest = sha256(text.encode()).hexdigest()

    def rows(self, commit_id: str) -> DataFrame:
        return self._frames.entries(self._batch, commit_id, self._actor)

    def offences(self, terms: Mapping[str, Terms]) -> tuple[Offence, ...]:
        return self._frames.offences(self._batch, terms)


def _published_and_dropped(keys: list[str]) -> InvalidInput:
    return InvalidInput(
        f"One part publishes and drops the same segments: {', '.join(keys[:5])}. To replace them, "
        'publish them with on_existing="replace".',
        segment_ids=tuple(keys),
    )


@dataclass(frozen=True)
class PartContent:
    """Everything that a part brings."""

    segments: PartSegments | None = None
    drops: tuple[str, ...] = ()
    changes: Changes = field(default_factory=Changes)
    mode: OnExisting = OnExisting.REFUSE

    @property
    def empty(self) -> bool:
        return self.segments is None and not self.drops and not self.changes.keys

    @property
    def num_segments(self) -> int:
        return 0 if self.segments is None else self.segments.count

    @property
    def digest(self) -> str:
        """SHA-256 over all of it: a part that is staged again must bring the same."""
        lines = [
            f"segments {'-' if self.segments is None else self.segments.digest} {self.mode}",
            *(f"drop {key}" for key in sorted(self.drops)),
            *(f"put {key} {put.digest}" for key, put in sorted(self.changes.puts.items())),
            *(f"remove {key}" for key in sorted(self.changes.removes)),
        ]
        return sha256("\n".join(lines).encode()).hexdigest()


# --- rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PartRows:
    """Adds the rows of one part to a commit."""

    store: Store
    buckets: int
    operation: str
    part: int
    content: PartContent
    rows: RowSet

    def add_claim(self, claim: Lock) -> None:
        """Stages a claim on an object or a datasource, with the put that it is for."""
        puts = self.content.changes.puts
        put = puts.get(claim.key) if claim.action is StagedAction.PUT else None
        of_object = claim.target == Kind.OBJECT
        self.rows.add(
            Kind.STAGED,
            OBJECT_BUCKET if of_object else bucket_of(claim.key, self.buckets),
            claim.key,
            RowChange.INSERT,
            **self._staged(claim.target, claim.action, claim.base),
            fingerprint=put.fingerprint if put else None,
            datasource=put.datasource if put else None,
            digest=put.digest if put else None,
            payload=put_payload(put) if put else None,
        )

    def add_drops(self, placed: Placed) -> None:
        """Stages what is dropped; also what is absent, so that it stays so."""
        for key in self.content.drops:
            placement = placed.placements.get(key, Placement(StagedAction.DROP, ABSENT))
            bucket = segment_bucket(key, self.buckets)
            self.rows.add(
                Kind.STAGED,
                bucket,
                key,
                RowChange.INSERT,
                **self._staged(Kind.SEGMENT.value, placement.action, placement.base),
                datasource=key.partition("/")[0],
            )
            self.rows.reads(Kind.SEGMENT, [bucket], key, key)

    def _staged(self, target: str, action: StagedAction, base: str) -> dict[str, Any]:
        return {
            "target": target,
            "operation": self.operation,
            "part": self.part,
            "action": action.value,
            "base": base,
        }

    def segment_frames(self, segments: DataFrame, placed: Placed) -> list[DataFrame]:
        """The staged rows of the segments, and the rows of their schemas."""
        assert self.content.segments is not None
        for kind, bounds in self.content.segments.bounds.items():
            buckets = [b for k, b in self.content.segments.partitions if k == kind]
            self.rows.reads(kind, buckets, *bounds)
            if kind == Kind.SEGMENT:
                self.rows.reads(Kind.STAGED, buckets, *bounds)
        found = {k: p for k, p in placed.placements.items() if p.action is not StagedAction.DROP}
        mine = segments.where("kind = 'segment'")
        action, base = f"'{StagedAction.PUBLISH}'", f"'{ABSENT}'"
        if found:
            table = pa.table(
                {
                    "key": list(found),
                    "placed_action": [each.action.value for each in found.values()],
                    "placed_base": [each.base for each in found.values()],
                }
            )
            mine = mine.join(self.store.session.createDataFrame(table), "key", "left")
            action, base = f"coalesce(placed_action, {action})", f"coalesce(placed_base, {base})"
        kept = {name: name for name in mine.columns if name in ENTRY.names}
        inserted = {"change": f"'{RowChange.INSERT}'", "fresh": "false", "shared": "false"}
        staged = {
            **kept,
            **inserted,
            "kind": "'staged'",
            "payload": "CAST(NULL AS STRING)",
            "target": "'segment'",
            "operation": literal(self.operation),
            "part": str(self.part),
            "action": action,
            "base": base,
        }
        # Schemas that objects of the part bring are among the rows already; twice they would be
        # inserted twice.
        others = not_among("key", self.rows.schemas)
        schemas = segments.where(f"kind = 'schema' AND {others}")
        return [as_changes(mine, staged), as_changes(schemas, {**kept, **inserted})]

    def add_part(self, placed: Placed, floor: int) -> None:
        """Adds the part's own row, last: it says in which buckets the others are."""
        based = [key for key, each in placed.placements.items() if each.base != ABSENT]
        staged = {bucket for kind, bucket in self.rows.partitions if kind == Kind.STAGED}
        part = PartRow(
            part=self.part,
            digest=self.content.digest,
            segments=self.content.num_segments,
            drops=len(self.content.drops),
            objects=len(self.content.changes.keys),
            floor=floor,
            buckets=tuple(sorted(staged)),
            based=tuple(sorted({segment_bucket(key, self.buckets) for key in based})),
            low=min(based, default=None),
            high=max(based, default=None),
        )
        self.rows.add(
            Kind.PART,
            operation_bucket(self.operation),
            part_key(self.operation, self.part),
            RowChange.INSERT,
            operation=self.operation,
            part=self.part,
            digest=part.digest,
            payload=part.payload(),
        )
