"""Changes objects outside of operations, each call in one commit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from catalog.commit.claims import Standing, claimed, standing_claims
from catalog.commit.committer import Committed, Committer, Settled
from catalog.commit.operation_rows import OBJECT_BUCKET
from catalog.commit.rows import RowSet
from catalog.context import Call
from catalog.contracts.store import write_limits
from catalog.delta.changes import RowChange, plain_clash
from catalog.delta.layout import bucket_of
from catalog.delta.statements import DATASOURCE, Statement
from catalog.objects.changes import Locks, difference
from catalog.objects.declarations import Types
from catalog.objects.plan import ObjectPlan, Planner, after, check_in_order, identity, in_order
from catalog.objects.platform import limits_of, tables_declared
from catalog.objects.store import (
    Objects,
    all_objects,
    check_schemas,
    staged_objects,
    write_objects,
)

_OBJECT = "object"


@dataclass(frozen=True)
class PutResult:
    """The result of a change of objects.

    Attributes:
        revisions: the new revision of every object that was put and changed.
        unchanged: objects that had the content already.
        removed: keys that were removed.
        absent: keys that were to be removed and did not exist.
        touched: objects that got a new revision because one that they link to changed.
        renamed: new keys of renamed objects, by the old ones.
        dry_run: nothing was written; it says what would be.
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

    def facts(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "commit_id": self.commit_id or None,
            **self._counts(),
            "retries": self.retries,
        }

    def figures(self) -> dict[str, float]:
        return {**self._counts(), "conflicts_retried": self.retries}

    def _counts(self) -> dict[str, int]:
        return {
            "put": len(self.revisions),
            "removed": len(self.removed),
            "touched": len(self.touched),
            "unchanged": len(self.unchanged),
            "absent": len(self.absent),
        }


class Keeper:
    """Changes objects; runs in the commit thread."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._store = committer.store

    def change(self, planner: Planner, verb: str, call: Call) -> PutResult:
        """Carries out a plan in one commit; refused while an operation claims what it touches."""
        planned: list[tuple[Objects, ObjectPlan]] = []

        def make(rows: RowSet) -> Statement:
            version = self._store.head().version
            objects = all_objects(self._store, version)
            if objects.guard == rows.commit_id:
                raise Settled(self._committer.lost(rows.commit_id, version))
            plan = planner(objects.nodes, partial(identity, rows.commit_id))
            planned[:] = [(objects, plan)]
            standing = self._check(objects, plan)
            if plan.nodes == objects.nodes:
                raise Settled(Committed(version, "", 0))
            created = {new: objects.created[old] for old, new in plan.moves.items()}
            write_objects(rows, objects, plan.nodes, created)
            for put in plan.changes.puts.values():
                if put.schema is not None:
                    rows.schema(put.schema)
            write_limits(rows, self._store, self._committer.buckets, version, plan.limits)
            self._probe(rows, plan)
            return rows.statement(verb, self._store, plain_clash(standing.decided))

        try:
            done = self._committer.commit(verb, call, make)
        except Settled as settled:
            done = settled.answer
        return _result(*planned[0], done)

    def preview(self, planner: Planner) -> PutResult:
        """What a plan would do now; refused as it would be."""
        version = self._store.head().version
        objects = all_objects(self._store, version)
        plan = planner(objects.nodes, partial(identity, ""))
        self._check(objects, plan)
        return replace(_result(objects, plan, Committed(version, "", 0)), dry_run=True)

    def _check(self, objects: Objects, plan: ObjectPlan) -> Standing:
        """Refuses what operations claim, and what would block one that waits for its epoch."""
        needed = plan.locks
        standing = self._claims(needed, objects.version)
        conflicts = [
            claim
            for claim in standing.claims
            if not (claim.shared and claim.key in needed.held and claim.target == _OBJECT)
        ]
        if conflicts:
            raise claimed(conflicts)
        check_schemas(self._store, objects.version, objects.nodes, plan.nodes)
        # Without types there are no rules, and claims alone keep ready operations applicable.
        if objects.ready and Types.among(plan.nodes):
            self._check_ready(objects, plan)
        return standing

    def _check_ready(self, objects: Objects, plan: ObjectPlan) -> None:
        ready = in_order(objects.ready)
        staged = staged_objects(self._store, objects.version)
        check_in_order(plan.nodes, staged, ready)
        if tables_declared(objects.nodes):
            return
        # If the type of tables is declared now, tables of ready operations will set limits.
        # Segments that were staged after those were not checked against them.
        limited = limits_of(after(plan.nodes, staged, ready)).keys()
        hidden = frozenset(limited - plan.locks.datasources)
        claims = self._claims(Locks(frozenset(), frozenset(), hidden), objects.version).claims
        if claims:
            raise claimed(claims)

    def _claims(self, needed: Locks, version: int) -> Standing:
        if needed.datasources:
            # A statement without rows in these buckets would not notice a table of other buckets.
            self._store.check_buckets(self._committer.buckets)
        keys = [(_OBJECT, OBJECT_BUCKET, key) for key in sorted(needed.exclusive | needed.held)]
        keys += [
            (DATASOURCE, bucket_of(name, self._committer.buckets), name)
            for name in sorted(needed.datasources)
        ]
        frame = self._store.session.createDataFrame(keys, "target STRING, bucket INT, key STRING")
        return standing_claims(self._store, frame, {bucket for _, bucket, _ in keys}, version)

    def _probe(self, rows: RowSet, plan: ObjectPlan) -> None:
        """Adds the rows by which the statement is refused if an operation has a claim by then."""
        needed = plan.locks
        written = {row["key"] for row in rows.rows if row["kind"] == _OBJECT}
        for key in needed.exclusive - written:
            rows.add(_OBJECT, OBJECT_BUCKET, key, RowChange.PROBE)
        for key in needed.held:
            rows.add(_OBJECT, OBJECT_BUCKET, key, RowChange.PROBE, shared=True)
        for row in [row for row in rows.rows if row["kind"] == _OBJECT]:
            rows.reads("staged", [OBJECT_BUCKET], row["key"], row["key"])
        # The row of a datasource whose limits change is written, which probes for itself.
        for name in needed.datasources - plan.limits.keys():
            bucket = bucket_of(name, self._committer.buckets)
            rows.add(DATASOURCE, bucket, name, RowChange.PROBE, read=False)
            rows.reads("staged", [bucket], name, name)


def _result(objects: Objects, plan: ObjectPlan, done: Committed) -> PutResult:
    found = difference(objects.nodes, plan.nodes)
    written, puts, moves = found.written, plan.changes.puts, plan.moves
    named = puts.keys() | set(moves.values())
    return PutResult(
        version=done.version,
        commit_id=done.commit_id,
        revisions={key: written[key].revision for key in sorted(named) if key in written},
        unchanged=tuple(sorted(puts.keys() - written.keys())),
        removed=tuple(sorted(found.deleted.keys() - moves.keys())),
        absent=tuple(sorted(plan.changes.removes - objects.nodes.keys())),
        touched=tuple(sorted(written.keys() - named)),
        renamed=dict(sorted(moves.items())),
        retries=done.retries,
    )
