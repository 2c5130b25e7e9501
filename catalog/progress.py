"""Progress of long work, for callers that show it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """`done` of `total` pieces of work are complete; `total` may grow while it is planned."""

    what: str
    done: int
    total: int


Progress = Callable[[Step], None]


def silent(step: Step) -> None:
    """Shows nothing."""
