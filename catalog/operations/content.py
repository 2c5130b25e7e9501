"""What a part of an operation brings: segments, ids to drop, objects to put and to remove."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from catalog.commit.rows import DIGEST_SQL, entry_table
from catalog.contracts.enforcement import offences_among
from catalog.contracts.model import Terms
from catalog.delta.layout import bucket_of
from catalog.delta.statements import Bounds, Partition
from catalog.delta.store import Store
from catalog.errors import InvalidInput
from catalog.model import Caller, Kind, Offence, OnExisting, Segment, check_segment_id
from catalog.objects.changes import Changes
from catalog.segments.batch import batch_of, plan_group
from catalog.segments.group import BULK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from catalog.environment import Environment
    from catalog.segments.frame import FramePublisher
    from catalog.segments.staged import StagedBatch


_BROUGHT = (Kind.SEGMENT, Kind.SCHEMA)


@dataclass(frozen=True)
class Segments:
    """The segments of a part, with every schema that they use.

    Attributes:
        rows: makes the rows of kind segment and schema for a commit id.
        digest: of the content; the same for the same content, in whatever order.
        offences: says what of them breaks the terms of their datasources.
        ids: of those of a list; those of a frame stay in the engine.
    """

    rows: Callable[[str], DataFrame]
    count: int
    partitions: frozenset[Partition]
    bounds: Bounds
    datasources: Mapping[str, int]
    digest: str
    offences: Callable[[Mapping[str, Terms]], tuple[Offence, ...]]
    bulk: bool = False
    ids: Collection[str] = ()


@dataclass(frozen=True)
class Content:
    """Everything that a part brings."""

    segments: Segments | None = None
    drops: tuple[str, ...] = ()
    changes: Changes = field(default_factory=Changes)
    mode: OnExisting = OnExisting.REFUSE

    @property
    def empty(self) -> bool:
        return self.segments is None and not self.drops and not self.changes.keys

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


def checked_drops(drop: Iterable[str]) -> tuple[str, ...]:
    """The ids that a part drops, each once."""
    if isinstance(drop, str):
        raise InvalidInput(
            f"drop takes a list of ids; for one segment write [{drop!r}].", drop=drop
        )
    if not isinstance(drop, Iterable):
        raise InvalidInput(f"drop takes a list of ids, not {drop!r:.80}.", drop=drop)
    chosen = tuple(dict.fromkeys(drop))
    for segment_id in chosen:
        check_segment_id(segment_id)
    return chosen


def listed_segments(
    segments: Iterable[Segment],
    drops: Iterable[str],
    caller: Caller,
    store: Store,
    buckets: int,
    environment: Environment,
) -> Segments | None:
    """The segments of a list; none if it is empty."""
    batch = batch_of(segments, caller)
    if not batch.segments:
        return None
    both = sorted(batch.segments.keys() & set(drops))
    if both:
        raise _published_and_dropped(both)
    plan = plan_group([batch], {})
    bulk = len(batch.segments) >= BULK

    def rows(commit_id: str) -> DataFrame:
        table = entry_table(
            list(plan.segments.values()),
            [caller.actor] * len(plan.segments),
            plan.schemas,
            buckets,
            commit_id,
            environment.clock(),
            digests=not bulk,
        )
        frame = store.session.createDataFrame(table)
        if bulk:
            frame = frame.withColumn("digest", F.expr(f"coalesce(digest, {DIGEST_SQL})"))
        return frame

    partitions = plan.partitions(buckets)
    lines = sorted(f"{key} {segment.digest}" for key, segment in batch.segments.items())
    return Segments(
        rows=rows,
        count=len(batch.segments),
        partitions=frozenset(p for p in partitions if p[0] in _BROUGHT),
        bounds={kind: b for kind, b in plan.bounds().items() if kind in _BROUGHT},
        datasources={name: bucket_of(name, buckets) for name in sorted(plan.datasources)},
        digest=sha256("\n".join(lines).encode()).hexdigest(),
        offences=partial(offences_among, tuple(batch.segments.values())),
        bulk=bulk,
        ids=batch.segments.keys(),
    )


def framed_segments(
    batch: StagedBatch, frames: FramePublisher, drops: Iterable[str], actor: str
) -> Segments:
    """The segments of a frame that was described and is kept until the part is staged."""
    rows = frames.entries(batch, "", actor).where("kind = 'segment'")
    dropped = list(drops)
    if dropped:
        ids = rows.sparkSession.createDataFrame([(key,) for key in dropped], "key STRING")
        both = rows.join(ids, "key", "left_semi").select("key").limit(5).collect()
        if both:
            raise _published_and_dropped(sorted(row["key"] for row in both))
    # Sums do not depend on the order of rows; two of them are as good as 128 bits.
    sums = rows.selectExpr(
        "sum(CAST(xxhash64(key, digest) AS DECIMAL(38, 0))) AS one",
        "sum(CAST(xxhash64(digest, key) AS DECIMAL(38, 0))) AS other",
    ).collect()[0]
    text = f"frame {batch.segments} {sums['one']} {sums['other']}"
    return Segments(
        rows=lambda commit_id: frames.entries(batch, commit_id, actor),
        count=batch.segments,
        partitions=batch.partitions,
        bounds=batch.bounds,
        datasources={row["key"]: row["bucket"] for row in frames.datasources(batch).collect()},
        digest=sha256(text.encode()).hexdigest(),
        offences=partial(frames.offences, batch),
        bulk=True,
    )


def _published_and_dropped(keys: list[str]) -> InvalidInput:
    return InvalidInput(
        f"One part publishes and drops the same segments: {', '.join(keys[:5])}. To replace them, "
        'publish them with on_existing="replace".',
        segment_ids=tuple(keys),
    )
