"""Reports and results: each says in facts and figures what shell, tasks, runs and metrics show."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import pytest

import catalog
from catalog import DropResult, PublishResult
from catalog.audit.roller import RollReport
from catalog.backfill.model import BackfillReport, Quarantined
from catalog.cli.command import answer_of
from catalog.files.publisher import FilesReport
from catalog.maintenance.cleanup import CleanupReport
from catalog.maintenance.compaction import Compaction, MaintainReport, Vacuumed
from catalog.model import Reported, UpgradeReport
from catalog.operations.stager import StageResult
from catalog.verify import VerifyReport, Violation

NOW = datetime(2024, 1, 31, 12, tzinfo=UTC)
ROLLED = RollReport(9, 4, retries=1)
VIOLATION = Violation("I3", "a fingerprint leads to no payload", 3, ({"key": "a"},))

Case = tuple[Reported, dict[str, Any], dict[str, float]]
CASES: list[Case] = [
    (
        PublishResult(7, "c", ("f", "g"), inserted=3, existing=1, replaced=2, retries=4),
        {
            "version": 7,
            "commit_id": "c",
            "inserted": 3,
            "existing": 1,
            "replaced": 2,
            "schemas": 2,
            "retries": 4,
        },
        {"inserted": 3, "existing": 1, "replaced": 2, "conflicts_retried": 4},
    ),
    (
        DropResult(7, "", 0, absent=2, dry_run=True),
        {
            "version": 7,
            "commit_id": None,
            "dropped": 0,
            "absent": 2,
            "dry_run": True,
            "retries": 0,
        },
        {"dropped": 0, "conflicts_retried": 0},
    ),
    (
        CleanupReport(7, (), (), (), retries=2),
        {
            "version": 7,
            "restored": 0,
            "purged": 0,
            "retired": 0,
            "dry_run": False,
            "retries": 2,
        },
        {"restored": 0, "purged": 0, "retired": 0, "conflicts_retried": 2},
    ),
    (
        MaintainReport(
            *(7, timedelta(days=7), (Compaction("segment", 1, 9, 1),)),
            (Vacuumed("entries", 5), Vacuumed("runs", None)),
            audit=ROLLED,
        ),
        {
            "version": 7,
            "partitions_compacted": 1,
            "files_removed": 5,
            "retention_seconds": 604800,
            "versions_rolled": 4,
            "audit_gaps": 0,
            "dry_run": False,
            "retries": 0,
        },
        {
            "partitions_compacted": 1,
            "files_removed": 5,
            "versions_rolled": 4,
            "audit_gaps": 0,
            "conflicts_retried": 0,
        },
    ),
    (
        ROLLED,
        {"reached": 9, "versions_rolled": 4, "audit_gaps": 0, "dry_run": False, "retries": 1},
        {"versions_rolled": 4, "audit_gaps": 0, "conflicts_retried": 1},
    ),
    (
        VerifyReport(7, None, (VIOLATION,)),
        {"version": 7, "since": None, "holds": False},
        {"violations": 1},
    ),
    (
        BackfillReport(7, 9, 3, 1, 0, (Quarantined("a/1", "/a", "torn", 1, NOW),), 2, 4, 1.5),
        {
            "version": 7,
            "waiting": 9,
            "completed": 3,
            "overtaken": 1,
            "claimed": 0,
            "quarantined": 1,
            "resting": 2,
            "left": 4,
            "per_second": 2.0,
            "seconds": 1.5,
            "dry_run": False,
            "retries": 0,
        },
        {
            "completed": 3,
            "overtaken": 1,
            "claimed": 0,
            "quarantined": 1,
            "resting": 2,
            "left": 4,
            "per_second": 2.0,
            "seconds": 1.5,
            "conflicts_retried": 0,
        },
    ),
    (
        FilesReport(7, 5, 1, changed=("a/1",), missing=("a/2", "a/3"), retries=1),
        {
            "version": 7,
            "files": 5,
            "published": 1,
            "replaced": 0,
            "unchanged": 0,
            "waiting": 0,
            "changed": 1,
            "missing": 2,
            "dropped": 0,
            "broken": 0,
            "dry_run": False,
        },
        {
            "files": 5,
            "published": 1,
            "replaced": 0,
            "unchanged": 0,
            "waiting": 0,
            "changed": 1,
            "missing": 2,
            "dropped": 0,
            "broken": 0,
            "conflicts_retried": 1,
        },
    ),
    (
        StageResult(7, "c", "op", 0, segments=3, claimed=4),
        {
            "version": 7,
            "commit_id": "c",
            "operation_id": "op",
            "part": 0,
            "segments": 3,
            "drops": 0,
            "objects": 0,
            "claimed": 4,
            "joined": 0,
            "repeated": False,
            "retries": 0,
        },
        {
            "segments": 3,
            "drops": 0,
            "objects": 0,
            "claimed": 4,
            "joined": 0,
            "conflicts_retried": 0,
        },
    ),
    (
        UpgradeReport(3, 4, ("ALTER TABLE t",)),
        {"before": 3, "after": 4, "statements": ["ALTER TABLE t"], "dry_run": False},
        {"statements": 1},
    ),
]


@pytest.mark.parametrize(
    ("report", "facts", "figures"), CASES, ids=[type(case[0]).__name__ for case in CASES]
)
def test_a_report_says_its_facts_and_figures(
    report: Reported, facts: dict[str, Any], figures: dict[str, float]
) -> None:
    assert list(report.facts().items()) == list(facts.items())
    assert list(report.figures().items()) == list(figures.items())
    assert json.loads(json.dumps(report.facts())) == report.facts()
    answer = answer_of(report)
    assert (answer.facts, answer.figures) == (facts, figures)


def test_an_answer_may_count_more_retries_than_its_report() -> None:
    answer = answer_of(CASES[0][0], 9)
    assert (answer.facts["retries"], answer.figures["conflicts_retried"]) == (9, 9)
    assert list(answer.facts) == list(CASES[0][1])


def test_every_report_and_result_has_facts_and_figures() -> None:
    found = {
        each
        for module in walk_packages(catalog.__path__, "catalog.")
        if not module.name.endswith("__main__")
        for name, each in vars(import_module(module.name)).items()
        if isinstance(each, type) and name.endswith(("Report", "Result"))
        if each.__module__.startswith("catalog.")
    }
    lacking = [each for each in found if not (hasattr(each, "facts") and hasattr(each, "figures"))]
    assert {each.__name__ for each in lacking} == set()
