"""A random run of publishers, droppers, cleaners and pollers in threads of one JVM."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from catalog import Catalog, Settings
from catalog.errors import GaveUp, SegmentConflict
from tests.concurrency.gates import assert_promises
from tests.unit.builders import segment

SCHEMAS = [f"c{n} INT" for n in range(6)]


class Run:
    """What the threads did, and what must be true of it in the end."""

    def __init__(self, open_one: Callable[[], Catalog], seconds: float, seed: int) -> None:
        self._open = open_one
        self._until = time.monotonic() + seconds
        self._seed = seed
        self.published: set[str] = set()
        self.refused: set[str] = set()
        self.touched_by_drops: set[str] = set()
        self.polls = 0
        self.retries = 0
        self.errors: list[BaseException] = []
        self._mutex = threading.Lock()

    def go(self) -> None:
        roles = [self._publish, self._publish, self._publish, self._drop, self._clean, self._poll]
        threads = [
            threading.Thread(target=self._guarded, args=(role, random.Random(self._seed + n), n))
            for n, role in enumerate(roles)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _guarded(self, role: Callable[..., None], chance: random.Random, number: int) -> None:
        catalog = self._open()
        step = 0
        try:
            while time.monotonic() < self._until:
                role(catalog, chance, f"{number}-{step}")
                step += 1
        except BaseException as error:
            self.errors.append(error)

    def _publish(self, catalog: Catalog, chance: random.Random, name: str) -> None:
        batch = [
            segment(f"ds{chance.randrange(4)}/{name}-{n}", chance.choice(SCHEMAS))
            for n in range(chance.randint(1, 3))
        ]
        if chance.random() < 0.2:
            batch.append(segment("shared/1", rows=chance.randint(1, 2)))
        try:
            result = catalog.publish(batch, deadline=60)
        except SegmentConflict:
            self._note(self.refused, {s.id for s in batch} - {"shared/1"})
        except GaveUp:
            self._note(self.refused, {s.id for s in batch} - {"shared/1"})
        else:
            self._note(self.published, {s.id for s in batch})
            self.retries += result.retries

    def _drop(self, catalog: Catalog, chance: random.Random, name: str) -> None:
        with self._mutex:
            known = sorted(self.published)
        some = chance.sample(known, min(len(known), 4))
        self._note(self.touched_by_drops, set(some))
        if some:
            catalog.drop(some)
        time.sleep(0.2)

    def _clean(self, catalog: Catalog, chance: random.Random, name: str) -> None:
        catalog.cleanup(grace=timedelta(0))

    def _poll(self, catalog: Catalog, chance: random.Random, name: str) -> None:
        cache = getattr(self, "_cache", None)
        if cache is None:
            cache = self._cache = catalog.cache()
        before = cache.version
        cache.poll()
        assert cache.version >= before, "I5: the cache went back"
        loaded = cache._loader.load_at(cache.snapshot.position).content()
        assert cache.snapshot.content() == loaded, f"I6 at version {cache.version}"
        self.polls += 1

    def _note(self, where: set[str], ids: set[Any]) -> None:
        with self._mutex:
            where |= ids


def random_run(open_catalog: Callable[..., Catalog], seconds: float, seed: int) -> None:
    keeper = open_catalog()

    def open_one() -> Catalog:
        return open_catalog(settings=Settings(file_lock=False))

    run = Run(open_one, seconds, seed)
    run.go()
    assert run.errors == []
    there = {row["segment_id"] for row in keeper.segments().select("segment_id").collect()}
    lost = run.published - run.touched_by_drops - there
    assert lost == set(), "I7: acknowledged and lost"
    left = run.refused & there
    assert left == set(), "I7: refused and there"
    assert run.published
    assert run.polls
    assert_promises(keeper)
    print(
        f"{len(run.published)} segments published, {len(run.refused)} refused, "
        f"{run.retries} retries, {run.polls} polls, {keeper.version} versions"
    )


def test_a_random_run_keeps_every_promise(open_catalog: Callable[..., Catalog]) -> None:
    random_run(open_catalog, seconds=10, seed=1)


@pytest.mark.stress
@pytest.mark.parametrize("seed", range(5))
def test_long_random_runs_keep_every_promise(
    open_catalog: Callable[..., Catalog], seed: int
) -> None:
    random_run(open_catalog, seconds=180, seed=100 + seed)
