"""Several processes on one local catalog; processes killed and interrupted in the middle."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from catalog import Catalog
from tests.concurrency.gates import assert_promises
from tests.sessions import ROOT

Open = Callable[..., Catalog]


class Process:
    """A publisher process and what it has said."""

    def __init__(self, location: str, name: str, count: int) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.concurrency.publisher", location, name, str(count)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def lines(self) -> Iterator[dict[str, Any]]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                yield json.loads(line)

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        return self._process.wait(timeout=300)

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


@pytest.fixture
def start(open_catalog: Open, location: str) -> Iterator[Callable[[str, int], Process]]:
    open_catalog()
    started: list[Process] = []

    def one(name: str, count: int) -> Process:
        started.append(Process(location, name, count))
        return started[-1]

    yield one
    for process in started:
        process.end()


def there(catalog: Catalog) -> set[str]:
    return {row["segment_id"] for row in catalog.segments().select("segment_id").collect()}


def processes_publish(
    start: Callable[[str, int], Process], catalog: Catalog, processes: int, publishes: int
) -> None:
    started = [start(f"p{n}", publishes) for n in range(processes)]
    said = [line for process in started for line in process.lines() if "number" in line]
    assert [process.wait() for process in started] == [0] * processes
    assert [line for line in said if line.get("inserted") != 2] == []
    assert len(said) == processes * publishes
    assert there(catalog) == {name for line in said for name in line["ids"]}
    assert catalog.version == processes * publishes
    assert_promises(catalog)


def test_two_processes_publish_into_one_local_catalog(
    start: Callable[[str, int], Process], open_catalog: Open
) -> None:
    processes_publish(start, open_catalog(), processes=2, publishes=4)


@pytest.mark.stress
def test_processes_that_publish_for_longer_lose_nothing(
    start: Callable[[str, int], Process], open_catalog: Open
) -> None:
    processes_publish(start, open_catalog(), processes=3, publishes=20)


def kill_rounds(
    start: Callable[[str, int], Process], catalog: Catalog, rounds: int, seed: int
) -> None:
    chance = random.Random(seed)
    acknowledged: set[str] = set()
    for number in range(rounds):
        process = start(f"victim{number}", 100)
        lines = process.lines()
        assert next(lines) == {"ready": True}
        first = next(lines)
        acknowledged |= set(first["ids"])
        time.sleep(chance.uniform(0, 2.5))
        process.signal(signal.SIGKILL)
        for line in lines:
            acknowledged |= set(line["ids"])
        process.wait()
        assert acknowledged <= there(catalog)
    found = there(catalog)
    # Each publish had two segments: both are there or none.
    for name in found:
        if name.startswith("shared/"):
            victim, _, number = name.removeprefix("shared/").rpartition("-")
            assert f"{victim}/{number}" in found
        else:
            victim, _, number = name.partition("/")
            assert f"shared/{victim}-{number}" in found
    assert_promises(catalog)


def test_a_killed_publisher_leaves_nothing_half_written(
    start: Callable[[str, int], Process], open_catalog: Open
) -> None:
    kill_rounds(start, open_catalog(), rounds=1, seed=5)


@pytest.mark.stress
def test_publishers_killed_again_and_again_leave_nothing_half_written(
    start: Callable[[str, int], Process], open_catalog: Open
) -> None:
    kill_rounds(start, open_catalog(), rounds=12, seed=int.from_bytes(os.urandom(2), "big"))


def interrupt_rounds(
    start: Callable[[str, int], Process], catalog: Catalog, count: int, seed: int
) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    process = start("nervous", count)
    lines = process.lines()
    assert next(lines) == {"ready": True}
    said = [next(lines)]  # the first one warms up
    for number in range(1, count):
        time.sleep(chance.uniform(0, 1.2))
        process.signal(signal.SIGINT)
        if number % 3 == 0:
            time.sleep(0.02)
            process.signal(signal.SIGINT)  # somebody in a hurry
        line = next(lines)
        said.append(line)
        while line["number"] < number:
            line = next(lines)
            said.append(line)
        if line["number"] == count - 1:
            break
    process.wait()
    check_told(said, there(catalog))
    assert_promises(catalog)
    return said


def check_told(said: list[dict[str, Any]], found: set[str]) -> None:
    """What callers were told is what is in the table."""
    for line in said:
        ids = set(line["ids"])
        told = " ".join(line.get("interrupted", []))
        if "version" in line or "it was completed" in told:
            assert ids <= found, line
        elif "refused" in line or "nothing was written" in told:
            assert not ids & found, line
        elif "still running" in told:
            # Left by a second interrupt: the lock must not have been freed before the JVM was done.
            assert line["held"], line
        else:
            assert ids <= found or not ids & found, line


def test_an_interrupted_publish_tells_the_truth_and_keeps_the_lock(
    start: Callable[[str, int], Process], open_catalog: Open
) -> None:
    said = interrupt_rounds(start, open_catalog(), count=9, seed=3)
    assert any("interrupted" in line for line in said)


@pytest.mark.stress
def test_many_interrupted_publishes_tell_the_truth(
    start: Callable[[str, int], Process], open_catalog: Open
) -> None:
    interrupt_rounds(start, open_catalog(), count=80, seed=int.from_bytes(os.urandom(2), "big"))
