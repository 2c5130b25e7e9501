"""Deciding an operation: open, seal, renew, abort, and what its state allows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from catalog.commit.claims import OperationView, some_operations, view_operation
from catalog.commit.committer import Committer, Settled
from catalog.commit.operation_rows import OperationRow, OperationState
from catalog.commit.rows import RowSet
from catalog.context import Call
from catalog.delta.statements import Statement
from catalog.errors import InvalidInput, OperationDecided, PartsMissing

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Decision:
    """The outcome of an operation.

    `repeated` says that it had it already. `version` is the one at which it was found or made so;
    for a published one that is where all of it is visible.
    """

    version: int
    commit_id: str
    operation: str
    state: str
    epoch: int | None = None
    repeated: bool = False
    retries: int = 0

    def facts(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "commit_id": self.commit_id,
            "operation_id": self.operation,
            "state": self.state,
            "epoch": self.epoch,
            "repeated": self.repeated,
            "retries": self.retries,
        }

    def figures(self) -> dict[str, float]:
        return {"conflicts_retried": self.retries}


def decided_before(view: OperationView, version: int | None = None) -> Decision:
    """The outcome that an operation has at a version."""
    row = view.operation
    at = view.version if version is None else version
    return Decision(at, row.commit_id, row.id, row.state.value, row.epoch, repeated=True)


def decide(
    committer: Committer,
    verb: str,
    call: Call,
    plan: Callable[[RowSet], Statement],
    operation: str,
    state: OperationState,
    epoch: int | None = None,
) -> Decision:
    """Commits a plan that gives an operation this state, or finds in `Settled` that it has it."""
    try:
        done = committer.commit(verb, call, plan, named(operation))
    except Settled as settled:
        decision: Decision = settled.answer
        return decision
    return Decision(
        done.version, done.commit_id, operation, state.value, epoch, retries=done.retries
    )


def check_open(row: OperationRow) -> None:
    """Raises unless the operation is still open."""
    if row.state is not OperationState.OPEN:
        how = (
            f" It waits for epoch {row.epoch}; only an advance ends that. Undo it by an operation "
            "of its own at the same epoch."
            if row.state is OperationState.READY
            else ""
        )
        raise OperationDecided(
            f"It is decided already: {row}.{how}",
            operation=row.id,
            state=row.state.value,
            epoch=row.epoch,
        )


def check_complete(view: OperationView) -> None:
    """Raises unless the operation is open and all of its parts are staged."""
    row = view.operation
    check_open(row)
    if row.parts is None:
        raise PartsMissing(
            f"The number of parts of {row} is not known; call seal() when all are staged.",
            operation=row.id,
            staged=tuple(view.parts),
        )
    if view.missing:
        raise PartsMissing(
            f"{row} has {len(view.parts)} of {row.parts} parts; missing: "
            f"{', '.join(map(str, view.missing[:20]))}.",
            operation=row.id,
            missing=view.missing,
        )


def named(operation: str) -> Callable[[], Mapping[str, int | str]]:
    """The operation as a commit's metadata names it."""
    return lambda: {"operation": operation}


class Decider:
    """Changes the state of operations, each call in one commit; runs in the commit thread."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._store = committer.store

    def open(self, row: OperationRow, call: Call) -> OperationRow:
        """Opens an operation; one with the same id that is there already is joined."""

        def plan(rows: RowSet) -> Statement:
            there = some_operations(self._store, self._store.head().version, [row.id])
            if there:
                raise Settled(there[row.id])
            rows.operation(row, None)
            return rows.statement("open", self._store)

        try:
            done = self._committer.commit("open operation", call, plan, named(row.id))
        except Settled as settled:
            joined: OperationRow = settled.answer
            if (joined.name, joined.parts) != (row.name, row.parts):
                raise InvalidInput(
                    f"There is another operation with the id {row.id}: {joined} with "
                    f"{joined.parts} parts. Choose another id, or leave it to the catalog.",
                    operation=row.id,
                ) from None
            return joined
        self._committer.counters.add(opened=1)
        log.info("operation %s: opened as %r by %s", row.id, row.name, row.owner)
        return replace(row, commit_id=done.commit_id)

    def seal(self, operation: str, parts: int | None, call: Call) -> None:
        """Fixes the number of parts; by default up to the highest that is staged."""

        def sealed(view: OperationView) -> OperationRow:
            row = view.operation
            highest = max(view.parts, default=-1)
            wanted = highest + 1 if parts is None else parts
            if row.parts == wanted or (row.parts is not None and parts is None):
                raise Settled(row)
            if row.parts is not None or wanted <= highest or wanted < 1:
                raise InvalidInput(
                    f"Cannot seal {row} with {wanted} parts: it "
                    + (
                        f"was sealed with {row.parts}."
                        if row.parts is not None
                        else f"has {len(view.parts)}, the highest of them {highest}."
                    ),
                    operation=operation,
                    parts=wanted,
                )
            return replace(row, parts=wanted)

        self._change_open(operation, "seal", call, sealed)

    def renew(self, operation: str, lease: timedelta | None, call: Call) -> None:
        """Begins the lease anew."""
        now = self._committer.environment.clock()

        def renewed(view: OperationView) -> OperationRow:
            length = view.operation.lease if lease is None else lease
            return replace(view.operation, lease=length, lease_until=now + length)

        self._change_open(operation, "renew", call, renewed)

    def _change_open(
        self,
        operation: str,
        point: str,
        call: Call,
        change: Callable[[OperationView], OperationRow],
    ) -> None:
        """Commits a change of an open operation's row, unless `change` raises `Settled`."""

        def plan(rows: RowSet) -> Statement:
            view = view_operation(self._store, operation)
            check_open(view.operation)
            rows.operation(change(view), view.operation)
            return rows.statement(point, self._store)

        try:
            self._committer.commit(f"{point} operation", call, plan, named(operation))
        except Settled:
            return
        log.info("operation %s: %s", operation, point)

    def abort(self, operation: str, call: Call, only_expired: bool = False) -> Decision:
        """Ends an operation that is open; nothing of it was ever visible."""

        def plan(rows: RowSet) -> Statement:
            view = view_operation(self._store, operation)
            row = view.operation
            if row.state is OperationState.ABORTED:
                raise Settled(decided_before(view))
            if only_expired and (
                row.state is not OperationState.OPEN
                or row.lease_until > self._committer.environment.clock()
            ):
                raise Settled(decided_before(view))
            check_open(row)
            rows.operation(row.now(OperationState.ABORTED), row)
            return rows.statement("abort", self._store)

        state = OperationState.ABORTED
        decision = decide(self._committer, "abort operation", call, plan, operation, state)
        if not decision.repeated:
            self._committer.counters.add(aborted=1)
            log.info("operation %s: aborted at version %d", operation, decision.version)
        return decision
