"""Copies commits and changed keys from the Delta log into the audit table, before it drops them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from catalog.audit.history import changes_of, recent_commits
from catalog.audit.model import Commit, lost_changes
from catalog.context import Call, Context
from catalog.delta.audit_log import COMMIT, GAP_CHANGES, GAP_COMMITS, AuditLog, frame_of
from catalog.delta.failures import is_gone
from catalog.errors import CommitFailed
from catalog.progress import Step

log = logging.getLogger(__name__)

# Versions in one commit.
BATCH = 500


@dataclass(frozen=True)
class Gap:
    """Versions that were rolled too late; `what` says if commits or only changes are lost."""

    first: int
    last: int
    what: str


@dataclass(frozen=True)
class RollReport:
    """Result of a roll, or of its dry run.

    Attributes:
        reached: the last version in the audit table; -1 if it has none.
        rolled: number of versions that this roll added.
        gaps: the gaps that it recorded.
        retries: commits that were tried again after a conflict.
    """

    reached: int
    rolled: int = 0
    gaps: tuple[Gap, ...] = ()
    dry_run: bool = False
    retries: int = 0

    def facts(self) -> dict[str, Any]:
        return {
            "reached": self.reached,
            "versions_rolled": self.rolled,
            "audit_gaps": len(self.gaps),
            "dry_run": self.dry_run,
            "retries": self.retries,
        }

    def figures(self) -> dict[str, float]:
        return {
            "versions_rolled": self.rolled,
            "audit_gaps": len(self.gaps),
            "conflicts_retried": self.retries,
        }


class Roller:
    """One roll. It may be stopped at any point and run again, also concurrently."""

    def __init__(self, context: Context, call: Call, audit: AuditLog, table_id: str) -> None:
        self._context = context
        self._call = call
        self._audit = audit
        self._table_id = table_id
        self._commits: Mapping[int, Commit] = {}
        self._gaps: list[Gap] = []
        self._retries = 0

    def roll(self, dry_run: bool = False) -> RollReport:
        """Adds every version that the audit table does not have, up to the newest."""
        last = self._context.store.head().version
        begun = self._audit.reached(self._table_id)
        if dry_run or begun >= last:
            return RollReport(begun, max(0, last - begun), dry_run=dry_run)
        self._audit.make(self._call.deadline)
        # Newer commits may have come since; the history lists them first.
        newest = self._audit.entries.head().version
        found = recent_commits(self._audit.entries, newest - begun)
        self._commits = {c.version: c for c in found if begun < c.version <= last}
        # The log has the last version: it was just the newest.
        oldest = min(self._commits)
        readable = self._audit.first_readable(oldest, last)
        reached = begun
        while reached < last:
            first = reached + 1
            self._call.progress(Step("audit", first - begun - 1, last - begun))
            if first < oldest:
                self._forget(first, oldest - 1)
            elif first < readable:
                self._without_changes(first, min(readable, first + BATCH) - 1)
            else:
                self._with_changes(first, min(last, first + BATCH - 1))
            self._context.environment.at("roll.batch")
            # Read again: a concurrent roll may have added these versions first.
            reached = self._audit.reached(self._table_id)
        self._call.progress(Step("audit", last - begun, last - begun))
        return RollReport(reached, reached - begun, tuple(self._gaps), False, self._retries)

    # --- batches ----------------------------------------------------------------------------------

    def _forget(self, first: int, last: int) -> None:
        """Records versions that the log no longer has."""
        log.warning("Versions %d to %d were rolled too late: the log lost them.", first, last)
        gap = Gap(first, last, "commits")
        self._append(first, [self._gap(gap, GAP_COMMITS, last + 1)], None, gap)

    def _without_changes(self, first: int, last: int) -> None:
        """Adds commits whose changes can no longer be read, with a gap."""
        rows = self._rows(first, last)
        lost = lost_changes(self._commits[version] for version in range(first, last + 1))
        if lost is None:
            self._append(first, rows, None)
            return
        gap = Gap(*lost, "changes")
        log.warning("What versions %d to %d changed was rolled too late.", gap.first, gap.last)
        rows.append(self._gap(gap, GAP_CHANGES, gap.last))
        self._append(first, rows, None, gap)

    def _with_changes(self, first: int, last: int) -> None:
        """Adds commits and their changes; halves the batch if a file is gone."""
        try:
            self._append(first, self._rows(first, last), last)
        except CommitFailed as error:
            if not is_gone(error.__cause__ or error):
                raise
            if first == last:
                self._without_changes(first, last)
            else:
                # `roll` goes on with the rest.
                self._with_changes(first, (first + last) // 2)

    def _gap(self, gap: Gap, record: str, known: int) -> dict[str, object]:
        """The row of a gap, with the timestamp of the version `known`."""
        return {
            "version": gap.last,
            "first_version": gap.first,
            "record": record,
            "timestamp": self._commits[known].timestamp,
        }

    def _rows(self, first: int, last: int) -> list[dict[str, object]]:
        return [
            {
                "version": commit.version,
                "first_version": commit.version,
                "record": COMMIT,
                "timestamp": commit.timestamp,
                "commit_id": commit.commit_id,
                "verb": commit.verb,
                "callers": commit.caller_rows,
            }
            for version, commit in sorted(self._commits.items())
            if first <= version <= last
        ]

    def _append(
        self,
        first: int,
        rows: list[dict[str, object]],
        changed_until: int | None,
        gap: Gap | None = None,
    ) -> None:
        """Commits rows, and the changes from `first` to a version, unless they are there."""
        audit, table_id = self._audit, self._table_id
        source = frame_of(audit.session, [{**row, "table_id": table_id} for row in rows])
        if changed_until is not None:
            commits = [self._commits[v] for v in range(first, changed_until + 1)]
            source = source.union(changes_of(audit, commits, first, changed_until, table_id))
        statement = audit.append(source, table_id, first, bulk=changed_until is not None)
        executed = self._context.commit(self._call, lambda _: statement, "roll", audit.writer)
        self._retries += executed.retries
        if gap is not None and executed.version is not None:
            self._gaps.append(gap)
