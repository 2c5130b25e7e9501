"""Keeping the tables small: OPTIMIZE so that publishing reads few files, VACUUM of replaced files.

Neither changes content, but both concern readers of the past: a poll follows the change feed from
the version of its cache on, and the feed needs files that were removed since. They stay for the
table's retention; `maintain` refuses one that is shorter than a poller may be behind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from typing import Any

from catalog.audit.roller import RollReport
from catalog.context import Call, Context
from catalog.delta import upkeep
from catalog.delta.statements import Partition, Statement
from catalog.delta.upkeep import PartitionFiles
from catalog.delta.writer import Executed, Writer
from catalog.errors import InvalidInput, RetentionTooShort
from catalog.progress import Step

# A statement of another driver may take so long from its first file to its commit. Where Strata's
# own lock excludes other writers, no statement is running.
LEAST = timedelta(days=1)
# A partition is rewritten if it has at least this number of files more than it needs.
SURPLUS = 4

# --- plans: no session ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Compaction:
    """A partition that was, or would be, rewritten; `after` is none if it was not."""

    kind: str
    bucket: int
    before: int
    after: int | None = None


@dataclass(frozen=True)
class Vacuumed:
    """How many files of a table were, or would be, removed; none if Delta did not say."""

    table: str
    files: int | None


@dataclass(frozen=True)
class MaintainReport:
    """What maintenance did, or would do."""

    version: int
    retention: timedelta
    compacted: tuple[Compaction, ...]
    vacuumed: tuple[Vacuumed, ...]
    dry_run: bool = False
    retries: int = 0
    audit: RollReport | None = None

    def facts(self) -> dict[str, Any]:
        figures = self.figures()
        return {
            "version": self.version,
            "partitions_compacted": figures["partitions_compacted"],
            "files_removed": figures["files_removed"],
            "retention_seconds": int(self.retention.total_seconds()),
            "versions_rolled": figures["versions_rolled"],
            "audit_gaps": figures["audit_gaps"],
            "dry_run": self.dry_run,
            "retries": self.retries,
        }

    def figures(self) -> dict[str, float]:
        return {
            "partitions_compacted": len(self.compacted),
            "files_removed": sum(each.files or 0 for each in self.vacuumed),
            "versions_rolled": self.audit.rolled if self.audit else 0,
            "audit_gaps": len(self.audit.gaps) if self.audit else 0,
            "conflicts_retried": self.retries,
        }


def plan_compactions(
    partitions: Iterable[PartitionFiles],
    file_bytes: int = upkeep.FILE_BYTES,
    surplus: int = SURPLUS,
) -> list[PartitionFiles]:
    """The partitions with at least `surplus` files more than they need, the worst first."""
    found = [p for p in partitions if p.files - max(1, ceil(p.bytes / file_bytes)) >= surplus]
    return sorted(found, key=lambda p: (-p.files, p.kind, p.bucket))


def check_retention(
    retention: timedelta, poller_lag: timedelta, cut_off: bool, locked: bool
) -> None:
    """Raises `RetentionTooShort` unless a poller that is `poller_lag` behind can still follow.

    `locked` says that no other driver can be writing while files are removed.
    """
    for name, time in (("retain", retention), ("poller_lag", poller_lag)):
        if time < timedelta(0):
            raise InvalidInput(f"{name} must not be negative, not {time!r}.", **{name: time})
    if retention < LEAST and not locked:
        raise RetentionTooShort(
            f"Files would be kept for {retention}. VACUUM also removes files that are not "
            f"committed yet, and another driver may be writing some: keep them for at least "
            f"{LEAST}.",
            retention=retention,
            least=LEAST,
        )
    if retention < poller_lag and not cut_off:
        raise RetentionTooShort(
            f"Files would be kept for {retention}, and a poller may be {poller_lag} behind: it "
            "would have to load everything anew. Keep them longer, declare that pollers are never "
            "so far behind (poller_lag), or allow it (cut_off_pollers).",
            retention=retention,
            poller_lag=poller_lag,
        )


# --- the work -------------------------------------------------------------------------------------


class Maintainer:
    """One maintenance of a catalog's tables. Every step can be repeated, also concurrently."""

    def __init__(self, context: Context, call: Call) -> None:
        self._context = context
        self._call = call
        self._store = context.store
        self._retries = 0

    def retention(self) -> timedelta:
        """How long the table keeps files that were removed."""
        return upkeep.retention_of(self._store)

    def maintain(
        self,
        retention: timedelta,
        side_tables: Sequence[Writer],
        optimize: bool,
        vacuum: bool,
        dry_run: bool,
        roll: Callable[[], RollReport] | None = None,
        only: Collection[Partition] | None = None,
    ) -> MaintainReport:
        """Compacts, rolls the history, sets the retention and vacuums; a dry run only reports.

        With `only` no more is compacted than these partitions, as far as they need it.
        """
        todo = plan_compactions(upkeep.partition_files(self._store)) if optimize else []
        if only is not None:
            todo = [each for each in todo if (each.kind, each.bucket) in only]
        tables = [self._context.writer, *side_tables] if vacuum else []
        total = len(todo) + len(tables)
        compacted = []
        for number, partition in enumerate(todo):
            self._progress(f"OPTIMIZE {partition.kind} {partition.bucket}", number, total)
            after = None if dry_run else self._compact(partition)
            compacted.append(Compaction(partition.kind, partition.bucket, partition.files, after))
        if optimize and not dry_run and only is None:
            for writer in side_tables:
                self._commit(upkeep.optimize(writer.store), writer)
        # Before the retention is shortened and files are removed: the audit needs them.
        rolled = roll() if roll is not None else None
        self._context.environment.at("maintain.rolled")
        if vacuum and not dry_run and self.retention() != retention:
            self._set_retention(retention)
        vacuumed = []
        for number, writer in enumerate(tables, len(todo)):
            self._progress(f"VACUUM {writer.store.table}", number, total)
            files = upkeep.removable_files(writer.store) if dry_run else self._vacuum(writer)
            vacuumed.append(Vacuumed(writer.store.table, files))
        self._progress("maintenance", total, total)
        return MaintainReport(
            self._store.head().version,
            retention,
            tuple(compacted),
            tuple(vacuumed),
            dry_run,
            self._retries + (rolled.retries if rolled else 0),
            rolled,
        )

    def _progress(self, what: str, done: int, total: int) -> None:
        self._call.progress(Step(what, done, total))

    def _compact(self, partition: PartitionFiles) -> int:
        """Rewrites one partition, sorted by key; returns how many files it has then."""
        # One partition per statement: an OPTIMIZE makes a MERGE on the same files start again.
        statement = upkeep.optimize(self._store, (partition.kind, partition.bucket))
        counts = self._commit(statement, self._context.writer).counts
        return partition.files - counts.get("numFilesRemoved", 0) + counts.get("numFilesAdded", 0)

    def _vacuum(self, writer: Writer) -> int | None:
        before = writer.store.head().version
        self._commit(upkeep.vacuum(writer.store), writer)
        return upkeep.vacuumed_files(writer.store, before)

    def _commit(self, statement: Statement, writer: Writer) -> Executed:
        executed = self._context.commit(self._call, lambda _: statement, statement.point, writer)
        self._retries += executed.retries
        return executed

    def _set_retention(self, retention: timedelta) -> None:
        context, call = self._context, self._call
        commit_id = context.environment.new_id()
        context.alone(
            call,
            lambda: upkeep.set_retention(
                context.writer, retention, commit_id, call.caller, call.deadline
            ),
        )
