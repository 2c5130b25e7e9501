"""Stops one side of a race at a named point until the test lets it go on."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from catalog import Catalog
from catalog.environment import Environment

PATIENCE = 90.0


class Gate:
    """A point that is reached once, and left when the test says so.

    `inside(point)` stops a running statement: its source waits, so Delta has begun the transaction
    and not yet committed it. `between(point)` stops the caller between two steps.
    """

    def __init__(self, directory: Path) -> None:
        name = uuid.uuid4().hex
        self._reached = directory / f"{name}.reached"
        self._open = directory / f"{name}.open"

    def inside(self, point: str) -> Environment:
        reached, opened = str(self._reached), str(self._open)

        def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            held = list(batches)
            _pass(Path(reached), Path(opened))
            yield from held

        def hold(at: str, frame: DataFrame) -> Any:
            if at != point or self._reached.exists():
                return frame
            return frame.coalesce(1).mapInArrow(wait, frame.schema)

        return Environment(source=hold)

    def between(self, point: str) -> Environment:
        def hold(at: str) -> None:
            if at == point and not self._reached.exists():
                _pass(self._reached, self._open)

        return Environment(at=hold)

    def await_reached(self) -> None:
        until(self._reached.exists)

    def open(self) -> None:
        self._open.touch()


def _pass(reached: Path, opened: Path) -> None:
    reached.touch()
    until(opened.exists)


def until(condition: Callable[[], bool]) -> None:
    """Returns when the condition holds; the patience of tests is not endless."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("the other side of the race did not come")
        time.sleep(0.01)


class Side:
    """One side of a race, in a thread; `result` waits for it and gives or raises its outcome."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._outcome: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._run, args=(work,))
        self._thread.start()

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            self._outcome["result"] = work()
        except BaseException as error:
            self._outcome["error"] = error

    @property
    def result(self) -> Any:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "a side of the race hangs"
        if "error" in self._outcome:
            raise self._outcome["error"]
        return self._outcome["result"]


def assert_promises(catalog: Catalog) -> None:
    """Every test of a race ends here: the promises at every version, by one replay."""
    report = catalog.verify(since=0)
    assert report.ok, str(report)
