"""Spark's atomic types: their names, and the limits of their parameters.

The names are spelled out here and not taken from pyspark, because fingerprints are made of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyspark.sql.types as spark
from pyspark.sql.types import DataType

from catalog.schema import collation

SIMPLE: dict[str, type[DataType]] = {
    "boolean": spark.BooleanType,
    "tinyint": spark.ByteType,
    "smallint": spark.ShortType,
    "int": spark.IntegerType,
    "bigint": spark.LongType,
    "float": spark.FloatType,
    "double": spark.DoubleType,
    "binary": spark.BinaryType,
    "date": spark.DateType,
    "timestamp": spark.TimestampType,
    "timestamp_ntz": spark.TimestampNTZType,
    "void": spark.NullType,
    "variant": spark.VariantType,
    "interval": spark.CalendarIntervalType,
}

ALIASES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "timestamp_ltz": "timestamp",
}

YEAR_MONTH = ("year", "month")
DAY_TIME = ("day", "hour", "minute", "second")

MAX_LENGTH = 2**31 - 1
MAX_PRECISION = 38
MAX_TIME_PRECISION = 6

_NAMES = {kind: name for name, kind in SIMPLE.items()}


def text_of(atom: DataType) -> str | None:
    """The type's lower-case SQL name, or None when it is no atomic type that a table can have."""
    kind = type(atom)
    # A subclass or a user-defined type may mean anything, so only Spark's own classes count.
    if kind in _NAMES or kind.__module__ != spark.__name__:
        return _NAMES.get(kind)
    render = _RENDER.get(kind.__name__)
    return render(atom) if render else None


def fault(atom: DataType) -> str | None:
    """What is wrong with the type's parameters and what to write instead, or None."""
    check = _CHECKS.get(type(atom).__name__)
    return check(atom) if check else None


def _string_text(atom: Any) -> str:
    plain = atom.collation == collation.DEFAULT
    return "string" if plain else f"string collate {atom.collation}"


def _interval_text(fields: tuple[str, ...]) -> Callable[[Any], str]:
    def render(atom: Any) -> str:
        start, end = fields[atom.startField], fields[atom.endField]
        return f"interval {start}" if start == end else f"interval {start} to {end}"

    return render


def _spatial_text(name: str) -> Callable[[Any], str]:
    return lambda atom: f"{name}({'any' if atom.srid == atom.MIXED_SRID else atom.srid})"


# By class name: Spark 4.0, which some managed runtimes still carry, lacks the last three.
_RENDER: dict[str, Callable[[Any], str]] = {
    "StringType": _string_text,
    "DecimalType": lambda atom: f"decimal({atom.precision},{atom.scale})",
    "CharType": lambda atom: f"char({atom.length})",
    "VarcharType": lambda atom: f"varchar({atom.length})",
    "YearMonthIntervalType": _interval_text(YEAR_MONTH),
    "DayTimeIntervalType": _interval_text(DAY_TIME),
    "TimeType": lambda atom: f"time({atom.precision})",
    "GeometryType": _spatial_text("geometry"),
    "GeographyType": _spatial_text("geography"),
}


def _within(value: object, low: int, high: int) -> bool:
    return type(value) is int and low <= value <= high


def _string_fault(atom: Any) -> str | None:
    name = collation.normalize(str(atom.collation))
    if name is None:
        return f"collation {atom.collation!r} is not known; use one that collations() lists"
    # pyspark takes any spelling, and then writes `utf8_lcase` to JSON as a collation of ICU.
    return None if name == atom.collation else f"spell collation {atom.collation!r} as {name}"


def _decimal_fault(atom: Any) -> str | None:
    if not _within(atom.precision, 1, MAX_PRECISION):
        return f"decimal precision {atom.precision} must be between 1 and {MAX_PRECISION}"
    if not _within(atom.scale, 0, atom.precision):
        return f"decimal scale {atom.scale} must be between 0 and the precision {atom.precision}"
    return None


def _length_fault(atom: Any) -> str | None:
    if _within(atom.length, 0, MAX_LENGTH):
        return None
    return f"length {atom.length} must be between 0 and {MAX_LENGTH}; use string for no limit"


def _interval_fault(atom: Any) -> str | None:
    if atom.startField <= atom.endField:
        return None
    return "an interval must run from the larger unit to the smaller; swap the two"


def _time_fault(atom: Any) -> str | None:
    if _within(atom.precision, 0, MAX_TIME_PRECISION):
        return None
    return f"time precision {atom.precision} must be between 0 and {MAX_TIME_PRECISION}"


_CHECKS: dict[str, Callable[[Any], str | None]] = {
    "StringType": _string_fault,
    "DecimalType": _decimal_fault,
    "CharType": _length_fault,
    "VarcharType": _length_fault,
    "YearMonthIntervalType": _interval_fault,
    "DayTimeIntervalType": _interval_fault,
    "TimeType": _time_fault,
}
