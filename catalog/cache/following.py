"""Answers that follow the table: a reader can wait for a version, and expect a schema."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from catalog.cache.answers import Answers
from catalog.cache.expectation import Mismatches, mismatch
from catalog.cache.snapshot import Snapshot
from catalog.environment import Deadline
from catalog.errors import GaveUp, InvalidInput
from catalog.schema import Schema

# So often a reader who expects another schema polls and asks again, so many seconds apart.
TRIES = 3
APART = 0.1
# Between the polls for a version: whoever waits long looks less often.
_SHORTEST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0
# What a cache without a snapshot has reached.
_NOTHING = -1


class Following(Answers):
    """Answers from one snapshot after the other, each brought by a poll."""

    def __init__(self, pause: Callable[[float], None]) -> None:
        """`pause` lets so many seconds pass."""
        self._snapshot: Snapshot | None = None
        self._pause = pause
        # Of the readers who wait one polls at a time, and the next look at what it brought.
        self._turn = threading.Lock()
        self._mismatches = Mismatches()

    @abstractmethod
    def poll(self) -> object:
        """Brings the newest snapshot."""

    @property
    def loaded(self) -> bool:
        """Whether there is a snapshot to answer from."""
        return self._snapshot is not None

    @property
    def _reached(self) -> int:
        snapshot = self._snapshot
        return _NOTHING if snapshot is None else snapshot.version

    # --- a version --------------------------------------------------------------------------------

    def wait_for(self, version: int, timeout: float = 60.0) -> int:
        """Polls until this version of the table is reached; returns the one that is there then.

        A version that is reached already costs nothing. A background poller may run beside it, or
        none.

        Args:
            version: as `publish` returned it, here or elsewhere.
            timeout: raise `GaveUp` after so many seconds; a poll that runs is not cut short.
        """
        return self.reach(check_version(version), Deadline(check_timeout(timeout)))

    def reach(self, version: int, deadline: Deadline) -> int:
        """Like `wait_for`, with a budget that several caches may share."""
        pause = _SHORTEST_PAUSE
        while (reached := self._reached) < version:
            polled = self._poll_after(reached, deadline.left)
            reached = self._reached
            if reached >= version:
                break
            if deadline.left <= 0:
                raise _gave_up(version, reached, polled, deadline.waited)
            self._pause(min(pause, deadline.left))
            pause = min(2 * pause, _LONGEST_PAUSE)
        return reached

    def _poll_after(self, seen: int, seconds: float = -1) -> bool:
        """Polls, unless another reader who waits has brought another version than this one saw.

        False if it was not this reader's turn within so many seconds.
        """
        if not self._turn.acquire(timeout=min(seconds, threading.TIMEOUT_MAX)):
            return False
        try:
            if self._reached == seen:
                self.poll()
        finally:
            self._turn.release()
        return True

    # --- a schema ---------------------------------------------------------------------------------

    def _as_expected(self, segment_id: str, expected: str) -> Schema:
        """The schema with this fingerprint, if the segment has it now or after a few polls."""
        told = self._told(segment_id)
        schema = told.as_expected(expected)
        if schema is not None:
            return schema
        self._mismatches.count(met=1)
        for attempt in range(TRIES):
            if attempt:
                self._pause(APART)
            self._mismatches.count(retries=1)
            self._poll_after(told.version)
            told = self._told(segment_id)
            schema = told.as_expected(expected)
            if schema is not None:
                return schema
        self._mismatches.count(remained=1)
        advice = (
            f"{TRIES} polls did not bring it. Ask again when it is published, or expect the schema "
            "that is there."
        )
        raise mismatch(segment_id, expected, told, advice) from told.reason


def check_version(version: Any) -> int:
    """A version of the table, as Delta counts them."""
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise InvalidInput(
            f"A version of the table is a whole number from zero on, not {version!r:.80}; take "
            "that of a PublishResult.",
            version=version,
        )
    return version


def check_timeout(timeout: Any) -> float:
    """Seconds to wait, above zero."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        raise InvalidInput(
            f"timeout must be a number of seconds above zero, not {timeout!r:.80}.", timeout=timeout
        )
    return float(timeout)


def _gave_up(version: int, reached: int, polled: bool, waited: float) -> GaveUp:
    if polled:
        why = f"the newest version of the table is {reached}"
    else:
        why = "another reader's poll has not ended"
    return GaveUp(
        f"Waited {waited:.1f} s for version {version}: {why}. Wait longer, or check whether that "
        "version belongs to this table.",
        version=version,
        reached=None if reached == _NOTHING else reached,
        waited=waited,
    )
