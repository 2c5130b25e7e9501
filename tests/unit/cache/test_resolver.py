"""Schemas found when somebody asks: shared by who waits, kept until stored, given up in the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from catalog.backfill.completer import Completed, Storer, Tally
from catalog.backfill.model import Completion, Trouble, Waiting
from catalog.cache.overlay import Overlay, OverlayEntry, PlaceName, Quarantine
from catalog.cache.resolver import BackgroundWriter, Resolver
from catalog.errors import CommitFailed, GaveUp, LoadInterrupted
from catalog.files.footer import Footer
from catalog.files.paths import Place
from catalog.model import Segment
from catalog.schema import Schema
from tests.unit.cache.test_overlay import snapshot

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
SCHEMA = Schema.of("a INT")
FOUND = OverlayEntry(SCHEMA, 3)
PATIENCE = 10.0


class Ground:
    """Overlay with a writer and a resolver over files and a table that a test describes."""

    def __init__(self, most: int = 100, linger: float = 0.0) -> None:
        self.now = NOON
        self.waiting = {f"orders/{n}": f"/{n}.parquet" for n in range(10)}
        self.broken: dict[str, str] = {}
        self.seen = "c1"
        self.trouble: Trouble | None = None
        self.reads: list[str] = []
        self.stored: list[list[str]] = []
        self.fail: list[Exception] = []
        self.claimed: set[str] = set()
        self.before_read: Callable[[], None] = lambda: None
        self.storing = threading.Event()
        self.storing.set()
        self.searched = 0
        self.overlay = Overlay(most, self.at)
        storer = Storer(self.commit, lambda: self.now)
        quarantine = Quarantine(lambda: self.now)
        self.writer = BackgroundWriter(
            self.overlay, storer, quarantine, 5, linger, pause=lambda failed: 0.01
        )
        self.resolver = Resolver(
            self.overlay, self.writer, quarantine, self.search, self.describe, lambda: self.now
        )

    def at(self, point: str) -> None:
        self.searched += point == "overlay.backfilled"  # the last place of a search

    def search(self, names: Sequence[str]) -> list[Waiting]:
        there = [name for name in names if name in self.waiting]
        return [
            Waiting(Segment(n, location=self.waiting[n]), self.seen, self.trouble) for n in there
        ]

    def describe(self, places: Sequence[Place]) -> list[Footer | str]:
        self.before_read()
        self.reads += [place.path for place in places]
        return [self.broken.get(place.path) or Footer(SCHEMA, 3, 9) for place in places]

    def commit(self, completions: Sequence[Completion]) -> Completed:
        assert self.storing.wait(PATIENCE)
        if self.fail:
            raise self.fail.pop(0)
        names = [each.segment.id for each in completions]
        claimed = frozenset(self.claimed.intersection(names))
        self.stored.append([name for name in names if name not in claimed])
        return Completed(7, frozenset(names) - claimed, claimed=claimed)


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_an_answer_is_pending_at_once_then_backfilled() -> None:
    ground = Ground()
    ground.storing.clear()
    assert ground.resolver.resolve(["orders/1"]) == {"orders/1": FOUND}
    assert ground.overlay.find("orders/1") == (PlaceName.PENDING, FOUND)
    ground.storing.set()
    until(lambda: ground.overlay.find("orders/1") == (PlaceName.BACKFILLED, FOUND))
    assert ground.stored == [["orders/1"]]


def test_callers_that_wait_for_one_segment_share_one_reading() -> None:
    ground = Ground()
    begun, go = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        assert go.wait(PATIENCE)

    ground.before_read = hold
    answers: list[object] = []
    threads = [
        threading.Thread(target=lambda: answers.append(ground.resolver.resolve(["orders/1"])))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    assert begun.wait(PATIENCE)
    until(lambda: ground.searched == 8)
    go.set()
    for thread in threads:
        thread.join()
    assert answers == [{"orders/1": FOUND}] * 8
    assert ground.reads == ["/1.parquet"]


def test_what_is_on_its_way_is_not_read_again() -> None:
    ground = Ground()
    ground.resolver.resolve(["orders/1"])
    ground.writer.flush(PATIENCE)
    assert ground.resolver.resolve(["orders/1", "orders/2"]) == dict.fromkeys(
        ["orders/1", "orders/2"], FOUND
    )
    assert ground.reads == ["/1.parquet", "/2.parquet"]


def test_a_segment_that_no_longer_waits_has_no_answer_here() -> None:
    ground = Ground()
    assert ground.resolver.resolve(["gone/1"]) == {"gone/1": None}
    assert ground.reads == []


def test_a_broken_file_is_read_again_only_after_a_pause_that_grows() -> None:
    ground = Ground()
    ground.broken["/1.parquet"] = "truncated"
    first = ground.resolver.resolve(["orders/1"])["orders/1"]
    assert isinstance(first, Trouble)
    assert (first.reason, first.attempts) == ("truncated", 1)
    assert ground.resolver.resolve(["orders/1"])["orders/1"] is first
    assert ground.reads == ["/1.parquet"]
    ground.now = first.retry_at
    assert ground.resolver.resting == set()  # its pause is over
    second = ground.resolver.resolve(["orders/1"])["orders/1"]
    assert isinstance(second, Trouble)
    assert (second.attempts, second.retry_at - ground.now) == (2, timedelta(minutes=10))
    ground.now = second.retry_at
    ground.broken.clear()
    assert ground.resolver.resolve(["orders/1"]) == {"orders/1": FOUND}
    counts = ground.resolver.counters.read()
    assert (counts["resolved"], counts["resolver_failures"]) == (1, 2)
    assert ground.resolver.resting == set()


def test_the_failure_of_a_reading_is_shared_and_the_next_caller_tries_again() -> None:
    ground = Ground()

    def fail() -> None:
        raise OSError("no such host")

    ground.before_read = fail
    with pytest.raises(OSError, match="no such host"):
        ground.resolver.resolve(["orders/1"])
    ground.before_read = lambda: None
    assert ground.resolver.resolve(["orders/1"]) == {"orders/1": FOUND}


def test_who_waits_is_not_interrupted_with_the_one_who_reads() -> None:
    ground = Ground()
    begun, go = threading.Event(), threading.Event()

    def interrupt() -> None:
        begun.set()
        assert go.wait(PATIENCE)
        raise KeyboardInterrupt

    ground.before_read = interrupt
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            ground.resolver.resolve(["orders/1"])
        except BaseException as error:
            errors.append(error)

    reading = threading.Thread(target=ask)
    reading.start()
    assert begun.wait(PATIENCE)
    waiting = threading.Thread(target=ask)
    waiting.start()
    until(lambda: ground.searched == 2)
    go.set()
    for thread in (reading, waiting):
        thread.join()
    assert sorted(map(type, errors), key=str) == sorted(
        [KeyboardInterrupt, LoadInterrupted], key=str
    )


def test_a_failed_commit_leaves_the_answer_pending_and_is_tried_again() -> None:
    ground = Ground()
    ground.fail = [GaveUp("busy"), GaveUp("busy")]
    ground.resolver.resolve(["orders/1"])
    assert ground.writer.flush(PATIENCE) == 0
    assert ground.overlay.find("orders/1") == (PlaceName.BACKFILLED, FOUND)
    assert ground.writer.counters.read() == {"store_failures": 2, "stored": 1}


def test_what_can_never_be_stored_is_given_up_alone() -> None:
    ground = Ground(linger=0.2)
    refused = {"orders/3"}

    def commit(completions: Sequence[Completion]) -> Completed:
        names = {each.segment.id for each in completions}
        if names & refused and any(each.trouble is None for each in completions):
            raise CommitFailed("refused")
        return Completed(7, frozenset(names))

    ground.writer._storer = Storer(commit, lambda: NOON)
    names = [f"orders/{n}" for n in range(5)]
    ground.resolver.resolve(names)
    assert ground.writer.flush(PATIENCE) == 0
    placed = [ground.overlay.find(name) for name in names]
    assert [None if p is None else p[0] for p in placed] == [
        PlaceName.BACKFILLED,
        PlaceName.BACKFILLED,
        PlaceName.BACKFILLED,
        None,
        PlaceName.BACKFILLED,
    ]
    assert ground.resolver.resting == refused


def test_poison_that_others_replaced_meanwhile_does_not_stay_pending() -> None:
    ground = Ground()

    def commit(completions: Sequence[Completion]) -> Completed:
        if any(each.trouble is None for each in completions):
            raise CommitFailed("refused")
        return Completed(7, frozenset())  # the row is another by now

    ground.writer._storer = Storer(commit, lambda: NOON)
    ground.resolver.resolve(["orders/1"])
    assert ground.writer.flush(PATIENCE) == 0
    assert ground.overlay.sizes()[PlaceName.PENDING] == 0


def test_what_an_operation_claims_stays_pending_and_is_stored_when_it_is_over() -> None:
    ground = Ground(linger=0.2)
    names = [f"orders/{n}" for n in range(9)]
    ground.claimed = set(names[:6])  # more than a batch, and the oldest
    ground.resolver.resolve(names)
    assert ground.writer.flush(PATIENCE) == 6  # and does not wait for them
    assert [name for each in ground.stored for name in each] == names[6:]
    assert ground.overlay.find("orders/1") == (PlaceName.PENDING, FOUND)
    assert ground.overlay.find("orders/7") == (PlaceName.BACKFILLED, FOUND)
    tries = len(ground.stored)
    ground.resolver.resolve(["orders/9"])  # others do not wait either
    until(lambda: ground.stored[-1] == ["orders/9"])
    assert len(ground.stored) == tries + 1
    ground.claimed.clear()
    ground.writer.polled()
    until(lambda: ground.overlay.sizes()[PlaceName.PENDING] == 0)
    assert ground.reads.count("/1.parquet") == 1
    assert "store_failures" not in ground.writer.counters.read()


def test_a_claim_that_ends_while_it_is_met_is_not_believed() -> None:
    ground = Ground()
    ground.claimed = {"orders/1"}
    ground.storing.clear()
    ground.resolver.resolve(["orders/1"])
    whole = ground.writer._storer

    class Slow(Storer):
        def store(self, completions: Sequence[Completion]) -> Tally:
            tally = whole.store(completions)
            if ground.claimed:
                ground.claimed.clear()
                ground.writer.polled()  # the operation is over, and a poll has seen it
            return tally

    ground.writer._storer = Slow(ground.commit, lambda: NOON)
    ground.storing.set()
    until(lambda: ground.overlay.find("orders/1") == (PlaceName.BACKFILLED, FOUND))


def test_trouble_is_forgotten_with_its_segment_and_doubted_after_a_poll() -> None:
    ground = Ground()
    ground.broken = {"/1.parquet": "truncated", "/2.parquet": "truncated"}
    ground.resolver.resolve(["orders/1", "orders/2", "orders/3"])
    assert ground.resolver.resting == {"orders/1", "orders/2"}
    ground.resolver.polled(snapshot(2, {"orders/2": None}))
    assert ground.resolver.resting == {"orders/2"}
    # Its row is looked at again: as it has not changed, its file is not.
    first = ground.resolver.resolve(["orders/2"])["orders/2"]
    assert isinstance(first, Trouble)
    assert ground.reads.count("/2.parquet") == 1
    # Published anew in between, at a good place.
    ground.resolver.polled(snapshot(3, {"orders/2": None}))
    ground.waiting["orders/2"], ground.seen = "/new.parquet", "c2"
    assert ground.resolver.resolve(["orders/2"]) == {"orders/2": FOUND}


def test_what_is_in_quarantine_in_the_table_is_not_read() -> None:
    ground = Ground()
    ground.trouble = Trouble("broken", 3, NOON, NOON + timedelta(hours=1))
    assert ground.resolver.resolve(["orders/1"]) == {"orders/1": ground.trouble}
    assert ground.reads == []
    ground.now += timedelta(hours=2)
    assert ground.resolver.resolve(["orders/1"]) == {"orders/1": FOUND}


def test_an_interrupt_at_any_point_leaves_nobody_waiting() -> None:
    ground = Ground()
    for point in ("search", "describe"):
        whole = getattr(ground, point)

        def interrupt(asked: Any) -> Any:
            raise KeyboardInterrupt

        setattr(ground.resolver, f"_{point}", interrupt)
        with pytest.raises(KeyboardInterrupt):
            ground.resolver.resolve(["orders/1"])
        setattr(ground.resolver, f"_{point}", whole)
        assert "orders/1" not in ground.resolver._flight
    assert ground.resolver.resolve(["orders/1"]) == {"orders/1": FOUND}


def test_a_writer_that_was_stopped_can_be_started_again() -> None:
    ground = Ground()
    assert ground.writer.stop(PATIENCE) == 0
    ground.resolver.resolve(["orders/1"])
    assert ground.overlay.sizes()[PlaceName.PENDING] == 1
    ground.writer.start()
    assert ground.writer.flush(PATIENCE) == 0
    assert ground.stored == [["orders/1"]]


def test_a_thread_that_cannot_start_is_an_error_and_the_next_one_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ground = Ground()

    def fail(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fail)
        with pytest.raises(RuntimeError, match="can't start"):
            ground.resolver.resolve(["orders/1"])
    assert ground.writer.flush(PATIENCE) == 0
    assert ground.stored == [["orders/1"]]


def test_batches_are_bounded_and_oldest_first() -> None:
    ground = Ground(linger=5.0)
    for n in range(8):
        ground.resolver.resolve([f"orders/{n}"])
    assert ground.writer.flush(PATIENCE) == 0  # does not wait for more to come
    assert ground.stored == [[f"orders/{n}" for n in range(5)], [f"orders/{n}" for n in (5, 6, 7)]]


def test_an_answer_without_room_is_given_but_not_kept() -> None:
    ground = Ground(most=2)
    ground.storing.clear()
    names = ["orders/1", "orders/2", "orders/3"]
    assert ground.resolver.resolve(names) == dict.fromkeys(names, FOUND)
    assert ground.overlay.sizes()[PlaceName.PENDING] == 2
    assert ground.resolver.counters.read()["resolver_refused"] == 1
    ground.storing.set()


def test_stopping_says_what_is_left_and_stores_no_more() -> None:
    ground = Ground()
    ground.storing.clear()
    ground.resolver.resolve(["orders/1"])
    assert ground.writer.stop(0.05) == 1
    ground.storing.set()
    until(lambda: ground.writer._thread is None)
    ground.resolver.resolve(["orders/2"])
    assert ground.writer.flush(0.05) == 1
    assert ground.stored == [["orders/1"]]  # what had begun is finished
