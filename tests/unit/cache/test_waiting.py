"""Readers that wait for a version or expect a schema, over a table that the test moves."""

from __future__ import annotations

import math
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from catalog import environment as waiting
from catalog.cache.answers import APART, TRIES, Handle
from catalog.cache.cache import Cache, Caches
from catalog.cache.fold import build
from catalog.cache.keys import keys_of
from catalog.cache.live import LiveCache
from catalog.cache.metrics import CacheCounters, CacheMetrics
from catalog.cache.overlay import Overlay
from catalog.cache.snapshot import Position, Snapshot
from catalog.delta.store import TableHead
from catalog.errors import (
    CacheBehind,
    CatalogError,
    GaveUp,
    InvalidInput,
    NotInSnapshot,
    NotLoaded,
    SchemaVersionMismatch,
    Unreadable,
)
from catalog.realtime.board import Announced
from catalog.realtime.follower import FollowerFigures
from catalog.schema import Schema
from tests.unit.cache.test_resolver import Ground
from tests.unit.test_waiting import Clock

OLD, NEW, OTHER = map(Schema.of, ("a INT", "a BIGINT", "b STRING"))
SCHEMAS = (OLD, NEW, OTHER)
PATIENCE = 20.0


class Table:
    """A table as its caches read it, and the announcements beside it; both move when told."""

    datasources = None
    living = 0
    figures = FollowerFigures()

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self.store = self
        self.table_id = "t"
        self.version = 0
        self.rows: dict[str, Schema | None] = {}
        self.announced: dict[str, Announced] = {}
        self.polls = 0
        self.pauses: list[float] = []
        self.on_poll: Callable[[], None] = lambda: None

    def publish(self, segment_id: str = "orders/1", schema: Schema | None = OLD) -> int:
        self.rows = {**self.rows, segment_id: schema}
        self.version += 1
        return self.version

    def cache(self, load: bool = True) -> Cache:
        it: Any = self
        return self.loaded(Cache(it, it, self.pause), load)

    def live(self, **parts: Any) -> LiveCache:
        it: Any = self
        given = {"overlay": Overlay(10), "follower": it, "pause": self.pause, **parts}
        return self.loaded(LiveCache(it, it, **given))

    def loaded(self, cache: Any, load: bool = True) -> Any:
        if load:
            cache.reload()
        return cache

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.clock.sleep(seconds)

    # --- what a cache reads -----------------------------------------------------------------------

    def head(self) -> TableHead:
        self.polls += 1
        self.on_poll()
        return TableHead(self.version, f"{self.table_id} {self.version}")

    def follow(self, before: Snapshot, head: TableHead) -> None:
        return None  # so that everything is loaded

    def load(self) -> Snapshot:
        version, rows = self.version, self.rows
        k1, k2 = keys_of(pa.array(list(rows), pa.string()))
        names = [schema and schema.fingerprint for schema in rows.values()]
        segments = pa.table(
            {
                "k1": k1,
                "k2": k2,
                "fingerprint": pa.array(names, pa.string()),
                "num_rows": pa.array([1] * len(rows), pa.int64()),
                "datasource": pa.array(["orders"] * len(rows), pa.string()),
            }
        )
        schemas = pa.table(
            {
                "kind": ["schema"] * len(SCHEMAS),
                "key": [schema.fingerprint for schema in SCHEMAS],
                "payload": [schema.payload for schema in SCHEMAS],
                "published_micros": pa.array(range(len(SCHEMAS)), pa.int64()),
            }
        )
        return build(
            Position(self.table_id, version, f"{self.table_id} {version}"), segments, schemas
        )

    def refresh(self) -> dict[str, Announced]:
        return dict(self.announced)


class CountedTurn:
    """A lock that knows when so many have come to it."""

    def __init__(self, many: int) -> None:
        self._lock = threading.Lock()
        self._many = many
        self._come = 0
        self._changed = threading.Condition()

    def acquire(self, timeout: float = -1) -> bool:
        with self._changed:
            self._come += 1
            self._changed.notify_all()
        return self._lock.acquire(timeout=timeout)

    def release(self) -> None:
        self._lock.release()

    def wait(self) -> None:
        """Returns when all have come."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._come >= self._many, PATIENCE)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Table:
    """A table whose clock is that of deadlines, too: nobody sleeps."""
    clock = Clock()
    monkeypatch.setattr(waiting, "time", clock)
    return Table(clock)


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(many: int, work: Callable[[], Any]) -> list[Any]:
    """What so many threads return or raise that do the same at once."""
    outcomes: list[Any] = []

    def run() -> None:
        try:
            outcomes.append(work())
        except CatalogError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=run) for _ in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    return outcomes


def mismatches(cache: Cache) -> tuple[int, int, int]:
    figures = cache.metrics()
    return figures.mismatches, figures.mismatch_retries, figures.mismatches_remained


# --- a version -----------------------------------------------------------------------------------


def test_a_version_that_is_reached_costs_no_poll(table: Table) -> None:
    table.publish()
    cache = table.cache()
    table.publish()
    assert (cache.wait_for(1), cache.wait_for(0)) == (1, 1)
    assert (table.polls, table.pauses) == (0, [])


def test_a_version_that_somebody_published_is_reached_by_one_poll(table: Table) -> None:
    cache = table.cache()
    table.publish()
    table.publish("orders/2")
    assert cache.wait_for(1) == cache.version == 2
    assert (table.polls, table.pauses) == (1, [])


def test_a_cache_that_is_not_loaded_is_loaded(table: Table) -> None:
    table.publish()
    cache = table.cache(load=False)
    assert not cache.loaded
    assert cache.wait_for(0) == 1
    assert cache.loaded


def test_whoever_waits_looks_less_and_less_often_until_the_version_comes(table: Table) -> None:
    cache = table.cache()

    def comes_with_the_eighth() -> None:
        if table.polls == 8:
            table.publish()

    table.on_poll = comes_with_the_eighth
    assert cache.wait_for(1) == 1
    assert table.pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0])


def test_a_version_that_never_comes_is_given_up_when_the_time_is_over(table: Table) -> None:
    table.publish()
    cache = table.cache()
    with pytest.raises(GaveUp, match=r"10\.0 s for version 5: the newest .* is 1\.") as caught:
        cache.wait_for(5, timeout=10)
    assert sum(table.pauses) == pytest.approx(10)
    assert table.polls == len(table.pauses) + 1  # it looks once more in the end
    assert caught.value.retryable
    values = caught.value.values
    assert (values["version"], values["reached"]) == (5, 1)
    assert values["waited"] == pytest.approx(10)


def test_another_table_at_the_same_place_is_waited_for_from_its_beginning(table: Table) -> None:
    for _ in range(5):
        table.publish()
    cache = table.cache()
    table.table_id, table.version = "other", 2
    with pytest.raises(GaveUp, match="the newest version of the table is 2"):
        cache.wait_for(6, timeout=1)
    assert cache.version == 2


@pytest.mark.parametrize("version", [-1, True, None, 1.0, "1", b"1"])
def test_what_is_not_a_version_is_refused_before_any_poll(table: Table, version: Any) -> None:
    cache, caches = table.cache(load=False), Caches()
    for ask in (cache.wait_for, caches.wait_for):
        with pytest.raises(InvalidInput, match="whole number from zero on") as caught:
            ask(version)
        assert caught.value.values == {"version": version}
    assert table.polls == 0


@pytest.mark.parametrize("timeout", [0, -1, math.nan, -math.inf, True, None, "60"])
def test_what_is_not_a_time_above_zero_is_refused(table: Table, timeout: Any) -> None:
    cache, caches = table.cache(load=False), Caches()
    for ask in (cache.wait_for, caches.wait_for):
        with pytest.raises(InvalidInput, match="timeout must be a number of seconds above zero"):
            ask(0, timeout=timeout)
    assert table.polls == 0


def test_one_may_wait_for_ever(table: Table) -> None:
    cache = table.cache()
    table.publish()
    assert cache.wait_for(1, timeout=math.inf) == 1


def test_a_poll_that_fails_raises_its_own_error(table: Table) -> None:
    cache = table.cache()

    def fails() -> None:
        raise OSError("the storage is away")

    table.on_poll = fails
    with pytest.raises(OSError, match="is away"):
        cache.wait_for(1)
    table.on_poll = lambda: None
    table.publish()
    assert cache.wait_for(1, timeout=5) == 1  # it left its turn to the next


def test_a_poller_in_the_background_is_not_waited_for() -> None:
    table = Table()
    begun = threading.Event()
    table.on_poll = begun.set
    with table.cache().start(every=3600) as cache:
        assert begun.wait(PATIENCE)
        table.publish()
        assert cache.wait_for(table.publish()) == 2


def test_readers_that_wait_together_share_a_poll() -> None:
    table = Table()
    cache: Any = table.cache()
    cache._turn = turn = CountedTurn(8)
    table.on_poll = turn.wait
    table.publish()
    assert together(8, lambda: cache.wait_for(1)) == [1] * 8
    assert table.polls == 1


def test_a_reader_is_not_held_up_by_a_poll_of_another_that_hangs() -> None:
    table = Table()
    cache = table.cache()
    hangs, go_on = threading.Event(), threading.Event()

    def hang() -> None:
        hangs.set()
        assert go_on.wait(PATIENCE)

    table.on_poll = hang
    first = threading.Thread(target=cache.wait_for, args=(1,))
    table.publish()
    first.start()
    assert hangs.wait(PATIENCE)
    with pytest.raises(GaveUp, match="another reader's poll has not ended") as caught:
        cache.wait_for(1, timeout=0.01)
    assert caught.value.values["reached"] == 0
    go_on.set()
    first.join(PATIENCE)
    assert cache.wait_for(1) == 1


# --- all caches of a catalog ---------------------------------------------------------------------


def test_all_caches_that_are_loaded_are_waited_for(table: Table) -> None:
    caches = Caches()
    held = [table.cache(), table.live(), table.cache(load=False)]
    for cache in held:
        caches.add(cache)
    caches.wait_for(table.publish())
    assert [cache.loaded and cache.version for cache in held] == [1, 1, False]


def test_a_commit_that_a_cache_does_not_reach_has_happened_all_the_same(table: Table) -> None:
    caches, cache = Caches(), table.cache()
    caches.add(cache)
    caches.follow(table.publish(), "the result")
    assert cache.version == 1
    with pytest.raises(CacheBehind, match="It is done, at version 2") as caught:
        caches.follow(2, "the result", timeout=1)
    assert caught.value.values == {"version": 2, "result": "the result"}
    assert (caught.value.retryable, type(caught.value.__cause__)) == (True, GaveUp)

    def fail() -> None:
        raise Unreadable("The table is gone.")

    table.on_poll = fail
    with pytest.raises(CacheBehind, match="has not reached that: The table is gone"):
        caches.follow(2, "the result")


def test_caches_that_are_waited_for_share_the_time(table: Table) -> None:
    """Each needs 3.1 s: with the sixth poll of it the version comes."""

    def wait(timeout: float) -> None:
        caches, held = Caches(), []
        for each in (Table(table.clock), Table(table.clock)):
            each.on_poll = lambda each=each: each.publish() if each.polls == 6 else None
            held.append(each.cache())
            caches.add(held[-1])
        caches.wait_for(1, timeout)
        assert [cache.version for cache in held] == [1, 1]

    wait(6.3)
    with pytest.raises(GaveUp, match=r"4\.0 s for version 1"):
        wait(4)


# --- a schema ------------------------------------------------------------------------------------

ASKS: tuple[Callable[..., Any], ...] = (
    lambda cache, **more: cache.schema_of("orders/1", **more).fingerprint,
    lambda cache, **more: cache.fingerprint_of("orders/1", **more),
)
each_ask = pytest.mark.parametrize("ask", ASKS, ids=["schema_of", "fingerprint_of"])
each_kind = pytest.mark.parametrize("kind", [Table.cache, Table.live], ids=["cache", "live"])


@each_ask
@each_kind
@pytest.mark.parametrize("expect", [OLD, OLD.fingerprint, OLD.fingerprint.upper()])
def test_an_answer_as_expected_costs_no_poll(
    table: Table, ask: Callable[..., Any], kind: Callable[..., Any], expect: Any
) -> None:
    table.publish()
    cache = kind(table)
    table.publish(schema=NEW)
    assert ask(cache, expect=expect) == ask(cache) == OLD.fingerprint
    assert (table.polls, mismatches(cache)) == (0, (0, 0, 0))


@each_ask
@each_kind
@pytest.mark.parametrize("before", [{"orders/1": OLD}, {"orders/1": None}, {}])
def test_a_cache_that_is_behind_polls_and_answers_as_expected(
    table: Table, ask: Callable[..., Any], kind: Callable[..., Any], before: dict[str, Any]
) -> None:
    table.rows = dict(before)
    cache = kind(table)
    table.publish(schema=NEW)
    assert ask(cache, expect=NEW) == NEW.fingerprint
    assert (table.polls, table.pauses, mismatches(cache)) == (1, [], (1, 1, 0))
    assert ask(cache, expect=NEW) == NEW.fingerprint
    assert mismatches(cache) == (1, 1, 0)


def test_what_comes_with_the_last_poll_is_still_an_answer(table: Table) -> None:
    table.publish()
    cache = table.cache()
    table.on_poll = lambda: table.publish(schema=NEW if table.polls == TRIES else OTHER) and None
    assert cache.schema_of("orders/1", expect=NEW) == NEW
    assert table.pauses == [APART] * (TRIES - 1) == [0.1, 0.1]
    assert mismatches(cache) == (1, 3, 0)


@each_ask
@each_kind
@pytest.mark.parametrize(
    ("rows", "found", "says"),
    [
        ({"orders/1": OTHER}, OTHER.fingerprint, f"has schema {OTHER.fingerprint} at version 4"),
        ({"orders/1": None}, None, "is published without a schema (version 4)"),
        ({}, None, "is not in the snapshot of version 4"),
    ],
)
def test_a_mismatch_that_remains_says_what_was_expected_and_found_at_which_version(
    table: Table,
    ask: Callable[..., Any],
    kind: Callable[..., Any],
    rows: dict[str, Any],
    found: str | None,
    says: str,
) -> None:
    table.publish()
    cache = kind(table)
    table.rows, table.version = dict(rows), 4
    with pytest.raises(SchemaVersionMismatch) as caught:
        ask(cache, expect=NEW)
    error = pickle.loads(pickle.dumps(caught.value))
    assert f"Segment orders/1 {says}. Schema {NEW.fingerprint} was expected; 3 polls" in str(error)
    assert error.values == {
        "segment_id": "orders/1",
        "expected": NEW.fingerprint,
        "found": found,
        "version": 4,
    }
    assert error.retryable
    assert isinstance(caught.value.__cause__, NotInSnapshot) == (found is None)
    assert (table.polls, table.pauses) == (3, [0.1, 0.1])
    assert mismatches(cache) == (1, 3, 1)


@each_ask
@each_kind
@pytest.mark.parametrize(
    "expect",
    ["", OLD.fingerprint[:8], OLD.fingerprint + "0", "x" * 32, "a INT", 7, True, b"0" * 32, [OLD]],
)
def test_only_a_whole_fingerprint_or_a_schema_can_be_expected(
    table: Table, ask: Callable[..., Any], kind: Callable[..., Any], expect: Any
) -> None:
    cache = kind(table)
    with pytest.raises(InvalidInput, match="expect takes a whole fingerprint") as caught:
        ask(cache, expect=expect)
    assert caught.value.values == {"expect": expect}
    assert (table.polls, mismatches(cache)) == (0, (0, 0, 0))


def test_what_is_no_question_is_not_asked_again(table: Table) -> None:
    with pytest.raises(NotLoaded):
        table.cache(load=False).schema_of("orders/1", expect=OLD)
    cache = table.cache()
    wrong: Any = 7
    with pytest.raises(InvalidInput, match="A segment id is a string"):
        cache.schema_of(wrong, expect=OLD)
    assert (table.polls, mismatches(cache)) == (0, (0, 0, 0))


def test_a_poll_that_fails_while_a_schema_is_expected_raises_its_own_error(table: Table) -> None:
    cache = table.cache()

    def fails() -> None:
        raise OSError("the storage is away")

    table.on_poll = fails
    with pytest.raises(OSError, match="is away"):
        cache.schema_of("orders/1", expect=OLD)
    assert mismatches(cache) == (1, 1, 0)


def test_readers_with_one_expectation_share_a_poll_and_are_all_counted() -> None:
    table = Table()
    cache: Any = table.cache()
    cache._turn = turn = CountedTurn(8)
    table.on_poll = turn.wait
    table.publish(schema=NEW)
    assert together(8, lambda: cache.schema_of("orders/1", expect=NEW)) == [NEW] * 8
    assert (table.polls, mismatches(cache)) == (1, (8, 8, 0))


def test_found_and_version_of_a_mismatch_are_of_one_snapshot_while_polls_go_on(
    table: Table,
) -> None:
    """The schema is OLD at even versions and NEW at odd ones; a poll follows each answer."""
    table.rows = {"orders/1": OLD}
    cache = table.cache()

    class Overtaken(Snapshot):
        def schema_of(self, segment_id: str) -> Schema:
            answer = super().schema_of(segment_id)
            table.publish(schema=OLD if table.version % 2 else NEW)
            cache.poll()
            return answer

    load = table.load
    table.load = lambda: Overtaken(**vars(load()))  # type: ignore[method-assign]
    cache.reload()
    with pytest.raises(SchemaVersionMismatch) as caught:
        cache.schema_of("orders/1", expect=OTHER)
    values = caught.value.values
    assert (values["version"], values["found"]) == (3, NEW.fingerprint)
    assert (cache.version, mismatches(cache)) == (4, (1, 3, 1))


def test_counts_from_many_threads_are_all_there(switching: None) -> None:
    counters = CacheCounters()
    together(4, lambda: [counters.add(misses=1, mismatches=2) for _ in range(3000)])
    assert counters.read() == {"misses": 12_000, "mismatches": 24_000}


# --- beside the snapshot -------------------------------------------------------------------------


def test_a_live_cache_finds_what_is_expected_among_announcements(table: Table) -> None:
    cache = table.live()
    table.announced = {"orders/1": Announced(OLD)}
    assert cache.schema_of("orders/1", expect=OLD) == OLD
    assert (table.polls, cache.place("orders/1")) == (1, "realtime")
    table.announced = {"orders/1": Announced(NEW)}
    assert cache.fingerprint_of("orders/1", expect=NEW) == NEW.fingerprint
    table.publish(schema=OTHER)
    table.announced = {}
    assert cache.schema_of("orders/1", expect=OTHER) == OTHER
    assert (cache.place("orders/1"), mismatches(cache)) == ("published", (3, 3, 0))


def test_what_the_data_says_is_as_good_as_what_is_published(table: Table) -> None:
    ground = Ground()
    ground.storing.clear()  # it stays pending
    table.publish(schema=None)
    cache = table.live(overlay=ground.overlay, resolver=ground.resolver, writer=ground.writer)
    assert cache.schema_of("orders/1", expect=OLD) == OLD
    assert (table.polls, len(ground.reads)) == (0, 1)
    with pytest.raises(SchemaVersionMismatch) as caught:
        cache.schema_of("orders/1", expect=NEW)
    assert caught.value.values["found"] == OLD.fingerprint
    assert (table.polls, len(ground.reads)) == (3, 1)
    table.publish(schema=NEW)  # by somebody else, over what the data said
    assert cache.schema_of("orders/1", expect=NEW) == NEW
    ground.storing.set()
    cache.stop()


def test_data_that_does_not_say_its_schema_is_a_mismatch_with_the_reason(table: Table) -> None:
    ground = Ground()
    ground.broken = {"/1.parquet": "it is empty"}
    table.publish(schema=None)
    cache = table.live(overlay=ground.overlay, resolver=ground.resolver, writer=ground.writer)
    with pytest.raises(SchemaVersionMismatch, match="no readable one: it is") as caught:
        cache.schema_of("orders/1", expect=OLD)
    assert isinstance(caught.value.__cause__, Unreadable)
    assert (caught.value.values["found"], len(ground.reads)) == (None, 1)
    with pytest.raises(Unreadable):
        cache.schema_of("orders/1")
    assert cache.fingerprint_of("orders/1") is None


# --- a handle ------------------------------------------------------------------------------------


@each_ask
def test_a_handle_compares_once_and_cannot_poll(table: Table, ask: Callable[..., Any]) -> None:
    version = table.publish()
    cache = table.cache()
    handle = pickle.loads(pickle.dumps(Handle(version, cache.snapshot)))
    table.publish(schema=NEW)
    assert ask(handle, expect=OLD) == ask(handle) == OLD.fingerprint
    with pytest.raises(SchemaVersionMismatch, match="make a new handle") as caught:
        ask(handle, expect=NEW)
    values = caught.value.values
    assert (values["found"], values["version"]) == (OLD.fingerprint, 1)
    with pytest.raises(SchemaVersionMismatch, match="not in the snapshot"):
        handle.schema_of("orders/2", expect=NEW)
    with pytest.raises(InvalidInput):
        ask(handle, expect="abcd")
    assert (table.polls, table.pauses) == (0, [])


# --- figures -------------------------------------------------------------------------------------


def test_mismatches_are_told_to_monitoring(table: Table, tmp_path: Path) -> None:
    assert table.cache(load=False).metrics() == CacheMetrics()
    table.publish()
    for cache in (table.cache(), table.live()):
        with pytest.raises(SchemaVersionMismatch):
            cache.schema_of("orders/1", expect=NEW)
        cache.write_metrics(tmp_path / "cache.prom", job="unit")
        lines = (tmp_path / "cache.prom").read_text().splitlines()
        figures = [line for line in lines if line.startswith("strata_cache_mismatch")]
        assert figures == [
            'strata_cache_mismatches{job="unit"} 1.0',
            'strata_cache_mismatch_retries{job="unit"} 3.0',
            'strata_cache_mismatches_remained{job="unit"} 1.0',
        ]
