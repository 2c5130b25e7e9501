"""How an operation begins and may end without a trace: open, seal, renew, abort."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from catalog.commit.claims import OperationView, some_operations, view_operation
from catalog.commit.committer import Committer, Settled, named
from catalog.commit.operation_rows import OperationRow, OperationState
from catalog.commit.rowset import RowSet
from catalog.context import Call
from catalog.delta.statements import Statement
from catalog.errors import InvalidInput
from catalog.operations.decision import Decision, check_open, decided, decision_of

log = logging.getLogger(__name__)


class Decider:
    """Changes the state of operations, each call in one commit; runs in the commit thread."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._store = committer.store

    # --- open, seal, renew ------------------------------------------------------------------------

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
                    f"There is another operation with the id {row.id}: {joined.told()} with "
                    f"{joined.parts} parts. Choose another id, or leave it to the catalog.",
                    operation=row.id,
                ) from None
            return joined
        self._committer.counters.add(opened=1)
        log.info("operation %s: opened as %r by %s", row.id, row.name, row.owner)
        return replace(row, commit_id=done.commit_id)

    def seal(self, operation: str, parts: int | None, call: Call) -> OperationRow:
        """Says how many parts there are; by default up to the highest that is staged."""

        def change(view: OperationView) -> OperationRow:
            row = view.operation
            highest = max(view.parts, default=-1)
            wanted = highest + 1 if parts is None else parts
            if row.parts == wanted or (row.parts is not None and parts is None):
                raise Settled(row)
            if row.parts is not None or wanted <= highest or wanted < 1:
                raise InvalidInput(
                    f"Cannot seal {row.told()} with {wanted} parts: it "
                    + (
                        f"was sealed with {row.parts}."
                        if row.parts is not None
                        else f"has {len(view.parts)}, the highest of them {highest}."
                    ),
                    operation=operation,
                    parts=wanted,
                )
            return replace(row, parts=wanted)

        return self._change_open(operation, "seal", call, change)

    def renew(self, operation: str, lease: timedelta | None, call: Call) -> OperationRow:
        """Begins the lease anew."""
        now = self._committer.environment.clock()

        def change(view: OperationView) -> OperationRow:
            length = view.operation.lease if lease is None else lease
            return replace(view.operation, lease=length, lease_until=now + length)

        return self._change_open(operation, "renew", call, change)

    def _change_open(
        self,
        operation: str,
        point: str,
        call: Call,
        change: Callable[[OperationView], OperationRow],
    ) -> OperationRow:
        changed: list[OperationRow] = []

        def plan(rows: RowSet) -> Statement:
            view = view_operation(self._store, operation)
            check_open(view.operation)
            changed[:] = [change(view)]
            rows.operation(changed[0], view.operation)
            return rows.statement(point, self._store)

        try:
            done = self._committer.commit(f"{point} operation", call, plan, named(operation))
        except Settled as settled:
            row: OperationRow = settled.answer
            return row
        log.info("operation %s: %s", operation, point)
        return replace(changed[0], commit_id=done.commit_id)

    # --- abort ------------------------------------------------------------------------------------

    def abort(self, operation: str, call: Call, only_expired: bool = False) -> Decision:
        """Ends an operation that is open; nothing of it was ever visible."""

        def plan(rows: RowSet) -> Statement:
            view = view_operation(self._store, operation)
            row = view.operation
            if row.state is OperationState.ABORTED:
                raise Settled(decision_of(view, repeated=True))
            if only_expired and (
                row.state is not OperationState.OPEN
                or row.lease_until > self._committer.environment.clock()
            ):
                raise Settled(decision_of(view, repeated=True))
            check_open(row)
            rows.operation(row.now(OperationState.ABORTED), row)
            return rows.statement("abort", self._store)

        try:
            done = self._committer.commit("abort operation", call, plan, named(operation))
        except Settled as settled:
            decision: Decision = settled.answer
            return decision
        self._committer.counters.add(aborted=1)
        log.info("operation %s: aborted at version %d", operation, done.version)
        return decided(done, operation, OperationState.ABORTED)
