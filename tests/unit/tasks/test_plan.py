"""What may become of a task: tables of cases, and a machine of owners whose clocks jump."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from catalog.errors import TaskBusy, TaskEnded
from catalog.tasks import plan
from catalog.tasks.model import Task, TaskState

NOW = datetime(2024, 1, 31, 12, tzinfo=UTC)
LEASE = timedelta(seconds=60)
LATER = NOW + timedelta(hours=1)


def task(state: TaskState = TaskState.QUEUED, **more: object) -> Task:
    made = Task("t", "maintain", {}, "ann", NOW, NOW, state=state, exclusive="maintain")
    return replace(made, **more)  # type: ignore[arg-type]


def running(owner: str = "ann", until: datetime = NOW + LEASE) -> Task:
    return task(TaskState.RUNNING, owner=owner, attempt=3, lease_until=until)


# --- claims ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "again"),
    [
        (task(), False),
        (task(retry_at=NOW), False),
        (task(retry_at=LATER), True),
        (running("bob", NOW), False),
        (running("bob", NOW), True),
        (task(TaskState.FAILED), True),
        (task(TaskState.CANCELLED), True),
    ],
)
def test_what_nobody_has_can_be_claimed_and_the_attempt_grows(found: Task, again: bool) -> None:
    claimed = plan.claim(found, "ann", NOW, LEASE, again)
    assert (claimed.state, claimed.owner) == (TaskState.RUNNING, "ann")
    assert claimed.attempt == found.attempt + 1
    assert claimed.lease_until == NOW + LEASE
    assert (claimed.retry_at, claimed.ended_at) == (None, None)


@pytest.mark.parametrize(
    ("found", "again", "error", "says"),
    [
        (running("bob"), False, TaskBusy, "run by bob, whose lease is until 2024-01-31T12:01"),
        (running("bob"), True, TaskBusy, "run by bob"),
        (task(retry_at=LATER), False, TaskBusy, "rests until 2024-01-31T13:00"),
        (task(TaskState.DONE), False, TaskEnded, "is done"),
        (task(TaskState.DONE), True, TaskEnded, "is done"),
        (task(TaskState.FAILED, error_message="boom"), False, TaskEnded, "failed \\(boom\\)"),
        (task(TaskState.CANCELLED), False, TaskEnded, "is cancelled"),
    ],
)
def test_what_somebody_has_or_is_over_cannot_be_claimed(
    found: Task, again: bool, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        plan.claim(found, "ann", NOW, LEASE, again)


def test_a_claim_of_ones_own_is_no_change_and_results_stay() -> None:
    mine = running("ann", NOW)
    assert plan.claim(mine, "ann", NOW, LEASE) is mine
    left = replace(running("bob", NOW), results={"plan": {"n": 1}}, step="vacuum", done=3, total=9)
    taken = plan.claim(left, "ann", NOW, LEASE)
    assert taken.results == {"plan": {"n": 1}}
    assert (taken.step, taken.done, taken.total) == (None, 0, 0)


# --- the rest -------------------------------------------------------------------------------------


def test_a_failure_rests_or_is_the_last() -> None:
    rests = plan.fail(running(), "BOOM", "x" * 9000, NOW, LATER)
    assert (rests.state, rests.retry_at, rests.ended_at) == (TaskState.QUEUED, LATER, None)
    assert (rests.owner, rests.lease_until, len(rests.error_message or "")) == (None, None, 4000)
    last = plan.fail(running(), "BOOM", "no", NOW, None)
    assert (last.state, last.retry_at, last.ended_at) == (TaskState.FAILED, None, NOW)
    assert [plan.pause_after(n) for n in (1, 2, 3, 50)] == [
        *(timedelta(minutes=n) for n in (1, 2, 4)),
        timedelta(hours=1),
    ]


def test_a_cancellation_raises_the_attempt_and_is_no_change_the_second_time() -> None:
    cancelled = plan.cancel(running(), "eve", "too slow", LATER)
    assert (cancelled.state, cancelled.attempt) == (TaskState.CANCELLED, running().attempt + 1)
    assert cancelled.error_message == "cancelled by eve: too slow"
    assert plan.cancel(cancelled, "bob", "", LATER) is cancelled
    for state in (TaskState.DONE, TaskState.FAILED):
        with pytest.raises(TaskEnded):
            plan.cancel(task(state), "eve", "", LATER)


def test_what_is_done_has_no_error_left() -> None:
    done = plan.end(replace(running(), error_condition="BOOM", error_message="x"), LATER, 7)
    assert (done.state, done.version_after, done.owner) == (TaskState.DONE, 7, None)
    assert (done.error_condition, done.error_message) == (None, None)


@pytest.mark.parametrize(
    ("done", "total", "left"),
    [(0, 10, None), (5, 0, None), (11, 10, None), (5, 10, 60), (10, 10, 0), (1, 4, 180)],
)
def test_the_time_left_follows_from_the_pace_of_the_step(
    done: int, total: int, left: int | None
) -> None:
    under_way = replace(plan.begin(running(), "vacuum", 2, NOW), done=done, total=total)
    expected = None if left is None else timedelta(seconds=left)
    assert under_way.time_left(NOW + timedelta(seconds=60)) == expected
    assert plan.fail(under_way, "", "", NOW, LATER).time_left(LATER) is None


# --- a machine ------------------------------------------------------------------------------------

OWNERS = ("ann", "bob")
IDS = ("a", "b")
# They must not run beside each other.
KEYS = {"a": "maintain", "b": "maintain"}
STEPS = ("plan", "optimize", "vacuum")


class Refused(Exception):
    pass


class Owners(RuleBasedStateMachine):
    """Owners read rows, and write later, from what they have seen, with clocks that jump.

    `write` is what the statement checks in ON, where Delta guards the read.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rows = {id: Task(id, id, {}, "ann", NOW, NOW, exclusive=KEYS[id]) for id in IDS}
        self.clocks = dict.fromkeys(OWNERS, NOW)
        # What an owner believes that it holds, and what it has looked at.
        self.held: dict[tuple[str, str], Task] = {}
        self.seen: dict[tuple[str, str], Task] = {}
        self.finished: list[tuple[str, str]] = []
        self.claims: list[tuple[str, int]] = []
        self.stamps: list[str] = []

    def write(self, wanted: Task, seen: Task) -> Task:
        row = self.rows[wanted.id]
        for other in self.rows.values():
            if (
                wanted.state is TaskState.RUNNING
                and other.id != wanted.id
                and other.exclusive is not None
                and other.exclusive == wanted.exclusive
                and other.state is TaskState.RUNNING
                and other.lease_until is not None
                and other.lease_until > wanted.seen_at
            ):
                raise Refused(other.id)
        if (row.attempt, row.stamp) != (seen.attempt, seen.stamp):
            raise Refused(wanted.id)
        assert wanted.attempt >= row.attempt
        assert row.results.items() <= wanted.results.items()
        wanted = replace(wanted, stamp=f"{len(self.stamps)}")
        self.stamps.append(wanted.stamp)
        self.rows[wanted.id] = wanted
        if wanted.state is TaskState.RUNNING and wanted.exclusive is not None:
            alive = [
                each
                for each in self.rows.values()
                if each.exclusive == wanted.exclusive
                and each.state is TaskState.RUNNING
                and not each.expired(wanted.seen_at)
            ]
            assert len(alive) == 1
        return wanted

    @rule(owner=st.sampled_from(OWNERS), seconds=st.sampled_from([-90, 1, 30, 61, 300]))
    def jump(self, owner: str, seconds: int) -> None:
        self.clocks[owner] += timedelta(seconds=seconds)

    @rule(owner=st.sampled_from(OWNERS), id=st.sampled_from(IDS))
    def look(self, owner: str, id: str) -> None:
        self.seen[owner, id] = self.rows[id]

    @rule(owner=st.sampled_from(OWNERS), id=st.sampled_from(IDS), again=st.booleans())
    def claim(self, owner: str, id: str, again: bool) -> None:
        seen, before = self.seen.get((owner, id), self.rows[id]), self.rows[id]
        try:
            wanted = plan.claim(seen, owner, self.clocks[owner], LEASE, again)
            if wanted is seen:
                return
            claimed = self.write(wanted, seen)
        except (TaskBusy, TaskEnded, Refused):
            return
        assert before.state is not TaskState.RUNNING or before.expired(self.clocks[owner])
        self.held[owner, id] = claimed
        self.claims.append((id, claimed.attempt))

    @rule(owner=st.sampled_from(OWNERS), id=st.sampled_from(IDS), what=st.sampled_from("bfxr"))
    def go_on(self, owner: str, id: str, what: str) -> None:
        mine = self.held.get((owner, id))
        if mine is None or mine.state is not TaskState.RUNNING:
            return
        now = self.clocks[owner]
        step = next((each for each in STEPS if each not in mine.results), None)
        if what == "b":
            wanted = plan.beat(mine, now, LEASE, 1, 2)
        elif what == "f" and step is not None:
            wanted = plan.finish(mine, step, {"by": owner}, now, LEASE)
        elif what == "f":
            wanted = plan.end(mine, now, 1)
        else:
            wanted = plan.fail(mine, "BOOM", "", now, now if what == "r" else None)
        try:
            self.held[owner, id] = self.write(wanted, mine)
        except Refused:
            del self.held[owner, id]
            return
        if what == "f" and step is not None:
            self.finished.append((id, step))

    @rule(owner=st.sampled_from(OWNERS), id=st.sampled_from(IDS))
    def cancel(self, owner: str, id: str) -> None:
        seen = self.seen.get((owner, id), self.rows[id])
        try:
            wanted = plan.cancel(seen, owner, "", self.clocks[owner])
            if wanted is not seen:
                self.write(wanted, seen)
        except (TaskEnded, Refused):
            return

    @invariant()
    def one_owner_may_write(self) -> None:
        for id, row in self.rows.items():
            may = [
                owner
                for owner in OWNERS
                if (mine := self.held.get((owner, id))) is not None
                and mine.state is TaskState.RUNNING
                and (mine.attempt, mine.stamp) == (row.attempt, row.stamp)
            ]
            assert len(may) <= 1
            assert all(owner == row.owner for owner in may)

    @invariant()
    def no_two_claims_have_the_same_number(self) -> None:
        assert len(self.claims) == len(set(self.claims))

    @invariant()
    def a_step_is_finished_once_and_stays_so(self) -> None:
        assert len(self.finished) == len(set(self.finished))
        assert {(id, step) for id in IDS for step in self.rows[id].results} == set(self.finished)


Owners.TestCase.settings = settings(max_examples=300, stateful_step_count=40, deadline=None)
TestOwners = Owners.TestCase


def test_a_cancellation_that_was_planned_before_a_step_ended_leaves_its_result() -> None:
    owners = Owners()
    owners.claim(owner="ann", id="a", again=False)
    owners.look(owner="bob", id="a")
    owners.go_on(owner="ann", id="a", what="f")  # at the same moment: the lease does not change
    owners.cancel(owner="bob", id="a")
    assert (owners.rows["a"].state, list(owners.rows["a"].results)) == (TaskState.RUNNING, ["plan"])
