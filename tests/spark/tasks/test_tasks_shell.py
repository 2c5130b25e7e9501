"""Tasks through the words of the shell and as jobs, in the session of the tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog
from catalog.cli import shell
from catalog.cli.shell import run_job
from catalog.operations.api import OperationsApi

Strata = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def strata(spark: SparkSession, location: str, capsys: pytest.CaptureFixture[str]) -> Strata:
    """Runs a command of the shell, or a job; gives its exit code and its answer."""

    def run(*argv: str, job: bool = False) -> tuple[int, dict[str, Any]]:
        options = ["--location", location, "--actor", "ann", "--output", "json"]
        if job:
            code = run_job(argv[0], [*argv[1:], *options], lambda *_: nullcontext(spark))
        else:
            code = shell.main([*argv, *options], lambda *_: nullcontext(spark))
        (line,) = capsys.readouterr().out.splitlines()  # an answer, and nothing else
        return code, json.loads(line)

    return run


def test_a_task_is_run_shown_cancelled_and_resumed(
    strata: Strata, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, answer = strata("cleanup", "--as-task", "--dry-run")
    assert (code, answer["facts"]["dry_run"]) == (0, True)
    assert catalog.tasks.list().collect() == []  # a dry run leaves none
    code, answer = strata("cleanup", "--as-task", "--grace", "0", "--reason", "x", job=True)
    facts = answer["facts"]
    assert (code, facts["state"], facts["name"]) == (0, "done", "cleanup")
    # One row for the run and its task; the step fails once in the next one, and that rests.
    (run,) = catalog.audit.runs().collect()
    assert (run["run_id"], run["status"], run["job"]) == (facts["task_id"], "done", "cleanup")

    def failing(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(OperationsApi, "recover", failing)
        assert strata("operations", "recover", "--as-task")[0] == 70
    code, answer = strata("tasks", "list", "--state", "queued")
    (row,) = answer["tables"]["tasks"]
    assert (code, row["name"], row["error_condition"]) == (0, "recover", "ZeroDivisionError")
    code, answer = strata("operations", "recover", "--as-task")
    assert (code, answer["error"]["condition"]) == (3, "TASK_BUSY")
    beginning = row["task_id"][:12]
    code, answer = strata("tasks", "cancel", beginning, "--reason", "no", "--no-record")
    assert answer["facts"]["error_message"] == "cancelled by ann: no"
    code, answer = strata("tasks", "resume", beginning)
    assert (code, answer["facts"]["state"], answer["facts"]["attempt"]) == (0, "done", 3)
    code, answer = strata("tasks", "show", beginning)
    (shown,) = answer["tables"]["results"]
    assert (code, json.loads(shown["result"])["aborted"]) == (0, 0)
    assert catalog.audit.runs().count() == catalog.tasks.list().count() == 2
    code, answer = strata("tasks", "run", "cleanup", "--arguments", '{"limit": 5}')
    assert (code, answer["facts"]["state"]) == (0, "done")
    assert answer["facts"]["arguments"] == {"limit": 5}
    assert len(strata("audit", "runs")[1]["tables"]["runs"]) == 3
