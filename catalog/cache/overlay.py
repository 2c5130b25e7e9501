"""In-memory entries over the snapshot: segments whose schema is known and not in the snapshot yet.

    realtime -> pending -> backfilled -> published

A reader searches the places in this order, and a mover puts an entry into the next place before it
removes it from the last. So no reader misses an entry that moves. Readers take no lock.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from catalog.backfill.model import Completion, Trouble, Waiting
from catalog.cache.snapshot import OverlayEntry, Snapshot, present_in
from catalog.environment import Environment
from catalog.schema import Schema


class PlaceName(StrEnum):
    """The origin of the answer about a segment, in the order in which entries move."""

    REALTIME = "realtime"
    PENDING = "pending"
    BACKFILLED = "backfilled"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class Pending:
    """An entry that was found in the data and is not stored yet, and since when."""

    entry: OverlayEntry
    completion: Completion
    since: float


@dataclass(frozen=True, slots=True)
class Backfilled:
    """An entry whose row the table settled at a version that no poll has reached yet."""

    entry: OverlayEntry
    version: int


class Overlay:
    """The entries in realtime, pending and backfilled. `at` is called between steps, for tests."""

    def __init__(self, most_pending: int, at: Callable[[str], None] = Environment.at) -> None:
        self._most = most_pending
        self._at = at
        # One mover at a time; never held while code of a caller runs.
        self._moving = threading.RLock()
        self._realtime: Mapping[str, OverlayEntry] = {}
        self._pending: dict[str, Pending] = {}
        self._backfilled: dict[str, Backfilled] = {}
        # Announced segments that the last snapshot had, and those that were published with a schema
        # or dropped since: these do not return to realtime while their announcement continues.
        self._present: frozenset[str] = frozenset()
        self._handed_over: frozenset[str] = frozenset()
        self._table_id: str | None = None

    # --- readers ----------------------------------------------------------------------------------

    def find(self, segment_id: str) -> tuple[PlaceName, OverlayEntry] | None:
        """The entry of a segment. Look into the snapshot afterwards, never before: an entry that
        leaves the last place is in the snapshot by then."""
        realtime = self._realtime.get(segment_id)
        if realtime is not None:
            return PlaceName.REALTIME, realtime
        self._at("overlay.realtime")
        pending = self._pending.get(segment_id)
        if pending is not None:
            return PlaceName.PENDING, pending.entry
        self._at("overlay.pending")
        backfilled = self._backfilled.get(segment_id)
        if backfilled is not None:
            return PlaceName.BACKFILLED, backfilled.entry
        self._at("overlay.backfilled")
        return None

    def everything(self) -> dict[str, OverlayEntry]:
        """All entries, for lookups of many segments."""
        # Copied in the order of movement; of two entries the one further back counts.
        realtime = dict(self._realtime)
        self._at("overlay.realtime")
        pending = {name: each.entry for name, each in self._pending.copy().items()}
        self._at("overlay.pending")
        backfilled = {name: each.entry for name, each in self._backfilled.copy().items()}
        self._at("overlay.backfilled")
        return {**backfilled, **pending, **realtime}

    def some(self, segment_ids: Iterable[str]) -> dict[str, OverlayEntry]:
        """The entries of some segments."""
        found = ((name, self.find(name)) for name in segment_ids)
        return {name: placed[1] for name, placed in found if placed is not None}

    def schema(self, fingerprint: str) -> Schema | None:
        """The schema with this fingerprint, if an entry has it."""
        pending = (each.entry for each in self._pending.copy().values())
        backfilled = (each.entry for each in self._backfilled.copy().values())
        for entry in itertools.chain(self._realtime.values(), pending, backfilled):
            if entry.schema.fingerprint == fingerprint:
                return entry.schema
        return None

    def sizes(self) -> dict[PlaceName, int]:
        """The number of entries in each place."""
        return {
            PlaceName.REALTIME: len(self._realtime),
            PlaceName.PENDING: len(self._pending),
            PlaceName.BACKFILLED: len(self._backfilled),
        }

    def oldest_pending(self) -> float | None:
        """Since when the oldest pending entry waits."""
        return min((each.since for each in self._pending.copy().values()), default=None)

    # --- movers -----------------------------------------------------------------------------------

    def found(self, completions: Iterable[Completion], since: float) -> int:
        """Puts schemas found in the data into pending; returns how many were refused for lack of
        room."""
        refused = 0
        with self._moving:
            for each in completions:
                if len(self._pending) >= self._most and each.segment.id not in self._pending:
                    refused += 1
                    continue
                self._pending[each.segment.id] = Pending(entry_of(each), each, since)
        return refused

    def next_pending(self, most: int, without: Collection[str] = frozenset()) -> list[Completion]:
        """The oldest pending entries, without some segments; they stay in their place."""
        with self._moving:
            due = (each for name, each in self._pending.items() if name not in without)
            return [each.completion for each in itertools.islice(due, most)]

    def settled(self, completions: Iterable[Completion], version: int) -> None:
        """Moves entries to backfilled: at this version the table has them, or a later change."""
        with self._moving:
            for each in completions:
                pending = self._pending.get(each.segment.id)
                if pending is None or pending.completion is not each:
                    continue  # removed meanwhile, or found anew
                self._backfilled[each.segment.id] = Backfilled(pending.entry, version)
                self._at("overlay.stored")
                del self._pending[each.segment.id]

    def gave_up(self, completions: Iterable[Completion]) -> None:
        """Removes entries that can never be stored."""
        with self._moving:
            for each in completions:
                pending = self._pending.get(each.segment.id)
                if pending is not None and pending.completion is each:
                    del self._pending[each.segment.id]

    def polled(self, snapshot: Snapshot, announced: Mapping[str, OverlayEntry]) -> None:
        """Removes entries that are published or gone; call it when readers use the new snapshot.

        `announced` must have been read before the snapshot: a writer publishes a segment before it
        withdraws its announcement, so a segment that is no longer announced is in the snapshot.
        """
        with self._moving:
            if self._table_id not in (None, snapshot.position.table_id):
                # Another table at the same path: the entries are not about it.
                self._pending.clear()
                self._backfilled.clear()
                self._handed_over = self._present = frozenset()
            self._table_id = snapshot.position.table_id
            self._at("overlay.polled")
            there, _ = present_in(snapshot, list(self._backfilled))
            for name, entry in list(self._backfilled.items()):
                if entry.version <= snapshot.version or name not in there:
                    del self._backfilled[name]
            there, known = present_in(snapshot, list(self._pending))
            for name in list(self._pending):
                # Dropped, or published with a schema by another writer.
                if name not in there or name in known:
                    del self._pending[name]
            self._announce(snapshot, announced)

    def _announce(self, snapshot: Snapshot, announced: Mapping[str, OverlayEntry]) -> None:
        there, known = present_in(snapshot, list(announced))
        dropped = self._present - there
        handed_over = (self._handed_over | known | dropped) & announced.keys()
        self._realtime = {
            name: entry for name, entry in announced.items() if name not in handed_over
        }
        self._present = frozenset(there)
        self._handed_over = frozenset(handed_over)


def entry_of(completion: Completion) -> OverlayEntry:
    """The entry of a segment whose schema was found in its data."""
    assert completion.segment.schema is not None
    return OverlayEntry(completion.segment.schema, completion.segment.num_rows)


# --- failures -------------------------------------------------------------------------------------


class Quarantine:
    """Failed segments: their data has no readable schema, or the schema cannot be stored.

    A segment is not tried again until its pause is over, but remembered, so that the next pause
    is longer.
    """

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        # The failure of a segment, and the commit id of its row at the time.
        self._failed: dict[str, tuple[Trouble, str]] = {}
        # Segments whose rows are read again before their old failure is reported.
        self._doubted: set[str] = set()

    @property
    def names(self) -> frozenset[str]:
        """Segments whose pause is not over."""
        now = self._clock()
        with self._guard:
            return frozenset(
                name for name, (trouble, _) in self._failed.items() if now < trouble.retry_at
            )

    def trouble_of(self, segment_id: str) -> Trouble | None:
        """The failure of a segment, if it need not be tried again yet."""
        now = self._clock()
        with self._guard:
            trouble, _ = self._failed.get(segment_id, (None, ""))
            if trouble is None or segment_id in self._doubted or now >= trouble.retry_at:
                return None
            return trouble

    def as_known(self, waiting: Waiting) -> Waiting:
        """The segment with the failure recorded here, if its row is still the same."""
        with self._guard:
            self._doubted.discard(waiting.id)
            trouble, seen = self._failed.get(waiting.id, (None, ""))
            same = trouble is not None and seen == waiting.seen
            return replace(waiting, trouble=trouble) if same else waiting

    def put(self, waiting: Waiting, trouble: Trouble) -> None:
        """Records the failure of a segment."""
        with self._guard:
            self._failed[waiting.id] = trouble, waiting.seen

    def release(self, segment_id: str) -> None:
        """Forgets the failure of a segment, because its schema was found."""
        with self._guard:
            self._failed.pop(segment_id, None)

    def polled(self, snapshot: Snapshot) -> None:
        """Forgets segments that are dropped or have a schema, and doubts the others, because a
        segment may have been published again."""
        with self._guard:
            names = list(self._failed)
        there, known = present_in(snapshot, names)
        with self._guard:
            for name in names:
                if name not in there or name in known:
                    self._failed.pop(name, None)
            self._doubted = set(self._failed)
