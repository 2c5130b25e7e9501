"""Many writers at once: threads that share commits, processes that share a disk."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from catalog import Segment
from catalog.delta.failures import Failure, classify
from tests.benchmarks import data
from tests.benchmarks.ground import Ground, TwoTables
from tests.benchmarks.measure import Timing
from tests.benchmarks.publishing import rows_of, split
from tests.benchmarks.report import Figure, at_least, spread

THREADS = 64
LOOPS = 8
PROCESSES = 4


class Crowd:
    """Threads that publish for a while; counts what came through and keeps what failed."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.failures: list[str] = []

    def run(self, publishers: list[Callable[[], object]], seconds: float) -> float:
        """Publishes a second, over the time until the last one had its answer."""
        began = time.perf_counter()
        threads = [
            threading.Thread(target=self._publish, args=(publish, began + seconds))
            for publish in publishers
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return len(self.seconds) / (time.perf_counter() - began)

    def _publish(self, publish: Callable[[], object], until: float) -> None:
        while time.perf_counter() < until:
            began = time.perf_counter()
            try:
                publish()
            except Exception as error:
                self.failures.append(f"{type(error).__name__}: {error}"[:200])
            else:
                self.seconds.append(time.perf_counter() - began)


def threads(ground: Ground) -> list[Figure]:
    """64 threads on one catalog, against 8 that retry by themselves on two tables."""
    catalog = ground.catalog("crowd")
    numbers = _shared(ground)

    def publish() -> None:
        number = numbers()
        schema = data.schema(number % ground.scale.schemas)
        catalog.publish([Segment(data.segment_id(number), schema, num_rows=1)])

    def loop() -> Callable[[], object]:
        # A session each: a temporary view of one must not be another's source.
        two = TwoTables(ground, like=tables)
        return lambda: _two_merges(two, numbers(), ground.scale.schemas)

    tables = TwoTables(ground)
    Crowd().run([publish], ground.scale.warm(5))
    ours = Crowd()
    rate = ours.run([publish] * THREADS, ground.scale.seconds)
    theirs = Crowd()
    Crowd().run([loop()], ground.scale.warm(5))
    their_rate = theirs.run([loop() for _ in range(LOOPS)], ground.scale.seconds)
    if ours.failures:
        raise AssertionError(f"{len(ours.failures)} publishes failed: {ours.failures[:3]}")
    report = catalog.verify()
    if not report.ok:
        raise AssertionError(report)
    return [
        Figure(
            f"{THREADS} threads publishing",
            rate / their_rate,
            at_least(15),
            f"{rate:.3g} a second, {spread(Timing(tuple(ours.seconds)))} each, no failure",
            f"{LOOPS} retry loops on two tables: {their_rate:.3g} a second, "
            f"{len(theirs.failures)} failures",
            {"ours": rate, "theirs": their_rate, "their_failures": theirs.failures[:5]},
        )
    ]


def _two_merges(two: TwoTables, number: int, schemas: int) -> None:
    """What people write: MERGE and MERGE, again after each conflict."""
    segment = Segment(data.segment_id(number), data.schema(number % schemas), num_rows=1)
    schema_rows, segment_rows = split(rows_of([segment]))
    for table, rows in ((two.schemas, schema_rows), (two.segments, segment_rows)):
        for attempt in range(100):
            try:
                table.merge(rows)
                break
            except Exception as error:
                if classify(error) is not Failure.CONFLICT:
                    raise
                time.sleep(random.uniform(0.05, min(2.0, 0.1 * 2**attempt)))
        else:
            raise TimeoutError("conflicts without end")


def _shared(ground: Ground) -> Callable[[], int]:
    lock = threading.Lock()

    def take() -> int:
        with lock:
            return next(ground.fresh)

    return take


def processes(ground: Ground) -> list[Figure]:
    """Four processes on one local catalog, against one of them alone, in turns."""
    catalog = ground.catalog("processes")
    location = str(catalog.location)
    judged = ground.scale.judged
    count, phases = (PROCESSES, 2) if judged else (2, 1)
    children = [_Child(location, number, ground.scale.name) for number in range(count)]
    seconds = ground.scale.seconds / 2
    alone: list[float] = []
    together: list[float] = []
    try:
        for child in children:
            child.hear()
        for _ in range(phases):
            alone.append(_phase(children[:1], seconds))
            together.append(_phase(children, seconds))
    finally:
        for child in children:
            child.end()
    report = catalog.verify(since=0)
    if not report.ok:
        raise AssertionError(report)
    ours, theirs = sum(together) / phases, sum(alone) / phases
    return [
        Figure(
            f"{count} processes on one local catalog",
            ours / theirs,
            at_least(0.8),
            f"{ours:.3g} a second, no failure",
            f"one process: {theirs:.3g} a second",
            {"together": together, "alone": alone},
        )
    ]


def _phase(children: list[_Child], seconds: float) -> float:
    """Publishes a second of these children."""
    for child in children:
        child.say(seconds)
    answers = [child.hear() for child in children]
    failures = [failure for answer in answers for failure in answer["failures"]]
    if failures:
        raise AssertionError(f"{len(failures)} publishes failed: {failures[:3]}")
    return float(sum(answer["published"] / answer["seconds"] for answer in answers))


class _Child:
    """A process with a Spark of its own that publishes when it is told to."""

    def __init__(self, location: str, number: int, scale: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.process", location, str(number), scale],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ,
        )

    def say(self, seconds: float) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(f"a publishing process ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
