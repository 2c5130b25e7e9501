"""Segments that a cache leaves alone for a while, because asking their data came to nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from catalog.backfill.model import Trouble, Waiting
from catalog.cache.places import present_in
from catalog.cache.snapshot import Snapshot


@dataclass(frozen=True)
class _Resting:
    """Trouble with a segment, and the commit id of its row when it was met."""

    trouble: Trouble
    seen: str


class Quarantine:
    """Trouble with segments whose data does not say its schema, or whose schema cannot be stored.

    It is kept when a pause is over, so that the next one is longer.
    """

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._resting: dict[str, _Resting] = {}
        # Those of them whose rows are looked at before their old trouble is told again.
        self._doubted: set[str] = set()

    @property
    def names(self) -> frozenset[str]:
        """Segments whose pause is not over."""
        now = self._clock()
        with self._guard:
            return frozenset(
                name for name, each in self._resting.items() if now < each.trouble.retry_at
            )

    def trouble_of(self, segment_id: str) -> Trouble | None:
        """What is wrong with a segment, if it need not be looked at again to know."""
        now = self._clock()
        with self._guard:
            each = self._resting.get(segment_id)
            if each is None or segment_id in self._doubted or now >= each.trouble.retry_at:
                return None
            return each.trouble

    def as_known(self, waiting: Waiting) -> Waiting:
        """The segment with the trouble that was met here if that is newer, so that pauses grow."""
        with self._guard:
            self._doubted.discard(waiting.id)
            each = self._resting.get(waiting.id)
            if each is None or each.seen != waiting.seen:
                return waiting
            return replace(waiting, trouble=each.trouble)

    def put(self, waiting: Waiting, trouble: Trouble) -> None:
        """Leaves a segment alone until its pause is over."""
        with self._guard:
            self._resting[waiting.id] = _Resting(trouble, waiting.seen)

    def release(self, segment_id: str) -> None:
        """Forgets the trouble with a segment: its data has said its schema."""
        with self._guard:
            self._resting.pop(segment_id, None)

    def polled(self, snapshot: Snapshot) -> None:
        """Forgets trouble with segments that are gone or known, and doubts the rest of it: a
        segment may have been published anew."""
        with self._guard:
            names = list(self._resting)
        there, known = present_in(snapshot, names)
        with self._guard:
            for name in names:
                if name not in there or name in known:
                    self._resting.pop(name, None)
            self._doubted = set(self._resting)
