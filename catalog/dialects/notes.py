"""Notes that keep a type which the other dialect can hold but not name."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from pyspark.sql.types import (
    CharType,
    DataType,
    DayTimeIntervalType,
    StringType,
    VarcharType,
    YearMonthIntervalType,
)

from catalog.errors import InvalidSchema
from catalog.schema import atoms
from catalog.schema.ddl import parse_type

# Types whose values are text, and so can be the keys of an object.
TEXT = (StringType, CharType, VarcharType)


def stem(kind: DataType) -> str:
    """The type's name without parameters: `string`, `varchar`, `time`, `day-time`."""
    if isinstance(kind, YearMonthIntervalType):
        return "year-month"
    if isinstance(kind, DayTimeIntervalType):
        return "day-time"
    text = atoms.text_of(kind) or ""
    return text.partition(" ")[0].partition("(")[0]


def same(one: DataType | None, other: DataType | None) -> bool:
    """Whether two are the same atomic type."""
    text = None if one is None else atoms.text_of(one)
    return text is not None and other is not None and text == atoms.text_of(other)


def fitting(
    note: object, found: DataType, plain: Callable[[DataType], DataType | None]
) -> DataType | None:
    """The type that a note names, if what was found is what this type is plainly read as.

    A note outlives a change of the column's type, so it counts only where it still fits.
    """
    named = _parsed(note) if isinstance(note, str) else None
    return named if named is not None and same(plain(named), found) else None


def lost(kind: DataType, words: str) -> str:
    """How to name a type that readers without the note take for another."""
    text = atoms.text_of(kind) or str(kind)
    if text.startswith("string collate "):
        return f"collation {text.rpartition(' ')[2]}"
    return f"{text} is written as {words}"


# Failures are cached too: many columns may share one note, and it may be long.
@lru_cache(maxsize=1024)
def _parsed(note: str) -> DataType | None:
    try:
        return parse_type(note)
    except InvalidSchema:
        return None
