"""What nobody else cleans up: operations that their owners left, and rows that claim nothing."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from catalog.errand import Errand
from catalog.errors import OperationDecided, UnknownOperation
from catalog.model import micros
from catalog.operations.committing import Request
from catalog.operations.decider import Decider
from catalog.operations.reading import operations_in
from catalog.operations.rows import OperationRow, OperationState, operation_bucket
from catalog.progress import Step
from catalog.table.location import literal
from catalog.table.statements import Statement
from catalog.table.store import Store

log = logging.getLogger(__name__)

# How long it stays known what became of an operation.
DEFAULT_KEEP = timedelta(days=30)
# So many operations are forgotten by one statement.
_BATCH = 500


@dataclass(frozen=True)
class RecoverReport:
    """What a recovery did, or would do.

    Attributes:
        aborted: operations whose owners let their leases run out.
        decided: operations that were found to run out, but whose owners were quicker.
        swept: operations whose staged rows were removed.
        forgotten: operations that were decided so long ago that their rows were removed.
    """

    version: int
    aborted: tuple[OperationRow, ...] = ()
    decided: tuple[str, ...] = ()
    swept: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()
    dry_run: bool = False


class Recovery:
    """One recovery; every step can be run again, by anyone, at once."""

    def __init__(self, errand: Errand, decider: Decider) -> None:
        self._errand = errand
        self._decider = decider
        self._store: Store = errand.writer.store

    def recover(self, keep: timedelta, dry_run: bool) -> RecoverReport:
        """Aborts what was abandoned, removes what is decided."""
        version = self._store.head().version
        now = self._errand.surroundings.clock()
        opened = operations_in(self._store, version, [OperationState.OPEN])
        expired = [each for each in opened.values() if each.lease_until <= now]
        if dry_run:
            left = self._to_sweep(version)
            old = self._to_forget(version, keep)
            return RecoverReport(version, tuple(expired), (), left, old, dry_run=True)
        aborted: list[OperationRow] = []
        decided: list[str] = []
        for done, each in enumerate(expired):
            self._errand.progress(Step("recover: abort", done, len(expired)))
            if self._abort(each):
                aborted.append(each)
            else:
                decided.append(each.id)
        self._errand.surroundings.at("recover.aborted")
        swept = self._to_sweep(self._store.head().version)
        self._delete("sweep", swept, "kind = 'staged'")
        self._errand.surroundings.at("recover.swept")
        forgotten = self._to_forget(self._store.head().version, keep)
        self._delete("forget", forgotten, "kind IN ('operation', 'part')")
        head = self._store.head().version
        return RecoverReport(head, tuple(aborted), tuple(decided), swept, forgotten)

    def _abort(self, row: OperationRow) -> bool:
        """Whether it was this recovery that aborted it; its owner may have been quicker."""
        errand = self._errand
        request = Request(errand.caller, errand.deadline)
        try:
            decision = errand.queue.alone(
                lambda: self._decider.abort(row.id, request, only_expired=True), errand.deadline
            )
        except (OperationDecided, UnknownOperation):
            return False
        return not decision.repeated

    def _to_sweep(self, version: int) -> tuple[str, ...]:
        """Operations that are decided, or gone, and still have staged rows."""
        pinned = self._store.pinned(version)
        rows = self._store.session.sql(
            f"SELECT s.operation FROM (SELECT DISTINCT operation FROM {pinned} "
            f"WHERE kind = 'staged') AS s LEFT ANTI JOIN (SELECT key FROM {pinned} "
            f"WHERE kind = 'operation' AND state IN ('{OperationState.OPEN}', "
            f"'{OperationState.READY}')) AS o ON s.operation = o.key ORDER BY s.operation"
        ).collect()
        return tuple(row["operation"] for row in rows)

    def _to_forget(self, version: int, keep: timedelta) -> tuple[str, ...]:
        """Operations that were decided long ago and have no staged rows any more."""
        before = micros(self._errand.surroundings.clock() - keep)
        rows = self._store.session.sql(
            f"SELECT o.key FROM (SELECT key FROM {self._store.pinned(version)} WHERE "
            f"kind = 'operation' AND state IN ('{OperationState.PUBLISHED}', "
            f"'{OperationState.ABORTED}') AND unix_micros(changed_at) <= {before}) AS o "
            f"LEFT ANTI JOIN (SELECT operation FROM {self._store.pinned(version)} "
            "WHERE kind = 'staged') AS s ON o.key = s.operation ORDER BY o.key"
        ).collect()
        return tuple(row["key"] for row in rows)

    def _delete(self, point: str, operations: Sequence[str], kinds: str) -> None:
        """Removes rows of operations; all rows of one go at once."""
        for start in range(0, len(operations), _BATCH):
            self._errand.progress(Step(f"recover: {point}", start, len(operations)))
            some = operations[start : start + _BATCH]
            buckets = self._buckets(some) if point == "sweep" else map(operation_bucket, some)
            where = (
                f"{kinds} AND bucket IN ({', '.join(map(str, sorted(set(buckets))))}) "
                f"AND operation IN ({', '.join(map(literal, some))})"
            )
            text = f"DELETE FROM {self._store.relation} WHERE {where}"
            self._errand.commit(partial(_deletion, point, text), f"{point} operations")
            log.info("%s: %d operations", point, len(some))

    def _buckets(self, operations: Sequence[str]) -> set[int]:
        """The buckets in which operations have staged rows; decided ones get no more of them."""
        rows = self._store.session.sql(
            f"SELECT DISTINCT bucket FROM {self._store.pinned(self._store.head().version)} WHERE "
            f"kind = 'staged' AND operation IN ({', '.join(map(literal, operations))})"
        ).collect()
        return {row["bucket"] for row in rows} or {0}


def _deletion(point: str, text: str, commit_id: str) -> Statement:
    return Statement(point, lambda _: text)
