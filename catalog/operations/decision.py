"""What became of an operation, and what it takes to decide it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from catalog.commit.claims import OperationView
from catalog.commit.committer import Committed
from catalog.commit.operation_rows import OperationRow, OperationState
from catalog.errors import OperationDecided, PartsMissing


@dataclass(frozen=True)
class Decision:
    """What became of an operation.

    `repeated` says that it was so already. `version` is the one at which it was found or made so;
    for a published one that is where all of it is visible.
    """

    version: int
    commit_id: str
    operation: str
    state: str
    epoch: int | None = None
    repeated: bool = False
    retries: int = 0

    def facts(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "commit_id": self.commit_id,
            "operation_id": self.operation,
            "state": self.state,
            "epoch": self.epoch,
            "repeated": self.repeated,
            "retries": self.retries,
        }

    def figures(self) -> dict[str, float]:
        return {"conflicts_retried": self.retries}


def check_open(row: OperationRow) -> None:
    """Raises unless the operation is still open."""
    if row.state is not OperationState.OPEN:
        how = (
            f" It waits for epoch {row.epoch}; only an advance ends that. Undo it by an operation "
            "of its own at the same epoch."
            if row.state is OperationState.READY
            else ""
        )
        raise OperationDecided(
            f"It is decided already: {row.told()}.{how}",
            operation=row.id,
            state=row.state.value,
            epoch=row.epoch,
        )


def check_complete(view: OperationView) -> None:
    """Raises unless it is open and all of its parts are staged."""
    check_open(view.operation)
    row = view.operation
    if row.parts is None:
        raise PartsMissing(
            f"The number of parts of {row.told()} is not known; call seal() when all are staged.",
            operation=row.id,
            staged=tuple(view.parts),
        )
    if view.missing:
        raise PartsMissing(
            f"{row.told()} has {len(view.parts)} of {row.parts} parts; missing: "
            f"{', '.join(map(str, view.missing[:20]))}.",
            operation=row.id,
            missing=view.missing,
        )


def decision_of(
    view: OperationView, repeated: bool = False, version: int | None = None
) -> Decision:
    """The decision that a version shows."""
    row = view.operation
    return Decision(
        view.version if version is None else version,
        row.commit_id,
        row.id,
        row.state.value,
        row.epoch,
        repeated,
    )


def decided(
    done: Committed, operation: str, state: OperationState, epoch: int | None = None
) -> Decision:
    """The decision that a commit made."""
    return Decision(
        done.version, done.commit_id, operation, state.value, epoch, retries=done.retries
    )
