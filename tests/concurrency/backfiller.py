"""A backfill in a process of its own, for the tests to kill.

    python -m tests.concurrency.backfiller LOCATION READS BATCH

Prints a JSON line for each stage. Each data file that is opened is noted in a file of the folder
READS before it is, one for each process that reads, so that no kill can lose it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from catalog import Catalog, Settings
from catalog.environment import Environment
from catalog.files.storage import Files
from tests import sessions


class NotedFiles:
    """Opens files and keeps a durable log of it."""

    def __init__(self, reads: str) -> None:
        self._reads = reads
        self._files = Files()

    def __call__(self, path: str) -> Any:
        with (Path(self._reads) / str(os.getpid())).open("a") as log:
            log.write(f"{path}\n")
        return self._files(path)


def tell(point: str) -> None:
    if point in ("backfill.read", "backfill.stored"):
        print(json.dumps({"stage": point.partition(".")[2]}), flush=True)


def main(location: str, reads: str, batch: int) -> None:
    spark = sessions.start("local[2]", **sessions.SHORT_LIVED)
    spark.sparkContext.setLogLevel("OFF")
    catalog = Catalog.open(
        spark,
        location,
        settings=Settings(open_file=NotedFiles(reads)),
        environment=Environment(at=tell),
    )
    catalog.backfill(batch=batch)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
