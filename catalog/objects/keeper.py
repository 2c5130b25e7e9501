"""Changing objects outside of operations, each call in one commit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

from catalog.commit.changes import Change, plain_clash
from catalog.commit.claims import Standing, claimed, standing_claims
from catalog.commit.committer import Committed, Committer, Settled
from catalog.commit.operation_rows import OBJECT_BUCKET
from catalog.commit.rowset import RowSet
from catalog.context import Call
from catalog.contracts.rows import write_limits
from catalog.delta.layout import bucket_of
from catalog.delta.statements import DATASOURCE, Statement
from catalog.objects.apply import (
    after,
    check_in_order,
    identity,
    in_order,
    write_objects,
)
from catalog.objects.declared import Types
from catalog.objects.limits import limits_of, tables_declared
from catalog.objects.reading import Objects, all_objects, staged_objects
from catalog.objects.schemas import check_schemas
from catalog.objects.state import Locks, difference
from catalog.objects.works import Outcome, Work

_OBJECT = "object"


@dataclass(frozen=True)
class PutResult:
    """What a put or a remove did.

    Attributes:
        revisions: the new revision of every object that was put and changed.
        unchanged: objects that had the content already.
        removed: keys that were removed.
        absent: keys that were to be removed and were not there.
        touched: objects that got a new revision because one that they link to changed.
        renamed: new keys of objects that have another name now, by the old ones.
        dry_run: nothing was done; it says what would be.
    """

    version: int
    commit_id: str
    revisions: dict[str, int]
    unchanged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()
    renamed: dict[str, str] = field(default_factory=dict)
    dry_run: bool = False
    retries: int = 0


class Keeper:
    """Changes objects; runs in the commit thread."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._store = committer.store

    def change(self, work: Work, verb: str, call: Call) -> PutResult:
        """Does some work in one commit; refused while an operation claims what it touches."""
        planned: list[tuple[Objects, Outcome]] = []

        def plan(rows: RowSet) -> Statement:
            version = self._store.head().version
            objects = all_objects(self._store, version)
            if objects.guard == rows.commit_id:
                raise Settled(self._committer.lost(rows.commit_id, version))
            outcome = work(objects.nodes, partial(identity, rows.commit_id))
            standing = self._check(objects, outcome)
            if outcome.nodes == objects.nodes:
                raise Settled(_result(objects, outcome, Committed(version, "", 0)))
            planned[:] = [(objects, outcome)]
            created = {new: objects.created[old] for old, new in outcome.moves.items()}
            write_objects(rows, objects, outcome.nodes, created)
            for put in outcome.changes.puts.values():
                if put.schema is not None:
                    rows.schema(put.schema)
            write_limits(rows, self._store, self._committer.buckets, version, outcome.limits)
            self._ask(rows, outcome)
            return rows.statement(verb, self._store, plain_clash(standing.decided))

        try:
            done = self._committer.commit(verb, call, plan)
        except Settled as settled:
            if isinstance(settled.answer, PutResult):
                return settled.answer
            done = settled.answer
        return _result(*planned[0], done)

    def preview(self, work: Work) -> PutResult:
        """What the work would do now; refused as it would be."""
        version = self._store.head().version
        objects = all_objects(self._store, version)
        outcome = work(objects.nodes, partial(identity, ""))
        self._check(objects, outcome)
        return replace(_result(objects, outcome, Committed(version, "", 0)), dry_run=True)

    def _check(self, objects: Objects, outcome: Outcome) -> Standing:
        """Refuses what is claimed, or would be in the way of what waits for its epoch."""
        needed = outcome.locks
        standing = self._claims(needed, objects.version)
        in_the_way = [
            claim
            for claim in standing.claims
            if not (claim.shared and claim.key in needed.held and claim.target == _OBJECT)
        ]
        if in_the_way:
            raise claimed(in_the_way)
        check_schemas(self._store, objects.version, objects.nodes, outcome.nodes)
        # Without types there are no rules, and claims alone keep what is ready applicable.
        if objects.ready and Types.among(outcome.nodes):
            self._check_ready(objects, outcome)
        return standing

    def _check_ready(self, objects: Objects, outcome: Outcome) -> None:
        ready = in_order(objects.ready)
        staged = staged_objects(self._store, objects.version)
        check_in_order(outcome.nodes, staged, ready)
        if tables_declared(objects.nodes):
            return
        # Tables that wait for their epochs begin to count, if only then. What was staged behind
        # them was checked without.
        limited = limits_of(after(outcome.nodes, staged, ready)).keys()
        hidden = frozenset(limited - outcome.locks.datasources)
        claims = self._claims(Locks(frozenset(), frozenset(), hidden), objects.version).claims
        if claims:
            raise claimed(claims)

    def _claims(self, needed: Locks, version: int) -> Standing:
        if needed.datasources:
            # What only asks for claims writes no row that the table could refuse.
            self._store.check_buckets(self._committer.buckets)
        keys = [(_OBJECT, OBJECT_BUCKET, key) for key in sorted(needed.exclusive | needed.held)]
        keys += [
            (DATASOURCE, bucket_of(name, self._committer.buckets), name)
            for name in sorted(needed.datasources)
        ]
        frame = self._store.session.createDataFrame(keys, "target STRING, bucket INT, key STRING")
        return standing_claims(self._store, frame, {bucket for _, bucket, _ in keys}, version)

    def _ask(self, rows: RowSet, outcome: Outcome) -> None:
        """Adds the rows that are refused where an operation has a claim by then."""
        needed = outcome.locks
        written = {row["key"] for row in rows.rows if row["kind"] == _OBJECT}
        for key in needed.exclusive - written:
            rows.add(_OBJECT, OBJECT_BUCKET, key, Change.PROBE)
        for key in needed.held:
            rows.add(_OBJECT, OBJECT_BUCKET, key, Change.PROBE, shared=True)
        for row in [row for row in rows.rows if row["kind"] == _OBJECT]:
            rows.reads("staged", [OBJECT_BUCKET], row["key"], row["key"])
        # A datasource whose limits change is written, and asks for itself.
        for name in needed.datasources - outcome.limits.keys():
            bucket = bucket_of(name, self._committer.buckets)
            rows.add(DATASOURCE, bucket, name, Change.PROBE, read=False)
            rows.reads("staged", [bucket], name, name)


def _result(objects: Objects, outcome: Outcome, done: Committed) -> PutResult:
    found = difference(objects.nodes, outcome.nodes)
    written = {**found.inserted, **found.updated}
    puts, moves = outcome.changes.puts, outcome.moves
    named = puts.keys() | set(moves.values())
    return PutResult(
        version=done.version,
        commit_id=done.commit_id,
        revisions={key: written[key].revision for key in sorted(named) if key in written},
        unchanged=tuple(sorted(puts.keys() - written.keys())),
        removed=tuple(sorted(found.deleted.keys() - moves.keys())),
        absent=tuple(sorted(outcome.changes.removes - objects.nodes.keys())),
        touched=tuple(sorted(written.keys() - named)),
        renamed=dict(sorted(moves.items())),
        retries=done.retries,
    )
