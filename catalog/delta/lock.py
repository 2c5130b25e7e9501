"""The lock that local disk needs: Delta excludes writers there only inside one JVM."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from catalog.environment import Deadline


class TableLock:
    """An operating-system lock on a file beside a table, or nothing where none is needed."""

    _LOOK_AGAIN = 0.01

    def __init__(self, file: Path | None) -> None:
        self._file = file

    @classmethod
    def beside(cls, table: Path | None) -> TableLock:
        """The lock of the table at a local path; `None` for any other storage."""
        return cls(None if table is None else table.parent / f".{table.name}.lock")

    @property
    def real(self) -> bool:
        """Whether holding it keeps every other writer out."""
        return self._file is not None

    @contextmanager
    def held(self, deadline: Deadline) -> Iterator[None]:
        """Holds the lock; raises `GaveUp` when the deadline passes first."""
        if self._file is None:
            yield
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        # A new descriptor each time: flock is held by the open file, so two threads that shared
        # one would not exclude each other.
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            while not _try_lock(descriptor):
                deadline.wait(self._LOOK_AGAIN, f"the lock {self._file}")
            yield
        finally:
            os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
