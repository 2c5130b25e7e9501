"""Figures of a run and of its catalog as a Prometheus text file, for a textfile collector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.cli.exits import Exit
from catalog.errors import InvalidInput

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from catalog.stats import Stats

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
    try:
        import prometheus_client  # noqa: F401
    except ImportError:
        raise InvalidInput(
            "--metrics-file needs prometheus-client: pip install 'strata-catalog[shell]'."
        ) from None
    if not Path(file).absolute().parent.is_dir():
        raise InvalidInput(f"There is no directory for the metrics file {file}.", file=file)


def write(file: str, outcome: Outcome, stats: Stats | None, now: datetime) -> None:
    """Writes the file in place of the old one; a failure keeps the time of the last success."""
    from prometheus_client import CollectorRegistry, write_to_textfile

    registry = CollectorRegistry()
    _put_run(registry, outcome, _last_success(file, outcome, now))
    if stats is not None:
        _put_stats(registry, outcome, stats, now)
    write_to_textfile(file, registry)


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


def _put_run(registry: CollectorRegistry, outcome: Outcome, success: float | None) -> None:
    put = partial(_gauge, registry, outcome)
    put("strata_run_exit_code", "Exit code of the last run", outcome.code)
    put("strata_run_duration_seconds", "Time it took", outcome.seconds)
    if success is not None:
        put(_SUCCESS, "When a run last did its work", success)
    for figure, value in {"conflicts_retried": 0.0, **outcome.figures}.items():
        if figure in _FIGURES:
            put(*_FIGURES[figure], value)


def _put_stats(registry: CollectorRegistry, outcome: Outcome, stats: Stats, now: datetime) -> None:
    put = partial(_gauge, registry, outcome)
    put("strata_version", "Newest version of the catalog", stats.version)
    put("strata_segments", "Visible segments", stats.segments)
    put("strata_datasources", "Datasources with segments", stats.datasources)
    put("strata_schemas", "Live schemas", stats.schemas)
    put("strata_orphan_schemas", "Live schemas that nothing uses", stats.orphans)
    put("strata_retired_schemas", "Schemas on their way out", stats.retired)
    if stats.last_published_at is not None:
        age = (now - stats.last_published_at).total_seconds()
        put("strata_last_publish_age_seconds", "Age of the last publish", age)


def _gauge(
    registry: CollectorRegistry, outcome: Outcome, name: str, text: str, value: float
) -> None:
    from prometheus_client import Gauge

    # The files of several commands and catalogs may lie side by side: no two share a series.
    labels = {"command": outcome.command, "location": outcome.location}
    Gauge(name, text, list(labels), registry=registry).labels(**labels).set(float(value))
