"""The places of a schema on its way to be published, beside the snapshot.

    realtime -> pending -> backfilled -> published

Whoever asks goes through them in this order, and whoever moves an entry puts it into the next place
before it takes it out of the last. So nobody misses an entry that moves. Readers take no lock.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from catalog.backfill.model import Completion
from catalog.cache.snapshot import Snapshot
from catalog.schema import Schema


class PlaceName(StrEnum):
    """Where the answer about a segment comes from, in the direction of travel."""

    REALTIME = "realtime"
    PENDING = "pending"
    BACKFILLED = "backfilled"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of a segment that is not published with a schema."""

    schema: Schema
    num_rows: int | None


@dataclass(frozen=True, slots=True)
class Pending:
    """What was found in the data and is not stored yet, and since when."""

    found: Found
    completion: Completion
    since: float


@dataclass(frozen=True, slots=True)
class Backfilled:
    """What is stored, or known to be settled otherwise, at a version that no poll has reached."""

    found: Found
    version: int


def _nothing(point: str) -> None:
    return None


class Places:
    """Realtime, pending and backfilled. `at` is called between steps, for tests."""

    def __init__(self, most_pending: int, at: Callable[[str], None] = _nothing) -> None:
        self._most = most_pending
        self._at = at
        # One mover at a time; never held while somebody else's code runs.
        self._moving = threading.RLock()
        self._realtime: Mapping[str, Found] = {}
        self._pending: dict[str, Pending] = {}
        self._backfilled: dict[str, Backfilled] = {}
        # Announced segments that the last snapshot had, and those that were published with a schema
        # or dropped since: these do not come back as realtime while they are announced without a
        # break.
        self._present: frozenset[str] = frozenset()
        self._handed_over: frozenset[str] = frozenset()
        self._table_id: str | None = None

    # --- asking -----------------------------------------------------------------------------------

    def find(self, segment_id: str) -> tuple[PlaceName, Found] | None:
        """What is known of a segment outside the snapshot. Look into the snapshot afterwards, never
        before: what leaves the last place is in it by then."""
        realtime = self._realtime.get(segment_id)
        if realtime is not None:
            return PlaceName.REALTIME, realtime
        self._at("places.realtime")
        pending = self._pending.get(segment_id)
        if pending is not None:
            return PlaceName.PENDING, pending.found
        self._at("places.pending")
        backfilled = self._backfilled.get(segment_id)
        if backfilled is not None:
            return PlaceName.BACKFILLED, backfilled.found
        self._at("places.backfilled")
        return None

    def everything(self) -> dict[str, Found]:
        """All that is known outside the snapshot, for many questions at once."""
        # Copied in the direction of travel; of two entries the one further back counts.
        realtime = dict(self._realtime)
        self._at("places.realtime")
        pending = {name: each.found for name, each in self._pending.copy().items()}
        self._at("places.pending")
        backfilled = {name: each.found for name, each in self._backfilled.copy().items()}
        self._at("places.backfilled")
        return {**backfilled, **pending, **realtime}

    def some(self, segment_ids: Iterable[str]) -> dict[str, Found]:
        """What is known of some segments outside the snapshot."""
        found = ((name, self.find(name)) for name in segment_ids)
        return {name: placed[1] for name, placed in found if placed is not None}

    def schema(self, fingerprint: str) -> Schema | None:
        """The schema with this fingerprint, if one of the entries has it."""
        pending = [each.found for each in self._pending.copy().values()]
        backfilled = [each.found for each in self._backfilled.copy().values()]
        for found in (*self._realtime.values(), *pending, *backfilled):
            if found.schema.fingerprint == fingerprint:
                return found.schema
        return None

    def sizes(self) -> dict[PlaceName, int]:
        """How many entries each place has."""
        return {
            PlaceName.REALTIME: len(self._realtime),
            PlaceName.PENDING: len(self._pending),
            PlaceName.BACKFILLED: len(self._backfilled),
        }

    def oldest_pending(self) -> float | None:
        """Since when the oldest entry waits to be stored."""
        return min((each.since for each in self._pending.copy().values()), default=None)

    # --- moving -----------------------------------------------------------------------------------

    def found(self, completions: Iterable[Completion], since: float) -> int:
        """Puts what was found in the data into pending; returns for how much there was no room."""
        refused = 0
        with self._moving:
            for each in completions:
                schema = each.segment.schema
                assert schema is not None
                if len(self._pending) >= self._most and each.segment.id not in self._pending:
                    refused += 1
                    continue
                entry = Pending(Found(schema, each.segment.num_rows), each, since)
                self._pending[each.segment.id] = entry
        return refused

    def next_pending(self, most: int, without: Collection[str] = frozenset()) -> list[Completion]:
        """The oldest entries that wait to be stored, but for some; they stay where they are."""
        with self._moving:
            due = (each for name, each in self._pending.items() if name not in without)
            return [each.completion for each in itertools.islice(due, most)]

    def settled(self, completions: Iterable[Completion], version: int) -> None:
        """Moves entries on: the table has them at this version, or knows otherwise."""
        with self._moving:
            for each in completions:
                entry = self._pending.get(each.segment.id)
                if entry is None or entry.completion is not each:
                    continue  # removed meanwhile, or found anew
                self._backfilled[each.segment.id] = Backfilled(entry.found, version)
                self._at("places.stored")
                del self._pending[each.segment.id]

    def gave_up(self, completions: Iterable[Completion]) -> None:
        """Forgets entries that can never be stored."""
        with self._moving:
            for each in completions:
                entry = self._pending.get(each.segment.id)
                if entry is not None and entry.completion is each:
                    del self._pending[each.segment.id]

    def polled(self, snapshot: Snapshot, announced: Mapping[str, Found]) -> None:
        """Takes out what has arrived or is gone; call it when readers see the snapshot already.

        `announced` must have been read before the snapshot: a writer publishes a segment before it
        takes back its announcement, so what is no longer announced is in the snapshot.
        """
        with self._moving:
            if self._table_id not in (None, snapshot.position.table_id):
                # Another table at the same place: nothing of this is about it.
                self._pending.clear()
                self._backfilled.clear()
                self._handed_over = self._present = frozenset()
            self._table_id = snapshot.position.table_id
            self._at("places.polled")
            there, _ = present_in(snapshot, list(self._backfilled))
            for name, entry in list(self._backfilled.items()):
                if entry.version <= snapshot.version or name not in there:
                    del self._backfilled[name]
            there, known = present_in(snapshot, list(self._pending))
            for name in list(self._pending):
                # Gone, or somebody else has said what its schema is.
                if name not in there or name in known:
                    del self._pending[name]
            self._announce(snapshot, announced)

    def _announce(self, snapshot: Snapshot, announced: Mapping[str, Found]) -> None:
        there, known = present_in(snapshot, list(announced))
        dropped = self._present - there
        handed_over = (self._handed_over | known | dropped) & announced.keys()
        self._realtime = {
            name: found for name, found in announced.items() if name not in handed_over
        }
        self._present = frozenset(there)
        self._handed_over = frozenset(handed_over)


def present_in(snapshot: Snapshot, names: Sequence[str]) -> tuple[set[str], set[str]]:
    """Which of some segments a snapshot has, and which of them with a schema."""
    if not names:
        return set(), set()
    answer = snapshot.lookup(pa.array(names, pa.string()))
    found = answer.column("found").to_pylist()
    fingerprints = answer.column("fingerprint").to_pylist()
    there = {name for name, here in zip(names, found, strict=True) if here}
    known = {name for name, one in zip(names, fingerprints, strict=True) if one is not None}
    return there, known
