"""How long a caller waits, and how: clocks, pauses and the points where a test may step in."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from catalog.errors import GaveUp, InvalidInput

Pause = TypeVar("Pause", float, timedelta)


def _now() -> datetime:
    return datetime.now(UTC)


def _new_id() -> str:
    return uuid.uuid4().hex


def growing_pause(failures: int, first: Pause, longest: Pause) -> Pause:
    """The pause after some failures in a row: `first` after one, doubled each time to `longest`."""
    return min(longest, first * 2.0 ** min(failures - 1, 20))


def _jitter(attempt: int) -> float:
    """Seconds before the next try: random, with a ceiling that doubles up to two seconds."""
    return random.uniform(0.02, growing_pause(attempt + 1, 0.1, 2.0))


def _nothing(point: str) -> None:
    return None


def _same(point: str, frame: Any) -> Any:
    return frame


@dataclass(frozen=True)
class Environment:
    """What the catalog takes from outside: the time, ids, pauses between tries.

    `at` is called at named points between steps and `source` with the source of a statement;
    tests use them to stop one side of a race.
    """

    clock: Callable[[], datetime] = _now
    new_id: Callable[[], str] = _new_id
    pause: Callable[[int], float] = _jitter
    at: Callable[[str], None] = _nothing
    source: Callable[[str, Any], Any] = _same


class Deadline:
    """A budget of waiting. The running of a statement does not count against it."""

    def __init__(self, seconds: float) -> None:
        if not seconds > 0:
            raise InvalidInput(f"A deadline must be above zero, not {seconds!r}.", deadline=seconds)
        self._seconds = float(seconds)
        self._began = time.monotonic()
        self._not_counted = 0.0

    @property
    def seconds(self) -> float:
        """The whole budget."""
        return self._seconds

    @property
    def waited(self) -> float:
        return time.monotonic() - self._began - self._not_counted

    @property
    def left(self) -> float:
        return max(0.0, self._seconds - self.waited)

    def wait(self, seconds: float, what: str) -> None:
        """Sleeps, or raises `GaveUp` when the budget is used up."""
        self.check(what)
        time.sleep(min(seconds, self.left))

    def check(self, what: str) -> None:
        """Raises `GaveUp` when the budget is used up."""
        if self.left <= 0:
            raise self.gave_up(what)

    def gave_up(self, what: str) -> GaveUp:
        """The error that says what was waited for, and that nothing was written."""
        return GaveUp(
            f"Waited {self.waited:.1f} s for {what}; nothing was written. "
            "Try again, or give a longer deadline.",
            waited=self.waited,
            what=what,
        )

    def expire(self) -> None:
        """Uses up the budget at once: the caller is gone."""
        self._seconds = 0.0

    def forgive(self, seconds: float) -> None:
        """Takes time that was spent in a statement off the budget."""
        self._not_counted += seconds

    @contextmanager
    def not_counting(self) -> Iterator[None]:
        """Time spent inside does not count."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.forgive(time.monotonic() - began)


class Together(Deadline):
    """The deadlines of callers that are served together: it lasts as long as the longest."""

    def __init__(self, deadlines: Sequence[Deadline]) -> None:
        self._deadlines = tuple(deadlines)

    @property
    def waited(self) -> float:
        return max(deadline.waited for deadline in self._deadlines)

    @property
    def left(self) -> float:
        return max(deadline.left for deadline in self._deadlines)

    def forgive(self, seconds: float) -> None:
        for deadline in self._deadlines:
            deadline.forgive(seconds)
