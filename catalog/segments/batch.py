"""Batches of segments, and which of them can be published by one commit: values, no session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from catalog.commit.committer import collision
from catalog.commit.rows import datasource_table, entry_table, schema_bucket
from catalog.delta.layout import bucket_of
from catalog.delta.statements import BULK_ROWS, Bounds, Partition, bounds_with_claims, with_claims
from catalog.errors import DuplicateSegment, InvalidInput, SegmentConflict
from catalog.model import Caller, Kind, Segment, micros
from catalog.schema import Schema


@dataclass(frozen=True)
class Batch:
    """One caller's segments, each id once, with every schema that they use."""

    segments: Mapping[str, Segment]
    schemas: Mapping[str, Schema]
    caller: Caller

    @property
    def fingerprints(self) -> tuple[str, ...]:
        return tuple(self.schemas)

    @property
    def datasources(self) -> set[str]:
        return {segment.datasource for segment in self.segments.values()}


def batch_of(segments: Iterable[Segment], caller: Caller) -> Batch:
    """Checks a list of segments and makes a batch of it."""
    given = list(segments)
    strangers = set(map(type, given)) - {Segment}
    for segment in given if strangers else ():
        if not isinstance(segment, Segment):
            raise InvalidInput(
                f"publish takes Segment objects or a DataFrame, not {type(segment).__name__}.",
                value=segment,
            )
    schemas: dict[str, Schema] = {}
    # A hundred thousand segments have few schemas, and mostly as few objects.
    for schema in {id(segment.schema): segment.schema for segment in given}.values():
        if schema is None:
            continue  # for a backfill to find
        if schemas.setdefault(schema.fingerprint, schema).digest != schema.digest:
            raise collision(schema.fingerprint)
    by_id = {segment.id: segment for segment in reversed(given)}
    if len(by_id) < len(given):
        _check_repeated(given, by_id)
    ordered = {segment.id: by_id[segment.id] for segment in given}
    return Batch(ordered, schemas, caller.counting(segments=len(ordered)))


def _check_repeated(given: Sequence[Segment], first: Mapping[str, Segment]) -> None:
    """Raises if an id was given twice with different content."""
    for segment in given:
        if first[segment.id] is not segment and first[segment.id].digest != segment.digest:
            raise DuplicateSegment(
                f"Segment {segment.id} is given twice with different content; give it once.",
                segment_id=segment.id,
            )


@dataclass(frozen=True)
class KnownSegment:
    """A segment's row in the table, with what a segment without a schema may contradict."""

    digest: str
    commit_id: str
    num_rows: int | None = None
    size_bytes: int | None = None
    location: str | None = None
    starts_micros: int | None = None
    ends_micros: int | None = None


def contradicts(segment: Segment, known: KnownSegment) -> bool:
    """Whether a segment differs from its row; `statements.CONTRADICTS` is the same in SQL.

    One that comes without a schema left open what a backfill may have filled in.
    """
    if segment.schema is not None or segment.digest == known.digest:
        return segment.digest != known.digest
    interval = [None if at is None else micros(at) for at in (segment.starts_at, segment.ends_at)]
    return (
        segment.location != known.location
        or interval != [known.starts_micros, known.ends_micros]
        or segment.num_rows not in (None, known.num_rows)
        or segment.size_bytes not in (None, known.size_bytes)
    )


@dataclass(frozen=True)
class GroupPlan:
    """Which batches of a group can be published together.

    Attributes:
        accepted: the batches that go into the commit, by their place in the group.
        refused: those that have an id which the table holds with other content.
        deferred: those that have an id which an accepted batch has with other content; their
            outcome depends on that of the other.
        segments: what is written, each id once.
        schemas: every schema that the segments use, with the actor who brought it.
        owner: for each id the first accepted batch that has it.
    """

    accepted: tuple[int, ...]
    refused: Mapping[int, SegmentConflict]
    deferred: tuple[int, ...]
    segments: Mapping[str, Segment]
    schemas: Mapping[str, tuple[Schema, str]]
    owner: Mapping[str, int]

    @property
    def datasources(self) -> set[str]:
        """The datasources of the segments."""
        return {segment.datasource for segment in self.segments.values()}

    @property
    def bulk(self) -> bool:
        """Whether there are so many rows that the engine is to compute their digests."""
        return len(self.segments) >= BULK_ROWS

    def table(
        self,
        actors: Sequence[str],
        buckets: int,
        commit_id: str,
        now: datetime,
        terms: Mapping[str, str] | None = None,
    ) -> pa.Table:
        """The rows that the commit writes: of the schemas and the segments, without digests if
        they are many; and with `terms`, the digests of contracts, those of the datasources.

        `actors` are those of the accepted batches.
        """
        rows = entry_table(
            list(self.segments.values()),
            [actors[self.owner[key]] for key in self.segments],
            self.schemas,
            *(buckets, commit_id, now),
            digests=not self.bulk,
        )
        if terms is None:
            return rows
        asked = datasource_table(self.datasources, buckets, commit_id, now, actors[0], terms)
        return pa.concat_tables([rows, asked])

    def partitions(self, buckets: int) -> set[Partition]:
        """The partitions that the commit reads: of its segments, of claims, of the schemas."""
        return with_claims(
            {
                *((Kind.SEGMENT.value, bucket_of(name, buckets)) for name in self.datasources),
                *((Kind.SCHEMA.value, schema_bucket(fingerprint)) for fingerprint in self.schemas),
            }
        )

    def bounds(self) -> Bounds:
        """The lowest and highest key for each kind."""
        keys = {Kind.SCHEMA.value: self.schemas.keys(), Kind.SEGMENT.value: self.segments.keys()}
        # Segments whose schemas are not known bring none.
        return bounds_with_claims(
            {kind: (min(some), max(some)) for kind, some in keys.items() if some}
        )


def plan_group(batches: Sequence[Batch], known: Mapping[str, KnownSegment]) -> GroupPlan:
    """Decides in queue order; a batch goes in whole or not at all.

    Ids that several batches share are written once: an insert-only MERGE would insert both.
    """
    accepted: list[int] = []
    refused: dict[int, SegmentConflict] = {}
    deferred: list[int] = []
    segments: dict[str, Segment] = {}
    schemas: dict[str, tuple[Schema, str]] = {}
    owner: dict[str, int] = {}
    for index, batch in enumerate(batches):
        stored = sorted(
            key
            for key in batch.segments.keys() & known.keys()
            if contradicts(batch.segments[key], known[key])
        )
        if stored:
            refused[index] = conflict(stored)
        elif _differ(batch.segments, segments) or _differ(
            batch.schemas, {name: schema for name, (schema, _) in schemas.items()}
        ):
            deferred.append(index)
        else:
            accepted.append(index)
            new = {key: segment for key, segment in batch.segments.items() if key not in segments}
            segments |= new
            owner |= dict.fromkeys(new, index)
            for fingerprint, schema in batch.schemas.items():
                schemas.setdefault(fingerprint, (schema, batch.caller.actor))
    return GroupPlan(tuple(accepted), refused, tuple(deferred), segments, schemas, owner)


def _differ(some: Mapping[str, Segment | Schema], others: Mapping[str, Segment | Schema]) -> bool:
    return any(some[key].digest != others[key].digest for key in some.keys() & others.keys())


def conflict(segment_ids: Sequence[str], total: int | None = None) -> SegmentConflict:
    """The refusal that names the segments which are there with other content."""
    shown = ", ".join(segment_ids[:5])
    count = len(segment_ids) if total is None else total
    more = f" and {count - 5} more" if count > 5 else ""
    return SegmentConflict(
        f"Published already with other content: {shown}{more}. Nothing was written. Drop them "
        'first, or publish with on_existing="skip" or "replace".',
        segment_ids=tuple(segment_ids),
        count=count,
    )
