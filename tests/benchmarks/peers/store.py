"""What a store must be able to do to take part, and what several of them need."""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.benchmarks.data import PLAIN_ROW

SCHEMA_COLUMNS = ["fingerprint", "payload"]
SEGMENT_COLUMNS = ["segment_id", "datasource", "fingerprint", "num_rows"]
ANSWER_COLUMNS = ["segment_id", "fingerprint"]
POLLED_COLUMNS = ["segment_id", "fingerprint", "num_rows"]
SCHEMAS = pa.schema([PLAIN_ROW.field(name) for name in SCHEMA_COLUMNS])
SEGMENTS = pa.schema([PLAIN_ROW.field(name) for name in SEGMENT_COLUMNS])


class Connection(ABC):
    """One client of a store; threads do not share it.

    Rows have the columns of `data.PLAIN_ROW`. Whatever is read arrives in memory as Arrow (or in
    Strata's cache, which stands for it); the calls say how many segments that were.
    """

    @abstractmethod
    def publish(self, rows: pa.Table) -> None:
        """Stores the segments, and the schemas that they use, that are not there already."""

    @abstractmethod
    def load(self) -> int:
        """The full poll: reads all segments and all schemas."""

    @abstractmethod
    def position(self) -> Any:
        """Where `changes` may go on from."""

    @abstractmethod
    def changes(self, position: Any) -> tuple[Any, int]:
        """The incremental poll: reads the segments and schemas that came since a position."""

    @abstractmethod
    def lookup(self, ids: Sequence[str]) -> list[str | None]:
        """The fingerprints of these segments, asked of the store as one query.

        A store that answers from memory answers as of its last `load` or `changes`.
        """

    @abstractmethod
    def duplicates(self) -> int:
        """How many fingerprints are stored more than once."""

    @abstractmethod
    def segments(self) -> int:
        """How many segments are stored."""

    def settle(self) -> None:  # noqa: B027 (most have nothing to do)
        """Does what an operator has done by the time that a large load is used."""

    @abstractmethod
    def close(self) -> None: ...


class Peer(ABC):
    """A store that takes part.

    Attributes:
        name: how it is called in the table.
        atomic: whether a publish appears in both tables at once.
        durable: what has reached the disk when a publish returns.
        answers: where lookups are answered.
    """

    name: str
    atomic: str
    durable: str
    answers: str = "store"

    @abstractmethod
    def missing(self) -> str | None:
        """Why the store cannot run here, or nothing if it can."""

    @abstractmethod
    def version(self) -> str:
        """What exactly is measured."""

    @abstractmethod
    def start(self, folder: Path) -> None:
        """Makes an empty store in a folder of its own."""

    @abstractmethod
    def stop(self) -> None:
        """Ends what `start` began; what it wrote into the folder is the caller's to remove."""

    @abstractmethod
    def connect(self) -> Connection: ...


def schemas_in(rows: pa.Table) -> pa.Table:
    """Every schema of the rows once: no store should be sent a definition for each segment."""
    codes = rows.column("fingerprint").combine_chunks().dictionary_encode().indices
    _, first = np.unique(codes.to_numpy(), return_index=True)
    return rows.select(SCHEMA_COLUMNS).take(pa.array(first, pa.int64()))


def answered(ids: Sequence[str], found: pa.Table) -> list[str | None]:
    """The fingerprints in the order asked, from those that were found in any order."""
    columns = (found.column(name).to_pylist() for name in ANSWER_COLUMNS)
    known: dict[str, str] = dict(zip(*columns, strict=True))
    return [known.get(one) for one in ids]


def retried(run: Callable[[], object], conflict: Callable[[Exception], bool], tries: int) -> None:
    """Runs again after a conflict, as a writer with optimistic concurrency has to."""
    for attempt in range(1, tries + 1):
        try:
            run()
            return
        except Exception as error:
            if attempt == tries or not conflict(error):
                raise
            # Jitter, or those who met once meet again.
            time.sleep(random.uniform(0, 0.05 * 2 ** min(attempt, 6)))
