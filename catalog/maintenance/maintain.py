"""Keeping the tables small: OPTIMIZE so that publishing reads few files, VACUUM of what is gone.

Neither changes content. What has to be minded is who reads the past: a poll follows the change
feed from the version of its cache on, and the feed needs files that were removed since. They stay
for the table's retention; `maintain` refuses one that is shorter than a poller may be behind.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from typing import TYPE_CHECKING

from catalog.audit.roller import RollReport
from catalog.context import Call, Context
from catalog.delta.layout import properties_sql
from catalog.delta.session import USER_METADATA, tune
from catalog.delta.statements import Statement
from catalog.delta.writer import Executed, Writer, user_metadata
from catalog.errors import InvalidInput, RetentionTooShort
from catalog.progress import Step
from catalog.schema.names import literal

if TYPE_CHECKING:
    from pyspark.sql import Row

log = logging.getLogger(__name__)


# A publish reads the files of its buckets whose key ranges its ids fall into. Small enough to read
# quickly, large enough that a million segments need few of them.
FILE_BYTES = 32 * 1024 * 1024
# A statement of another driver may take so long from its first file to its commit. Where Strata's
# own lock keeps others out, nothing is under way.
LEAST = timedelta(days=1)
# So many files more than needed make it worth rewriting a partition.
SURPLUS = 4

RETENTION = "delta.deletedFileRetentionDuration"
LOG_RETENTION = "delta.logRetentionDuration"
_DEFAULTS = {RETENTION: "interval 7 days", LOG_RETENTION: "interval 30 days"}
_MAX_FILE = "spark.databricks.delta.optimize.maxFileSize"
_INTERVAL = re.compile(r"(\d+)\s+(week|day|hour|minute|second)s?", re.IGNORECASE)

# --- plans: no session ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Filled:
    """How many files a partition has, and how large they are together."""

    kind: str
    bucket: int
    files: int
    bytes: int


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


def plan_compactions(
    partitions: Iterable[Filled], file_bytes: int = FILE_BYTES, surplus: int = SURPLUS
) -> list[Filled]:
    """The partitions that have so many files more than they need, the worst first."""
    found = [p for p in partitions if p.files - max(1, ceil(p.bytes / file_bytes)) >= surplus]
    return sorted(found, key=lambda p: (-p.files, p.kind, p.bucket))


def parse_interval(text: str) -> timedelta:
    """The time that a property such as `interval 7 days` stands for."""
    rest = text.strip().lower().removeprefix("interval").strip()
    parts = _INTERVAL.findall(rest)
    if not parts or _INTERVAL.sub("", rest).strip():
        raise InvalidInput(
            f"{text!r} is not an interval of weeks, days, hours, minutes or seconds.", interval=text
        )
    return sum((timedelta(**{f"{unit}s": int(n)}) for n, unit in parts), timedelta())


def interval_sql(time: timedelta) -> str:
    """The property text of a time, in whole seconds."""
    return f"interval {int(time.total_seconds())} seconds"


def check_retention(
    retention: timedelta, poller_lag: timedelta, cut_off: bool, locked: bool
) -> None:
    """Raises `RetentionTooShort` unless a poller that is so far behind can still follow.

    `locked` says that nobody else can be writing while files are removed.
    """
    for name, time in (("retain", retention), ("poller_lag", poller_lag)):
        if time < timedelta(0):
            raise InvalidInput(f"{name} must not be negative, not {time!r}.", **{name: time})
    if retention < LEAST and not locked:
        raise RetentionTooShort(
            f"Files would be kept for {retention}. VACUUM removes files that are not committed "
            f"yet, too, and another driver may be writing some: keep them for at least {LEAST}.",
            retention=retention,
            least=LEAST,
        )
    if retention < poller_lag and not cut_off:
        raise RetentionTooShort(
            f"Files would be kept for {retention}, and a poller may be {poller_lag} behind: it "
            "would have to load everything anew. Keep them longer, say that pollers are never so "
            "far behind (poller_lag), or allow it (cut_off_pollers).",
            retention=retention,
            poller_lag=poller_lag,
        )


# --- the work -------------------------------------------------------------------------------------


class Maintainer:
    """One maintenance of a catalog's tables. Every step can be run again, by anyone, at once."""

    def __init__(self, context: Context, call: Call) -> None:
        self._context = context
        self._call = call
        self._writer = context.writer
        self._store = context.store
        self._progress = call.progress
        self._retries = 0

    def retention(self) -> timedelta:
        """How long the table keeps files that were removed."""
        properties = self._store.detail().properties
        return parse_interval(properties.get(RETENTION, _DEFAULTS[RETENTION]))

    def maintain(
        self,
        retention: timedelta,
        beside: Sequence[Writer],
        optimize: bool,
        vacuum: bool,
        dry_run: bool,
        roll: Callable[[], RollReport] | None = None,
        only: Collection[tuple[str, int]] | None = None,
    ) -> MaintainReport:
        """Compacts, rolls the history, sets the retention and vacuums; or only says so.

        With `only` no more is compacted than these partitions, as far as they need it.
        """
        compacted: list[Compaction] = []
        vacuumed: list[Vacuumed] = []
        todo = plan_compactions(self._partitions()) if optimize else []
        if only is not None:
            todo = [each for each in todo if (each.kind, each.bucket) in only]
        tables = [self._writer, *beside] if vacuum else []
        total = len(todo) + len(tables)
        for number, partition in enumerate(todo):
            self._progress(Step(f"OPTIMIZE {partition.kind} {partition.bucket}", number, total))
            after = None if dry_run else self._compact(partition)
            compacted.append(Compaction(partition.kind, partition.bucket, partition.files, after))
        if optimize and not dry_run and only is None:
            for writer in beside:
                self._commit(writer, "optimize", _optimize(writer))
        # Before the retention is shorter and before files go: what the audit lacks then is lost.
        rolled = roll() if roll is not None else None
        self._context.environment.at("maintain.rolled")
        if vacuum and not dry_run:
            self._set_retention(retention)
        for number, writer in enumerate(tables, len(todo)):
            self._progress(Step(f"VACUUM {writer.store.table}", number, total))
            files = _would_remove(writer) if dry_run else self._vacuum(writer)
            vacuumed.append(Vacuumed(writer.store.table, files))
        self._progress(Step("maintenance", total, total))
        return MaintainReport(
            self._store.head().version,
            retention,
            tuple(compacted),
            tuple(vacuumed),
            dry_run,
            self._retries + (rolled.retries if rolled else 0),
            rolled,
        )

    def _partitions(self) -> list[Filled]:
        version = self._store.head().version
        rows = self._store.session.sql(
            "SELECT kind, bucket, count(*) AS files, sum(size) AS bytes FROM (SELECT DISTINCT "
            "kind, bucket, _metadata.file_path AS path, _metadata.file_size AS size "
            f"FROM {self._store.pinned(version)}) GROUP BY kind, bucket"
        ).collect()
        return [Filled(**row.asDict()) for row in rows]

    def _compact(self, partition: Filled) -> int:
        """Rewrites one partition, sorted by key; returns how many files it has then."""
        # One partition a statement: an OPTIMIZE makes a MERGE that runs beside it start again.
        sql = (
            f"{_optimize(self._writer)} WHERE kind = {literal(partition.kind)} "
            f"AND bucket = {int(partition.bucket)} ZORDER BY (key)"
        )
        counts = self._commit(self._writer, "optimize", sql).counts
        return partition.files - counts.get("numFilesRemoved", 0) + counts.get("numFilesAdded", 0)

    def _vacuum(self, writer: Writer) -> int | None:
        sql = f"VACUUM {writer.store.relation}"
        before = writer.store.head().version
        self._commit(writer, "vacuum", sql)
        rows = writer.store.history(10).collect()
        ends = (row for row in rows if row["operation"] == "VACUUM END" and row["version"] > before)
        return next(map(_deleted, ends), None)

    def _commit(self, writer: Writer, verb: str, sql: str) -> Executed:
        tune(writer.store.session, {_MAX_FILE: str(FILE_BYTES)})
        statement = Statement(verb, lambda _: sql, bulk=True)
        executed = self._context.commit(self._call, lambda _: statement, verb, writer)
        self._retries += executed.retries
        return executed

    def _set_retention(self, retention: timedelta) -> None:
        properties = self._store.detail().properties
        found = {
            name: parse_interval(properties.get(name, _DEFAULTS[name]))
            for name in (RETENTION, LOG_RETENTION)
        }
        if found[RETENTION] == retention:
            return
        # Delta refuses to vacuum a table whose log is kept for less time than its files.
        wanted = {
            RETENTION: interval_sql(retention),
            LOG_RETENTION: interval_sql(max(retention, found[LOG_RETENTION])),
        }
        sql = f"ALTER TABLE {self._store.relation} SET TBLPROPERTIES ({properties_sql(wanted)})"
        log.info("Files are kept for %s from now on, not %s.", retention, found[RETENTION])
        self._context.queue.alone(lambda: self._alter(sql), self._call.deadline)

    def _alter(self, sql: str) -> None:
        session, deadline = self._store.session, self._call.deadline
        commit_id = self._context.environment.new_id()
        with self._writer.lock.held(deadline), deadline.not_counting():
            session.conf.set(
                USER_METADATA, user_metadata(commit_id, "set-retention", [self._call.caller])
            )
            try:
                session.sql(sql)
            finally:
                session.conf.unset(USER_METADATA)


def _optimize(writer: Writer) -> str:
    return f"OPTIMIZE {writer.store.relation}"


def _would_remove(writer: Writer) -> int:
    # Delta lists at most a thousand files here.
    return writer.store.session.sql(f"VACUUM {writer.store.relation} DRY RUN").count()


def _deleted(row: Row) -> int | None:
    text = (row["operationMetrics"] or {}).get("numDeletedFiles")
    return None if text is None else int(text)
