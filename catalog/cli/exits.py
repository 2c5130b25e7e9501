"""How a run ends: exit codes, and which error leads to which."""

from __future__ import annotations

from enum import IntEnum

from catalog.delta import failures
from catalog.delta.runs import Status
from catalog.errors import CatalogError, GaveUp, OutcomeUnknown, TaskBusy, TaskLost


class Exit(IntEnum):
    """The exit codes of every door."""

    DONE = 0
    FOUND = 1
    FAILED = 2
    GAVE_UP = 3
    UNEXPECTED = 70
    INTERRUPTED = 130

    @property
    def status(self) -> Status:
        """How the run is recorded."""
        return {
            Exit.DONE: Status.DONE,
            Exit.FOUND: Status.FOUND,
            Exit.GAVE_UP: Status.GAVE_UP,
            Exit.INTERRUPTED: Status.INTERRUPTED,
        }.get(self, Status.FAILED)


def exit_of(error: BaseException) -> Exit:
    """The exit code that an error leads to."""
    if isinstance(error, KeyboardInterrupt):
        return Exit.INTERRUPTED
    if isinstance(error, GaveUp | OutcomeUnknown | TaskBusy | TaskLost):
        return Exit.GAVE_UP
    return Exit.FAILED if isinstance(error, CatalogError) else Exit.UNEXPECTED


def condition_of(error: BaseException) -> str:
    """The stable name of an error: ours, Spark's, or that of its class."""
    if isinstance(error, CatalogError):
        return error.condition
    if isinstance(error, KeyboardInterrupt):
        return "INTERRUPTED"
    return failures.condition_of(error) or type(error).__name__
