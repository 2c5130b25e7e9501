"""Retention as the shell shows it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from catalog.cli.commands.retention import shown_retention
from catalog.cli.outcome import Exit, RunOutcome, write_metrics
from catalog.retention.report import RefusedRule, Retained, RetentionFailure, RetentionReport
from tests.unit.cli.test_outcome import NOW, STATS, read

WHEN = datetime(2024, 1, 31, tzinfo=UTC)
FAILURE = RetentionFailure("orders/1", "it has no location")
REPORT = RetentionReport(
    7,
    (
        Retained(
            datasource="orders",
            rule="retention/datasource/orders",
            action="archive",
            segments=9,
            by_age=8,
            by_count=1,
            num_rows=90,
            size_bytes=900,
            oldest=WHEN,
            newest=NOW,
            archived=5,
            dropped=4,
            overtaken=1,
            failed=1,
            failures=(FAILURE,),
            left=3,
        ),
        Retained("visits", "retention/database/web", "archive", 2, left=2, problem="no archive"),
    ),
    (RefusedRule("retention/datasource/x", "says neither"),),
    retries=3,
)


def test_retention_says_what_became_of_each_datasource_and_what_stayed() -> None:
    answer = shown_retention(REPORT)
    assert answer.found
    assert answer.facts == {
        "version": 7,
        "segments": 11,
        "archived": 5,
        "dropped": 4,
        "overtaken": 1,
        "failed": 1,
        "left": 5,
        "troubled": 1,
        "refused": 1,
        "dry_run": False,
        "retries": 3,
    }
    orders, visits = answer.tables["datasources"].dicts()
    assert (orders["by_age"], orders["by_count"], orders["oldest"]) == (8, 1, WHEN)
    assert (visits["problem"], visits["oldest"]) == ("no archive", None)
    assert answer.tables["failures"].rows == (("orders/1", "it has no location"),)
    assert answer.tables["refused"].rows == (("retention/datasource/x", "says neither"),)
    assert "apply to nothing" in answer.note
    assert "next run" in answer.note


def test_nothing_found_is_said_when_all_went_well() -> None:
    answer = shown_retention(RetentionReport(7, (Retained("a", "r", "drop", 2, dropped=2),)))
    assert (answer.found, answer.note) == (False, "")


def test_the_metrics_of_retention_count_what_needs_somebody(tmp_path: Path) -> None:
    file = tmp_path / "strata.prom"
    figures = shown_retention(REPORT).figures
    write_metrics(
        str(file), RunOutcome("retain", "/data/meta", Exit.FOUND, 3.0, figures), STATS, NOW
    )
    told = {name: value for name, value in read(file).items() if "retention" in name}
    assert told == {
        "strata_retention_archived": 5,
        "strata_retention_dropped": 4,
        "strata_retention_failed": 1,
        "strata_retention_left": 5,
        "strata_retention_troubled": 2,
    }
