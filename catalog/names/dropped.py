"""Columns that are gone: remembered with the types that they had, and asked when they come back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from catalog.evolution.compatibility import ChangeKind, Mode, compatibility
from catalog.names.model import Dropped, Reason
from catalog.schema import Schema, SchemaColumn
from catalog.schema.names import folded, parts, quote

_WHY = "it was dropped by version {since} as {type}, and comes back only as what may follow that"


def remembered(
    before: Mapping[str, Dropped], old: Schema, new: Schema, number: int
) -> dict[str, Dropped]:
    """What is gone once `new` follows `old` as version `number`; nested columns by path.

    What comes back is forgotten, so of each column only the type that it had last is known.
    """
    present = {folded(column.path) for column in new.columns}
    gone = {path: each for path, each in before.items() if folded(path) not in present}
    for column in old.columns:
        if folded(column.path) not in present:
            gone[column.path] = Dropped(column.type, number)
    return dict(sorted(gone.items()))


def wrong_returns(dropped: Mapping[str, Dropped], new: Schema, mode: Mode) -> tuple[Reason, ...]:
    """Columns that come back with a type that the mode would not have let follow what they were."""
    known = {folded(path): (path, each) for path, each in dropped.items()}
    found: dict[tuple[str, ...], Reason] = {}
    for column in new.columns:
        was = known.get(folded(column.path))
        for reason in () if was is None else _wrong(*was, column, mode):
            # A struct that comes back says the same as the columns in it.
            found.setdefault(folded(reason.path), reason)
    return tuple(found.values())


def _wrong(path: str, was: Dropped, now: SchemaColumn, mode: Mode) -> Iterator[Reason]:
    # As columns of one name: the change of a type that holds others is told by its path in it.
    for change in compatibility(f"c {was.type}", f"c {now.type}").changes:
        if not mode.allows(change):
            here = now.path + change.path[1:]
            yield _reason(here, change.kind, change.old, change.new, was.since)
    before, after = parts(path)[-1], parts(now.path)[-1]
    if before != after and mode is not Mode.NONE:
        yield _reason(now.path, ChangeKind.RESPELLED, quote(before), quote(after), was.since)


def _reason(path: str, kind: ChangeKind, old: str | None, new: str | None, since: int) -> Reason:
    why = _WHY.format(since=since, type=old)
    return Reason(path, str(kind), old, new, why, since - 1)
