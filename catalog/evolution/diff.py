"""The difference of two schemas as a value, rendered as text, JSON and in colours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from catalog.evolution.compatibility import ColumnChange, Compatibility, compatibility
from catalog.schema import Schema, SchemaColumn
from catalog.schema.names import folded, shown

if TYPE_CHECKING:
    from rich.text import Text

Names = tuple[str, ...]

ADDED, DROPPED, CHANGED, SAME = "+", "-", "~", " "
TINTS = {ADDED: "green", DROPPED: "red", CHANGED: "yellow", SAME: "dim"}


@dataclass(frozen=True, slots=True)
class Line:
    """A column in both schemas, or in one of them.

    Attributes:
        sign: `+` added, `-` dropped, `~` changed, a blank if it is the same.
        path: the column by its names from the top.
        old: its type and nullability before; None if it is new.
        new: its type and nullability afterwards; None if it was dropped.
        changes: what happened to it and to the elements, keys and values that it holds.
        comment: whether its comment changed.
    """

    sign: str
    path: str
    old: str | None
    new: str | None
    changes: tuple[ColumnChange, ...] = ()
    comment: bool = False

    @property
    def notes(self) -> str:
        """What happened, in a few words."""
        words = [
            str(each.kind) if each.path == self.path else f"{_last(each.path)} {each.kind}"
            for each in self.changes
        ]
        return ", ".join([*words, *(["comment changed"] if self.comment else [])])

    @property
    def types(self) -> str:
        """The type, or the old one and the new one."""
        if self.old is None or self.new is None or self.old == self.new:
            return shown(self.new or self.old or "")
        return f"{shown(self.old)} → {shown(self.new)}"


@dataclass(frozen=True)
class Diff:
    """What changed from one schema to another.

    Attributes:
        compatibility: the changes, and what they mean for readers.
        reordered: whether common columns are in another order; that alone changes no fingerprint.
    """

    old: Schema
    new: Schema
    compatibility: Compatibility
    lines: tuple[Line, ...]
    reordered: bool

    def __bool__(self) -> bool:
        """Whether there is any difference."""
        return self.reordered or any(line.sign != SAME for line in self.lines)

    def text(self, whole: bool = False) -> str:
        """One line for each column that changed, or for every column."""
        return "\n".join("".join(part for part, _ in parts) for parts in self._parts(whole))

    def document(self) -> dict[str, Any]:
        """The difference as JSON has it."""
        return {
            "old": {"fingerprint": self.old.fingerprint, "ddl": self.old.ddl},
            "new": {"fingerprint": self.new.fingerprint, "ddl": self.new.ddl},
            "verdict": self.compatibility.verdict,
            "backward": self.compatibility.backward,
            "forward": self.compatibility.forward,
            "reordered": self.reordered,
            "changes": [
                {
                    "path": change.path,
                    "kind": str(change.kind),
                    "old": change.old,
                    "new": change.new,
                    "backward": change.backward,
                    "forward": change.forward,
                    "reason": change.reason,
                }
                for change in self.compatibility.changes
            ],
            "comments": [line.path for line in self.lines if line.comment],
        }

    def __str__(self) -> str:
        return self.text()

    def __rich__(self) -> Text:
        """The text in colours, for `rich.print`."""
        from rich.text import Text

        drawn = Text()
        for number, parts in enumerate(self._parts(whole=False)):
            drawn.append("\n" if number else "")
            for part, style in parts:
                drawn.append(part, style)
        return drawn

    def _parts(self, whole: bool) -> Iterator[list[tuple[str, str]]]:
        """The lines as texts with styles, in columns."""
        lines = [line for line in self.lines if whole or line.sign != SAME]
        width = max((len(shown(line.path)) for line in lines), default=0)
        kinds = max((len(line.types) for line in lines if line.notes), default=0)
        for line in lines:
            tint = TINTS[line.sign]
            yield [
                (f"{line.sign} {shown(line.path):<{width}}  ", tint),
                (f"{line.types:<{kinds}}" if line.notes else line.types, tint),
                (f"  {line.notes}" if line.notes else "", ""),
            ]
        if self.reordered:
            yield [("  columns stand in another order", "")]
        if not lines and not self.reordered:
            yield [("  no difference", "dim")]
        elif self.compatibility.changes:
            yield [(f"  compatible: {self.compatibility.verdict}", "bold")]


def diff(old: Schema | str, new: Schema | str) -> Diff:
    """What changed from `old` to `new`, column by column."""
    first, second = Schema.of(old), Schema.of(new)
    found = compatibility(first, second)
    lines = tuple(_lines(first, second, found.changes))
    return Diff(first, second, found, lines, _reordered(first, second))


def _lines(old: Schema, new: Schema, changes: tuple[ColumnChange, ...]) -> Iterator[Line]:
    """New columns in their order; dropped ones follow the column that they came after."""
    before = {folded(column.path): column for column in old.columns}
    after = {folded(column.path) for column in new.columns}
    by_column: dict[Names, list[ColumnChange]] = {}
    for change in changes:
        # A change of what an array or a map holds belongs to the line of the column itself.
        path = folded(change.path)
        while path not in before and path not in after:
            path = path[:-1]
        by_column.setdefault(path, []).append(change)
    gone = _gone(old, after)
    yield from (_line(column, None, by_column) for column in gone.pop((), ()))
    for column in new.columns:
        path = folded(column.path)
        yield _line(before.get(path), column, by_column)
        yield from (_line(each, None, by_column) for each in gone.pop(path, ()))


def _gone(old: Schema, after: set[Names]) -> dict[Names, list[SchemaColumn]]:
    """Dropped columns, by the last column before them that is still there."""
    gone: dict[Names, list[SchemaColumn]] = {}
    last: Names = ()
    for column in old.columns:
        path = folded(column.path)
        if path in after:
            last = path
        else:
            gone.setdefault(last, []).append(column)
    return gone


def _line(
    old: SchemaColumn | None, new: SchemaColumn | None, changes: dict[Names, list[ColumnChange]]
) -> Line:
    column = new or old
    assert column is not None
    mine = tuple(changes.get(folded(column.path), ()))
    recommented = old is not None and new is not None and old.comment != new.comment
    if old is None or new is None:
        sign = ADDED if old is None else DROPPED
    else:
        sign = CHANGED if mine or recommented else SAME
    return Line(sign, column.path, _kind(old), _kind(new), mine, recommented)


def _kind(column: SchemaColumn | None) -> str | None:
    if column is None:
        return None
    return column.type if column.nullable else f"{column.type} not null"


def _reordered(old: Schema, new: Schema) -> bool:
    before, after = (
        dict.fromkeys(folded(column.path) for column in each.columns) for each in (old, new)
    )
    return [path for path in before if path in after] != [path for path in after if path in before]


def _last(path: str) -> str:
    return path.rpartition(".")[2]
