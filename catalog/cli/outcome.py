"""How a run ends: exit codes, its row in the runs table, and its metrics."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.delta import failures
from catalog.delta.runs import Run, Status
from catalog.errors import CatalogError, GaveUp, InvalidInput, OutcomeUnknown, TaskBusy, TaskLost
from catalog.exposition import Gauge, check_exposition, write_gauges

if TYPE_CHECKING:
    from catalog.catalog import Catalog
    from catalog.sql.stats import Stats

log = logging.getLogger(__name__)

# --- exit codes -----------------------------------------------------------------------------------


class Exit(IntEnum):
    """The exit codes of the shell and of the jobs."""

    DONE = 0
    FOUND = 1
    FAILED = 2
    GAVE_UP = 3
    UNEXPECTED = 70
    INTERRUPTED = 130

    @property
    def status(self) -> Status:
        """How the run is recorded."""
        return {
            Exit.DONE: Status.DONE,
            Exit.FOUND: Status.FOUND,
            Exit.GAVE_UP: Status.GAVE_UP,
            Exit.INTERRUPTED: Status.INTERRUPTED,
        }.get(self, Status.FAILED)


def exit_of(error: BaseException) -> Exit:
    """The exit code that an error leads to."""
    if isinstance(error, KeyboardInterrupt):
        return Exit.INTERRUPTED
    if isinstance(error, GaveUp | OutcomeUnknown | TaskBusy | TaskLost):
        return Exit.GAVE_UP
    return Exit.FAILED if isinstance(error, CatalogError) else Exit.UNEXPECTED


def condition_of(error: BaseException) -> str:
    """The stable name of an error: ours, Spark's, or that of its class."""
    if isinstance(error, CatalogError):
        return error.condition
    if isinstance(error, KeyboardInterrupt):
        return "INTERRUPTED"
    return failures.condition_of(error) or type(error).__name__


# --- the record -----------------------------------------------------------------------------------

# How often a job that runs for days records that it is alive; each record is a commit.
ALIVE_EVERY = timedelta(minutes=10)
_LONGEST_MESSAGE = 4000


class Recorder:
    """Writes the row of a run: when it begins, every ten minutes, and when it ends."""

    def __init__(self, catalog: Catalog, run: Run) -> None:
        self._catalog = catalog
        self._run = run

    def begin(self) -> None:
        """Records that the run has begun."""
        self._run = replace(self._run, version_before=self._catalog.version)
        self._catalog.audit.record(self._run)

    def alive(self, figures: Mapping[str, float]) -> None:
        """Records that the run is alive, at most every ten minutes."""
        now = datetime.now(UTC)
        if now - self._run.seen_at >= ALIVE_EVERY:
            self._run = replace(self._run, seen_at=now, figures=dict(figures))
            self._record()

    def end(self, code: Exit, figures: Mapping[str, float], error: BaseException | None) -> None:
        """Records how the run ended."""
        now = datetime.now(UTC)
        self._run = replace(
            self._run,
            status=code.status,
            seen_at=now,
            ended_at=now,
            figures=dict(figures),
            error_condition=None if error is None else condition_of(error),
            error_message=None if error is None else str(error)[:_LONGEST_MESSAGE],
        )
        self._record()

    def _record(self) -> None:
        """Writes the row; a failure is logged, as what the run did is committed already."""
        try:
            self._run = replace(self._run, version_after=self._catalog.version)
            self._catalog.audit.record(self._run)
        except Exception as failure:
            log.warning("Run %s could not be recorded: %s", self._run.run_id, failure)


# --- metrics --------------------------------------------------------------------------------------

_SUCCESS = "strata_run_last_success_timestamp_seconds"

# Figures that add up over the answers of a run; of the others the last one counts.
ADDED_UP = {"conflicts_retried", "polls", "added", "removed", "changed"}

# Figures of a run, and attributes of `Stats`, that have a metric: its name and its help text.
_FIGURES = {
    "conflicts_retried": ("strata_run_conflicts_retried", "Commits retried after a conflict"),
    "poll_lag_versions": ("strata_poll_lag_versions", "Versions that the last poll was behind"),
    "poll_lag_seconds": ("strata_poll_lag_seconds", "Age of the oldest change not yet polled"),
    "violations": ("strata_violations", "Violations of promises that verify found"),
    "completed": ("strata_backfill_completed", "Segments whose schema the last backfill stored"),
    "quarantined": ("strata_backfill_quarantined", "Segments whose data showed no schema"),
    "left": ("strata_backfill_left", "Segments that the last backfill did not get to"),
    "per_second": ("strata_backfill_per_second", "Segments completed per second"),
    "aborted": ("strata_recover_aborted", "Operations aborted because their lease was over"),
    "decided": ("strata_recover_decided", "Operations that their owners decided meanwhile"),
    "swept": ("strata_recover_swept", "Decided operations whose staged rows were removed"),
    "forgotten": ("strata_recover_forgotten", "Operations decided long ago that were removed"),
    "retention_archived": ("strata_retention_archived", "Segments that the last run archived"),
    "retention_dropped": ("strata_retention_dropped", "Segments that the last run dropped"),
    "retention_failed": ("strata_retention_failed", "Segments that could not be dropped"),
    "retention_left": ("strata_retention_left", "Segments that the last run did not get to"),
    "retention_troubled": ("strata_retention_troubled", "Failed datasources and refused rules"),
    "expired": ("strata_operations_expired", "Open operations whose lease is over"),
    "oldest_seconds": ("strata_operations_oldest_seconds", "Age of the oldest undecided operation"),
}
_STATS = {
    "version": ("strata_version", "Newest version of the catalog"),
    "segments": ("strata_segments", "Visible segments"),
    "segments_without_schema": ("strata_segments_without_schema", "Segments without a schema"),
    "segments_quarantined": ("strata_segments_quarantined", "Segments in quarantine"),
    "datasources": ("strata_datasources", "Datasources with segments"),
    "schemas": ("strata_schemas", "Live schemas"),
    "orphans": ("strata_orphan_schemas", "Live schemas that nothing uses"),
    "retired": ("strata_retired_schemas", "Retired schemas that are not purged yet"),
    "objects": ("strata_objects", "Objects"),
    "operations_open": ("strata_operations_open", "Operations that are open"),
    "operations_ready": ("strata_operations_ready", "Operations that wait for their epoch"),
}


@dataclass(frozen=True)
class RunOutcome:
    """How a run went."""

    command: str
    location: str
    code: Exit
    seconds: float
    figures: Mapping[str, float]


def check_metrics_file(file: str) -> None:
    """Raises before any work is done if the file could not be written after it."""
    check_exposition()
    if not Path(file).absolute().parent.is_dir():
        raise InvalidInput(f"There is no directory for the metrics file {file}.", file=file)


def write_metrics(file: str, outcome: RunOutcome, stats: Stats | None, now: datetime) -> None:
    """Writes the file in place of the old one; a failure keeps the time of the last success."""
    gauges = _of_run(outcome, _last_success(file, outcome, now))
    if stats is not None:
        gauges += _of_catalog(stats, now)
    # Several commands and catalogs may write to one directory: no two share a series.
    write_gauges(file, gauges, {"command": outcome.command, "location": outcome.location})


def _last_success(file: str, outcome: RunOutcome, now: datetime) -> float | None:
    if outcome.code in (Exit.DONE, Exit.FOUND):
        return now.timestamp()
    from prometheus_client.parser import text_string_to_metric_families

    if not Path(file).is_file():
        return None
    for family in text_string_to_metric_families(Path(file).read_text(encoding="utf-8")):
        for sample in family.samples:
            if sample.name == _SUCCESS and sample.labels.get("command") == outcome.command:
                return float(sample.value)
    return None


def _of_run(outcome: RunOutcome, success: float | None) -> list[Gauge]:
    gauges = [
        Gauge("strata_run_exit_code", "Exit code of the last run", outcome.code),
        Gauge("strata_run_duration_seconds", "Time it took", outcome.seconds),
    ]
    if success is not None:
        gauges.append(Gauge(_SUCCESS, "When a run last did its work", success))
    figures = {"conflicts_retried": 0.0, **outcome.figures}
    return gauges + [
        Gauge(*_FIGURES[name], value) for name, value in figures.items() if name in _FIGURES
    ]


def _of_catalog(stats: Stats, now: datetime) -> list[Gauge]:
    gauges = [Gauge(*_STATS[name], getattr(stats, name)) for name in _STATS]
    if stats.last_published_at is not None:
        age = (now - stats.last_published_at).total_seconds()
        gauges.append(Gauge("strata_last_publish_age_seconds", "Age of the last publish", age))
    return gauges
