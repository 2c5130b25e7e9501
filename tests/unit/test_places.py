"""Entries that move between places while readers ask: nobody misses one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.backfill.waiting import Completion, Waiting
from catalog.cache.cache import Cache, Poll
from catalog.cache.fold import build
from catalog.cache.keys import key_of, keys_of
from catalog.cache.live import Beside, LiveCache
from catalog.cache.places import Backfilled, Found, PlaceName, Places
from catalog.cache.snapshot import Position, Snapshot
from catalog.model import Segment
from catalog.realtime.announcement import Announced
from catalog.schema import Schema
from catalog.table.store import Head
from tests.unit.schedule import Schedule

IDS = ("orders/1", "orders/2", "clicks/1")
SCHEMA = Schema.of("a INT")
INSIDE = ("places.stored", "places.polled")


def snapshot(version: int, segments: Mapping[str, str | None], table_id: str = "t") -> Snapshot:
    """A snapshot with these segments, each with its fingerprint or none."""
    k1, k2 = keys_of(pa.array(list(segments), pa.string()))
    rows = pa.table(
        {
            "k1": k1,
            "k2": k2,
            "fingerprint": pa.array(list(segments.values()), pa.string()),
            "num_rows": pa.array([1] * len(segments), pa.int64()),
            "datasource": pa.array([name.partition("/")[0] for name in segments], pa.string()),
        }
    )
    schemas = pa.table(
        {
            "kind": ["schema"],
            "key": [SCHEMA.fingerprint],
            "payload": [SCHEMA.payload],
            "published_micros": pa.array([1], pa.int64()),
        }
    )
    return build(Position(table_id, version, str(version)), rows, schemas)


def completion(segment_id: str, seen: str = "c1") -> Completion:
    before = Waiting(Segment(segment_id, location=f"/{segment_id}"), seen)
    return Completion(Segment(segment_id, SCHEMA, 1, location=f"/{segment_id}"), before)


def found(rows: int | None = 1) -> Found:
    return Found(SCHEMA, rows)


# --- one step at a time --------------------------------------------------------------------------


def test_an_entry_is_found_in_each_place_on_its_way() -> None:
    places = Places(10)
    assert places.find("orders/1") is None
    places.found([completion("orders/1")], since=5.0)
    assert places.find("orders/1") == (PlaceName.PENDING, found())
    assert places.oldest_pending() == 5.0
    places.settled(places.next_pending(10), version=7)
    assert places.find("orders/1") == (PlaceName.BACKFILLED, found())
    places.polled(snapshot(6, {"orders/1": None}), {})
    assert places.find("orders/1") == (PlaceName.BACKFILLED, found())
    places.polled(snapshot(7, {"orders/1": SCHEMA.fingerprint}), {})
    assert places.find("orders/1") is None


def test_only_what_a_poll_has_reached_leaves_backfilled() -> None:
    places = Places(10)
    places.found([completion("orders/1"), completion("orders/2")], 0.0)
    first, second = places.next_pending(10)
    places.settled([first], version=3)
    places.settled([second], version=4)
    places.polled(snapshot(3, {"orders/1": SCHEMA.fingerprint, "orders/2": None}), {})
    assert places.find("orders/1") is None
    assert places.find("orders/2") == (PlaceName.BACKFILLED, found())


def test_a_segment_that_is_gone_leaves_every_place() -> None:
    places = Places(10)
    places.polled(snapshot(1, dict.fromkeys(IDS)), {"clicks/1": found()})
    places.found([completion("orders/1"), completion("orders/2")], 0.0)
    places.settled(places.next_pending(1), version=2)
    places.polled(snapshot(3, {}), {"clicks/1": found()})
    assert [places.find(name) for name in IDS] == [None, None, None]


def test_what_somebody_else_published_leaves_pending() -> None:
    places = Places(10)
    places.found([completion("orders/1")], 0.0)
    places.polled(snapshot(2, {"orders/1": SCHEMA.fingerprint}), {})
    assert places.sizes()[PlaceName.PENDING] == 0


def test_an_entry_that_was_found_anew_is_not_moved_for_the_old_one() -> None:
    places = Places(10)
    places.found([completion("orders/1", "c1")], 0.0)
    (old,) = places.next_pending(1)
    places.found([completion("orders/1", "c2")], 0.0)
    places.settled([old], version=2)
    places.gave_up([old])
    assert places.find("orders/1") == (PlaceName.PENDING, found())


def test_pending_is_bounded_and_says_how_much_it_refused() -> None:
    places = Places(2)
    assert places.found([completion(name) for name in IDS], 0.0) == 1
    assert places.sizes()[PlaceName.PENDING] == 2


def test_another_table_at_the_same_place_empties_the_places() -> None:
    places = Places(10)
    places.polled(snapshot(5, {"orders/1": None}), {})
    places.found([completion("orders/1"), completion("orders/2")], 0.0)
    places.settled(places.next_pending(1), version=9)
    places.polled(snapshot(1, {"orders/1": None, "orders/2": None}, table_id="other"), {})
    assert (places.find("orders/1"), places.find("orders/2")) == (None, None)


def test_what_was_published_is_realtime_again_only_if_it_is_announced_anew() -> None:
    places = Places(10)
    announced = {"orders/1": found(5)}
    places.polled(snapshot(1, {}), announced)
    assert places.find("orders/1") == (PlaceName.REALTIME, found(5))
    places.polled(snapshot(2, {"orders/1": None}), announced)
    assert places.find("orders/1") == (PlaceName.REALTIME, found(5))  # its schema is not published
    places.polled(snapshot(3, {"orders/1": SCHEMA.fingerprint}), announced)
    assert places.find("orders/1") is None
    places.polled(snapshot(4, {}), announced)  # dropped, and its writer is slow to notice
    assert places.find("orders/1") is None
    places.polled(snapshot(5, {}), {})
    places.polled(snapshot(6, {}), announced)  # announced anew
    assert places.find("orders/1") == (PlaceName.REALTIME, found(5))


# --- any order of steps --------------------------------------------------------------------------


class World:
    """A table and a writer's announcements as models of what they do, and a real cache over both.

    Every change is a step of its own. The world is the loader and the follower of the cache.
    """

    datasources = None
    living = 0

    def __init__(
        self, schedule: Schedule, make: Callable[..., Places], cache: type[LiveCache]
    ) -> None:
        self.schedule = schedule
        self.chance = schedule.chance
        self.places = make(100, lambda point: schedule.point(point in INSIDE))
        self.version = 0
        self.ids = itertools.count()
        # id -> (fingerprint, commit id of the row)
        self.rows: dict[str, tuple[str | None, str]] = {}
        self.announced: dict[str, Announced] = {}
        # What was taken away, not moved on, and until when the cache may not have noticed.
        self.taken: dict[str, int] = {}
        self.time = 0
        self.noticed = 0
        world: Any = self
        self.store = self
        self.cache = cache(world, world, Beside(self.places, world))
        self.cache.reload()

    # --- what the cache reads ---------------------------------------------------------------------

    def head(self) -> Head:
        return Head(self.version, str(self.version))

    def load(self) -> Snapshot:
        read = snapshot(self.version, {name: row[0] for name, row in self.rows.items()})
        self.schedule.point()
        return read

    def follow(self, before: Snapshot, head: Head) -> None:
        return None  # so that everything is loaded

    def refresh(self) -> dict[str, Announced]:
        read = dict(self.announced)
        self.schedule.point()
        return read

    # --- what happens -----------------------------------------------------------------------------

    def put(self, name: str, fingerprint: str | None) -> None:
        self.version += 1
        self.rows[name] = (fingerprint, f"c{next(self.ids)}")

    def take(self, name: str) -> None:
        self.time += 1
        self.taken[name] = self.time

    def change(self) -> None:
        """One thing that somebody does to the table or announces."""
        name = self.chance.choice(IDS)
        row = self.rows.get(name)
        what = self.chance.choice(["add", "publish", "drop", "announce", "hand over", "withdraw"])
        if what == "add" and row is None:
            self.put(name, None)
        elif what == "publish" and (row is None or row[0] is None):
            self.put(name, SCHEMA.fingerprint)
        elif what == "drop" and row is not None:
            self.version += 1
            del self.rows[name]
            self.take(name)
        elif what == "announce" and (row is None or row[0] is None):
            self.announced[name] = Announced(SCHEMA)
        elif what == "hand over" and name in self.announced:
            if row is None or row[0] is None:
                self.put(name, SCHEMA.fingerprint)
            self.schedule.point()
            self.announced.pop(name, None)
        elif what == "withdraw" and name in self.announced:
            del self.announced[name]
            self.take(name)

    def resolve(self) -> None:
        """What a reader's miss leads to: the row is looked up, its data read, the answer kept."""
        name = self.chance.choice(IDS)
        there = self.cache.snapshot.index.find_one(*key_of(name)) >= 0
        if not there or self.cache.place(name) is not None:
            return
        row = self.rows.get(name)
        if row is None or row[0] is not None:
            return
        self.schedule.point()
        if self.rows.get(name) != row:
            # Read from a row that is gone by now: the answer is given, and goes as the row did.
            self.take(name)
        self.places.found([completion(name, row[1])], 0.0)

    def commit(self, sure: bool = False) -> None:
        """A commit of what is pending, whose answer may get lost, before or after it happened."""
        batch = self.places.next_pending(self.chance.randint(1, 3))
        self.schedule.point()
        if not batch or (not sure and self.chance.random() < 0.2):
            return
        self.version += 1
        for each in batch:
            name = each.segment.id
            if self.rows.get(name) == (None, each.seen):
                self.rows[name] = (SCHEMA.fingerprint, f"c{next(self.ids)}")
        version = self.version
        self.schedule.point()
        if not sure and self.chance.random() < 0.2:
            return
        self.places.settled(batch, version)

    def poll(self) -> None:
        began = self.time
        self.cache.poll()
        self.noticed = began

    # --- who asks ---------------------------------------------------------------------------------

    def read(self) -> None:
        """Asks once; who was known when it began and was not taken away is found."""
        name = self.chance.choice(IDS)
        known = name in self.places.everything() or self.cache.snapshot.knows(name)
        noticed = self.noticed
        if self.chance.random() < 0.5:
            answered = self.cache.place(name) is not None
        else:
            answers = self.cache.lookup_keys(*keys_of(pa.array([name])))
            answered = answers["fingerprint"][0].as_py() is not None
        if known and self.taken.get(name, 0) <= noticed:
            assert answered, f"{name} was missed on its way"


def play(
    seed: int, make: Callable[..., Places] = Places, cache: type[LiveCache] = LiveCache
) -> None:
    """One schedule: changes, resolvers, a courier and polls, and two readers beside them."""
    schedule = Schedule(seed)
    world = World(schedule, make, cache)

    def repeated(work: Callable[[], None], times: int) -> Callable[[], None]:
        def run() -> None:
            for _ in range(times):
                work()
                schedule.point()

        return run

    schedule.mover(repeated(world.change, 12))
    schedule.mover(repeated(world.resolve, 12))
    schedule.mover(repeated(world.commit, 10))
    schedule.mover(repeated(world.poll, 8))
    schedule.reader(repeated(world.read, 25))
    schedule.reader(repeated(world.read, 25))
    schedule.run()

    # At rest: what is pending is stored, and a poll brings all of it.
    while world.places.sizes()[PlaceName.PENDING]:
        before = world.places.sizes()[PlaceName.PENDING]
        world.commit(sure=True)
        assert world.places.sizes()[PlaceName.PENDING] < before
    world.announced.clear()
    world.poll()
    assert world.places.sizes() == dict.fromkeys(list(PlaceName)[:-1], 0)
    for name, (fingerprint, _) in world.rows.items():
        assert world.cache.snapshot.knows(name) == (fingerprint is not None)


@settings(max_examples=300, derandomize=True)
@given(st.integers(0, 2**32))
def test_no_reader_misses_an_entry_that_moves_and_at_rest_nothing_is_left(seed: int) -> None:
    play(seed)


def test_announcements_are_read_before_the_table_and_forgotten_after_it() -> None:
    """A writer publishes and then takes its announcement back, just when a cache polls."""
    schedule = Schedule(0)
    world = World(schedule, Places, LiveCache)
    world.announced["orders/1"] = Announced(SCHEMA)
    world.cache.poll()
    assert world.cache.place("orders/1") is PlaceName.REALTIME
    read = world.refresh

    def refresh() -> dict[str, Announced]:
        announced = read()
        world.put("orders/1", SCHEMA.fingerprint)
        world.announced.clear()
        return announced

    world.refresh = refresh  # type: ignore[method-assign]
    world.cache.poll()
    assert world.cache.place("orders/1") is PlaceName.PUBLISHED
    load = world.load

    def drop_after_load() -> Snapshot:
        loaded = load()
        world.announced["clicks/1"] = Announced(SCHEMA)
        return loaded

    world.load, world.refresh = drop_after_load, read  # type: ignore[method-assign]
    world.put("orders/2", None)
    world.cache.poll()
    assert world.cache.place("clicks/1") is None  # announced too late for this poll
    world.cache.poll()
    assert world.cache.place("clicks/1") is PlaceName.REALTIME


class DeletesFirst(Places):
    """Takes an entry out of the last place before it puts it into the next."""

    def settled(self, completions: Iterable[Completion], version: int) -> None:
        with self._moving:
            for each in completions:
                entry = self._pending.pop(each.segment.id, None)
                self._at("places.stored")
                if entry is not None:
                    self._backfilled[each.segment.id] = Backfilled(entry.found, version)


class ForgetsAll(Places):
    """Takes a poll to have brought all that was stored, also what was stored after it began."""

    def polled(self, snapshot: Snapshot, announced: Mapping[str, Found]) -> None:
        with self._moving:
            self._backfilled.clear()
            super().polled(snapshot, announced)


class AsksBackwards(Places):
    """Goes through the places against the direction of travel."""

    def find(self, segment_id: str) -> tuple[PlaceName, Found] | None:
        backfilled = self._backfilled.get(segment_id)
        self._at("places.backfilled")
        pending = self._pending.get(segment_id)
        if backfilled is not None:
            return PlaceName.BACKFILLED, backfilled.found
        if pending is not None:
            return PlaceName.PENDING, pending.found
        realtime = self._realtime.get(segment_id)
        return None if realtime is None else (PlaceName.REALTIME, realtime)


class KeepsFailures(Places):
    """Keeps what could not be stored as if it were on its way."""

    def polled(self, snapshot: Snapshot, announced: Mapping[str, Found]) -> None:
        with self._moving:
            kept = dict(self._backfilled)
            super().polled(snapshot, announced)
            self._backfilled.update(kept)


class ForgetsBeforeItKnows(LiveCache):
    """Takes entries out of the places before readers see the snapshot that has them."""

    def poll(self) -> Poll:
        with self._settling:
            announced = self._announced()
            self._places.polled(self._loader.load(), announced)
            self._places._at("between")
            return Cache.poll(self)


class LooksAtTheSnapshotFirst(LiveCache):
    """Asks the last place first."""

    def place(self, segment_id: str) -> PlaceName | None:
        known = self.snapshot.knows(segment_id)
        self._places._at("between")
        placed = self._places.find(segment_id)
        if placed is not None:
            return placed[0]
        return PlaceName.PUBLISHED if known else None


@pytest.mark.parametrize(
    ("make", "cache", "near"),
    [
        (DeletesFirst, LiveCache, 390),
        (ForgetsAll, LiveCache, 430),
        (AsksBackwards, LiveCache, 60),
        (KeepsFailures, LiveCache, 0),
        (Places, ForgetsBeforeItKnows, 85),
        (Places, LooksAtTheSnapshotFirst, 0),
    ],
    ids=lambda made: getattr(made, "__name__", ""),
)
def test_a_rule_that_is_left_out_is_found_out(
    make: Callable[..., Places], cache: type[LiveCache], near: int
) -> None:
    """The search begins shortly before where it once found it, to save time."""

    def search() -> None:
        for seed in range(near, near + 3000):
            play(seed, make, cache)

    with pytest.raises(AssertionError):
        search()
