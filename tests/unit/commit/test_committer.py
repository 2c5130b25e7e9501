"""The loop that settles a refused commit: raise, find it done, or plan again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import pytest

from catalog.commit.committer import commit_until_settled
from catalog.delta.statements import Statement
from catalog.delta.writer import Executed, RefusedByCheck, Writer
from catalog.environment import Deadline
from catalog.errors import FingerprintCollision, GaveUp
from catalog.model import Caller

DONE = Executed(7)
SEGMENT = RefusedByCheck("segment", "orders/1")


class Table:
    """Refuses one attempt after the other, and accepts the one after that."""

    def __init__(self, *refusals: RefusedByCheck) -> None:
        self._refusals = list(refusals)
        self.attempts: list[str] = []

    def commit(
        self,
        make: Callable[[bool], Statement],
        commit_id: str,
        verb: str,
        callers: Callable[[], Sequence[Caller]],
        deadline: Deadline,
    ) -> Executed:
        make(False)
        self.attempts.append(commit_id)
        if self._refusals:
            raise self._refusals.pop(0)
        return DONE


class Attempts:
    """One optimistic commit, with what its loop asked of it."""

    def __init__(self, table: Table, learned: Sequence[str | Executed | None] = ()) -> None:
        self.table = table
        self.plans = 0
        self.refusals: list[str] = []
        self.pauses: list[int] = []
        self._learned = list(learned)

    def run(self, deadline: Deadline | None = None) -> Executed:
        return commit_until_settled(
            *(cast(Writer, self.table), "c1", "publish", deadline or Deadline(60)),
            plan=self._plan,
            callers=lambda: [Caller("ann")],
            learn=self._learn,
            pause=self._pause,
        )

    def _plan(self, uncertain: bool) -> Statement:
        self.plans += 1
        return Statement("publish", lambda view: "")

    def _learn(self, refusal: RefusedByCheck) -> str | Executed | None:
        self.refusals.append(refusal.key)
        return self._learned.pop(0)

    def _pause(self, attempt: int) -> float:
        self.pauses.append(attempt)
        return 0.0


def test_a_commit_that_nothing_refuses_is_planned_once() -> None:
    one = Attempts(Table())
    assert one.run() is DONE
    assert (one.plans, one.refusals) == (1, [])


def test_a_refused_commit_is_planned_again_under_the_same_id() -> None:
    one = Attempts(Table(SEGMENT, SEGMENT), ["others", "others"])
    assert one.run() is DONE
    assert one.table.attempts == ["c1"] * 3
    assert (one.plans, one.refusals, one.pauses) == (3, ["orders/1"] * 2, [1, 2])


def test_another_statement_is_tried_without_a_pause_and_whatever_the_deadline() -> None:
    one = Attempts(Table(SEGMENT), [None])
    deadline = Deadline(60)
    deadline.expire()
    assert one.run(deadline) is DONE
    assert one.pauses == []


def test_a_commit_that_turns_out_to_have_happened_is_not_tried_again() -> None:
    found = Executed(5)
    one = Attempts(Table(SEGMENT), [found])
    assert one.run() is found
    assert one.plans == 1


def test_it_gives_up_when_the_deadline_has_passed() -> None:
    deadline = Deadline(60)
    deadline.expire()
    with pytest.raises(GaveUp, match="for others; nothing was written"):
        Attempts(Table(SEGMENT), ["others"]).run(deadline)


def test_another_definition_with_the_same_fingerprint_is_a_collision() -> None:
    one = Attempts(Table(RefusedByCheck("schema", "f1")))
    with pytest.raises(FingerprintCollision) as caught:
        one.run()
    assert caught.value.values == {"fingerprint": "f1"}
    assert one.refusals == []


def test_what_learning_raises_ends_the_commit() -> None:
    class Refusing(Attempts):
        def _learn(self, refusal: RefusedByCheck) -> str | Executed | None:
            raise ValueError(refusal.key)

    with pytest.raises(ValueError, match="orders/1"):
        Refusing(Table(SEGMENT)).run()
