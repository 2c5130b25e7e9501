"""Claims on objects and datasources, which an operation has for itself or shares: no session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from catalog.commit.claims import Claim, claimed
from catalog.commit.operation_rows import ABSENT, AFTER, OperationRow, OperationState, StagedAction


@dataclass(frozen=True)
class StagedClaim:
    """A staged row for an object or a datasource, whoever has it."""

    key: str
    operation: str
    part: int
    action: str


@dataclass(frozen=True)
class Lock:
    """A claim that a part makes.

    Attributes:
        base: the commit id of the row that is claimed, or a word for what it will be.
        ahead: ready operations whose outcome it waits for.
        joined: the operation has the key already.
    """

    target: str
    key: str
    action: StagedAction
    base: str
    ahead: tuple[OperationRow, ...] = ()
    joined: bool = False


def compatible(one: str, other: str) -> bool:
    """Whether two operations can have a key at once."""
    return one == StagedAction.HOLD and other == StagedAction.HOLD


def lock(
    target: str,
    wanted: Mapping[str, StagedAction],
    staged: Iterable[StagedClaim],
    own: str,
    operations: Mapping[str, OperationRow],
    commit_ids: Mapping[str, str],
) -> list[Lock]:
    """The claims that a part has to make on keys of one kind; raises where another has one.

    `operations` are those that are not decided. What the operation has already is claimed again
    only by the row that holds a change of its own.
    """
    by_key: dict[str, list[StagedClaim]] = {}
    for row in staged:
        by_key.setdefault(row.key, []).append(row)
    made: list[Lock] = []
    for key, action in sorted(wanted.items()):
        rows = by_key.get(key, [])
        mine = [row for row in rows if row.operation == own]
        others = [
            (row, operations[row.operation])
            for row in rows
            if row.operation in operations
            and row.operation != own
            and not compatible(row.action, action)
        ]
        held = [
            Claim(target, key, row.part, row.action, operation)
            for row, operation in others
            if operation.state is OperationState.OPEN
        ]
        if held:
            raise claimed(held)
        has = any(action is StagedAction.HOLD or row.action != StagedAction.HOLD for row in mine)
        if has and action not in (StagedAction.PUT, StagedAction.REMOVE):
            continue
        ahead = {operation.id: operation for _, operation in others}
        base = AFTER if ahead else commit_ids.get(key, ABSENT)
        made.append(Lock(target, key, action, base, tuple(ahead.values()), has))
    return made
