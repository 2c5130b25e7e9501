"""Schemas found on a miss: a resolver reads them from the data, a background writer stores them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime

from catalog.backfill.completer import Storer
from catalog.backfill.model import Completion, Trouble, Waiting, completed, troubled
from catalog.cache.metrics import CacheCounters
from catalog.cache.overlay import Overlay, PlaceName, Quarantine, entry_of
from catalog.cache.snapshot import OverlayEntry, Snapshot
from catalog.environment import growing_pause
from catalog.errors import Unreadable
from catalog.files.footer import Describe
from catalog.files.paths import place_of
from catalog.single_flight import SingleFlight

log = logging.getLogger(__name__)

DEFAULT_BATCH = 1_000
# Seconds during which entries are collected, so that one commit stores more than one segment.
_LINGER = 0.5
_INTERRUPTED = "The reading of a file that this call waited for was interrupted; call again."

ResolvedSegment = OverlayEntry | Trouble | None


class BackgroundWriter:
    """Stores pending entries in the table, in batches, oldest first.

    Its daemon thread lives while there is something to store: entries that are lost with the
    process are found again on the next miss. Entries that an operation claims stay pending, and
    are tried again when the table has a new version: claims end by a commit.
    """

    def __init__(
        self,
        overlay: Overlay,
        storer: Storer,
        quarantine: Quarantine,
        batch: int = DEFAULT_BATCH,
        linger: float = _LINGER,
        pause: Callable[[int], float] = lambda failures: growing_pause(failures, 1.0, 60.0),
    ) -> None:
        self._overlay = overlay
        self._storer = storer
        self._quarantine = quarantine
        self._batch = batch
        self._linger = linger
        self._pause = pause
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._hurry = threading.Event()
        self._over = threading.Event()
        self._over.set()
        self._stopped = False
        # Segments that were claimed at the last try, and how many new versions were seen.
        self._claimed: frozenset[str] = frozenset()
        self._moves = 0
        self.counters = CacheCounters()
        self.last_error: Exception | None = None

    def wake(self) -> None:
        """Starts the thread, unless it runs or the writer is stopped."""
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
        """Stores all pending entries; returns how many are left when the time is up.

        Entries that an operation claims are tried once, and not waited for.
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
        """Flushes, and starts nothing afterwards; returns how many entries are left."""
        self.flush(seconds)
        with self._guard:
            self._stopped = True
        self._hurry.set()
        return self._pending

    def start(self) -> None:
        """Continues after a stop."""
        with self._guard:
            self._stopped = False
        self._hurry.clear()
        self.polled()

    def polled(self) -> None:
        """Tries claimed entries again, because the table has a new version."""
        self._doubt_claims()
        if self._pending:
            self.wake()

    def _doubt_claims(self) -> None:
        with self._guard:
            self._claimed = frozenset()
            self._moves += 1

    @property
    def _pending(self) -> int:
        return self._overlay.sizes()[PlaceName.PENDING]

    def _work(self) -> None:
        failures = 0
        self._hurry.wait(self._linger)
        while not self._done():
            try:
                self._store()
                failures, self.last_error = 0, None
            except Exception as error:
                # The entries stay pending, and readers are answered from there.
                failures += 1
                self.counters.add(store_failures=1)
                self.last_error = error
                pause = self._pause(failures)
                log.warning(
                    "Found schemas could not be stored and will be tried again in %g s: %s",
                    pause,
                    error,
                )
                self._hurry.wait(pause)
                if self._hurry.is_set():
                    time.sleep(min(pause, 0.1))

    def _store(self) -> None:
        moves = self._moves
        batch = self._overlay.next_pending(self._batch, self._claimed)
        tally = self._storer.store(batch)
        # By id: a quarantined completion is another object for the same segment.
        refused = {each.segment.id for each in tally.quarantined}
        for each in tally.quarantined:
            if each.trouble is not None:
                self._quarantine.put(each.before, each.trouble)
        claimed = {each.segment.id for each in tally.claimed}
        self._overlay.gave_up([each for each in batch if each.segment.id in refused])
        rest = [each for each in batch if each.segment.id not in refused | claimed]
        self._overlay.settled(rest, tally.version)
        with self._guard:
            # After a new version the claims may have ended unseen.
            if moves == self._moves:
                self._claimed |= claimed
        self.counters.add(stored=len(tally.completed))

    def _done(self) -> bool:
        with self._guard:
            if self._stopped or not self._overlay.next_pending(1, self._claimed):
                self._thread = None
                self._over.set()
                return True
            return False


class Resolver:
    """Reads schemas from the data of segments, each once however many callers wait for it."""

    def __init__(
        self,
        overlay: Overlay,
        writer: BackgroundWriter,
        quarantine: Quarantine,
        search: Callable[[Sequence[str]], list[Waiting]],
        describe: Describe,
        clock: Callable[[], datetime],
        default_format: str | None = None,
    ) -> None:
        """Args:
        overlay: keeps the answers until they are published.
        writer: stores them.
        quarantine: segments that are not tried again yet.
        search: gives those of some segments that wait for their schema in the table.
        describe: reads the data at some places.
        clock: the time.
        default_format: the format of locations that do not name theirs.
        """
        self._overlay = overlay
        self._writer = writer
        self._quarantine = quarantine
        self._search = search
        self._describe = describe
        self._clock = clock
        self._format = default_format
        self._flight = SingleFlight[ResolvedSegment](_INTERRUPTED)
        self.counters = CacheCounters()

    @property
    def resting(self) -> frozenset[str]:
        """Segments that are not tried again yet."""
        return self._quarantine.names

    def resolve(self, segment_ids: Sequence[str]) -> dict[str, ResolvedSegment]:
        """The schemas of segments as their data has them, or why they are not readable.

        None for a segment that no longer waits for its schema in the table: a poll brings the
        change.
        """
        return self._flight.run(segment_ids, self._known, self._load).result()

    def polled(self, snapshot: Snapshot) -> None:
        """Reconsiders failures after a poll."""
        self._quarantine.polled(snapshot)

    def _known(self, segment_id: str) -> ResolvedSegment:
        trouble = self._quarantine.trouble_of(segment_id)
        placed = self._overlay.find(segment_id)
        if placed is not None:  # found by another caller just now
            return placed[1]
        # A load that runs knows more than the failure before it.
        return None if segment_id in self._flight else trouble

    def _load(self, names: Sequence[str]) -> dict[str, ResolvedSegment | Exception]:
        began = time.monotonic()
        outcomes: dict[str, ResolvedSegment | Exception] = dict.fromkeys(names)
        waiting = []
        now = self._clock()
        for each in map(self._quarantine.as_known, self._search(names)):
            # In quarantine, here or in the table, and not published again since.
            if each.trouble is not None and now < each.trouble.retry_at:
                self._quarantine.put(each, each.trouble)
                outcomes[each.id] = each.trouble
            else:
                waiting.append(each)
        completions = self._read(waiting)
        good = [each for each in completions if each.trouble is None]
        # Before other callers get the answer: the next one finds it in pending.
        refused = self._overlay.found(good, time.monotonic())
        if good:
            self._writer.wake()
        outcomes |= {each.segment.id: self._outcome(each) for each in completions}
        self.counters.add(
            resolved=len(good),
            resolver_failures=len(completions) - len(good),
            resolver_refused=refused,
            resolver_seconds=time.monotonic() - began,
        )
        return outcomes

    def _read(self, waiting: Sequence[Waiting]) -> list[Completion]:
        places = [place_of(each.location, self._format) for each in waiting]
        described = self._describe(places) if waiting else []
        now = self._clock()
        return [
            troubled(each, outcome, now)
            if isinstance(outcome, str)
            else completed(each, outcome, now)
            for each, outcome in zip(waiting, described, strict=True)
        ]

    def _outcome(self, completion: Completion) -> OverlayEntry | Trouble:
        if completion.trouble is not None:
            self._quarantine.put(completion.before, completion.trouble)
            return completion.trouble
        self._quarantine.release(completion.segment.id)
        return entry_of(completion)


def unreadable(segment_id: str, trouble: Trouble) -> Unreadable:
    """The error for a segment whose data does not have a readable schema."""
    return Unreadable(
        f"Segment {segment_id} is published without a schema, and its data has no readable one: "
        f"{trouble.reason}. It is read again after {trouble.retry_at:%H:%M:%S}.",
        segment_id=segment_id,
        reason=trouble.reason,
    )
