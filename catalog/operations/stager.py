"""Staging a part: durable, invisible, and a claim on every key that it touches."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from catalog.commit.claims import OperationView, view_operation
from catalog.commit.committer import Committer, Settled
from catalog.commit.operation_rows import (
    ABSENT,
    AFTER,
    OperationRow,
    OperationState,
    StagedAction,
    part_key,
)
from catalog.commit.rows import RowSet, segment_bucket
from catalog.context import Call
from catalog.contracts.enforcement import refused_only, violation, warned
from catalog.contracts.model import NO_TERMS, Terms
from catalog.delta.changes import staging_clash
from catalog.delta.layout import bucket_of
from catalog.delta.statements import DATASOURCE, Statement
from catalog.errors import InvalidInput, OperationDecided, PartConflict
from catalog.model import Kind, Offence
from catalog.objects.changes import StagedObject, locks, united
from catalog.objects.declarations import Types
from catalog.objects.plan import after, changes_by_part, check_part, completed_by, in_order
from catalog.objects.platform import limits_of
from catalog.objects.store import all_objects, staged_objects
from catalog.operations.part import PartContent, PartRows
from catalog.operations.placement import Lock, Placed, StagedClaim, lock, place
from catalog.operations.store import (
    FoundDatasources,
    KnownOperations,
    found_datasources,
    found_segments,
)

log = logging.getLogger(__name__)

POINT = "stage"


@dataclass(frozen=True)
class StageResult:
    """What staging a part did.

    Attributes:
        claimed: the number of keys that the operation has from now on.
        joined: the number of keys that it had already.
        repeated: the part was there, with the same content.
        warnings: breaches of contracts that only warn.
    """

    version: int
    commit_id: str
    operation: str
    part: int
    segments: int = 0
    drops: int = 0
    objects: int = 0
    claimed: int = 0
    joined: int = 0
    repeated: bool = False
    retries: int = 0
    warnings: tuple[Offence, ...] = ()

    def facts(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "commit_id": self.commit_id or None,
            "operation_id": self.operation,
            "part": self.part,
            **self._counts(),
            "repeated": self.repeated,
            "retries": self.retries,
        }

    def figures(self) -> dict[str, float]:
        return {**self._counts(), "conflicts_retried": self.retries}

    def _counts(self) -> dict[str, int]:
        return {
            "segments": self.segments,
            "drops": self.drops,
            "objects": self.objects,
            "claimed": self.claimed,
            "joined": self.joined,
        }


class Stager:
    """Stages parts, each in one commit; runs in the commit thread."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer

    def stage(self, operation: str, part: int, content: PartContent, call: Call) -> StageResult:
        """Stages a part of an operation."""
        work = _PartCommit(self._committer, operation, part, content)
        try:
            done = self._committer.commit(POINT, call, work.plan, work.figures)
        except Settled as settled:
            result: StageResult = settled.answer
            return result
        result = replace(
            work.result, version=done.version, commit_id=done.commit_id, retries=done.retries
        )
        warned(result.warnings)
        self._committer.counters.add(parts=1, claimed=result.claimed, joined=result.joined)
        log.info(
            "operation %s: part %d staged at version %d: %d keys claimed, %d joined",
            *(operation, part, result.version, result.claimed, result.joined),
        )
        if log.isEnabledFor(logging.DEBUG):
            for target, key, joined in work.claims:
                how = "joined" if joined else "claimed"
                log.debug("operation %s: part %d %s %s %s", operation, part, how, target, key)
        return result


class _PartCommit:
    """The commit of one part; planned anew for every attempt."""

    def __init__(
        self, committer: Committer, operation: str, part: int, content: PartContent
    ) -> None:
        self._store = committer.store
        self._buckets = committer.buckets
        self._id = operation
        self._part = part
        self._content = content
        self._placed = Placed({}, ())
        self._locks: Sequence[Lock] = ()
        self._warnings: tuple[Offence, ...] = ()

    def figures(self) -> dict[str, int | str]:
        """For the commit's metadata."""
        segments = self._content.num_segments
        return {"operation": self._id, "part": self._part, "segments": segments}

    @property
    def claims(self) -> Iterator[tuple[str, str, bool]]:
        """Each claim: its target and key, and whether the operation had it; none of a frame."""
        segments = self._content.segments
        for key in (*(segments.ids if segments else ()), *self._content.drops):
            placement = self._placed.placements.get(key)
            yield Kind.SEGMENT.value, key, placement is not None and placement.joined
        for each in self._locks:
            yield each.target, each.key, each.joined

    @property
    def result(self) -> StageResult:
        """What the last plan does."""
        content = self._content
        joined = self._placed.joined + sum(each.joined for each in self._locks)
        total = content.num_segments + len(content.drops) + len(self._locks)
        return StageResult(
            *(0, "", self._id, self._part),
            segments=content.num_segments,
            drops=len(content.drops),
            objects=len(content.changes.keys),
            claimed=total - joined,
            joined=joined,
            warnings=self._warnings,
        )

    def plan(self, rows: RowSet) -> Statement:
        """Reads which operations have the keys, and makes the statement that claims them."""
        content = self._content
        view = view_operation(self._store, self._id)
        self._check(view)
        segments = None if content.segments is None else content.segments.rows(rows.commit_id)
        seen = found_segments(self._store, self._buckets, self._id, content, segments, view.version)
        staged = staged_objects(self._store, view.version) if content.changes.keys else []
        known = KnownOperations(self._store, view.version)
        known.read([row.operation for row in seen])
        known.read([row.operation for row in staged])
        drops = frozenset(content.drops)
        placed = self._placed = place(seen, drops, content.mode, self._id, known.undecided)
        claims, datasources = self._object_claims(rows, view, staged, known)
        datasources_held = content.segments.datasources if content.segments else {}
        wanted = {**dict.fromkeys(datasources_held, StagedAction.HOLD), **datasources}
        found = found_datasources(self._store, self._buckets, wanted, view.version)
        claims += self._datasource_claims(wanted, found, known)
        self._locks = claims
        self._warnings = self._check_terms(rows, datasources_held, found, known)
        ahead = {each.id: each for each in placed.ahead}
        mine = PartRows(self._store, self._buckets, self._id, self._part, content, rows)
        for claim in claims:
            ahead |= {each.id: each for each in claim.ahead}
            mine.add_claim(claim)
        mine.add_drops(placed)
        frames = [] if segments is None else mine.segment_frames(segments, placed)
        mine.add_part(placed, max((each.epoch or 0 for each in ahead.values()), default=0))
        self._expect(rows, view, ahead.values())
        clash = staging_clash(
            [part_key(self._id, part) for part in view.parts], known.decided | ahead.keys()
        )
        bulk = content.segments is not None and content.segments.bulk
        return rows.statement(POINT, self._store, clash, frames, bulk=bulk)

    def _check(self, view: OperationView) -> None:
        """Raises unless the part can be staged; `Settled` if it is there with the same content."""
        there, operation = view.parts.get(self._part), view.operation
        if there is not None and there.digest == self._content.digest:
            raise Settled(
                StageResult(
                    *(view.version, "", self._id, self._part),
                    *(there.segments, there.drops, there.objects),
                    repeated=True,
                )
            )
        if there is not None:
            raise PartConflict(
                f"Part {self._part} of {operation} is staged already with other content. "
                "Stage it under another number, or abort the operation and open another.",
                operation=self._id,
                part=self._part,
            )
        if operation.state is not OperationState.OPEN:
            raise OperationDecided(
                f"Nothing can be staged any more: {operation}.",
                operation=self._id,
                state=operation.state.value,
            )
        if operation.parts is not None and self._part >= operation.parts:
            raise InvalidInput(
                f"The operation has {operation.parts} parts, from 0 to {operation.parts - 1}; "
                f"there is no part {self._part}.",
                part=self._part,
                parts=operation.parts,
            )

    # --- objects and datasources ------------------------------------------------------------------

    def _object_claims(
        self,
        rows: RowSet,
        view: OperationView,
        staged: Sequence[StagedObject],
        known: KnownOperations,
    ) -> tuple[list[Lock], dict[str, StagedAction]]:
        """The claims on objects, and on the datasources whose tables come or go."""
        changes = self._content.changes
        if not changes.keys:
            return [], {}
        objects = all_objects(self._store, view.version)
        rows.guard(objects.guard, change=False)
        ready = [e for e in known.undecided.values() if e.state is OperationState.READY]
        # As it will be when the operations that wait for their epochs have been applied.
        nodes = after(objects.nodes, staged, in_order(ready))
        together = united({**changes_by_part(staged, self._id), self._part: changes})
        check_part(nodes, changes, together)
        # The staged rows hold what was given; the links that types add are claimed as well.
        needed = locks(nodes, completed_by(Types.among(nodes), nodes, together))
        wanted = {
            **dict.fromkeys(needed.held, StagedAction.HOLD),
            **dict.fromkeys(needed.exclusive, StagedAction.BUMP),
            **dict.fromkeys(changes.puts, StagedAction.PUT),
            **dict.fromkeys(changes.removes, StagedAction.REMOVE),
        }
        for put in changes.puts.values():
            if put.schema is not None:
                rows.schema(put.schema)
        made = lock(
            Kind.OBJECT.value,
            wanted,
            [StagedClaim(row.key, row.operation, row.part, row.action) for row in staged],
            *(self._id, known.undecided, objects.commit_ids),
        )
        return made, dict.fromkeys(needed.datasources, StagedAction.CLAIM)

    def _datasource_claims(
        self, wanted: Mapping[str, StagedAction], found: FoundDatasources, known: KnownOperations
    ) -> list[Lock]:
        known.read(row.operation for row in found.claims)
        commit_ids = {name: row.commit_id or "" for name, row in found.rows.items()}
        return lock(DATASOURCE, wanted, found.claims, self._id, known.undecided, commit_ids)

    # --- contracts --------------------------------------------------------------------------------

    def _check_terms(
        self,
        rows: RowSet,
        held: Collection[str],
        found: FoundDatasources,
        known: KnownOperations,
    ) -> tuple[Offence, ...]:
        """Checks the segments by the terms that were read, and expects these.

        From then on nobody changes them: the operation holds the datasources. So publishing it
        needs no check, but for limits that tables of its own give.
        """
        segments = self._content.segments
        if segments is None:
            return ()
        for name in held:
            bucket = bucket_of(name, self._buckets)
            row = found.rows.get(name)
            if row is not None and row.commit_id is not None:
                rows.expect(Kind.DATASOURCE, bucket, name, row.commit_id)
            else:
                # The claim is based on its absence, and is refused if it is there by then.
                rows.reads(Kind.DATASOURCE, [bucket], name, name)
        terms = {name: row.terms for name, row in found.rows.items() if name in held}
        offences = segments.offences(self._terms_to_come(rows, terms, held, found, known))
        if refused := refused_only(offences):
            raise violation(refused)
        return offences

    def _terms_to_come(
        self,
        rows: RowSet,
        terms: Mapping[str, Terms],
        held: Collection[str],
        found: FoundDatasources,
        known: KnownOperations,
    ) -> Mapping[str, Terms]:
        """The terms once the operations that wait for their epochs have been applied.

        A part that is staged comes after what is ready, and is checked only once. The guard is
        expected: nobody may declare the type of tables meanwhile.
        """
        undecided = known.undecided
        ready = {key for key, each in undecided.items() if each.state is OperationState.READY}
        moving = {
            claim.key
            for claim in found.claims
            if claim.action == StagedAction.CLAIM and claim.operation in ready
        } & set(held)
        if not moving:
            return terms
        objects = all_objects(self._store, known.version)
        if not any(row["kind"] == Kind.GUARD for row in rows.rows):
            rows.guard(objects.guard, change=False)
        staged = staged_objects(self._store, known.version)
        limits = limits_of(after(objects.nodes, staged, in_order(objects.ready)))
        return {
            **terms,
            **{
                name: Terms.of(terms.get(name, NO_TERMS).contract, limits.get(name, {}))
                for name in moving
            },
        }

    # --- expectations -----------------------------------------------------------------------------

    def _expect(self, rows: RowSet, view: OperationView, ahead: Iterable[OperationRow]) -> None:
        """The operation is open, those before it still wait, and the rows it claims are there."""
        rows.expect_operation(view.operation)
        for each in ahead:
            rows.expect_operation(each)
        for key, placement in self._placed.placements.items():
            if placement.base not in (ABSENT, AFTER):
                bucket = segment_bucket(key, self._buckets)
                rows.expect(Kind.SEGMENT, bucket, key, placement.base)
