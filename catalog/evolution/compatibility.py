"""Whether readers of one schema can read data of another, with a reason for each column."""

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


# May readers of the new schema read old data (backward), may readers of the old schema read new
# data (forward), and why.
RULES: dict[ChangeKind, tuple[bool, bool, str]] = {
    ChangeKind.ADDED_NULLABLE: (
        True,
        True,
        "old data is read with nulls, old readers leave it out",
    ),
    ChangeKind.ADDED_REQUIRED: (False, True, "old data has no value for it"),
    ChangeKind.DROPPED_NULLABLE: (True, True, "new readers leave it out, old readers read nulls"),
    ChangeKind.DROPPED_REQUIRED: (True, False, "old readers need a value that new data lacks"),
    ChangeKind.WIDENED: (True, False, "old readers may meet values that do not fit"),
    ChangeKind.NARROWED: (False, True, "old data may have values that do not fit"),
    ChangeKind.MADE_NULLABLE: (True, False, "old readers may meet nulls"),
    ChangeKind.MADE_REQUIRED: (False, True, "old data may have nulls"),
    ChangeKind.RETYPED: (False, False, "neither type holds the other's values"),
    ChangeKind.RESPELLED: (
        False,
        False,
        "the names differ only in case, and readers take columns by name",
    ),
}


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """What happened to one column.

    `old` and `new` are its types, or its names if it was respelled; None where the schema lacks it.
    `in_key` says that it is part of a map's key.
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
        """Why it is compatible or not."""
        if self.in_key and (self.old is None or self.new is None):
            return "without it two keys of a map could become one"
        return RULES[self.kind][2]

    def __str__(self) -> str:
        return f"{shown(self.path)} was {self.kind}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Compatibility:
    """What changed from one schema to another, and which readers can read which data."""

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
    """How a new schema must be compatible with the last one, or in transitive modes with all."""

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
        base = self.value.removesuffix("_transitive")
        return (change.backward or base not in ("backward", "full")) and (
            change.forward or base not in ("forward", "full")
        )


@dataclass(frozen=True, slots=True)
class Break:
    """A change that a mode forbids, and the schema of the history that it breaks with."""

    fingerprint: str
    change: ColumnChange

    def __str__(self) -> str:
        return f"{self.change} (against {self.fingerprint[:8]})"


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a schema may follow a history, and the changes that forbid it."""

    mode: Mode
    breaks: tuple[Break, ...]

    @property
    def ok(self) -> bool:
        return not self.breaks


def compatibility(old: Schema | str, new: Schema | str) -> Compatibility:
    """What changed from `old` to `new`, column by column, and whether readers can cope."""
    first, second = Schema.of(old), Schema.of(new)
    if first == second:
        return Compatibility(())
    return Compatibility(tuple(_structs(first.struct(), second.struct(), "")))


def judge(new: Schema | str, history: Sequence[Schema | str], mode: str) -> Judgement:
    """Whether `new` may follow a history, given from the oldest to the newest schema."""
    wanted = chosen(Mode, "mode", mode)
    if wanted is Mode.NONE:
        return Judgement(wanted, ())
    breaks = (
        Break(Schema.of(old).fingerprint, change)
        for old in (history if wanted.transitive else history[-1:])
        for change in compatibility(old, new).changes
        if not wanted.allows(change)
    )
    return Judgement(wanted, tuple(breaks))


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
        if kind := _retyped(old, new):
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
