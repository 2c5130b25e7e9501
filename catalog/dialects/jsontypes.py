"""Spark's atomic types as JSON Schema has them.

`date-time-local` and `time-local` are formats that OpenAPI lists: the drafts' own `date-time` and
`time` need an offset, which `timestamp_ntz` and `time` do not have.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import DataType, DecimalType, LongType, NullType, VarcharType, VariantType

from catalog.dialects import notes
from catalog.dialects.jsonkinds import ANYTHING
from catalog.dialects.translation import refused
from catalog.schema import atoms
from catalog.schema.ddl import parse_type
from catalog.schema.names import shown

_WIDTHS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_BOUNDS = {
    name: {"minimum": -(2 ** (bits - 1)), "maximum": 2 ** (bits - 1) - 1}
    for name, bits in _WIDTHS.items()
}
# JavaScript rounds the bounds of bigint to 9223372036854776000, and those still count as its own.
_BEYOND = 2**63 + 1024
_LIMITS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")

_STRING = {"type": "string"}
_WRITTEN: dict[str, dict[str, Any]] = {
    "boolean": {"type": "boolean"},
    **{name: {"type": "integer", **bounds} for name, bounds in _BOUNDS.items()},
    "float": {"type": "number", "format": "float"},
    "double": {"type": "number"},
    "string": _STRING,
    "binary": {**_STRING, "contentEncoding": "base64"},
    "date": {**_STRING, "format": "date"},
    "timestamp": {**_STRING, "format": "date-time"},
    "timestamp_ntz": {**_STRING, "format": "date-time-local"},
    "time": {**_STRING, "format": "time-local"},
    "interval": {**_STRING, "format": "duration"},
    "year-month": {**_STRING, "format": "duration"},
    "day-time": {**_STRING, "format": "duration"},
    "void": {"type": "null"},
}

_FORMATS = {
    "integer": {"int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint"},
    "number": {"float": "float", "double": "double"},
    "string": {
        "date": "date",
        "date-time": "timestamp",
        "date-time-local": "timestamp_ntz",
        "time": "time(6)",
        "time-local": "time(6)",
        "byte": "binary",
        "binary": "binary",
    },
}
_PLAIN = {"boolean": "boolean", "integer": "bigint", "number": "double", "string": "string"}
_OF_THE_DRAFT = (None, "date", "date-time")


def written(kind: DataType) -> dict[str, Any] | None:
    """The JSON Schema of an atomic type's values, or None when there is none."""
    if isinstance(kind, DecimalType):
        return {"type": "number" if kind.scale else "integer"}
    if isinstance(kind, VariantType):
        return {"type": [*ANYTHING]}
    stem = notes.stem(kind)
    if stem in ("char", "varchar"):
        length: Any = getattr(kind, "length", None)
        return {**_STRING, "maxLength": length}
    found = _WRITTEN.get(stem)
    return None if found is None else dict(found)


def read(found: dict[str, Any], kind: str, path: str) -> tuple[DataType, set[str]]:
    """The atomic type that keywords of one JSON type plainly give, and the keywords it says."""
    for name, bounds in _BOUNDS.items():
        if kind == "integer" and all(found.get(key) == bound for key, bound in bounds.items()):
            return parse_type(name), {*bounds}
    if kind == "string" and found.get("contentEncoding") == "base64":
        return parse_type("binary"), {"contentEncoding"}
    name = _FORMATS.get(kind, {}).get(_format(found, path), "")
    if name:
        # The draft's `time` has an offset, and that is not kept.
        return parse_type(name), {"format"} if found["format"] != "time" else set()
    length = _length(found, path) if kind == "string" else None
    if length is not None and length <= atoms.MAX_LENGTH:
        return VarcharType(length), {"maxLength"}
    return parse_type(_PLAIN[kind]), set()


def plainly(kind: DataType) -> DataType | None:
    """What an atomic type comes back as without its note."""
    found = written(kind)
    if found is None or isinstance(kind, VariantType | NullType):
        return None if found is None else kind
    return read(found, found["type"], "")[0]


def words(found: dict[str, Any]) -> str:
    """How to call the JSON Schema of an atomic type."""
    form = found.get("format")
    return str(found["type"]) if form is None else f"{found['type']} of format {form}"


def is_said(kind: DataType, found: dict[str, Any]) -> bool:
    """Whether readers that know only the draft take these keywords for this very type."""
    return notes.same(plainly(kind), kind) and found.get("format") in _OF_THE_DRAFT


def check_range(kind: DataType, found: dict[str, Any], path: str) -> None:
    """Raise InvalidSchema when an integer may be larger than a bigint."""
    for key in _LIMITS if isinstance(kind, LongType) else ():
        bound = found.get(key)
        if isinstance(bound, int | float) and abs(bound) > _BEYOND:
            raise refused(
                path,
                f"may be as large as {shown(str(bound))}, and a bigint has 64 bits; note a decimal "
                'with "x-spark-type": "decimal(20,0)", or narrow the bounds',
                bound,
            )


def _format(found: dict[str, Any], path: str) -> str:
    form = found.get("format", "")
    if not isinstance(form, str):
        raise refused(path, f"has the format {shown(repr(form))}; use text", form)
    return form


def _length(found: dict[str, Any], path: str) -> int | None:
    length = found.get("maxLength")
    if isinstance(length, float) and length.is_integer():
        length = int(length)
    if length is not None and (type(length) is not int or length < 0):
        raise refused(
            path, f"has the maxLength {shown(repr(length))}; use a whole number from 0", length
        )
    return length
