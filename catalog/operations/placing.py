"""What becomes of a segment that a part publishes or drops, given who has its key: no session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from catalog.commit.claims import Claim, claimed
from catalog.commit.operation_rows import ABSENT, AFTER, OperationRow, OperationState, StagedAction
from catalog.errors import PartConflict
from catalog.model import OnExisting
from catalog.segments.batch import conflict


@dataclass(frozen=True)
class Seen:
    """A row that was found for a key: the live one, or one that an operation has staged.

    `contradicts` says that the part wants other content than the row has.
    """

    key: str
    commit_id: str
    contradicts: bool
    operation: str | None = None
    part: int | None = None
    action: str | None = None
    base: str | None = None


@dataclass(frozen=True)
class Placement:
    """How a key is staged: what is done with it, and over what."""

    action: StagedAction
    base: str
    joined: bool = False


@dataclass(frozen=True)
class Placed:
    """How the keys of a part are staged, as far as somebody has them; and what that rests on."""

    placements: Mapping[str, Placement]
    ahead: tuple[OperationRow, ...]

    @property
    def joined(self) -> int:
        return sum(placement.joined for placement in self.placements.values())


def place(
    found: Iterable[Seen],
    dropped: frozenset[str],
    mode: OnExisting,
    own: str,
    operations: Mapping[str, OperationRow],
) -> Placed:
    """Decides for every key that somebody has.

    Raises:
        ClaimConflict: Another open operation claims a key.
        PartConflict: The operation has staged something else for it.
        SegmentConflict: A segment is there with other content and is not to be replaced.
    """
    by_key: dict[str, list[Seen]] = {}
    for row in found:
        by_key.setdefault(row.key, []).append(row)
    placements: dict[str, Placement] = {}
    ahead: dict[str, OperationRow] = {}
    refused: list[str] = []
    for key, rows in sorted(by_key.items()):
        siblings = [row for row in rows if row.operation == own]
        others = [
            (row, operations[row.operation])
            for row in rows
            if row.operation is not None and row.operation != own
        ]
        held = [
            Claim("segment", key, row.part or 0, row.action or "", operation)
            for row, operation in others
            if operation.state is OperationState.OPEN
        ]
        if held:
            raise claimed(held)
        before = [each for each in others if each[1].state is OperationState.READY]
        ahead |= {operation.id: operation for _, operation in before}
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
    rows: Sequence[Seen], before: Sequence[tuple[Seen, OperationRow]]
) -> tuple[Seen | None, str]:
    """The row that will be there when the part's turn comes, and what to call it."""
    if before:
        last, _ = max(before, key=lambda each: (each[1].epoch or 0, each[1].order or 0))
        return (None if last.action == StagedAction.DROP else last), AFTER
    live = [row for row in rows if row.operation is None]
    return (live[0], live[0].commit_id) if live else (None, ABSENT)


def _join(key: str, sibling: Seen, drop: bool) -> Placement:
    """A key that another part of the same operation has: the same again, or a contradiction."""
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
