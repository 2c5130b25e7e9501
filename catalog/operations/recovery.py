"""What nobody else cleans up: operations that their owners left, and rows that claim nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from catalog.commit.claims import operations_in
from catalog.commit.operation_rows import OperationRow, OperationState
from catalog.context import Call, Context
from catalog.delta.statements import Statement
from catalog.delta.store import MOST_NAMED, Store
from catalog.errors import OperationDecided, UnknownOperation
from catalog.model import micros
from catalog.operations.decider import Decider
from catalog.operations.decision import Decision
from catalog.progress import Step
from catalog.schema.names import literal

log = logging.getLogger(__name__)

# One statement removes the rows of so many operations.
_BATCH = 500


@dataclass(frozen=True)
class RecoverReport:
    """What a recovery did, or would do.

    Attributes:
        aborted: operations whose owners let their leases run out.
        decided: operations that were found to run out, but that others decided before; those whose
            owners were quicker to renew them are not among them.
        swept: operations whose staged rows were removed.
        forgotten: operations that were decided so long ago that their rows were removed.
    """

    version: int
    aborted: tuple[OperationRow, ...] = ()
    decided: tuple[str, ...] = ()
    swept: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True)
class Leftover:
    """Rows of one operation that are to go: by which commits they were written, and where."""

    operation: str
    commits: Sequence[str]
    buckets: Sequence[int]


class Recovery:
    """One recovery; every step can be run again, by anyone, at once."""

    def __init__(self, context: Context, call: Call, decider: Decider) -> None:
        self._context = context
        self._call = call
        self._decider = decider
        self._store: Store = context.store

    def recover(self, keep: timedelta, dry_run: bool) -> RecoverReport:
        """Aborts what was abandoned, removes what is decided."""
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
        swept = self._delete("sweep", self._to_sweep(version), "kind = 'staged'")
        self._context.environment.at("recover.swept")
        version = self._store.head().version
        leftover = self._to_forget(version, keep)
        forgotten = self._delete("forget", leftover, "kind IN ('operation', 'part')")
        head = self._store.head().version
        return RecoverReport(head, tuple(aborted), tuple(decided), swept, forgotten)

    def _abort(self, row: OperationRow) -> Decision | None:
        """What became of it, by this recovery or before; none if it is not known any more."""
        try:
            return self._context.alone(
                self._call, lambda: self._decider.abort(row.id, self._call, only_expired=True)
            )
        except (OperationDecided, UnknownOperation):
            return None

    def _to_sweep(self, version: int) -> tuple[Leftover, ...]:
        """Staged rows of operations that are decided, or gone; such get no more of them."""
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

    def _delete(self, point: str, left: Sequence[Leftover], kinds: str) -> tuple[str, ...]:
        """Removes rows as they were seen; all rows of one operation go at once.

        Another recovery may have removed them first, and somebody have opened an operation with
        the same id since: its rows are of other commits.
        """
        done = 0
        for some in batches(left):
            self._call.progress(Step(f"recover: {point}", done, len(left)))
            buckets = sorted({bucket for each in some for bucket in each.buckets})
            commits = sorted({commit for each in some for commit in each.commits})
            where = (
                f"{kinds} AND bucket IN ({', '.join(map(str, buckets))}) "
                f"AND operation IN ({', '.join(literal(each.operation) for each in some)}) "
                f"AND commit_id IN ({', '.join(map(literal, commits))})"
            )
            text = f"DELETE FROM {self._store.relation} WHERE {where}"
            self._context.commit(self._call, partial(_deletion, point, text), f"{point} operations")
            log.info("%s: %d operations", point, len(some))
            done += len(some)
        return _names(left)


def batches(left: Sequence[Leftover]) -> Iterator[list[Leftover]]:
    """Operations that one statement can name with all their commits, and at least one of them."""
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


def _deletion(point: str, text: str, commit_id: str) -> Statement:
    return Statement(point, lambda _: text)
