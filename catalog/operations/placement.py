"""How a part claims its keys, given which operations have them: pure, no session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from catalog.commit.claims import Claim, claimed
from catalog.commit.operation_rows import ABSENT, AFTER, OperationRow, OperationState, StagedAction
from catalog.errors import PartConflict
from catalog.model import OnExisting
from catalog.segments.batch import conflict


@dataclass(frozen=True)
class SeenSegment:
    """A row that was found for a segment's key: the live one, or one that an operation has staged.

    `contradicts` says that the part brings other content than the row has.
    """

    key: str
    commit_id: str
    contradicts: bool
    operation: str | None = None
    part: int | None = None
    action: str | None = None
    base: str | None = None


@dataclass(frozen=True)
class StagedClaim:
    """A staged row for an object or a datasource, of any operation."""

    key: str
    operation: str
    part: int
    action: str


Row = TypeVar("Row", SeenSegment, StagedClaim)


def _by_key(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.key, []).append(row)
    return found


def _ahead(
    target: str, rows: Iterable[Row], own: str, undecided: Mapping[str, OperationRow]
) -> list[tuple[Row, OperationRow]]:
    """The rows of ready operations, which come first; raises where an open one has the key."""
    others = [
        (row, undecided[row.operation])
        for row in rows
        if row.operation is not None and row.operation != own and row.operation in undecided
    ]
    held = [
        Claim(target, row.key, row.part or 0, row.action or "", operation)
        for row, operation in others
        if operation.state is OperationState.OPEN
    ]
    if held:
        raise claimed(held)
    return others


# --- segments ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Placement:
    """How a segment's key is staged: the action, and the row that it is based on."""

    action: StagedAction
    base: str
    joined: bool = False


@dataclass(frozen=True)
class Placed:
    """How the keys of a part are staged, where they have rows; and the operations before it."""

    placements: Mapping[str, Placement]
    ahead: tuple[OperationRow, ...]

    @property
    def joined(self) -> int:
        return sum(placement.joined for placement in self.placements.values())


def place(
    found: Iterable[SeenSegment],
    dropped: frozenset[str],
    mode: OnExisting,
    own: str,
    undecided: Mapping[str, OperationRow],
) -> Placed:
    """The placement of every segment for which there are rows.

    Raises:
        ClaimConflict: Another open operation claims a key.
        PartConflict: The operation has staged something else for it.
        SegmentConflict: A segment is there with other content and is not to be replaced.
    """
    placements: dict[str, Placement] = {}
    ahead: dict[str, OperationRow] = {}
    refused: list[str] = []
    # Rows that a decided operation left behind claim nothing.
    counted = (row for row in found if row.operation is None or row.operation in undecided)
    for key, rows in sorted(_by_key(counted).items()):
        before = _ahead("segment", rows, own, undecided)
        ahead |= {operation.id: operation for _, operation in before}
        siblings = [row for row in rows if row.operation == own]
        if siblings:
            placements[key] = _join(key, siblings[0], key in dropped)
            continue
        current, base = _current(rows, before)
        if key in dropped:
            placements[key] = Placement(StagedAction.DROP, base)
        elif current is None:
            placements[key] = Placement(StagedAction.PUBLISH, base)
        elif not current.contradicts:
            placements[key] = Placement(StagedAction.KEEP, base)
        elif mode is OnExisting.REPLACE:
            placements[key] = Placement(StagedAction.REPLACE, base)
        else:
            refused.append(key)
    if refused:
        raise conflict(refused)
    return Placed(placements, tuple(ahead.values()))


def _current(
    rows: Sequence[SeenSegment], before: Sequence[tuple[SeenSegment, OperationRow]]
) -> tuple[SeenSegment | None, str]:
    """The row that will be there when the part is applied, and the base that names it."""
    if before:
        last, _ = max(before, key=lambda each: (each[1].epoch or 0, each[1].order or 0))
        return (None if last.action == StagedAction.DROP else last), AFTER
    live = [row for row in rows if row.operation is None]
    return (live[0], live[0].commit_id) if live else (None, ABSENT)


def _join(key: str, sibling: SeenSegment, drop: bool) -> Placement:
    """The placement of a key that another part of the same operation has staged alike."""
    dropped = sibling.action == StagedAction.DROP
    if dropped != drop or (not drop and sibling.contradicts):
        how = "one publishes it and the other drops it" if dropped != drop else "they differ"
        raise PartConflict(
            f"Segment {key} is staged by part {sibling.part} already: {how}. Let only one part "
            "change it.",
            key=key,
            part=sibling.part,
        )
    assert sibling.action is not None
    assert sibling.base is not None
    return Placement(StagedAction(sibling.action), sibling.base, joined=True)


# --- objects and datasources ---------------------------------------------------------------------


@dataclass(frozen=True)
class Lock:
    """A claim that a part makes on an object or a datasource.

    Attributes:
        base: the commit id of the row that is claimed, or `absent` or `after`.
        ahead: ready operations whose outcome it waits for.
        joined: the operation has the key already.
    """

    target: str
    key: str
    action: StagedAction
    base: str
    ahead: tuple[OperationRow, ...] = ()
    joined: bool = False


def lock(
    target: str,
    wanted: Mapping[str, StagedAction],
    staged: Iterable[StagedClaim],
    own: str,
    undecided: Mapping[str, OperationRow],
    commit_ids: Mapping[str, str],
) -> list[Lock]:
    """The claims that a part has to make on keys of one kind.

    What the operation has already is claimed again only by the row that holds a change of its own.

    Raises:
        ClaimConflict: Another open operation claims a key, and one of the two does not share it.
    """
    rows = _by_key(staged)
    made: list[Lock] = []
    for key, action in sorted(wanted.items()):
        there = rows.get(key, [])
        mine = [row for row in there if row.operation == own]
        # Operations can share a key that all of them only hold.
        exclusive = [row for row in there if not action == row.action == StagedAction.HOLD]
        ahead = {each.id: each for _, each in _ahead(target, exclusive, own, undecided)}
        has = any(action is StagedAction.HOLD or row.action != StagedAction.HOLD for row in mine)
        if has and action not in (StagedAction.PUT, StagedAction.REMOVE):
            continue
        base = AFTER if ahead else commit_ids.get(key, ABSENT)
        made.append(Lock(target, key, action, base, tuple(ahead.values()), has))
    return made
