"""A cache over a table that moves on, with a real resolver and writer, and no session."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from catalog.backfill.completer import Completed, Storer
from catalog.backfill.model import Completion
from catalog.cache.live import LiveCache
from catalog.cache.snapshot import Snapshot
from catalog.delta.store import TableHead
from catalog.errors import CommitFailed, Unreadable
from tests.unit.cache.test_overlay import snapshot
from tests.unit.cache.test_resolver import FOUND, Ground


class Loader:
    """The table as a test describes it; the loader of a cache, and its store."""

    datasources = None

    def __init__(self, rows: dict[str, str | None]) -> None:
        self.rows = rows
        self.version = 1
        self.store = self

    def head(self) -> TableHead:
        return TableHead(self.version, str(self.version))

    def load(self) -> Snapshot:
        return snapshot(self.version, self.rows)

    def follow(self, before: Snapshot, head: TableHead) -> None:
        return None  # so that everything is loaded

    def change(self, rows: dict[str, str | None]) -> None:
        self.rows = rows
        self.version += 1


def live(ground: Ground, rows: dict[str, str | None]) -> tuple[LiveCache, Loader]:
    """A loaded cache over these segments, each with its fingerprint or none."""
    loader: Any = Loader(rows)
    cache = LiveCache(
        loader, loader, ground.overlay, resolver=ground.resolver, writer=ground.writer
    )
    cache.reload()
    return cache, loader


def test_answers_without_room_are_given_also_if_others_were_completed_meanwhile() -> None:
    ground = Ground(most=1)
    ground.storing.clear()
    names = ["orders/1", "orders/2", "orders/3", "orders/4"]
    cache, loader = live(ground, dict.fromkeys(names))
    # One is completed and one is dropped before they are looked up.
    known = FOUND.schema.fingerprint
    del ground.waiting["orders/3"], ground.waiting["orders/4"]
    loader.change({"orders/1": None, "orders/2": None, "orders/3": known})
    answers = cache.lookup(names)
    assert answers["fingerprint"].to_pylist() == [known, known, known, None]
    assert answers["found"].to_pylist() == [True, True, True, False]
    assert cache.metrics().resolver_refused == 1
    ground.storing.set()


def test_an_answer_for_a_segment_that_a_poll_finds_dropped_is_not_given() -> None:
    ground = Ground(most=1)
    ground.storing.clear()
    names = ["orders/1", "orders/2", "orders/3"]
    cache, loader = live(ground, dict.fromkeys(names))
    del ground.waiting["orders/3"]
    ground.before_read = lambda: loader.change({"orders/1": None})
    assert cache.lookup(names)["found"].to_pylist() == [True, False, False]
    ground.storing.set()


def test_a_segment_in_quarantine_counts_once_and_only_until_its_pause_is_over() -> None:
    ground = Ground()
    ground.broken["/2.parquet"] = "truncated"
    cache, loader = live(ground, dict.fromkeys(["orders/1", "orders/2"]))

    def commit(completions: Sequence[Completion]) -> Completed:
        if any(each.trouble is None for each in completions):
            raise CommitFailed("refused")
        (only,) = completions
        ground.trouble, ground.seen = only.trouble, "c2"  # as the row says from now on
        loader.change(loader.rows)
        return Completed(loader.version, frozenset({only.segment.id}))

    ground.writer._storer = Storer(commit, lambda: ground.now)
    assert cache.schema_of("orders/1") == FOUND.schema
    assert cache.flush() == 0
    assert cache.metrics().quarantined == 1
    cache.poll()
    with pytest.raises(Unreadable, match="refused"):
        cache.schema_of("orders/1")
    assert cache.metrics().quarantined == 1
    ground.trouble = None
    with pytest.raises(Unreadable, match="truncated"):
        cache.schema_of("orders/2")
    assert cache.metrics().quarantined == 2
    ground.now += timedelta(minutes=6)
    assert cache.metrics().quarantined == 0
