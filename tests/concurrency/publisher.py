"""A process of its own that publishes into a catalog: what the tests start, kill and interrupt.

    python -m tests.concurrency.publisher LOCATION NAME COUNT

Prints a JSON line for each publish once it knows the outcome. On SIGINT it prints what it was told
and whether the table's lock was held at that moment, and goes on.
"""

from __future__ import annotations

import fcntl
import json
import sys
from pathlib import Path
from typing import Any

from catalog import Catalog, CatalogError
from tests import sessions
from tests.unit.builders import segment


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def lock_is_held(location: str) -> bool:
    with (Path(location) / ".entries.lock").open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def main(location: str, name: str, count: int) -> None:
    spark = sessions.start("local[1]", **sessions.SHORT_LIVED)
    spark.sparkContext.setLogLevel("OFF")
    catalog = Catalog.open(spark, location)
    say(ready=True)
    for number in range(count):
        batch = [segment(f"{name}/{number}"), segment(f"shared/{name}-{number}", f"c{number} INT")]
        ids = [s.id for s in batch]
        try:
            result = catalog.publish(batch, deadline=300)
            say(number=number, ids=ids, version=result.version, inserted=result.inserted)
        except KeyboardInterrupt as interrupt:
            # A second interrupt may come while this one is being told.
            notes = getattr(interrupt, "__notes__", [])
            say(number=number, ids=ids, interrupted=notes, held=lock_is_held(location))
        except CatalogError as error:
            say(number=number, ids=ids, refused=str(error))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
