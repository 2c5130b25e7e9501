"""Tasks as the shell shows them, and words that are run as tasks."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from catalog.cli.command import Work, is_task
from catalog.cli.commands import BY_JOB, BY_NAME
from catalog.cli.commands.tasks import for_people, only, run_as_task, shown_task
from catalog.cli.shell import shell_parser
from catalog.delta.runs import TASKS_VIEW
from catalog.errors import InvalidInput, UnknownTask
from catalog.progress import silent
from catalog.tasks.kinds import TASKS
from catalog.tasks.model import Task, TaskState

WHEN = datetime(2024, 1, 31, 12, tzinfo=UTC)
ID = "7c1e0a4be3a54d0f9d1a3a0b8f2f6c11"
ROW: dict[str, Any] = {
    **dict.fromkeys(TASKS_VIEW.columns),
    "task_id": ID,
    "name": "maintain",
    "state": "running",
    "steps_done": 2,
    "steps": 7,
    "step": "optimize segment 3",
    "done": 1,
    "total": 4,
    "seconds_left": 180,
    "expired": False,
    "started_at": WHEN,
}


def task(**more: Any) -> Task:
    return Task(ID, "backfill", {"limit": 5}, "ann", WHEN, WHEN, **more)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, ("running", "2/7", "optimize segment 3", "25%", "3m", "10m", None)),
        ({"expired": True}, ("left", "2/7", "optimize segment 3", "25%", "3m", "10m", None)),
        ({"total": 0}, ("running", "2/7", "optimize segment 3", None, "3m", "10m", None)),
        (
            {
                "state": "failed",
                "ended_at": WHEN + timedelta(hours=2),
                "seconds_left": None,
                "error_condition": "BOOM",
            },
            ("failed", "2/7", None, None, None, "2h", "BOOM"),
        ),
    ],
)
def test_a_terminal_shows_how_far_a_task_is(
    more: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    shown = for_people([{**ROW, **more}], WHEN + timedelta(minutes=10))
    assert shown.rows == (("7c1e0a4b…", "maintain", *expected),)


def test_an_id_may_be_cut_short_while_it_is_the_only_one() -> None:
    assert only("task", "7c", [ID]) == ID
    assert only("task", "a", ["a", "ab"]) == "a"
    with pytest.raises(UnknownTask, match="begins with '7c'; `strata tasks list` shows all"):
        only("task", "7c", [])
    with pytest.raises(InvalidInput, match="several tasks begin with 'a': a1, a2; type more"):
        only("task", "a", ["a1", "a2"])


@pytest.mark.parametrize(
    ("made", "found", "note"),
    [
        (task(state=TaskState.DONE, results={"segments 1": {"quarantined": 0}}), False, ""),
        (task(state=TaskState.DONE, results={"segments 1": {"quarantined": 2}}), True, ""),
        (
            task(state=TaskState.RUNNING, lease_until=WHEN),
            False,
            "Its process is gone: strata tasks resume",
        ),
        (task(state=TaskState.CANCELLED), False, f"strata tasks resume {ID} continues"),
    ],
)
def test_a_task_says_what_was_found_and_what_to_do(made: Task, found: bool, note: str) -> None:
    answer = shown_task(made, TASKS["backfill"])
    assert answer.found is found
    assert answer.note.startswith(note)
    assert (answer.facts["state"], answer.facts["arguments"]) == (made.state.value, {"limit": 5})
    assert answer.facts["expired"] is (made.state is TaskState.RUNNING)


class Asked:
    """Stands for a catalog that is asked to run a task, and remembers how."""

    @property
    def tasks(self) -> Asked:
        return self

    def run(self, name: str, arguments: dict[str, Any], **how: Any) -> Task:
        self.name, self.arguments, self.how = name, arguments, how
        TASKS[name].check(arguments)
        return task(state=TaskState.DONE)


def test_a_word_that_is_run_as_a_task_gives_it_what_it_was_told() -> None:
    catalog = Asked()
    given = Namespace(as_task=True, dry_run=False, lease=None, reason="x", deadline=7.0)
    work = Work(None, given, silent, lambda _: None, catalog)  # type: ignore[arg-type]
    run_as_task(work, "cleanup", grace_seconds=timedelta(0), limit=None)
    assert (catalog.name, catalog.arguments) == ("cleanup", {"grace_seconds": 0.0})
    assert catalog.how["lease"] == timedelta(minutes=5)
    assert (catalog.how["reason"], catalog.how["deadline"]) == ("x", 7.0)


@pytest.mark.parametrize(
    ("argv", "given"),
    [
        (["retention", "apply", "--datasource", "a"], {"datasources": ["a"], "limit": 100_000}),
        (["backups", "create", "/b"], {"path": "/b"}),
        (["backups", "create", "/b", "--version", "7"], {"path": "/b", "version": 7}),
        (
            ["backups", "create", "/b", "--version", "2024-01-31"],
            {"path": "/b", "time": "2024-01-31T00:00:00+00:00"},
        ),
    ],
)
def test_backups_and_retention_are_run_as_tasks(argv: list[str], given: dict[str, Any]) -> None:
    catalog = Asked()
    arguments = shell_parser().parse_args([*argv, "--as-task", "--reason", "nightly"])
    command = BY_NAME[" ".join(argv[:2])]
    command.work(Work(None, arguments, silent, lambda _: None, catalog))  # type: ignore[arg-type]
    assert (catalog.name, catalog.arguments) == (command.job_name, given)
    assert catalog.how["reason"] == "nightly"


def test_another_number_of_buckets_is_always_a_task() -> None:
    catalog = Asked()
    argv = ["backups", "rebucket", "/data/meta2", "64", "--through", "/backups/move"]
    arguments = shell_parser().parse_args(argv)
    assert is_task(arguments)
    command = BY_NAME["backups rebucket"]
    command.work(Work(None, arguments, silent, lambda _: None, catalog))  # type: ignore[arg-type]
    given = {"path": "/backups/move", "target": "/data/meta2", "segment_buckets": 64}
    assert (catalog.name, catalog.arguments) == ("rebucket", given)
    assert TASKS["rebucket"].check(given) == given


def test_the_help_of_tasks_names_all_kinds_and_each_is_a_word() -> None:
    assert ", ".join(sorted(TASKS)) in BY_NAME["tasks list"].details
    assert TASKS.keys() <= BY_JOB.keys()


def test_a_dry_run_is_never_a_task() -> None:
    assert is_task(Namespace(as_task=True, dry_run=False))
    assert is_task(Namespace(as_task=True))
    assert not is_task(Namespace(as_task=True, dry_run=True))
    assert not is_task(Namespace())
