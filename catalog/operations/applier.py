"""Making operations visible: publish, publish at an epoch, advance the stable epoch."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from catalog.commit.claims import (
    OperationView,
    operations_in,
    parts_of,
    stable_epoch,
    view_operation,
)
from catalog.commit.committer import Committer, Settled
from catalog.commit.operation_rows import (
    EpochRow,
    OperationRow,
    OperationState,
    PartRow,
    StagedAction,
)
from catalog.commit.rows import RowSet
from catalog.context import Call
from catalog.contracts.enforcement import offences_of, refused_only, violation
from catalog.contracts.model import TableLimits, Terms
from catalog.contracts.store import group_segments, read_datasources, write_limits
from catalog.delta.layout import bucket_of
from catalog.delta.statements import BULK_ROWS, Statement, listed
from catalog.delta.store import ADVANCE, Store
from catalog.errors import EpochNotNewer, EpochOrder, EpochRegression
from catalog.objects.changes import StagedObject
from catalog.objects.model import ObjectNode
from catalog.objects.plan import after, check_in_order, in_order
from catalog.objects.platform import changed_limits
from catalog.objects.store import all_objects, check_schemas, staged_objects, write_objects
from catalog.operations.decision import (
    Decision,
    check_complete,
    decide,
    decided_before,
)
from catalog.operations.store import net_segments
from catalog.schema.names import literal

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Advance:
    """A step of the stable epoch, with the operations that it applied, in their order."""

    version: int
    commit_id: str
    before: int
    stable: int
    applied: tuple[str, ...] = ()
    retries: int = 0

    def facts(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "commit_id": self.commit_id or None,
            "before": self.before,
            "stable": self.stable,
            "applied": len(self.applied),
            "retries": self.retries,
        }

    def figures(self) -> dict[str, float]:
        return {
            "stable": self.stable,
            "applied": len(self.applied),
            "conflicts_retried": self.retries,
        }


class Applier:
    """Applies operations, each call in one commit; runs in the commit thread."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._store = committer.store

    def publish(self, operation: str, call: Call) -> Decision:
        """Applies an operation now, in one commit."""

        def plan(rows: RowSet) -> Statement:
            view = view_operation(self._store, operation)
            row = view.operation
            if row.state is OperationState.PUBLISHED and row.epoch is None:
                raise Settled(self._again(view))
            check_complete(view)
            if view.floor > view.epoch.stable:
                raise EpochOrder(
                    f"{row} comes after an operation that waits for epoch {view.floor} on "
                    f"the same keys, and the stable epoch is {view.epoch.stable}. Advance it "
                    f"first, or publish at an epoch from {view.floor} on.",
                    operation=operation,
                    floor=view.floor,
                    stable=view.epoch.stable,
                )
            rows.operation(row.now(OperationState.PUBLISHED), row)
            return self._apply(
                "apply", rows, view.version, [row], [*view.parts.values()], check=True
            )

        state = OperationState.PUBLISHED
        decision = decide(self._committer, "publish operation", call, plan, operation, state)
        if not decision.repeated:
            self._committer.counters.add(published=1)
            log.info("operation %s: published at version %d", operation, decision.version)
        return decision

    def _again(self, view: OperationView) -> Decision:
        """The decision on an operation that was published before, at that version if known."""
        return decided_before(view, self._store.find_commit(view.operation.commit_id))

    def _apply(
        self,
        point: str,
        rows: RowSet,
        version: int,
        operations: Sequence[OperationRow],
        parts: Sequence[PartRow],
        check: bool = False,
    ) -> Statement:
        """The statement that makes everything of some operations visible.

        `check` applies the rules, also to the operations that wait for their epochs.
        """
        if any(part.objects for part in parts):
            objects = all_objects(self._store, version)
            staged = staged_objects(self._store, version)
            buckets = self._committer.buckets
            if check:
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
            bulk=sum(part.segments + part.drops for part in parts) >= BULK_ROWS,
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
                    f"comes before {row} on the same keys. Choose {view.floor} or later.",
                    operation=operation,
                    epoch=epoch,
                    floor=view.floor,
                )
            ready = row.now(OperationState.READY, epoch=epoch, order=stable.revision + 1)
            self._check_objects(rows, view, ready)
            rows.operation(ready, row)
            rows.epoch(stable, stable)
            return rows.statement("ready", self._store)

        verb, state = "publish operation at epoch", OperationState.READY
        decision = decide(self._committer, verb, call, plan, operation, state, epoch)
        if not decision.repeated:
            self._committer.counters.add(made_ready=1)
            log.info("operation %s: ready at epoch %d", operation, epoch)
        return decision

    def _check_objects(self, rows: RowSet, view: OperationView, ready: OperationRow) -> None:
        """Refuses now what would be refused when it is applied: ready is final.

        The guard changes, so that concurrent changes of objects are planned again after it.
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


# --- tables of operations -----------------------------------------------------------------------


def check_tables(
    store: Store,
    buckets: int,
    version: int,
    nodes: Mapping[str, ObjectNode],
    staged: Sequence[StagedObject],
    operation: OperationRow,
) -> None:
    """Checks the schemas that an operation's tables name, and its segments by their limits.

    `nodes` are all objects before it. Its segments were checked by the terms at that time; its own
    tables give others, in whatever order its parts came.

    Raises:
        RuleViolation: A schema is absent.
        ContractViolation: Segments of the operation break the limits of its own tables.
    """
    later = after(nodes, staged, [operation])
    check_schemas(store, version, nodes, later)
    limits = changed_limits(nodes, later)
    if any(limits.values()):
        _check_segments(store, buckets, version, operation.id, limits)


def _check_segments(
    store: Store, buckets: int, version: int, operation: str, limits: Mapping[str, TableLimits]
) -> None:
    terms = {
        row.datasource: Terms.of(row.terms.contract, limits[row.datasource])
        for row in read_datasources(store, buckets, limits, version)
    }
    homes = listed(bucket_of(name, buckets) for name in limits)
    segments = store.session.sql(
        f"SELECT * FROM {store.pinned(version)} WHERE kind = 'staged' AND bucket IN ({homes}) "
        f"AND target = 'segment' AND operation = {literal(operation)} "
        f"AND action IN ('{StagedAction.PUBLISH}', '{StagedAction.REPLACE}')"
    )
    groups = group_segments(segments, terms)
    schemas = store.schemas_of({each.fingerprint for each in groups}, version)
    if refused := refused_only(offences_of(groups, terms, schemas)):
        raise violation(refused)
