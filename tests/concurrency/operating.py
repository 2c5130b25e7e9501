"""A process of its own that goes through an operation: what the tests start and kill.

    python -m tests.concurrency.operating LOCATION ID STEP… [--stop POINT]

Steps are `open`, a number (stages that part), `publish`, `at:EPOCH`, `advance:EPOCH`, `abort` and
`recover`. Prints a JSON line when it is ready and after each step. At the point that is named it
kills itself, as a machine that fails does.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import timedelta
from typing import Any

from catalog import Catalog, Object
from catalog.operations.operation import Operation
from catalog.waiting import Surroundings
from tests import sessions
from tests.unit.builders import segment

PARTS = 2
LEASE = timedelta(seconds=1)


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def stage(operation: Operation, part: int) -> None:
    """Each part brings segments, drops one that is there and touches the same table."""
    operation.stage(
        part,
        publish=[segment(f"orders/new-{part}-{n}", f"p{part} INT") for n in range(2)],
        drop=[f"orders/old-{part}"],
        put=[
            Object("table/orders", {f"part{part}": part}),
            Object(f"index/orders/{part}", {}, links=["table/orders"]),
        ],
    )


def take(catalog: Catalog, id: str, step: str) -> None:
    verb, _, epoch = step.partition(":")
    if verb == "open":
        catalog.operation("reindex", parts=PARTS, lease=LEASE, id=id)
    elif verb == "advance":
        catalog.advance(int(epoch))
    elif verb == "recover":
        catalog.recover()
    elif verb == "abort":
        catalog.operation(id=id).abort()
    elif verb in ("publish", "at"):
        catalog.operation(id=id).publish(epoch=int(epoch) if epoch else None)
    else:
        stage(catalog.operation(id=id), int(step))


def main(location: str, id: str, *steps: str) -> None:
    given = list(steps)
    stop = given[given.index("--stop") + 1] if "--stop" in given else None

    def at(point: str) -> None:
        if point == stop:
            os.kill(os.getpid(), signal.SIGKILL)

    spark = sessions.start("local[1]", **sessions.SHORT_LIVED)
    spark.sparkContext.setLogLevel("OFF")
    catalog = Catalog.open(spark, location, surroundings=Surroundings(at=at))
    say(ready=True)
    for step in given if stop is None else given[: given.index("--stop")]:
        take(catalog, id, step)
        say(done=step)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
