"""Recovery: aborts operations with expired leases, and removes rows that claim nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from catalog.commit.claims import operations_in
from catalog.commit.operation_rows import OperationRow, OperationState
from catalog.context import Call, Context
from catalog.delta.statements import Statement, delete_operations
from catalog.delta.store import MOST_NAMED, Store
from catalog.errors import OperationDecided, UnknownOperation
from catalog.model import micros
from catalog.operations.decision import Decider, Decision
from catalog.progress import Step

log = logging.getLogger(__name__)

# One statement removes the rows of at most this many operations.
_BATCH = 500


@dataclass(frozen=True)
class RecoverReport:
    """What a recovery did, or would do.

    Attributes:
        aborted: operations whose leases had expired.
        decided: operations whose leases had expired, but that were decided before they could be
            aborted here; those that were renewed in time are not among them.
        swept: operations whose staged rows were removed.
        forgotten: operations decided so long ago that their own rows were removed.
    """

    version: int
    aborted: tuple[OperationRow, ...] = ()
    decided: tuple[str, ...] = ()
    swept: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()
    dry_run: bool = False

    def facts(self) -> dict[str, Any]:
        return {"version": self.version, **self.figures(), "dry_run": self.dry_run}

    def figures(self) -> dict[str, float]:
        return {
            "aborted": len(self.aborted),
            "decided": len(self.decided),
            "swept": len(self.swept),
            "forgotten": len(self.forgotten),
        }


@dataclass(frozen=True)
class Leftover:
    """Rows of one operation to remove: the commits that wrote them, and their buckets."""

    operation: str
    commits: Sequence[str]
    buckets: Sequence[int]


class Recovery:
    """One recovery; every step can be repeated, also by several processes at once."""

    def __init__(self, context: Context, call: Call, decider: Decider) -> None:
        self._context = context
        self._call = call
        self._decider = decider
        self._store: Store = context.store

    def recover(self, keep: timedelta, dry_run: bool) -> RecoverReport:
        """Aborts operations with expired leases, and removes rows of decided ones."""
        version = self._store.head().version
        now = self._context.environment.clock()
        opened = operations_in(self._store, version, [OperationState.OPEN])
        expired = [each for each in opened.values() if each.lease_until <= now]
        if dry_run:
            left = _names(self._to_sweep(version))
            old = _names(self._to_forget(version, keep))
            return RecoverReport(version, tuple(expired), (), left, old, dry_run=True)
        aborted: list[OperationRow] = []
        decided: list[str] = []
        for done, each in enumerate(expired):
            self._call.progress(Step("recover: abort", done, len(expired)))
            decision = self._abort(each)
            if decision is not None and not decision.repeated:
                aborted.append(each)
            elif decision is None or decision.state != OperationState.OPEN:
                decided.append(each.id)
        self._context.environment.at("recover.aborted")
        version = self._store.head().version
        swept = self._delete("sweep", self._to_sweep(version), ["staged"])
        self._context.environment.at("recover.swept")
        version = self._store.head().version
        leftover = self._to_forget(version, keep)
        forgotten = self._delete("forget", leftover, ["operation", "part"])
        head = self._store.head().version
        return RecoverReport(head, tuple(aborted), tuple(decided), swept, forgotten)

    def _abort(self, row: OperationRow) -> Decision | None:
        """The outcome of an operation, by this recovery or before; none if it is unknown by now."""
        try:
            return self._context.alone(
                self._call, lambda: self._decider.abort(row.id, self._call, only_expired=True)
            )
        except (OperationDecided, UnknownOperation):
            return None

    def _to_sweep(self, version: int) -> tuple[Leftover, ...]:
        """Staged rows of operations that are decided, or gone; no more are added to these."""
        pinned = self._store.pinned(version)
        rows = self._store.session.sql(
            "SELECT s.* FROM (SELECT operation, collect_set(commit_id) AS commits, "
            f"collect_set(bucket) AS buckets FROM {pinned} WHERE kind = 'staged' "
            f"GROUP BY operation) AS s LEFT ANTI JOIN (SELECT key FROM {pinned} "
            f"WHERE kind = 'operation' AND state IN ('{OperationState.OPEN}', "
            f"'{OperationState.READY}')) AS o ON s.operation = o.key ORDER BY s.operation"
        ).collect()
        return tuple(Leftover(*row) for row in rows)

    def _to_forget(self, version: int, keep: timedelta) -> tuple[Leftover, ...]:
        """Operations that were decided long ago and have no staged rows any more."""
        before = micros(self._context.environment.clock() - keep)
        pinned = self._store.pinned(version)
        rows = self._store.session.sql(
            "SELECT o.* FROM (SELECT operation, collect_set(commit_id) AS commits, "
            f"collect_set(bucket) AS buckets FROM {pinned} WHERE kind IN ('operation', 'part') "
            "GROUP BY operation HAVING bool_or(kind = 'operation' AND state IN "
            f"('{OperationState.PUBLISHED}', '{OperationState.ABORTED}') "
            f"AND unix_micros(changed_at) <= {before})) AS o LEFT ANTI JOIN (SELECT operation "
            f"FROM {pinned} WHERE kind = 'staged') AS s ON o.operation = s.operation "
            "ORDER BY o.operation"
        ).collect()
        return tuple(Leftover(*row) for row in rows)

    def _delete(
        self, point: str, left: Sequence[Leftover], kinds: Sequence[str]
    ) -> tuple[str, ...]:
        """Removes rows by the commits that wrote them; all rows of one operation go at once.

        Another recovery may have removed them first, and an operation with the same id may have
        been opened since: its rows are of other commits.
        """
        done = 0
        for some in batches(left):
            self._call.progress(Step(f"recover: {point}", done, len(left)))
            sql = delete_operations(
                self._store.relation,
                kinds,
                (bucket for each in some for bucket in each.buckets),
                (each.operation for each in some),
                (commit for each in some for commit in each.commits),
            )
            make = partial(_statement, Statement(point, sql))
            self._context.commit(self._call, make, f"{point} operations")
            log.info("%s: %d operations", point, len(some))
            done += len(some)
        return _names(left)


def batches(left: Sequence[Leftover]) -> Iterator[list[Leftover]]:
    """Batches of operations that one statement can name with all their commits."""
    some: list[Leftover] = []
    for each in left:
        commits = sum(len(one.commits) for one in [*some, each])
        if some and (len(some) == _BATCH or commits > MOST_NAMED):
            yield some
            some = []
        some.append(each)
    if some:
        yield some


def _names(left: Iterable[Leftover]) -> tuple[str, ...]:
    return tuple(each.operation for each in left)


def _statement(made: Statement, commit_id: str) -> Statement:
    return made
