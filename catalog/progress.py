"""How far long work has come, told to whoever wants to show it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """`done` of `total` pieces of some work are behind us; `total` may grow while it is planned."""

    what: str
    done: int
    total: int


Progress = Callable[[Step], None]


def silent(step: Step) -> None:
    """For callers who do not want to know."""
