"""Staging a part: durable, invisible, and a claim on every key that it touches."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from catalog.commit.changes import staging_clash
from catalog.commit.claims import OperationView, view_operation
from catalog.commit.committer import Committer, Settled
from catalog.commit.operation_rows import (
    ABSENT,
    AFTER,
    Action,
    OperationRow,
    OperationState,
    part_key,
)
from catalog.commit.rows import segment_bucket
from catalog.commit.rowset import RowSet
from catalog.context import Call
from catalog.contracts.checking import Offence, refused_only, violation, warned
from catalog.delta.layout import bucket_of
from catalog.delta.statements import DATASOURCE, Statement
from catalog.errors import InvalidInput, OperationDecided, PartConflict
from catalog.model import Kind
from catalog.objects.apply import after, changes_by_part, in_order
from catalog.objects.changes import united
from catalog.objects.declared import Types
from catalog.objects.judging import check_part, completed_by
from catalog.objects.reading import StagedObject, all_objects, staged_objects
from catalog.objects.state import locks
from catalog.operations.content import Content
from catalog.operations.finding import (
    FoundDatasources,
    KnownOperations,
    found_datasources,
    found_segments,
)
from catalog.operations.locking import Lock, StagedClaim, lock
from catalog.operations.partrows import PartRows
from catalog.operations.placing import Placed, place
from catalog.operations.tables import terms_to_come

log = logging.getLogger(__name__)

POINT = "stage"


@dataclass(frozen=True)
class StageResult:
    """What staging a part did.

    `claimed` counts the keys that the operation has from now on, `joined` those that it had
    already. `repeated` says that the part was there, with the same content. `warnings` are breaches
    of contracts that only warn.
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


class Stager:
    """Stages parts; runs in the commit thread."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._store = committer.store
        self._buckets = committer.buckets

    def stage(self, operation: str, part: int, content: Content, call: Call) -> StageResult:
        """Stages a part of an operation, in one commit."""
        work = _Work(self, operation, part, content)
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


class _Work:
    """One part on its way; planned anew for every try."""

    def __init__(self, stager: Stager, operation: str, part: int, content: Content) -> None:
        self._stager = stager
        self._store = stager._store
        self._buckets = stager._buckets
        self._id = operation
        self._part = part
        self._content = content
        self.result = StageResult(0, "", operation, part)
        self._placed = Placed({}, ())
        self._locks: Sequence[Lock] = ()

    def figures(self) -> dict[str, int | str]:
        """For the commit's metadata."""
        figures = {"part": self._part, "segments": self.result.segments}
        return {"operation": self._id, **figures}

    @property
    def claims(self) -> Iterator[tuple[str, str, bool]]:
        """Each claim: on what, its key, and whether the operation had it; none of a frame."""
        segments = self._content.segments
        for key in (*(segments.ids if segments else ()), *self._content.drops):
            placement = self._placed.placements.get(key)
            yield Kind.SEGMENT.value, key, placement is not None and placement.joined
        for each in self._locks:
            yield each.target, each.key, each.joined

    def plan(self, rows: RowSet) -> Statement:
        """Reads who has the keys and makes the statement that claims them."""
        content = self._content
        view = view_operation(self._store, self._id)
        self._check(view)
        segments = None if content.segments is None else content.segments.rows(rows.commit_id)
        seen = found_segments(self._store, self._buckets, self._id, content, segments, view.version)
        staged = staged_objects(self._store, view.version) if content.changes.keys else []
        known = KnownOperations(self._store, view.version)
        known.read([row.operation for row in seen])
        known.read([row.operation for row in staged])
        placed = place(
            [row for row in seen if row.operation is None or row.operation in known.undecided],
            frozenset(content.drops),
            content.mode,
            self._id,
            known.undecided,
        )
        claims, datasources = self._object_claims(rows, view, staged, known)
        held = dict.fromkeys(content.segments.datasources if content.segments else (), Action.HOLD)
        wanted = {**held, **datasources}
        stated = found_datasources(self._store, self._buckets, wanted, view.version)
        claims += self._datasource_claims(wanted, stated, known)
        warnings = self._mind_terms(rows, held, stated, known)
        ahead = {each.id: each for each in placed.ahead}
        mine = PartRows(self._store, self._buckets, self._id, self._part, content, rows)
        for claim in claims:
            ahead |= {each.id: each for each in claim.ahead}
            mine.add_claim(claim)
        mine.add_drops(placed)
        frames = [] if segments is None else mine.segment_frames(segments, placed)
        mine.add_part(placed, max((each.epoch or 0 for each in ahead.values()), default=0))
        self._expect(rows, view, placed, ahead.values())
        self._tell(placed, claims, warnings)
        clash = staging_clash(
            [part_key(self._id, part) for part in view.parts], known.decided | ahead.keys()
        )
        bulk = content.segments is not None and content.segments.bulk
        return rows.statement(POINT, self._store, clash, frames, bulk=bulk)

    def _check(self, view: OperationView) -> None:
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
                f"Part {self._part} of {operation.told()} is staged already with other content. "
                "Stage it under another number, or abort the operation and open another.",
                operation=self._id,
                part=self._part,
            )
        if operation.state is not OperationState.OPEN:
            raise OperationDecided(
                f"Nothing can be staged any more: {operation.told()}.",
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
    ) -> tuple[list[Lock], dict[str, Action]]:
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
        # The staged rows say what was given; the links that types add are claimed as well.
        needed = locks(nodes, completed_by(Types.among(nodes), nodes, together))
        wanted = {
            **dict.fromkeys(needed.held, Action.HOLD),
            **dict.fromkeys(needed.exclusive, Action.BUMP),
            **dict.fromkeys(changes.puts, Action.PUT),
            **dict.fromkeys(changes.removes, Action.REMOVE),
        }
        for put in changes.puts.values():
            if put.schema is not None:
                rows.schema(put.schema)
        made = lock(
            Kind.OBJECT.value,
            wanted,
            [StagedClaim(row.key, row.operation, row.part, row.action) for row in staged],
            self._id,
            known.undecided,
            objects.commit_ids,
        )
        return made, dict.fromkeys(needed.datasources, Action.CLAIM)

    def _datasource_claims(
        self, wanted: dict[str, Action], stated: FoundDatasources, known: KnownOperations
    ) -> list[Lock]:
        known.read(row.operation for row in stated.claims)
        commit_ids = {name: row.commit_id or "" for name, row in stated.rows.items()}
        return lock(DATASOURCE, wanted, stated.claims, self._id, known.undecided, commit_ids)

    def _mind_terms(
        self,
        rows: RowSet,
        held: Collection[str],
        stated: FoundDatasources,
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
            row = stated.rows.get(name)
            if row is not None and row.commit_id is not None:
                rows.expect(Kind.DATASOURCE, bucket, name, row.commit_id)
            else:
                # The claim says that it is not there, and is refused if it is by then.
                rows.reads(Kind.DATASOURCE, [bucket], name, name)
        terms = {name: row.terms for name, row in stated.rows.items() if name in held}
        coming = terms_to_come(
            self._store, known.version, rows, terms, stated.claims, known.undecided, held
        )
        offences = segments.offences(coming)
        if refused := refused_only(offences):
            raise violation(refused)
        return offences

    # --- what it rests on -------------------------------------------------------------------------

    def _expect(
        self, rows: RowSet, view: OperationView, placed: Placed, ahead: Iterable[OperationRow]
    ) -> None:
        """The operation is open, those before it still wait, and the rows it claims are there."""
        rows.expect_operation(view.operation)
        for each in ahead:
            rows.expect_operation(each)
        for key, placement in placed.placements.items():
            if placement.base not in (ABSENT, AFTER):
                bucket = segment_bucket(key, self._buckets)
                rows.expect(Kind.SEGMENT, bucket, key, placement.base)

    def _tell(self, placed: Placed, claims: Sequence[Lock], warnings: tuple[Offence, ...]) -> None:
        self._placed, self._locks = placed, claims
        content = self._content
        segments = 0 if content.segments is None else content.segments.count
        joined = placed.joined + sum(claim.joined for claim in claims)
        total = segments + len(content.drops) + len(claims)
        self.result = replace(
            self.result,
            segments=segments,
            drops=len(content.drops),
            objects=len(content.changes.keys),
            claimed=total - joined,
            joined=joined,
            warnings=warnings,
        )
