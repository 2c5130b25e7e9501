"""A process of its own that goes through an operation: what the tests start and kill.

    python -m tests.concurrency.operating LOCATION ID STEP… [--stop POINT[:COUNT]]

Steps are `open[:PARTS]`, a number (stages that part), `seal:PARTS`, `renew`, `publish`, `at:EPOCH`,
`advance:EPOCH`, `abort`, `recover` and `forget`. Prints a JSON line when it is ready and after each
step. When it comes to the point that is named, for the first time or the one that is given, it
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
from catalog.environment import Environment
from catalog.operations.operation import Operation
from tests import sessions
from tests.unit.builders import segment

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
    verb, _, text = step.partition(":")
    number = int(text) if text else None
    if verb == "open":
        catalog.operation("reindex", parts=number, lease=LEASE, id=id)
    elif verb == "advance":
        catalog.operations.advance(int(text))
    elif verb == "recover":
        catalog.operations.recover()
    elif verb == "forget":
        catalog.operations.recover(keep=timedelta(0))
    elif verb == "abort":
        catalog.operations.get(id).abort()
    elif verb == "seal":
        catalog.operations.get(id).seal(number)
    elif verb == "renew":
        catalog.operations.get(id).renew()
    elif verb in ("publish", "at"):
        catalog.operations.get(id).publish(epoch=number)
    else:
        stage(catalog.operations.get(id), int(step))


def main(location: str, id: str, *steps: str) -> None:
    given = list(steps)
    stop, _, count = (given[given.index("--stop") + 1] if "--stop" in given else "").partition(":")
    reached: list[str] = []

    def at(point: str) -> None:
        reached.append(point)
        if point == stop and reached.count(stop) == int(count or 1):
            os.kill(os.getpid(), signal.SIGKILL)

    spark = sessions.start("local[1]", **sessions.SHORT_LIVED)
    spark.sparkContext.setLogLevel("OFF")
    catalog = Catalog.open(spark, location, environment=Environment(at=at))
    say(ready=True)
    for step in given[: given.index("--stop")] if stop else given:
        take(catalog, id, step)
        say(done=step)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
