"""Whether readers and writers of two schemas can live together, with a reason for each column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from pyspark.sql.types import DataType, StructField, StructType

from catalog.evolution.widening import widest
from catalog.schema import Schema
from catalog.schema.names import child, held, quote, shown, type_text
from catalog.words import chosen


class ChangeKind(StrEnum):
    """What can happen to a column."""

    ADDED_NULLABLE = "added nullable"
    ADDED_REQUIRED = "added required"
    DROPPED_NULLABLE = "dropped nullable"
    DROPPED_REQUIRED = "dropped required"
    WIDENED = "widened"
    NARROWED = "narrowed"
    MADE_NULLABLE = "made nullable"
    MADE_REQUIRED = "made required"
    RETYPED = "retyped"
    RESPELLED = "respelled"


# May a reader of the new schema read old data, and may a reader of the old schema read new data?
RULES: dict[ChangeKind, tuple[bool, bool]] = {
    ChangeKind.ADDED_NULLABLE: (True, True),
    ChangeKind.ADDED_REQUIRED: (False, True),
    ChangeKind.DROPPED_NULLABLE: (True, True),
    ChangeKind.DROPPED_REQUIRED: (True, False),
    ChangeKind.WIDENED: (True, False),
    ChangeKind.NARROWED: (False, True),
    ChangeKind.MADE_NULLABLE: (True, False),
    ChangeKind.MADE_REQUIRED: (False, True),
    ChangeKind.RETYPED: (False, False),
    ChangeKind.RESPELLED: (False, False),
}

_REASONS = {
    ChangeKind.ADDED_NULLABLE: "old data is read with nulls, old readers leave it out",
    ChangeKind.ADDED_REQUIRED: "old data has no value for it",
    ChangeKind.DROPPED_NULLABLE: "new readers leave it out, old readers read nulls",
    ChangeKind.DROPPED_REQUIRED: "old readers need a value that new data lacks",
    ChangeKind.WIDENED: "old readers may meet values that do not fit",
    ChangeKind.NARROWED: "old data may have values that do not fit",
    ChangeKind.MADE_NULLABLE: "old readers may meet nulls",
    ChangeKind.MADE_REQUIRED: "old data may have nulls",
    ChangeKind.RETYPED: "neither type holds the other's values",
    ChangeKind.RESPELLED: "the names differ only in case, and readers take columns by name",
}


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """What happened to one column.

    `old` and `new` are its types, or its names if it was respelled; none where there is no such
    column. `in_key` says that it is part of a map's key.
    """

    path: str
    kind: ChangeKind
    old: str | None = None
    new: str | None = None
    in_key: bool = False

    @property
    def backward(self) -> bool:
        """Whether readers of the new schema can read old data."""
        return RULES[self.kind][0] and not (self.in_key and self.new is None)

    @property
    def forward(self) -> bool:
        """Whether readers of the old schema can read new data."""
        return RULES[self.kind][1] and not (self.in_key and self.old is None)

    @property
    def reason(self) -> str:
        """Why, in words."""
        if self.in_key and (self.old is None or self.new is None):
            return "without it two keys of a map could become one"
        return _REASONS[self.kind]

    def __str__(self) -> str:
        return f"{shown(self.path)} was {self.kind}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Compatibility:
    """What changed from one schema to another, and who can still read whose data."""

    changes: tuple[ColumnChange, ...]

    @property
    def backward(self) -> bool:
        """Whether readers of the new schema can read old data."""
        return all(change.backward for change in self.changes)

    @property
    def forward(self) -> bool:
        """Whether readers of the old schema can read new data."""
        return all(change.forward for change in self.changes)

    @property
    def verdict(self) -> str:
        """`full`, `backward`, `forward` or `none`."""
        if self.backward:
            return "full" if self.forward else "backward"
        return "forward" if self.forward else "none"


class Mode(StrEnum):
    """How a new schema must get on with those before it; the transitive modes ask all of them."""

    NONE = "none"
    BACKWARD = "backward"
    BACKWARD_TRANSITIVE = "backward_transitive"
    FORWARD = "forward"
    FORWARD_TRANSITIVE = "forward_transitive"
    FULL = "full"
    FULL_TRANSITIVE = "full_transitive"

    @property
    def transitive(self) -> bool:
        return self.value.endswith("_transitive")

    def allows(self, change: ColumnChange) -> bool:
        """Whether a change is acceptable in this mode."""
        asked = self.value.removesuffix("_transitive")
        backward = asked in ("backward", "full")
        forward = asked in ("forward", "full")
        return (change.backward or not backward) and (change.forward or not forward)


@dataclass(frozen=True, slots=True)
class Break:
    """A change that a mode forbids, and the schema of the history that it breaks with."""

    fingerprint: str
    change: ColumnChange

    def __str__(self) -> str:
        return f"{self.change} (against {self.fingerprint[:8]})"


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a schema may follow a history, and what forbids it."""

    mode: Mode
    breaks: tuple[Break, ...]

    @property
    def ok(self) -> bool:
        return not self.breaks


def compatibility(old: Schema | str, new: Schema | str) -> Compatibility:
    """What changed from `old` to `new`, column by column, and what that means for readers."""
    first, second = Schema.of(old), Schema.of(new)
    if first == second:
        return Compatibility(())
    return Compatibility(tuple(_structs(first.struct(), second.struct(), "")))


def judge(new: Schema | str, history: Sequence[Schema | str], mode: str) -> Judgement:
    """Whether `new` may follow a history, given from the oldest to the newest schema."""
    wanted = chosen(Mode, "mode", mode)
    if wanted is Mode.NONE:
        return Judgement(wanted, ())
    asked = history if wanted.transitive else history[-1:]
    return Judgement(
        wanted,
        tuple(
            Break(Schema.of(old).fingerprint, change)
            for old in asked
            for change in compatibility(old, new).changes
            if not wanted.allows(change)
        ),
    )


def _structs(old: StructType, new: StructType, path: str) -> Iterator[ColumnChange]:
    before = {field.name.casefold(): field for field in old.fields}
    for field in new.fields:
        was = before.pop(field.name.casefold(), None)
        here = child(path, field.name)
        if was is None:
            kind = ChangeKind.ADDED_NULLABLE if field.nullable else ChangeKind.ADDED_REQUIRED
            yield ColumnChange(here, kind, None, type_text(field.dataType))
        else:
            yield from _fields(was, field, here)
    for field in before.values():
        kind = ChangeKind.DROPPED_NULLABLE if field.nullable else ChangeKind.DROPPED_REQUIRED
        yield ColumnChange(child(path, field.name), kind, type_text(field.dataType), None)


def _fields(old: StructField, new: StructField, path: str) -> Iterator[ColumnChange]:
    if old.name != new.name:
        yield ColumnChange(path, ChangeKind.RESPELLED, quote(old.name), quote(new.name))
    yield from _nullability(old.nullable, new.nullable, path, new.dataType)
    yield from _types(old.dataType, new.dataType, path)


def _nullability(old: bool, new: bool, path: str, kind: DataType) -> Iterator[ColumnChange]:
    if old != new:
        text = type_text(kind)
        yield ColumnChange(
            path, ChangeKind.MADE_NULLABLE if new else ChangeKind.MADE_REQUIRED, text, text
        )


def _types(old: DataType, new: DataType, path: str) -> Iterator[ColumnChange]:
    if old is new:
        return
    if isinstance(old, StructType) and isinstance(new, StructType):
        yield from _structs(old, new, path)
    elif type(old) is type(new) and held(old):
        for (name, was, before), (_, now, after) in zip(held(old), held(new), strict=True):
            here = f"{path}.{name}"
            yield from _nullability(before, after, here, now)
            for change in _types(was, now, here):
                yield replace(change, in_key=True) if name == "key" else change
    else:
        kind = _retyped(old, new)
        if kind is not None:
            yield ColumnChange(path, kind, type_text(old), type_text(new))


def _retyped(old: DataType, new: DataType) -> ChangeKind | None:
    before, after = type_text(old), type_text(new)
    if before == after:
        return None
    common = widest(old, new)
    if common is None:
        return ChangeKind.RETYPED
    held = type_text(common)
    if held == after:
        return ChangeKind.WIDENED
    return ChangeKind.NARROWED if held == before else ChangeKind.RETYPED
