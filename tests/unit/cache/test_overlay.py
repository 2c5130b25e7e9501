"""Entries that move between places while readers ask: nobody misses one."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.backfill.completer import Completed, Storer
from catalog.backfill.model import Completion, Waiting
from catalog.cache.cache import Cache, Poll
from catalog.cache.fold import build
from catalog.cache.keys import key_of, keys_of
from catalog.cache.live import LiveCache
from catalog.cache.overlay import Backfilled, Overlay, OverlayEntry, PlaceName, Quarantine
from catalog.cache.resolver import BackgroundWriter, Resolver
from catalog.cache.snapshot import Position, Snapshot, overlaid
from catalog.delta.store import TableHead
from catalog.errors import GaveUp
from catalog.files.footer import Footer
from catalog.files.paths import Place
from catalog.model import Segment
from catalog.realtime.board import Announced
from catalog.schema import Schema
from tests.unit.schedule import Schedule

IDS = ("orders/1", "orders/2", "clicks/1")
SCHEMA = Schema.of("a INT")
INSIDE = ("overlay.stored", "overlay.polled")
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
MISSED, LEFT = "was missed on its way", "something is left at rest"


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


def found(rows: int | None = 1) -> OverlayEntry:
    return OverlayEntry(SCHEMA, rows)


# --- one step at a time --------------------------------------------------------------------------


def test_an_entry_is_found_in_each_place_on_its_way() -> None:
    overlay = Overlay(10)
    assert overlay.find("orders/1") is None
    overlay.found([completion("orders/1")], since=5.0)
    assert overlay.find("orders/1") == (PlaceName.PENDING, found())
    assert overlay.oldest_pending() == 5.0
    overlay.settled(overlay.next_pending(10), version=7)
    assert overlay.find("orders/1") == (PlaceName.BACKFILLED, found())
    overlay.polled(snapshot(6, {"orders/1": None}), {})
    assert overlay.find("orders/1") == (PlaceName.BACKFILLED, found())
    overlay.polled(snapshot(7, {"orders/1": SCHEMA.fingerprint}), {})
    assert overlay.find("orders/1") is None


def test_only_what_a_poll_has_reached_leaves_backfilled() -> None:
    overlay = Overlay(10)
    overlay.found([completion("orders/1"), completion("orders/2")], 0.0)
    first, second = overlay.next_pending(10)
    overlay.settled([first], version=3)
    overlay.settled([second], version=4)
    overlay.polled(snapshot(3, {"orders/1": SCHEMA.fingerprint, "orders/2": None}), {})
    assert overlay.find("orders/1") is None
    assert overlay.find("orders/2") == (PlaceName.BACKFILLED, found())


def test_a_segment_that_is_gone_leaves_every_place() -> None:
    overlay = Overlay(10)
    overlay.polled(snapshot(1, dict.fromkeys(IDS)), {"clicks/1": found()})
    overlay.found([completion("orders/1"), completion("orders/2")], 0.0)
    overlay.settled(overlay.next_pending(1), version=2)
    overlay.polled(snapshot(3, {}), {"clicks/1": found()})
    assert [overlay.find(name) for name in IDS] == [None, None, None]


def test_what_somebody_else_published_leaves_pending() -> None:
    overlay = Overlay(10)
    overlay.found([completion("orders/1")], 0.0)
    overlay.polled(snapshot(2, {"orders/1": SCHEMA.fingerprint}), {})
    assert overlay.sizes()[PlaceName.PENDING] == 0


def test_an_entry_that_was_found_anew_is_not_moved_for_the_old_one() -> None:
    overlay = Overlay(10)
    overlay.found([completion("orders/1", "c1")], 0.0)
    (old,) = overlay.next_pending(1)
    overlay.found([completion("orders/1", "c2")], 0.0)
    overlay.settled([old], version=2)
    overlay.gave_up([old])
    assert overlay.find("orders/1") == (PlaceName.PENDING, found())


def test_pending_is_bounded_and_says_how_much_it_refused() -> None:
    overlay = Overlay(2)
    assert overlay.found([completion(name) for name in IDS], 0.0) == 1
    assert overlay.sizes()[PlaceName.PENDING] == 2


def test_another_table_at_the_same_place_empties_the_places() -> None:
    overlay = Overlay(10)
    overlay.polled(snapshot(5, {"orders/1": None}), {})
    overlay.found([completion("orders/1"), completion("orders/2")], 0.0)
    overlay.settled(overlay.next_pending(1), version=9)
    overlay.polled(snapshot(1, {"orders/1": None, "orders/2": None}, table_id="other"), {})
    assert (overlay.find("orders/1"), overlay.find("orders/2")) == (None, None)


def test_what_was_published_is_realtime_again_only_if_it_is_announced_anew() -> None:
    overlay = Overlay(10)
    announced = {"orders/1": found(5)}
    overlay.polled(snapshot(1, {}), announced)
    assert overlay.find("orders/1") == (PlaceName.REALTIME, found(5))
    overlay.polled(snapshot(2, {"orders/1": None}), announced)
    assert overlay.find("orders/1") == (PlaceName.REALTIME, found(5))  # its schema is not published
    overlay.polled(snapshot(3, {"orders/1": SCHEMA.fingerprint}), announced)
    assert overlay.find("orders/1") is None
    overlay.polled(snapshot(4, {}), announced)  # dropped, and its writer is slow to notice
    assert overlay.find("orders/1") is None
    overlay.polled(snapshot(5, {}), {})
    overlay.polled(snapshot(6, {}), announced)  # announced anew
    assert overlay.find("orders/1") == (PlaceName.REALTIME, found(5))


# --- any order of steps --------------------------------------------------------------------------


@dataclass(frozen=True)
class Parts:
    """What a world is made of: the real parts, or one of them with a rule left out."""

    overlay: type[Overlay] = Overlay
    cache: type[LiveCache] = LiveCache
    writer: type[BackgroundWriter] = BackgroundWriter

    @property
    def wrong(self) -> str:
        """The name of the part that is not the real one."""
        changed = set(vars(self).values()) - set(vars(REAL).values())
        return ", ".join(each.__name__ for each in changed)


REAL = Parts()


class World:
    """A table and a writer's announcements as models of what they do, and a real cache over both,
    with a real resolver and writer.

    Every change is a step of its own. The world is the loader and the follower of the cache, and
    what the resolver and the writer ask.
    """

    datasources = None
    living = 0

    def __init__(self, schedule: Schedule, parts: Parts = REAL) -> None:
        self.schedule = schedule
        self.chance = schedule.chance
        self.overlay = parts.overlay(100, lambda point: schedule.point(point in INSIDE))
        self.version = 0
        self.ids = itertools.count()
        # id -> (fingerprint, commit id of the row)
        self.rows: dict[str, tuple[str | None, str]] = {}
        self.claims: set[str] = set()
        self.sure = False
        self.announced: dict[str, Announced] = {}
        # What was taken away, not moved on, and until when the cache may not have noticed.
        self.taken: dict[str, int] = {}
        self.time = 0
        self.noticed = 0
        world: Any = self
        self.store = self
        quarantine = Quarantine(lambda: NOON)
        self.writer = parts.writer(
            self.overlay, Storer(self.stored, lambda: NOON), quarantine, batch=2
        )
        self.writer.stop(0.0)  # its thread is not wanted: its steps are those of an actor here
        self.resolver = Resolver(
            self.overlay, self.writer, quarantine, self.search, self.describe, lambda: NOON
        )
        # Readers do not resolve, so that who asks never waits for another.
        self.cache = parts.cache(world, world, self.overlay, follower=world, writer=self.writer)
        self.cache.reload()

    # --- what the cache reads ---------------------------------------------------------------------

    def head(self) -> TableHead:
        return TableHead(self.version, str(self.version))

    def load(self) -> Snapshot:
        read = snapshot(self.version, {name: row[0] for name, row in self.rows.items()})
        self.schedule.point()
        return read

    def follow(self, before: Snapshot, head: TableHead) -> None:
        return None  # so that everything is loaded

    def refresh(self) -> dict[str, Announced]:
        read = dict(self.announced)
        self.schedule.point()
        return read

    # --- what happens -----------------------------------------------------------------------------

    def put(self, name: str, fingerprint: str | None) -> None:
        self.version += 1
        self.rows[name] = (fingerprint, f"c{next(self.ids)}")
        self.claims.discard(name)  # only the operation itself can have done it

    def take(self, name: str) -> None:
        self.time += 1
        self.taken[name] = self.time

    def change(self) -> None:
        """One thing that somebody does to the table or announces."""
        name = self.chance.choice(IDS)
        row = self.rows.get(name)
        what = self.chance.choice(
            ["add"] * 4 + ["publish", "drop", "announce", "hand over", "withdraw", "claim", "free"]
        )
        if what == "add" and row is None:
            self.put(name, None)
        elif what == "publish" and (row is None or row[0] is None):
            self.put(name, SCHEMA.fingerprint)
        elif what == "drop" and row is not None:
            self.version += 1
            del self.rows[name]
            self.claims.discard(name)
            self.take(name)
        elif what in ("claim", "free") and row is not None:
            self.version += 1
            self.claims ^= {name}
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
        waiting = [name for name in IDS if self.rows.get(name, ("", ""))[0] is None]
        name = self.chance.choice(waiting or IDS)
        there = self.cache.snapshot.index.find_one(*key_of(name)) >= 0
        if not there or self.cache.place(name) is not None:
            return
        self.resolver.resolve([name])

    def search(self, names: Sequence[str]) -> list[Waiting]:
        """The rows that wait, as the resolver finds them."""
        rows = ((name, self.rows.get(name)) for name in names)
        return [
            Waiting(Segment(name, location=f"{name}.parquet"), row[1])
            for name, row in rows
            if row is not None and row[0] is None
        ]

    def describe(self, places: Sequence[Place]) -> list[Footer | str]:
        """What the data says, which takes a while; the answer is kept right after it."""
        names = [place.path.removesuffix(".parquet") for place in places]
        before = [self.rows.get(name) for name in names]
        self.schedule.point()
        for name, row in zip(names, before, strict=True):
            if self.rows.get(name) != row:
                # Read from a row that is gone by now: the answer is given, and goes as the row did.
                self.take(name)
        return [Footer(SCHEMA, 1, 1)] * len(places)

    def commit(self) -> None:
        """One step of the writer, whose commit may get lost."""
        with contextlib.suppress(GaveUp):
            self.writer._store()

    def stored(self, completions: Sequence[Completion]) -> Completed:
        """A commit, whose answer may get lost, before or after it happened."""
        self.schedule.point()
        self.lose()
        names = {each.segment.id for each in completions}
        claimed = names & self.claims
        done = set()
        for each in completions:
            name = each.segment.id
            if name not in claimed and self.rows.get(name) == (None, each.seen):
                self.put(name, SCHEMA.fingerprint)
                done.add(name)
        version = self.version
        self.schedule.point()
        self.lose()
        return Completed(version, frozenset(done), claimed=frozenset(claimed))

    def lose(self) -> None:
        if not self.sure and self.chance.random() < 0.2:
            raise GaveUp("no answer came")

    def poll(self) -> None:
        began = self.time
        self.cache.poll()
        self.noticed = began

    # --- who asks ---------------------------------------------------------------------------------

    def read(self) -> None:
        """Asks once; who was known when it began and was not taken away is found."""
        moving = [*self.overlay._pending, *self.overlay._backfilled]
        name = self.chance.choice(moving or IDS)
        noticed = self.noticed
        # Without a stop on the way, which would let others go on.
        places = (self.overlay._realtime, self.overlay._pending, self.overlay._backfilled)
        known = any(name in place for place in places) or self.cache.snapshot.knows(name)
        how = self.chance.choice(["place", "lookup", "lookup_keys"])
        if how == "place":
            answered = self.cache.place(name) is not None
        elif how == "lookup":
            answered = self.cache.lookup([name])["fingerprint"][0].as_py() is not None
        else:
            answers = self.cache.lookup_keys(*keys_of(pa.array([name])))
            answered = answers["fingerprint"][0].as_py() is not None
        if known and self.taken.get(name, 0) <= noticed:
            assert answered, f"{name} {MISSED}"


def play(seed: int, parts: Parts = REAL) -> None:
    """One schedule: changes, resolvers, a writer and polls, and two readers beside them."""
    schedule = Schedule(seed)
    world = World(schedule, parts)

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
    world.sure = True
    world.claims.clear()
    world.version += 1
    world.poll()
    while pending := world.overlay.sizes()[PlaceName.PENDING]:
        world.commit()
        assert world.overlay.sizes()[PlaceName.PENDING] < pending, LEFT
    world.announced.clear()
    world.poll()
    assert world.overlay.sizes() == dict.fromkeys(list(PlaceName)[:-1], 0), LEFT
    for name, (fingerprint, _) in world.rows.items():
        assert world.cache.snapshot.knows(name) == (fingerprint is not None)


@settings(max_examples=300, derandomize=True)
@given(st.integers(0, 2**32))
def test_no_reader_misses_an_entry_that_moves_and_at_rest_nothing_is_left(seed: int) -> None:
    play(seed)


def test_announcements_are_read_before_the_table_and_forgotten_after_it() -> None:
    """A writer publishes and then takes its announcement back, just when a cache polls."""
    schedule = Schedule(0)
    world = World(schedule)
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


class DeletesFirst(Overlay):
    """Takes an entry out of the last place before it puts it into the next."""

    def settled(self, completions: Iterable[Completion], version: int) -> None:
        with self._moving:
            for each in completions:
                entry = self._pending.pop(each.segment.id, None)
                self._at("overlay.stored")
                if entry is not None:
                    self._backfilled[each.segment.id] = Backfilled(entry.entry, version)


class ForgetsAll(Overlay):
    """Takes a poll to have brought all that was stored, also what was stored after it began."""

    def polled(self, snapshot: Snapshot, announced: Mapping[str, OverlayEntry]) -> None:
        with self._moving:
            self._backfilled.clear()
            super().polled(snapshot, announced)


class AsksBackwards(Overlay):
    """Goes through the places against the direction of travel."""

    def find(self, segment_id: str) -> tuple[PlaceName, OverlayEntry] | None:
        backfilled = self._backfilled.get(segment_id)
        self._at("overlay.backfilled")
        pending = self._pending.get(segment_id)
        if backfilled is not None:
            return PlaceName.BACKFILLED, backfilled.entry
        if pending is not None:
            return PlaceName.PENDING, pending.entry
        realtime = self._realtime.get(segment_id)
        return None if realtime is None else (PlaceName.REALTIME, realtime)


class KeepsWhatArrived(Overlay):
    """Leaves in backfilled what a poll has brought."""

    def polled(self, snapshot: Snapshot, announced: Mapping[str, OverlayEntry]) -> None:
        with self._moving:
            kept = dict(self._backfilled)
            super().polled(snapshot, announced)
            self._backfilled.update(kept)


class CopiesBackwards(Overlay):
    """Copies the places against the direction of travel."""

    def everything(self) -> dict[str, OverlayEntry]:
        backfilled = {name: each.entry for name, each in self._backfilled.copy().items()}
        self._at("overlay.backfilled")
        pending = {name: each.entry for name, each in self._pending.copy().items()}
        self._at("overlay.pending")
        return {**backfilled, **pending, **self._realtime}


class ForgetsBeforeItKnows(LiveCache):
    """Takes entries out of the places before readers see the snapshot that has them."""

    def poll(self) -> Poll:
        with self._settling:
            announced = self._announced()
            self._overlay.polled(self._loader.load(), announced)
            self._overlay._at("between")
            poll = Cache.poll(self)
        assert self._writer is not None
        self._writer.polled()
        return poll


class LooksAtTheSnapshotFirst(LiveCache):
    """Asks the last place first."""

    def place(self, segment_id: str) -> PlaceName | None:
        known = self.snapshot.knows(segment_id)
        self._overlay._at("between")
        placed = self._overlay.find(segment_id)
        if placed is not None:
            return placed[0]
        return PlaceName.PUBLISHED if known else None


class LooksUpInTheSnapshotFirst(LiveCache):
    """The same for many."""

    def lookup_keys(self, k1: Any, k2: Any) -> pa.Table:
        answers = self.snapshot.lookup_keys(k1, k2)
        return overlaid(answers, k1, k2, self._overlay.everything())


class SettlesClaims(BackgroundWriter):
    """Takes what an operation claims for settled."""

    def _store(self) -> None:
        batch = self._overlay.next_pending(self._batch)
        self._overlay.settled(batch, self._storer.store(batch).version)


@pytest.mark.parametrize(
    ("parts", "says", "near"),
    [
        (Parts(DeletesFirst), MISSED, 160),
        (Parts(ForgetsAll), MISSED, 120),
        (Parts(AsksBackwards), MISSED, 0),
        (Parts(CopiesBackwards), MISSED, 45),
        (Parts(KeepsWhatArrived), LEFT, 0),
        (Parts(cache=ForgetsBeforeItKnows), MISSED, 260),
        (Parts(cache=LooksAtTheSnapshotFirst), MISSED, 0),
        (Parts(cache=LooksUpInTheSnapshotFirst), MISSED, 135),
        (Parts(writer=SettlesClaims), MISSED, 50),
    ],
    ids=lambda made: made.wrong if isinstance(made, Parts) else "",
)
def test_a_rule_that_is_left_out_is_found_out(parts: Parts, says: str, near: int) -> None:
    """The search begins shortly before where it once found it, to save time."""

    def search() -> None:
        for seed in range(near, near + 3000):
            play(seed, parts)

    # By its words: an actor that hangs is an AssertionError too.
    with pytest.raises(AssertionError, match=says):
        search()
