"""A batch of a frame's rows in the staging table, checked there before it is merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.commit.committer import collision
from catalog.contracts.enforcement import offences_of
from catalog.contracts.model import Terms
from catalog.contracts.store import group_segments
from catalog.delta.statements import Bounds, Partition
from catalog.errors import DuplicateSegment, InvalidSegment
from catalog.model import Kind, Offence
from catalog.segments.described import INVALID
from catalog.segments.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class StagedBatch:
    """A batch that was staged and checked: what a statement has to know of it."""

    name: str
    segments: int
    repeated: bool
    partitions: frozenset[Partition]
    bounds: Bounds
    fingerprints: tuple[str, ...]


def check_staged(staging: Staging, name: str) -> StagedBatch | None:
    """Checks a staged batch; nothing if it is empty, an error if a row breaks a rule."""
    kinds = (Kind.SEGMENT.value, Kind.SCHEMA.value)
    figures = staging.figures(name, (*kinds, INVALID))
    if figures[INVALID]["rows"]:
        raise _invalid(figures[INVALID]["rows"], staging, name)
    segments = figures[Kind.SEGMENT.value]["rows"]
    if not segments:
        return None
    repeated, differing = staging.repeats(name)
    if differing:
        raise DuplicateSegment(
            f"The frame holds segment ids more than once with different content, such as "
            f"{', '.join(differing)}; give each once.",
            segment_ids=differing,
        )
    schemas = staging.query(
        name,
        "SELECT key, count(DISTINCT digest) AS contents FROM {rows} WHERE kind = 'schema' "
        "GROUP BY key ORDER BY key",
    )
    for row in schemas:
        if row["contents"] > 1:
            raise collision(row["key"])
    return StagedBatch(
        name=name,
        segments=segments - repeated,
        repeated=repeated > 0,
        partitions=frozenset((kind, b) for kind in kinds for b in figures[kind]["buckets"]),
        # Segments whose schemas are not known bring none.
        bounds={
            kind: (figures[kind]["low"], figures[kind]["high"])
            for kind in kinds
            if figures[kind]["rows"]
        },
        fingerprints=tuple(row["key"] for row in schemas),
    )


def staged_offences(
    staging: Staging, batch: StagedBatch, terms: Mapping[str, Terms], session: SparkSession
) -> tuple[Offence, ...]:
    """What a batch breaks of terms, by the schemas and the largest of its segments."""
    asking = {name: each for name, each in terms.items() if each.asks}
    if not asking:
        return ()
    rows = session.sql(f"SELECT * FROM {staging.rows(batch.name)} WHERE kind = 'segment'")
    groups = group_segments(rows.dropDuplicates(["key"]) if batch.repeated else rows, asking)
    used = {each.fingerprint for each in groups if each.fingerprint is not None}
    return offences_of(groups, asking, staging.schemas(batch.name, used))


def _invalid(count: int, staging: Staging, name: str) -> InvalidSegment:
    rows = staging.query(
        name, "SELECT key, payload FROM {rows} WHERE kind = 'invalid' ORDER BY key LIMIT 5"
    )
    examples = "; ".join(f"{row['key']!r} {row['payload']}" for row in rows)
    return InvalidSegment(
        f"{count} rows of the frame break a rule and nothing was written: {examples}.",
        count=count,
        segment_ids=tuple(row["key"] for row in rows),
    )
