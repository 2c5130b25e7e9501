"""Deadlines count waiting, on a clock that the test moves."""

from __future__ import annotations

import math
from typing import Any

import pytest

from catalog import environment as waiting
from catalog.environment import Deadline, Environment, Together
from catalog.errors import GaveUp, InvalidInput


class Clock:
    """Stands in for the `time` module: sleeping moves it."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def fail_after(self, seconds: float) -> None:
        self.now += seconds
        raise ZeroDivisionError


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    moved = Clock()
    monkeypatch.setattr(waiting, "time", moved)
    return moved


@pytest.mark.parametrize("seconds", [0, 0.0, -1, -math.inf, math.nan])
def test_a_deadline_that_is_not_above_zero_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidInput, match="must be above zero") as caught:
        Deadline(seconds)
    assert repr(caught.value.values["deadline"]) == repr(seconds)


def test_a_deadline_counts_what_is_waited(clock: Clock) -> None:
    deadline = Deadline(10)
    deadline.wait(3, "a friend")
    assert (deadline.waited, deadline.left) == (3.0, 7.0)


def test_a_wait_sleeps_no_longer_than_what_is_left(clock: Clock) -> None:
    deadline = Deadline(10)
    deadline.wait(30, "a friend")
    assert (clock.now, deadline.left) == (110.0, 0.0)


def test_a_deadline_that_has_passed_gives_up_and_says_what_it_waited_for(clock: Clock) -> None:
    deadline = Deadline(10)
    clock.now += 12.5
    for refused in (lambda: deadline.wait(1, "a friend"), lambda: deadline.check("a friend")):
        with pytest.raises(GaveUp) as caught:
            refused()
        assert caught.value.values == {"waited": 12.5, "what": "a friend"}
        assert "Waited 12.5 s for a friend; nothing was written." in caught.value.message
        assert "longer deadline" in caught.value.message
    assert clock.now == 112.5


def test_what_runs_is_not_counted(clock: Clock) -> None:
    deadline = Deadline(10)
    clock.now += 4
    with deadline.not_counting():
        clock.now += 1000
    clock.now += 2
    assert (deadline.waited, deadline.left) == (6.0, 4.0)


def test_what_fails_is_not_counted_either(clock: Clock) -> None:
    deadline = Deadline(10)
    with pytest.raises(ZeroDivisionError), deadline.not_counting():
        clock.fail_after(1000)
    assert deadline.left == 10.0


def test_what_is_forgiven_brings_a_deadline_back(clock: Clock) -> None:
    deadline = Deadline(10)
    clock.now += 11
    deadline.forgive(5)
    assert deadline.left == 4.0


def test_callers_together_have_as_long_as_the_longest(clock: Clock) -> None:
    early, late = Deadline(5), Deadline(20)
    clock.now += 7
    both = Together([early, late])
    assert (early.left, late.left, both.left) == (0.0, 13.0, 13.0)
    both.check("others")
    clock.now += 13
    with pytest.raises(GaveUp, match=r"Waited 20\.0 s for others"):
        both.check("others")


def test_what_callers_together_are_forgiven_counts_for_none_of_them(clock: Clock) -> None:
    early, late = Deadline(5), Deadline(20)
    both = Together([early, late])
    with both.not_counting():
        clock.now += 100
    clock.now += 1
    assert (early.left, late.left, both.left) == (4.0, 19.0, 19.0)


def test_pauses_are_random_and_end_at_two_seconds() -> None:
    pause = Environment().pause
    for attempt in (0, 1, 5, 5000):
        ceiling = min(2.0, 0.1 * 2.0 ** min(attempt, 10))
        pauses: list[Any] = [pause(attempt) for _ in range(200)]
        assert all(0.02 <= seconds <= ceiling for seconds in pauses)
        assert len(set(pauses)) > 1
