"""Spark's atomic types as Avro has them."""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import DataType, DecimalType

from catalog.dialects import notes
from catalog.schema import atoms
from catalog.schema.ddl import parse_type

_INT, _LONG = "int", "long"

_WRITTEN: dict[str, dict[str, Any]] = {
    "boolean": {"type": "boolean"},
    "tinyint": {"type": _INT},
    "smallint": {"type": _INT},
    "int": {"type": _INT},
    "bigint": {"type": _LONG},
    "float": {"type": "float"},
    "double": {"type": "double"},
    "string": {"type": "string"},
    "char": {"type": "string"},
    "varchar": {"type": "string"},
    "binary": {"type": "bytes"},
    "date": {"type": _INT, "logicalType": "date"},
    "timestamp": {"type": _LONG, "logicalType": "timestamp-micros"},
    "timestamp_ntz": {"type": _LONG, "logicalType": "local-timestamp-micros"},
    "time": {"type": _LONG, "logicalType": "time-micros"},
    # As Spark itself writes them: months, and microseconds.
    "year-month": {"type": _INT},
    "day-time": {"type": _LONG},
    "void": {"type": "null"},
}

_READ = {
    "boolean": "boolean",
    _INT: "int",
    _LONG: "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "enum": "string",
    "bytes": "binary",
    "fixed": "binary",
    "null": "void",
}

# Nanoseconds are left out: Spark would lose digits, and a bigint holds them as they are.
_LOGICAL = {
    (_INT, "date"): "date",
    (_INT, "time-millis"): "time(3)",
    (_LONG, "time-micros"): "time(6)",
    (_LONG, "timestamp-millis"): "timestamp",
    (_LONG, "timestamp-micros"): "timestamp",
    (_LONG, "local-timestamp-millis"): "timestamp_ntz",
    (_LONG, "local-timestamp-micros"): "timestamp_ntz",
}


def written(kind: DataType) -> dict[str, Any] | None:
    """The Avro type that holds the values of an atomic type, or None when Avro has none."""
    if isinstance(kind, DecimalType):
        decimal = {"logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
        return {"type": "bytes", **decimal}
    found = _WRITTEN.get(notes.stem(kind))
    return None if found is None else dict(found)


def read(found: dict[str, Any]) -> DataType:
    """The atomic type that a checked Avro type is plainly read as."""
    if is_decimal(found):
        return DecimalType(found["precision"], found.get("scale", 0))
    kind, logical = found["type"], found.get("logicalType")
    name = _LOGICAL.get((kind, logical)) if isinstance(logical, str) else None
    return parse_type(name or _READ[kind])


def is_atom(found: dict[str, Any]) -> bool:
    """Whether the type is atomic."""
    return found["type"] in _READ


def is_decimal(found: dict[str, Any]) -> bool:
    """Whether the type is a decimal; on any other type the specification ignores that word."""
    return found.get("logicalType") == "decimal" and found["type"] in ("bytes", "fixed")


def decimal_fault(found: dict[str, Any]) -> str | None:
    """What is wrong with a decimal's precision and scale, or None."""
    return atoms.fault(DecimalType(found.get("precision", 0), found.get("scale", 0)))


def plainly(kind: DataType) -> DataType | None:
    """What an atomic type comes back as without its note."""
    found = written(kind)
    return None if found is None else read(found)


def said(found: dict[str, Any], kind: DataType) -> set[str]:
    """The attributes that the type read from them stands for."""
    words = {key for key, value in (written(kind) or {}).items() if found.get(key) == value}
    if is_decimal(found):
        words |= {"precision", "scale", "logicalType"}
    logical = found.get("logicalType")
    if isinstance(logical, str) and (found["type"], logical) in _LOGICAL:
        words.add("logicalType")
    return words
