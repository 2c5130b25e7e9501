"""Figures of a run and of its catalog as a Prometheus text file, for a textfile collector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.cli.exits import Exit
from catalog.errors import InvalidInput
from catalog.exposition import Gauge, check_exposition, write_gauges

if TYPE_CHECKING:
    from catalog.sql.stats import Stats

_SUCCESS = "strata_run_last_success_timestamp_seconds"

# Figures that a run which goes on adds up; of the others the last one counts.
ADDED_UP = {"conflicts_retried", "polls", "added", "removed", "changed"}

# Figures of a run that have a metric of their own: its name and its help text.
_FIGURES = {
    "conflicts_retried": (
        "strata_run_conflicts_retried",
        "Commits that the run tried again because another came first",
    ),
    "poll_lag_versions": (
        "strata_poll_lag_versions",
        "Versions that the last poll found itself behind",
    ),
    "poll_lag_seconds": (
        "strata_poll_lag_seconds",
        "Age of the oldest change that the last poll had not seen yet",
    ),
    "violations": ("strata_violations", "Violations of promises that verify found"),
    "completed": ("strata_backfill_completed", "Segments whose schema the last backfill stored"),
    "quarantined": (
        "strata_backfill_quarantined",
        "Segments whose data did not say its schema in the last backfill",
    ),
    "left": ("strata_backfill_left", "Segments that the last backfill did not get to"),
    "per_second": ("strata_backfill_per_second", "Segments that it completed in a second"),
    "aborted": ("strata_recover_aborted", "Operations whose owners had left them"),
    "decided": ("strata_recover_decided", "Operations whose owners were quicker than the recovery"),
    "swept": ("strata_recover_swept", "Decided operations whose staged rows were removed"),
    "forgotten": ("strata_recover_forgotten", "Operations decided long ago that were removed"),
    "retention_archived": ("strata_retention_archived", "Segments that the last run archived"),
    "retention_dropped": ("strata_retention_dropped", "Segments that it dropped"),
    "retention_failed": (
        "strata_retention_failed",
        "Segments that should have gone and are still there",
    ),
    "retention_left": ("strata_retention_left", "Segments that it did not get to"),
    "retention_troubled": (
        "strata_retention_troubled",
        "Datasources that it gave up, and rules that are refused",
    ),
    "expired": ("strata_operations_expired", "Open operations whose lease is over"),
    "oldest_seconds": (
        "strata_operations_oldest_seconds",
        "Age of the oldest operation that is open or ready, 0 without one",
    ),
}


@dataclass(frozen=True)
class Outcome:
    """How a run went."""

    command: str
    location: str
    code: Exit
    seconds: float
    figures: Mapping[str, float]


def check(file: str) -> None:
    """Raises before any work is done if the file could not be written after it."""
    check_exposition()
    if not Path(file).absolute().parent.is_dir():
        raise InvalidInput(f"There is no directory for the metrics file {file}.", file=file)


def write(file: str, outcome: Outcome, stats: Stats | None, now: datetime) -> None:
    """Writes the file in place of the old one; a failure keeps the time of the last success."""
    gauges = _of_run(outcome, _last_success(file, outcome, now))
    if stats is not None:
        gauges += _of_catalog(stats, now)
    # The files of several commands and catalogs may lie side by side: no two share a series.
    write_gauges(file, gauges, {"command": outcome.command, "location": outcome.location})


def _last_success(file: str, outcome: Outcome, now: datetime) -> float | None:
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


def _of_run(outcome: Outcome, success: float | None) -> list[Gauge]:
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
    gauges = [
        Gauge("strata_version", "Newest version of the catalog", stats.version),
        Gauge("strata_segments", "Visible segments", stats.segments),
        Gauge(
            "strata_segments_without_schema",
            "Visible segments whose schema is not known",
            stats.segments_without_schema,
        ),
        Gauge(
            "strata_segments_quarantined",
            "Those of them whose data did not say it",
            stats.segments_quarantined,
        ),
        Gauge("strata_datasources", "Datasources with segments", stats.datasources),
        Gauge("strata_schemas", "Live schemas", stats.schemas),
        Gauge("strata_orphan_schemas", "Live schemas that nothing uses", stats.orphans),
        Gauge("strata_retired_schemas", "Schemas on their way out", stats.retired),
        Gauge("strata_objects", "Objects", stats.objects),
        Gauge("strata_operations_open", "Operations that are open", stats.operations_open),
        Gauge(
            "strata_operations_ready",
            "Operations that wait for their epoch",
            stats.operations_ready,
        ),
    ]
    if stats.last_published_at is not None:
        age = (now - stats.last_published_at).total_seconds()
        gauges.append(Gauge("strata_last_publish_age_seconds", "Age of the last publish", age))
    return gauges
