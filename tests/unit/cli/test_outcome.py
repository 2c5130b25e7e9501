"""How a run ends: exit codes, its row, its metrics."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from catalog import errors
from catalog.cli.outcome import Exit, RunOutcome, condition_of, exit_of, write_metrics
from catalog.delta.runs import COLUMNS, Run, Status
from catalog.sql.stats import Stats

NOW = datetime(2024, 1, 31, 12, tzinfo=UTC)
STATS = Stats(
    version=7,
    segments=5,
    segments_without_schema=3,
    segments_quarantined=2,
    rows=100,
    size_bytes=1000,
    datasources=2,
    schemas=3,
    orphans=1,
    retired=4,
    last_published_at=NOW - timedelta(seconds=90),
    objects=6,
    operations_open=8,
    operations_ready=9,
)


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (errors.InvalidInput("x"), 2, Status.FAILED),
        (errors.SegmentConflict("x"), 2, Status.FAILED),
        (errors.UnknownOperation("x"), 2, Status.FAILED),
        (errors.ClaimConflict("x"), 2, Status.FAILED),
        (errors.EpochRegression("x"), 2, Status.FAILED),
        (errors.ObjectInUse("x"), 2, Status.FAILED),
        (errors.GaveUp("x"), 3, Status.GAVE_UP),
        (errors.OutcomeUnknown("x"), 3, Status.GAVE_UP),
        (errors.TaskBusy("x"), 3, Status.GAVE_UP),
        (errors.TaskLost("x"), 3, Status.GAVE_UP),
        (errors.TaskEnded("x"), 2, Status.FAILED),
        (KeyboardInterrupt(), 130, Status.INTERRUPTED),
        (RuntimeError("x"), 70, Status.FAILED),
    ],
)
def test_an_error_leads_to_an_exit_code_and_a_status(
    error: BaseException, code: int, status: Status
) -> None:
    assert exit_of(error) == code
    assert exit_of(error).status is status


def test_an_error_has_a_stable_name() -> None:
    assert condition_of(errors.GaveUp("x")) == "GAVE_UP"
    assert condition_of(KeyboardInterrupt()) == "INTERRUPTED"
    assert condition_of(RuntimeError("x")) == "RuntimeError"


def test_a_run_has_a_value_for_every_column_in_order() -> None:
    run = Run("r", "publish", {"grace": timedelta(days=1)}, "ann", NOW, NOW, figures={"added": 2})
    row = dict(zip([column.name for column in COLUMNS], run.row(), strict=True))
    assert json.loads(str(row["arguments"])) == {"grace": "1 day, 0:00:00"}
    assert row["status"] == "running"
    assert row["figures"] == {"added": 2.0}
    assert row["started_at"] == row["seen_at"] == NOW
    assert row["ended_at"] is None


def read(file: Path) -> dict[str, float]:
    families = text_string_to_metric_families(file.read_text())
    return {sample.name: sample.value for family in families for sample in family.samples}


def test_the_metrics_say_how_the_run_went_and_how_the_catalog_stands(tmp_path: Path) -> None:
    file = tmp_path / "strata.prom"
    figures = {"conflicts_retried": 2, "poll_lag_versions": 3, "poll_lag_seconds": 1.5, "other": 1}
    outcome = RunOutcome("poll", "/data/meta", Exit.DONE, 12.5, figures)
    write_metrics(str(file), outcome, STATS, NOW)
    assert 'strata_version{command="poll",location="/data/meta"} 7.0' in file.read_text()
    assert read(file) == {
        "strata_run_exit_code": 0,
        "strata_run_duration_seconds": 12.5,
        "strata_run_last_success_timestamp_seconds": NOW.timestamp(),
        "strata_run_conflicts_retried": 2,
        "strata_poll_lag_versions": 3,
        "strata_poll_lag_seconds": 1.5,
        "strata_version": 7,
        "strata_segments": 5,
        "strata_segments_without_schema": 3,
        "strata_segments_quarantined": 2,
        "strata_datasources": 2,
        "strata_schemas": 3,
        "strata_orphan_schemas": 1,
        "strata_retired_schemas": 4,
        "strata_objects": 6,
        "strata_operations_open": 8,
        "strata_operations_ready": 9,
        "strata_last_publish_age_seconds": 90,
    }


def test_the_metrics_of_a_backfill_say_how_far_it_came(tmp_path: Path) -> None:
    file = tmp_path / "strata.prom"
    figures = {"completed": 90, "quarantined": 4, "left": 6, "per_second": 45.0, "seconds": 2.0}
    write_metrics(
        str(file), RunOutcome("backfill", "/data/meta", Exit.FOUND, 3.0, figures), STATS, NOW
    )
    told = {name: value for name, value in read(file).items() if "backfill" in name}
    assert told == {
        "strata_backfill_completed": 90,
        "strata_backfill_quarantined": 4,
        "strata_backfill_left": 6,
        "strata_backfill_per_second": 45,
    }


def test_the_metrics_of_a_recovery_say_what_it_did_and_what_is_left(tmp_path: Path) -> None:
    file = tmp_path / "strata.prom"
    done = {"aborted": 1, "decided": 2, "swept": 3, "forgotten": 4}
    left = {"open": 8, "ready": 9, "expired": 5, "oldest_seconds": 3600}
    outcome = RunOutcome("recover", "/data/meta", Exit.DONE, 3.0, {**done, **left})
    write_metrics(str(file), outcome, STATS, NOW)
    told = {n: v for n, v in read(file).items() if n.startswith(("strata_rec", "strata_op"))}
    assert told == {
        **{f"strata_recover_{name}": value for name, value in done.items()},
        "strata_operations_open": 8,
        "strata_operations_ready": 9,
        "strata_operations_expired": 5,
        "strata_operations_oldest_seconds": 3600,
    }


def test_a_failure_keeps_the_time_of_the_last_success(tmp_path: Path) -> None:
    file = tmp_path / "strata.prom"
    write_metrics(
        str(file),
        RunOutcome("verify", "/data/meta", Exit.FOUND, 1.0, {"violations": 2}),
        STATS,
        NOW,
    )
    later = NOW + timedelta(hours=1)
    write_metrics(str(file), RunOutcome("verify", "/data/meta", Exit.FAILED, 1.0, {}), None, later)
    values = read(file)
    assert values["strata_run_last_success_timestamp_seconds"] == NOW.timestamp()
    assert values["strata_run_exit_code"] == 2
    assert "strata_segments" not in values


def test_a_first_failure_has_no_success_to_tell_of(tmp_path: Path) -> None:
    file = tmp_path / "strata.prom"
    write_metrics(str(file), RunOutcome("verify", "/data/meta", Exit.GAVE_UP, 1.0, {}), None, NOW)
    assert "strata_run_last_success_timestamp_seconds" not in read(file)
