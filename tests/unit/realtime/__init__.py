"""Announcements of open segments. Here: a clock that tests turn, and a board that can be harmed."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from catalog.realtime import Board

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def read_all(board: Board) -> dict[str, bytes]:
    """The files of all writers; one that goes while they are read is left out."""
    contents = {name: board.read(name) for name in board.listing()}
    return {name: content for name, content in contents.items() if content is not None}


class Clock:
    """The time of a test; `skew` is how far the time of day is off."""

    def __init__(self, skew: float = 0.0) -> None:
        self.seconds = 0.0
        self.skew = skew

    def advance(self, seconds: float) -> None:
        self.seconds += seconds

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.seconds + self.skew)


class Fickle(Board):
    """A board on disk that stamps files with whole seconds of the test's clock, as S3 does with
    its own, counts reads, and fails when told: before a write takes effect, or after.
    """

    def __init__(self, folder: Path, clock: Clock) -> None:
        super().__init__(folder)
        self.folder = folder
        self.clock = clock
        self.fails = ""
        self.unreadable: set[str] = set()
        self.error: Exception = PermissionError(13, "not for you")
        self.reads: list[str] = []

    def write(self, name: str, content: bytes) -> None:
        if self.fails == "before":
            raise OSError("the storage is away")
        super().write(name, content)
        stamp = int(self.clock.seconds)
        os.utime(self.file(name), (stamp, stamp))
        if self.fails == "after":
            raise OSError("the storage did not answer")

    def read(self, name: str) -> bytes | None:
        self.reads.append(name)
        if name in self.unreadable:
            raise self.error
        return super().read(name)

    def file(self, name: str) -> Path:
        return self.folder / f"{name}.json"
