"""Stores what was found in the data, in the background and in batches."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from catalog.backfill.completer import Storer
from catalog.cache.places import PlaceName, Places
from catalog.cache.quarantine import Quarantine

log = logging.getLogger(__name__)

DEFAULT_BATCH = 1_000
# So long what comes in is collected, so that a commit has more to store than one segment.
_LINGER = 0.5
_LONGEST_PAUSE = 60.0


class Courier:
    """Takes entries from pending to the table, oldest first.

    Its thread lives while there is something to store, and does not keep a process from ending:
    what is not stored is found again when it is asked for. What an operation claims stays pending,
    and is tried again when the table has moved on: claims end by a commit.
    """

    def __init__(
        self,
        places: Places,
        storer: Storer,
        quarantine: Quarantine,
        batch: int = DEFAULT_BATCH,
        linger: float = _LINGER,
        pause: Callable[[int], float] | None = None,
    ) -> None:
        self._places = places
        self._storer = storer
        self._quarantine = quarantine
        self._batch = batch
        self._linger = linger
        self._pause = pause or _doubling
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._hurry = threading.Event()
        self._over = threading.Event()
        self._over.set()
        self._stopped = False
        # What was claimed at the last try, and how often the table has moved on.
        self._claimed: frozenset[str] = frozenset()
        self._moves = 0
        self.stored = 0
        self.failures = 0
        self.last_error: Exception | None = None

    def wake(self) -> None:
        """Something is pending."""
        with self._guard:
            if self._thread is None and not self._stopped:
                thread = threading.Thread(target=self._work, name="strata-backfill", daemon=True)
                self._over.clear()
                try:
                    thread.start()
                except BaseException:
                    self._over.set()
                    raise
                self._thread = thread

    def flush(self, seconds: float) -> int:
        """Stores all that is pending; returns how much is left when the time is up.

        What an operation claims is tried once, and not waited for.
        """
        if not self._pending:
            return 0
        self._doubt_claims()
        end = time.monotonic() + seconds
        self._hurry.set()
        try:
            self.wake()
            while not self._over.wait(min(1.0, max(0.0, end - time.monotonic()))):
                if time.monotonic() >= end:
                    break
        finally:
            if not self._stopped:
                self._hurry.clear()
        return self._pending

    def stop(self, seconds: float) -> int:
        """Flushes and begins nothing afterwards; returns how much is left."""
        self.flush(seconds)
        with self._guard:
            self._stopped = True
        self._hurry.set()
        return self._pending

    def start(self) -> None:
        """Goes on after a stop."""
        with self._guard:
            self._stopped = False
        self._hurry.clear()
        self.polled()

    def polled(self) -> None:
        """The table has moved on, so that claims may be over."""
        self._doubt_claims()
        if self._pending:
            self.wake()

    def _doubt_claims(self) -> None:
        with self._guard:
            self._claimed = frozenset()
            self._moves += 1

    @property
    def _pending(self) -> int:
        return self._places.sizes()[PlaceName.PENDING]

    def _work(self) -> None:
        failed = 0
        self._hurry.wait(self._linger)
        while not self._done():
            try:
                self._store()
                failed, self.last_error = 0, None
            except Exception as error:
                # It stays in pending, and readers go on being answered from there.
                failed += 1
                self.failures += 1
                self.last_error = error
                pause = self._pause(failed)
                log.warning(
                    "What was found could not be stored and will be tried again in %g s: %s",
                    pause,
                    error,
                )
                self._hurry.wait(pause)
                if self._hurry.is_set():
                    time.sleep(min(pause, 0.1))

    def _store(self) -> None:
        moves = self._moves
        batch = self._places.next_pending(self._batch, self._claimed)
        tally = self._storer.store(batch)
        # By id: what was put aside is another completion of the same segment.
        refused = {each.segment.id for each in tally.quarantined}
        for each in tally.quarantined:
            if each.trouble is not None:
                self._quarantine.put(each.before, each.trouble)
        claimed = {each.segment.id for each in tally.claimed}
        self._places.gave_up([each for each in batch if each.segment.id in refused])
        rest = [each for each in batch if each.segment.id not in refused | claimed]
        self._places.settled(rest, tally.version)
        with self._guard:
            # If the table has moved on since, the claims may have ended unseen.
            if moves == self._moves:
                self._claimed |= claimed
        self.stored += len(tally.completed)

    def _done(self) -> bool:
        with self._guard:
            if self._stopped or not self._places.next_pending(1, self._claimed):
                self._thread = None
                self._over.set()
                return True
            return False


def _doubling(failed: int) -> float:
    return min(_LONGEST_PAUSE, 2.0 ** min(failed - 1, 10))
