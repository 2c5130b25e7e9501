"""Tasks whose owners die, sleep or meet: one owner may write, and a step is done once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from catalog import Catalog
from catalog.delta.runs import DDL, RunLog
from catalog.delta.session import own_session, tuning
from catalog.environment import Deadline, Environment
from catalog.errors import TaskBusy, TaskLost
from catalog.progress import Step
from catalog.tasks.kind import TaskKind, TaskStep, TaskWork, in_order
from tests.concurrency.gates import Gate, Side, assert_promises
from tests.concurrency.processes import Process
from tests.concurrency.tasking import STEPS, Log, kind

Start = Callable[..., Process]
Open = Callable[..., Catalog]
Work = Callable[[TaskWork], Mapping[str, Any]]
HOUR = timedelta(hours=1)


def clock(ahead: timedelta) -> Environment:
    return Environment(clock=lambda: datetime.now(UTC) + ahead)


def own(run: Work, exclusive: str | None = None, *more: Work) -> TaskKind:
    steps = [TaskStep("work", run), *(TaskStep(f"more {n}", each) for n, each in enumerate(more))]
    return TaskKind("own", in_order(*steps), exclusive=exclusive, arguments={"n": int})


def nothing(work: TaskWork) -> Mapping[str, Any]:
    return {}


class Died(BaseException):
    """Ends a step as the death of its process does: nothing is written afterwards."""


def die(work: TaskWork) -> Mapping[str, Any]:
    raise Died


# --- processes that die ---------------------------------------------------------------------------

# Where the process dies, at which time there, and which steps it has completed by then.
STOPS = [
    ("task-claim.begins", 1, None),
    ("task-claim.answered", 1, ()),
    ("task.claimed", 1, ()),
    *(("task.step.entered", n + 1, STEPS[:n]) for n in range(3)),
    *(("task.step.returned", n + 1, STEPS[:n]) for n in range(3)),
    *(("task-finish.begins", n + 1, STEPS[:n]) for n in range(3)),
    *(("task-finish.answered", n + 1, STEPS[: n + 1]) for n in range(3)),
]
IN_CI = ("task.step.returned", 2)


@pytest.mark.parametrize(
    ("point", "times", "completed"),
    [
        pytest.param(
            *each,
            marks=[] if each[:2] == IN_CI else [pytest.mark.stress],
            id=f"{each[0]}-{each[1]}",
        )
        for each in STOPS
    ],
)
def test_a_task_whose_process_dies_is_taken_over_and_each_step_is_done_once(
    open_catalog: Open,
    location: str,
    tmp_path: Path,
    start: Start,
    point: str,
    times: int,
    completed: tuple[str, ...] | None,
) -> None:
    catalog = open_catalog(environment=clock(HOUR))
    file = tmp_path / "steps.log"
    log = Log(file)
    process = start("tasking", location, file, point, times)
    assert list(process.lines()) == [{"ready": True}]
    assert process.wait() == -9
    left = catalog.tasks.list().collect()
    assert len(left) == (completed is not None)
    if left:
        assert tuple(catalog.tasks.get(left[0]["task_id"]).results) == completed
    began = log.steps("began")
    task = catalog.tasks.run(kind(log))
    if left and completed != STEPS:  # one that was done is over, and a new one is run
        assert (task.id, task.attempt) == (left[0]["task_id"], 2)
        assert log.steps("began")[len(began) :] == list(STEPS[len(completed or ()) :])
    assert sorted(log.steps("did")) == sorted(STEPS)
    assert [result["before"] for result in task.results.values()] == [[], ["one"], ["one", "two"]]
    assert catalog.segments().count() == 3
    assert_promises(catalog)


# --- owners that meet -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mine", "others", "key", "says"),
    [
        pytest.param(1, 1, None, "is run by", id="both-make-it"),
        pytest.param(
            *(2, 3, "k", "only one task at a time is for 'k'"),
            marks=pytest.mark.stress,
            id="one-of-a-key",
        ),
        pytest.param(0, 0, None, "is run by", marks=pytest.mark.stress, id="both-take-it-over"),
    ],
)
def test_of_two_that_claim_at_once_one_gets_the_task(
    free: Open, gate: Gate, mine: int, others: int, key: str | None, says: str
) -> None:
    ahead, held = clock(HOUR), gate.inside("task-claim")
    first = free(Environment(clock=ahead.clock, source=held.source))
    second = free(ahead)
    with pytest.raises(Died):
        free().tasks.run(own(die), {"n": 0})  # is left, and its lease is over for the others
    entered, leave = threading.Event(), threading.Event()
    ran: list[str] = []

    def stay(work: TaskWork) -> Mapping[str, Any]:
        ran.append("second")
        entered.set()
        assert leave.wait(90)
        return {}

    def go(work: TaskWork) -> Mapping[str, Any]:
        ran.append("first")
        return {}

    one = Side(lambda: first.tasks.run(own(go, key), {"n": mine}))
    gate.await_reached()  # inside its statement, which has begun and is not committed
    two = Side(lambda: second.tasks.run(own(stay, key), {"n": others}))
    assert entered.wait(90)
    gate.open()
    with pytest.raises(TaskBusy, match=says):
        _ = one.result
    leave.set()
    assert two.result.state == "done"
    assert ran == ["second"]
    assert second.tasks.list("done").count() == 1
    assert_promises(second)


def test_an_owner_that_wakes_up_can_write_no_more(open_catalog: Open) -> None:
    sleeper, other = open_catalog(environment=clock(-HOUR)), open_catalog(actor="other")
    asleep, awake = threading.Event(), threading.Event()
    told: list[BaseException] = []

    def sleep(work: TaskWork) -> Mapping[str, Any]:
        asleep.set()
        assert awake.wait(90)
        return {"by": "sleeper"}

    def listen(work: TaskWork) -> Mapping[str, Any]:
        sleep(work)
        try:
            work.beat()
        except TaskLost as lost:
            told.append(lost)
        work.progress(Step("x", 1, 2))  # raises it too: the work stops here
        raise AssertionError("it went on")

    old = Side(lambda: sleeper.tasks.run(own(listen, "k"), {"n": 1}))
    assert asleep.wait(90)
    task = other.tasks.run(own(lambda _: {"by": "other"}, "k"), {"n": 1})
    assert (task.attempt, task.results) == (2, {"work": {"by": "other"}})
    awake.set()
    with pytest.raises(TaskLost, match="attempt 1 was ours, and attempt 2 is done"):
        _ = old.result
    assert other.tasks.get(task.id) == task
    assert len(told) == 1
    # Another task with the same key has its place: it cannot renew its lease either.
    asleep.clear()
    awake.clear()
    old = Side(lambda: sleeper.tasks.run(own(sleep, "k", nothing), {"n": 2}))
    assert asleep.wait(90)

    def wake(work: TaskWork) -> Mapping[str, Any]:
        awake.set()
        with pytest.raises(TaskLost, match="runs in its place"):
            _ = old.result
        return {}

    # Its owner's clock is behind, so it only sees that this lease is later than its own.
    assert other.tasks.run(own(wake, "k"), {"n": 3}).state == "done"
    assert other.tasks.list("running").count() == 1  # left as it was, for whoever takes it over
    assert_promises(other)


@pytest.mark.stress
def test_two_that_bring_an_old_table_up_to_date_at_once_both_succeed(
    free: Open, gate: Gate
) -> None:
    catalog = free()
    old_table(catalog)

    def log(environment: Environment) -> RunLog:
        spark = catalog._context.spark
        return RunLog(
            lambda: own_session(spark), catalog.location, None, environment, tuning(spark)
        )

    first, second = log(gate.between("complete.altering")), log(Environment())
    side = Side(lambda: first.complete(Deadline(60)))
    gate.await_reached()
    second.complete(Deadline(60))
    gate.open()
    assert side.result is None
    assert first.lacking() == second.lacking() == []
    for each in (first, second):
        each.close()
    assert catalog.tasks.run(own(nothing)).state == "done"
    assert_promises(catalog)


def old_table(catalog: Catalog) -> None:
    """The table of runs as the release before tasks made it."""
    catalog._context.spark.sql(
        f"CREATE TABLE {catalog.location.table('runs')} ({DDL}) USING DELTA "
        "TBLPROPERTIES ('strata.table' = 'runs')"
    )
