"""A process of its own that runs a task: what the tests start and kill.

    python -m tests.concurrency.tasking LOCATION LOG POINT TIMES

Each step publishes a segment and writes down, in a file that outlives the process, that it began
and whether the segment is its doing. When the point has been reached so many times, the process
kills itself, as a machine that fails does.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from catalog import Catalog
from catalog.environment import Environment
from catalog.tasks.kind import TaskKind, TaskStep, TaskWork, in_order
from tests import sessions
from tests.unit.builders import segment

STEPS = ("one", "two", "three")
LEASE = timedelta(seconds=30)


class Log:
    """What steps did, one line each, durable before the step goes on."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def add(self, what: str, step: str) -> None:
        with self._file.open("a") as out:
            out.write(f"{what} {step}\n")
            out.flush()
            os.fsync(out.fileno())

    def steps(self, what: str) -> list[str]:
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        return [line.removeprefix(f"{what} ") for line in lines if line.startswith(f"{what} ")]


def kind(log: Log) -> TaskKind:
    """A task of three steps, each of which is one publish."""

    def step(name: str) -> TaskStep:
        def run(work: TaskWork) -> Mapping[str, Any]:
            log.add("began", name)
            result = work.catalog.publish([segment(f"orders/{name}")], **work.how)
            if result.inserted:
                log.add("did", name)
            return {"inserted": result.inserted, "before": list(work.results)}

        return TaskStep(name, run)

    return TaskKind("three-steps", in_order(*map(step, STEPS)), exclusive="three-steps")


def main(location: str, file: str, point: str, times: str) -> None:
    left = int(times)

    def at(reached: str) -> None:
        nonlocal left
        left -= reached == point
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    spark = sessions.start("local[1]", **sessions.SHORT_LIVED)
    spark.sparkContext.setLogLevel("OFF")
    catalog = Catalog.open(spark, location, environment=Environment(at=at))
    print(json.dumps({"ready": True}), flush=True)
    catalog.tasks.run(kind(Log(Path(file))), lease=LEASE)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
