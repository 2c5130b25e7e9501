"""What makes operations visible: publish, publish at an epoch, steps of the stable epoch."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from catalog.commit.claims import (
    OperationView,
    operations_in,
    parts_of,
    stable_epoch,
    view_operation,
)
from catalog.commit.committer import Committer, Settled, named
from catalog.commit.operation_rows import EpochRow, OperationRow, OperationState, PartRow
from catalog.commit.rowset import RowSet
from catalog.context import Call
from catalog.contracts.rows import write_limits
from catalog.delta.statements import Statement
from catalog.delta.store import ADVANCE
from catalog.errors import EpochNotNewer, EpochOrder, EpochRegression
from catalog.objects.apply import after, check_in_order, in_order, write_objects
from catalog.objects.limits import changed_limits
from catalog.objects.reading import all_objects, staged_objects
from catalog.operations.decision import Decision, check_complete, decided, decision_of
from catalog.operations.net import net_segments
from catalog.operations.tables import check_tables

log = logging.getLogger(__name__)
# From so many staged segments on, running a statement takes longer than planning it.
_BULK = 5_000


@dataclass(frozen=True)
class Advance:
    """What a step of the stable epoch did: which operations it applied, in their order."""

    version: int
    commit_id: str
    before: int
    stable: int
    applied: tuple[str, ...] = ()
    retries: int = 0


class Applier:
    """Applies operations, each call in one commit; runs in the commit thread."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._store = committer.store

    def publish(self, operation: str, call: Call) -> Decision:
        """Applies an operation now, whole and in one commit."""

        def plan(rows: RowSet) -> Statement:
            view = view_operation(self._store, operation)
            row = view.operation
            if row.state is OperationState.PUBLISHED and row.epoch is None:
                raise Settled(self._again(view))
            check_complete(view)
            if view.floor > view.epoch.stable:
                raise EpochOrder(
                    f"{row.told()} comes after an operation that waits for epoch {view.floor} on "
                    f"the same keys, and the stable epoch is {view.epoch.stable}. Advance it "
                    f"first, or publish at an epoch from {view.floor} on.",
                    operation=operation,
                    floor=view.floor,
                    stable=view.epoch.stable,
                )
            rows.operation(row.now(OperationState.PUBLISHED), row)
            return self._apply(
                "apply", rows, view.version, [row], [*view.parts.values()], judge=True
            )

        try:
            done = self._committer.commit("publish operation", call, plan, named(operation))
        except Settled as settled:
            decision: Decision = settled.answer
            return decision
        self._committer.counters.add(published=1)
        log.info("operation %s: published at version %d", operation, done.version)
        return decided(done, operation, OperationState.PUBLISHED)

    def _again(self, view: OperationView) -> Decision:
        """An operation that was published before, with the version of that if it is still known."""
        version = self._store.find_commit(view.operation.commit_id)
        return decision_of(view, repeated=True, version=version)

    def _apply(
        self,
        point: str,
        rows: RowSet,
        version: int,
        operations: Sequence[OperationRow],
        parts: Sequence[PartRow],
        judge: bool = False,
    ) -> Statement:
        """The statement that makes everything of some operations visible.

        `judge` asks the rules, and whether what waits for its epoch can still come after them.
        """
        if any(part.objects for part in parts):
            objects = all_objects(self._store, version)
            staged = staged_objects(self._store, version)
            buckets = self._committer.buckets
            if judge:
                own = operations[0]
                waiting = in_order(objects.ready)
                check_in_order(objects.nodes, staged, [*operations, *waiting], own.id)
                check_tables(self._store, buckets, version, objects.nodes, staged, own)
            nodes = after(objects.nodes, staged, operations)
            write_objects(rows, objects, nodes)
            # The operations have these datasources for themselves.
            limits = changed_limits(objects.nodes, nodes)
            write_limits(rows, self._store, buckets, version, limits)
        segments = net_segments(self._store, version, operations, parts, rows)
        return rows.statement(
            point,
            self._store,
            more=[] if segments is None else [segments],
            bulk=sum(part.segments + part.drops for part in parts) >= _BULK,
            changing=True,
        )

    def make_ready(self, operation: str, epoch: int, call: Call) -> Decision:
        """Lets an operation wait for its epoch; only an advance ends that."""

        def plan(rows: RowSet) -> Statement:
            view = view_operation(self._store, operation)
            row, stable = view.operation, view.epoch
            if row.epoch == epoch and row.state in (
                OperationState.READY,
                OperationState.PUBLISHED,
            ):
                raise Settled(self._again(view))
            check_complete(view)
            if epoch <= stable.stable:
                raise EpochNotNewer(
                    f"Epoch {epoch} is not above the stable epoch {stable.stable}: what was "
                    "visible at it would change. Choose a later one, or publish without an epoch.",
                    operation=operation,
                    epoch=epoch,
                    stable=stable.stable,
                )
            if epoch < view.floor:
                raise EpochOrder(
                    f"Epoch {epoch} is below {view.floor}, at which an operation is published that "
                    f"comes before {row.told()} on the same keys. Choose {view.floor} or later.",
                    operation=operation,
                    epoch=epoch,
                    floor=view.floor,
                )
            ready = row.now(OperationState.READY, epoch=epoch, order=stable.revision + 1)
            self._check_objects(rows, view, ready)
            rows.operation(ready, row)
            rows.epoch(stable, stable)
            return rows.statement("ready", self._store)

        try:
            done = self._committer.commit(
                "publish operation at epoch", call, plan, named(operation)
            )
        except Settled as settled:
            decision: Decision = settled.answer
            return decision
        self._committer.counters.add(made_ready=1)
        log.info("operation %s: ready at epoch %d", operation, epoch)
        return decided(done, operation, OperationState.READY, epoch)

    def _check_objects(self, rows: RowSet, view: OperationView, ready: OperationRow) -> None:
        """What would be refused when it is applied is refused now: ready is final.

        The guard changes, so that whoever changes objects meanwhile looks again at what is ready.
        """
        if not any(part.objects for part in view.parts.values()):
            return
        objects = all_objects(self._store, view.version)
        staged = staged_objects(self._store, view.version)
        rows.guard(objects.guard, change=True)
        chain = in_order([*objects.ready, ready])
        check_in_order(objects.nodes, staged, chain, ready.id)
        before = after(objects.nodes, staged, chain[: chain.index(ready)])
        buckets = self._committer.buckets
        check_tables(self._store, buckets, view.version, before, staged, ready)

    # --- the stable epoch -------------------------------------------------------------------------

    def advance(self, epoch: int, call: Call) -> Advance:
        """Raises the stable epoch and applies every operation that waited for it, in one commit."""
        applied: list[OperationRow] = []
        before: list[EpochRow] = []

        def plan(rows: RowSet) -> Statement:
            version = self._store.head().version
            stable = stable_epoch(self._store, version)
            if stable.commit_id == rows.commit_id:
                raise Settled(self._committer.lost(rows.commit_id, version))
            if epoch == stable.stable:
                raise Settled(Advance(version, "", epoch, epoch))
            if epoch < stable.stable:
                raise EpochRegression(
                    f"The stable epoch is {stable.stable} and never goes down; {epoch} is below.",
                    epoch=epoch,
                    stable=stable.stable,
                )
            ready = operations_in(self._store, version, [OperationState.READY])
            applied[:] = in_order(e for e in ready.values() if e.epoch and e.epoch <= epoch)
            before[:] = [stable]
            rows.epoch(replace(stable, stable=epoch), stable)
            for each in applied:
                rows.operation(each.now(OperationState.PUBLISHED), each)
            parts = parts_of(self._store, version, [each.id for each in applied])
            return self._apply("advance", rows, version, applied, parts)

        try:
            done = self._committer.commit(ADVANCE, call, plan, lambda: {"epoch": epoch})
        except Settled as settled:
            if isinstance(settled.answer, Advance):
                return settled.answer
            done = settled.answer
        self._committer.counters.add(advances=1, published=len(applied))
        names = tuple(each.id for each in applied)
        log.info("stable epoch %d at version %d: applied %s", epoch, done.version, names)
        return Advance(done.version, done.commit_id, before[0].stable, epoch, names, done.retries)
