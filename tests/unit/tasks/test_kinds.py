"""What tasks do: their arguments, their steps, what they count, and their rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.backups.backup import BackupReport
from catalog.backups.manifest import ContentDigest
from catalog.delta.runs import ALL_COLUMNS, TASKS_VIEW, change_task
from catalog.errors import InvalidInput, UnknownTask
from catalog.model import micros
from catalog.progress import silent
from catalog.retention.report import RefusedRule, Retained, RetentionReport
from catalog.tasks.api import kind_of
from catalog.tasks.kind import (
    LARGEST_RESULT,
    TaskKind,
    TaskStep,
    TaskWork,
    check_result,
    in_order,
)
from catalog.tasks.kinds import TASKS
from catalog.tasks.model import Task, TaskState
from catalog.tasks.store import READ_SQL, arguments_text, source, task_of

FILLED = {
    "completed": 5,
    "overtaken": 0,
    "claimed": 2,
    "quarantined": 1,
    "resting": 0,
    "version": 3,
}


def names(kind: str, arguments: dict[str, Any], results: dict[str, Any]) -> list[str]:
    return [step.name for step in TASKS[kind].steps(arguments, results)]


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("cleanup", {"grace": 1}, "takes no argument 'grace'; it takes grace_seconds, limit"),
        ("cleanup", {"limit": True}, "'limit' of the task cleanup must be of type int, not True"),
        ("cleanup", {"limit": "9"}, "must be of type int"),
        ("maintain", {"vacuum": 1}, "must be of type bool"),
        ("backfill", {"datasources": [1]}, "must be a list of texts"),
        ("backfill", {"datasources": "orders"}, "must be a list of texts"),
        ("publish-files", {"datasource": "orders"}, "needs the argument 'pattern'"),
        ("backup", {"version": 7}, "needs the argument 'path'"),
        ("backup", {"path": "/b", "version": "7"}, "'version' of the task backup must be of type"),
        ("retain", {"datasources": "orders"}, "must be a list of texts"),
    ],
)
def test_arguments_that_a_task_does_not_take_are_refused(
    name: str, arguments: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        TASKS[name].check(arguments)


def test_arguments_that_are_not_given_are_left_out() -> None:
    given = {"grace_seconds": 60, "limit": None}
    assert TASKS["cleanup"].check(given) == {"grace_seconds": 60}
    assert (
        arguments_text({"b": 1, "a": "é"})
        == arguments_text({"a": "é", "b": 1})
        == '{"a": "é", "b": 1}'
    )


def test_a_task_is_known_by_its_name() -> None:
    assert {kind.name for kind in TASKS.values()} == set(TASKS)
    assert kind_of("maintain") is TASKS["maintain"]
    assert kind_of(TASKS["maintain"]) is TASKS["maintain"]
    with pytest.raises(UnknownTask, match="'vacuum'; there are backfill, backup"):
        kind_of("vacuum")


def test_maintenance_has_a_step_for_each_partition_that_was_planned() -> None:
    assert names("maintain", {}, {}) == ["plan", "vacuum"]
    planned = {"plan": {"partitions": [["segment", 3], ["schema", 0]]}}
    assert names("maintain", {}, planned) == [
        *("plan", "optimize segment 3", "optimize schema 0", "vacuum"),
    ]
    step, known = TASKS["maintain"].next_step({}, {**planned, "optimize segment 3": {}})
    assert (step and step.name, known) == ("optimize schema 0", 4)


class Preserved:
    """Stands for a catalog that is asked for backups and retention, and remembers how."""

    version = 9
    asked: dict[str, Any]

    @property
    def backups(self) -> Preserved:
        return self

    @property
    def retention(self) -> Preserved:
        return self

    def create(self, path: str, **how: Any) -> BackupReport:
        self.asked = {"path": path, **how}
        return BackupReport(path, 7, {"segment": ContentDigest(3, "d")})

    def apply(self, **how: Any) -> RetentionReport:
        self.asked = how
        some = (Retained("a", "r", "drop", dropped=2, failed=1), Retained("b", "r", "drop"))
        return RetentionReport(5, some, (RefusedRule("retention/x", "why"),), retries=4)


def run(name: str, step: int, catalog: Preserved, arguments: Any, results: Any = None) -> Any:
    work = TaskWork(catalog, arguments, results or {}, silent, lambda: None, "ann", "x", 7.0)  # type: ignore[arg-type]
    return TASKS[name].steps(arguments, results or {})[step].run(work)


def test_a_backup_that_is_taken_over_copies_the_version_that_was_chosen_first() -> None:
    catalog, given = Preserved(), {"path": "/b"}
    assert names("backup", given, {}) == ["choose", "copy"]
    chosen = {"choose": run("backup", 0, catalog, given)}
    assert chosen == {"choose": {"version": 9}}
    catalog.version = 12
    copied = run("backup", 1, catalog, given, chosen)
    assert copied == {"version": 7, "path": "/b", "rows": 3}
    how = {"actor": "ann", "reason": "x", "progress": silent}
    assert catalog.asked == {"path": "/b", "version": 9, **how}
    assert run("backup", 0, catalog, {**given, "version": 4}) == {"version": 4}
    given["time"] = "2024-01-31T00:00:00+00:00"
    run("backup", 1, catalog, given, {"choose": run("backup", 0, catalog, given)})
    assert catalog.asked["version"] == datetime(2024, 1, 31, tzinfo=UTC)
    assert TASKS["backup"].exclusive == "backup"


def test_retention_as_a_task_says_what_somebody_should_look_at() -> None:
    catalog = Preserved()
    result = run("retain", 0, catalog, {"datasources": ["a"], "limit": 5})
    assert catalog.asked == {
        "datasources": ["a"],
        "limit": 5,
        "progress": silent,
        "actor": "ann",
        "reason": "x",
        "deadline": 7.0,
    }
    figures = TASKS["retain"].figures({"retain": result})
    assert (figures["retention_dropped"], figures["retention_failed"]) == (2, 1)
    assert figures["retention_troubled"] == 1
    assert all(figures[name] for name in TASKS["retain"].found)
    assert (TASKS["retain"].exclusive, check_result("retain", result)) == ("retain", result)


@pytest.mark.parametrize(
    ("arguments", "last", "goes_on"),
    [
        ({}, {"looked_at": 100_000, "left": 5}, True),
        ({}, {"looked_at": 100_000, "left": 0}, False),
        ({}, {"looked_at": 0, "left": 5}, False),
        ({"limit": 100_001}, {"looked_at": 100_000, "left": 5}, True),
        ({"limit": 100_000}, {"looked_at": 100_000, "left": 5}, False),
        ({"retry_quarantined": True}, {"looked_at": 100_000, "left": 5}, False),
    ],
)
def test_a_backfill_goes_on_while_there_is_something_left(
    arguments: dict[str, Any], last: dict[str, Any], goes_on: bool
) -> None:
    assert names("backfill", arguments, {}) == ["segments 1"]
    results = {"segments 1": {**FILLED, **last}}
    assert names("backfill", arguments, results) == ["segments 1", "segments 2"][: 1 + goes_on]


def test_figures_are_added_up_or_are_the_last() -> None:
    results = {
        "segments 1": {**FILLED, "left": 7},
        "segments 2": {**FILLED, "left": 2, "text": "x", "flag": True},
    }
    assert TASKS["backfill"].figures(results) == {
        "completed": 10,
        "overtaken": 0,
        "claimed": 2,
        "quarantined": 2,
        "resting": 0,
        "left": 2,
    }


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (None, "gave NoneType; it must give a mapping"),
        ({"at": datetime.now(UTC)}, "cannot be kept as JSON"),
        ({"n": float("nan")}, "cannot be kept as JSON"),
        ({"text": "x" * LARGEST_RESULT}, "at most 65536 are kept"),
    ],
)
def test_a_result_that_cannot_be_kept_is_refused(result: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        check_result("plan", result)


def test_steps_in_order_are_those_that_were_given() -> None:
    steps = [TaskStep(name, lambda work: {}) for name in ("one", "two")]
    kind = TaskKind("own", in_order(*steps))
    assert kind.next_step({}, {}) == (steps[0], 2)
    assert kind.next_step({}, {"one": {}}) == (steps[1], 2)
    assert kind.next_step({}, {"one": {}, "two": {}}) == (None, 2)


# --- rows -----------------------------------------------------------------------------------------

TIMES = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
JSON = st.dictionaries(TEXTS, st.integers(-5, 5) | TEXTS | st.booleans(), max_size=3)
MADE = st.builds(
    Task,
    *(TEXTS, TEXTS, JSON, TEXTS, TIMES, TIMES),
    state=st.sampled_from(TaskState),
    exclusive=st.none() | TEXTS,
    attempt=st.integers(0, 1000),
    owner=st.none() | TEXTS,
    lease_until=st.none() | TIMES,
    step=st.none() | TEXTS,
    step_started_at=st.none() | TIMES,
    steps=st.integers(0, 10),
    done=st.integers(0, 1 << 40),
    total=st.integers(0, 1 << 40),
    results=st.dictionaries(TEXTS, JSON, max_size=3),
    retry_at=st.none() | TIMES,
    ended_at=st.none() | TIMES,
    version_before=st.none() | st.integers(0, 1 << 40),
    version_after=st.none() | st.integers(0, 1 << 40),
    error_condition=st.none() | TEXTS,
    error_message=st.none() | TEXTS,
    stamp=TEXTS,
)


@given(MADE)
def test_a_task_that_was_written_is_read_back_the_same(task: Task) -> None:
    (row,) = source(task, task, {}).to_pylist()
    assert (row["seen_attempt"], row["seen_stamp"]) == (task.attempt, task.stamp)
    read = {k: micros(v) if isinstance(v, datetime) else v for k, v in row.items()}
    assert task_of(read) == task


@given(MADE)
def test_the_row_of_a_task_has_the_columns_of_the_table(task: Task) -> None:
    row = source(task, None, {"n": 1}).to_pylist()[0]
    names = [column.name for column in ALL_COLUMNS]
    assert list(row) == [*names, "seen_attempt", "seen_stamp"]
    read = {each.rpartition(" AS ")[2] for each in READ_SQL.split(", ")}
    assert read == {*names} - {"figures"}
    assert "unix_micros(lease_until) AS lease_until" in READ_SQL


def test_a_statement_makes_a_task_or_changes_it_and_never_both() -> None:
    made, changed = change_task("r", "it's", True)("v"), change_task("r", "t", False)("v")
    assert "INSERT" in made
    assert "UPDATE" not in made
    assert "UPDATE" in changed
    assert "INSERT" not in changed
    assert "t.run_id = 'it\\u0027s'" in made


def test_the_view_of_tasks_names_every_column_that_it_shows() -> None:
    assert len(TASKS_VIEW.columns) == 24
    assert "{runs}" in TASKS_VIEW.query
