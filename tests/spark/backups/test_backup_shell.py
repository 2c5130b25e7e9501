"""Backups and rollbacks through the words of the shell and the job, in the session of the tests."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog
from catalog.cli import shell
from catalog.cli.shell import run_job
from tests.unit.builders import segment

Strata = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def strata(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> Strata:
    """Runs a command of the shell, or a job; gives its exit code and its answer."""

    def run(*argv: str, job: bool = False) -> tuple[int, dict[str, Any]]:
        options = ["--actor", "ann", "--output", "json"]
        if job:
            code = run_job(argv[0], [*argv[1:], *options], lambda *_: nullcontext(spark))
        else:
            code = shell.main([*argv, *options], lambda *_: nullcontext(spark))
        (line,) = capsys.readouterr().out.splitlines()  # an answer, and nothing else
        return code, json.loads(line)

    return run


@pytest.mark.stress
def test_the_shell_goes_back_makes_backups_and_restores_them(
    strata: Strata, catalog: Catalog, location: str, tmp_path: Path
) -> None:
    catalog.publish([segment("orders/1")])
    catalog.publish([segment("orders/2", "b INT")])
    here, there = ("--location", location), ("--location", str(tmp_path / "new"))
    path = str(tmp_path / "backup")

    code, answer = strata("backups", "rollback", "1", "--dry-run", *here)
    assert (code, answer["facts"]["rows"], answer["facts"]["version"]) == (0, 1, 2)
    assert answer["tables"]["keys"] == [{"kind": "segment", "change": "delete", "key": "orders/2"}]
    code, answer = strata("backups", "rollback", "1", "--reason", "a bad load", *here)
    assert (code, answer["facts"]["target"], answer["facts"]["version"]) == (0, "version 1", 3)
    assert answer["tables"]["changes"] == [
        {"kind": "segment", "inserted": 0, "updated": 0, "deleted": 1}
    ]

    code, answer = strata("backup", path, "--version", "2", *here, job=True)
    assert (code, answer["facts"]["version"], answer["facts"]["repeated"]) == (0, 2, False)
    assert answer["facts"]["runs"] == 2  # its own, and that of the rollback
    code, answer = strata("backups", "create", path, *here)
    assert (code, answer["error"]["condition"]) == (2, "PATH_OCCUPIED")
    code, answer = strata("backups", "restore", path, "--segment-buckets", "4", *there)
    facts = answer["facts"]
    assert (code, facts["segment_buckets"], facts["backup_version"]) == (0, 4, 2)
    code, answer = strata("backups", "restore", path, "--segment-buckets", "4", *there)
    assert (code, answer["facts"]["repeated"]) == (0, True)
    code, answer = strata("backups", "restore", path, *here)
    assert (code, answer["error"]["condition"]) == (2, "PATH_OCCUPIED")
    code, answer = strata("verify", "--since", "0", *there)
    assert (code, answer["facts"]["holds"]) == (0, True)
    code, answer = strata("backups", "rollback", "--backup", path, "--no-record", *here)
    assert (code, answer["facts"]["rows"]) == (0, 1)
    runs = [(row["job"], row["actor"], row["status"]) for row in catalog.audit.runs().collect()]
    assert sorted(runs) == [("backup", "ann", "done"), ("backups rollback", "ann", "done")]


@pytest.mark.stress
def test_a_poll_that_goes_on_starts_anew_in_a_table_that_was_restored(
    spark: SparkSession,
    catalog: Catalog,
    location: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    catalog.publish([segment("orders/1"), segment("orders/2")])
    path = str(tmp_path / "backup")
    catalog.backups.create(path)
    for n in range(3, 7):
        catalog.publish([segment(f"orders/{n}")])
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 1:
            shutil.rmtree(location)
        elif len(slept) == 2:  # between the two there was nothing to be polled
            Catalog.restore(spark, path, location)

    monkeypatch.setattr("catalog.cli.commands.audit.sleep", sleep)
    argv = ["poll", "--location", location, "--every", "1", "--polls", "3", "--output", "json"]
    assert shell.main(argv, lambda *_: nullcontext(spark)) == 0
    answers = [json.loads(line)["facts"] for line in capsys.readouterr().out.splitlines()]
    assert [(each["added"], each.get("replaced")) for each in answers] == [
        (0, None),
        (2, True),
        (0, None),
    ]
    assert answers[1]["before"] == 0
