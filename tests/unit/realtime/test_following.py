"""Announcers and followers together: whatever happens between them, they end with the same."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog import Schema
from catalog.errors import SchemaConflict
from catalog.evolution import merge, merged
from catalog.realtime import Announced, Announcer, Follower
from tests.unit.evolution.strategies import related
from tests.unit.realtime import Clock, Fickle

IDS = ("o/1", "o/2", "p/1")
WRITERS = ("a", "b")
SCHEMAS = 5
Told = dict[str, tuple[str, str, int | None]]


@dataclass(frozen=True)
class Announce:
    writer: str
    segments: dict[str, tuple[int, int | None]]


@dataclass(frozen=True)
class Forget:
    writer: str
    segment_ids: tuple[str, ...]


@dataclass(frozen=True)
class Renew:
    writer: str


@dataclass(frozen=True)
class Restart:
    """A new session in the place of one that was closed, or that crashed and left its file."""

    writer: str
    closed: bool


@dataclass(frozen=True)
class Fail:
    """The storage fails from here on, before it takes a write or after; or it works again."""

    when: str


@dataclass(frozen=True)
class Advance:
    seconds: float


@dataclass(frozen=True)
class Refresh:
    reader: int


def _step(rng: random.Random) -> object:
    writer = rng.choice(WRITERS)
    kind = rng.random()
    if kind < 0.3:
        ids = rng.sample(IDS, rng.randint(1, len(IDS)))
        rows = (None, 0, 1, 2, 3)
        return Announce(writer, {each: (rng.randrange(SCHEMAS), rng.choice(rows)) for each in ids})
    if kind < 0.4:
        return Forget(writer, tuple(rng.sample(IDS, rng.randint(0, 2))))
    if kind < 0.5:
        return Renew(writer)
    if kind < 0.55:
        return Restart(writer, rng.random() < 0.5)
    if kind < 0.6:
        return Fail(rng.choice(["", "", "before", "after"]))
    if kind < 0.75:
        return Advance(rng.choice([0.1, 0.5, 1.0, 3.0, 20.0, 70.0]))
    return Refresh(rng.randrange(2))


def _steps(length: int, seed: int) -> list[object]:
    rng = random.Random(seed)
    return [_step(rng) for _ in range(length)]


# They follow from one number, as the schemas do; fewer of them are the beginning of more.
STEPS = st.builds(_steps, st.integers(0, 60), st.integers(0, 2**63))


def exactly(segments: Mapping[str, Announced]) -> Told:
    """Fingerprints, and what they do not see: the order of columns."""
    return {
        name: (each.schema.fingerprint, each.schema.json, each.num_rows)
        for name, each in segments.items()
    }


@dataclass
class World:
    """Two announcers, what they were asked to announce, and two followers."""

    folder: Path
    schemas: tuple[Schema, ...]
    clock: Clock = field(default_factory=Clock)
    conflicts: int = 0
    failures: int = 0

    def __post_init__(self) -> None:
        self.board = Fickle(self.folder, self.clock)
        self.announcers = {writer: self.begin(writer) for writer in WRITERS}
        self.asked: dict[str, dict[str, Announced]] = {writer: {} for writer in WRITERS}
        self.readers = [self.follower(), self.follower()]
        self.history = [self.expected()]

    def begin(self, writer: str) -> Announcer:
        return Announcer(
            self.board,
            writer,
            ttl=timedelta(seconds=60),
            clock=self.clock.now,
            takeover=True,
        )

    def follower(self) -> Follower:
        return Follower(self.board, clock=self.clock.monotonic, now=self.clock.now)

    def take(self, step: object) -> None:
        try:
            self.do(step)
        except OSError:
            self.failures += 1

    def do(self, step: object) -> None:
        match step:
            case Announce(writer, segments):
                self.announce(writer, segments)
            case Forget(writer, segment_ids):
                for segment_id in segment_ids:
                    self.asked[writer].pop(segment_id, None)
                self.announcers[writer].forget(segment_ids)
            case Renew(writer):
                self.announcers[writer].renew()
            case Restart(writer, closed):
                if closed:
                    self.announcers[writer].close()
                self.announcers[writer] = self.begin(writer)
                self.asked[writer] = {}
            case Fail(when):
                self.board.fails = when
            case Advance(seconds):
                self.clock.advance(seconds)
            case Refresh(reader):
                found = exactly(self.readers[reader].refresh())
                assert all(self.was_asked(name, each) for name, each in found.items())

    def announce(self, writer: str, segments: dict[str, tuple[int, int | None]]) -> None:
        given = {name: (self.schemas[number], rows) for name, (number, rows) in segments.items()}
        try:
            grown = {name: self.grown(writer, name, *each) for name, each in given.items()}
        except SchemaConflict:
            self.conflicts += 1
            with pytest.raises(SchemaConflict):
                self.announcers[writer].announce(given)
            return
        self.asked[writer] |= grown
        self.history.append(self.expected())
        self.announcers[writer].announce(given)

    def grown(self, writer: str, name: str, schema: Schema, rows: int | None) -> Announced:
        before = self.asked[writer].get(name)
        if before is None:
            return Announced(schema, rows)
        return Announced(merge(before.schema, schema), before.num_rows if rows is None else rows)

    def expected(self) -> list[dict[str, Announced]]:
        return [dict(self.asked[writer]) for writer in WRITERS]

    def was_asked(self, name: str, each: tuple[str, str, int | None]) -> bool:
        """Whether some moments of both writers, or of one, explain what a follower saw."""
        one, other = (self.moments(number, name) for number in (0, 1))
        return any(
            exactly({name: both(mine, theirs)}) == {name: each}
            for mine in one
            for theirs in other
            if mine is not None or theirs is not None
        )

    def moments(self, number: int, name: str) -> list[Announced | None]:
        """What a writer was asked to announce of a segment over time, each once."""
        found = [then[number][name] for then in self.history if name in then[number]]
        # Equal schemas may differ in the order of columns.
        return [None, *{(each.schema.json, each.num_rows): each for each in found}.values()]


def both(one: Announced | None, other: Announced | None) -> Announced:
    """What a follower makes of two replicas; the first decides where they are in conflict."""
    if one is None or other is None:
        found = one or other
        assert found is not None
        return found
    rows = [each.num_rows for each in (one, other) if each.num_rows is not None]
    return Announced(merged([one.schema, other.schema]).schema, max(rows, default=None))


@settings(max_examples=200)
@given(related(SCHEMAS), STEPS)
def test_followers_end_with_what_is_announced_whatever_they_missed(
    schemas: tuple[Schema, ...], steps: list[object]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), schemas)
        for step in steps:
            world.take(step)
        world.board.fails = ""
        for each in world.announcers.values():
            each.renew()
        first, second = world.asked.values()
        wanted = exactly(
            {name: both(first.get(name), second.get(name)) for name in first.keys() | second}
        )
        for reader in (*world.readers, world.follower()):
            assert exactly(reader.refresh()) == wanted
            assert reader.figures.broken == 0


def test_the_steps_lead_to_conflicts_failures_and_news_often() -> None:
    """The law above would say little of announcers to whom nothing happens."""
    seen = {"conflicts": 0, "failures": 0, "news": 0}

    @settings(max_examples=250, derandomize=True, database=None)
    @given(related(SCHEMAS), STEPS)
    def count(schemas: tuple[Schema, ...], steps: list[object]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            world = World(Path(folder), schemas)
            for step in steps:
                world.take(step)
            seen["conflicts"] += world.conflicts > 0
            seen["failures"] += world.failures > 0
            seen["news"] += any(reader.figures.read > len(WRITERS) for reader in world.readers)

    count()
    assert all(number >= 15 for number in seen.values()), seen
