"""Spark's atomic types and collations: their names, and the limits of their parameters.

The names are spelled out here and not taken from pyspark, because fingerprints are made of them.
Spark reads the names of collations in any case and their modifiers in any order; a fingerprint
needs one spelling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyspark.sql.types as spark
from pyspark.sql.types import DataType

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


def stem(atom: DataType) -> str:
    """The type's name without parameters: `string`, `varchar`, `time`, `day-time`."""
    if isinstance(atom, spark.YearMonthIntervalType):
        return "year-month"
    if isinstance(atom, spark.DayTimeIntervalType):
        return "day-time"
    return (text_of(atom) or "").partition(" ")[0].partition("(")[0]


def fault(atom: DataType) -> str | None:
    """What is wrong with the type's parameters and what to write instead, or None."""
    check = _CHECKS.get(type(atom).__name__)
    return check(atom) if check else None


def _string_text(atom: Any) -> str:
    plain = atom.collation == DEFAULT_COLLATION
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
    name = normalize_collation(str(atom.collation))
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


# --- collations of Spark 4.2 ---

DEFAULT_COLLATION = "UTF8_BINARY"

_BYTEWISE = ("UTF8_BINARY", "UTF8_LCASE")
_LOCALES = """
UNICODE af am ar ar_SAU as az be bg blo bn bo br bs bs_Cyrl ca ceb chr cs cy da de de_AUT dsb dz
ee el en en_USA eo es et fa fa_AFG ff ff_Adlm fi fil fo fr fr_CAN fy ga gl gu ha haw he he_ISR
hi hr hsb hu hy id id_IDN ig is it ja ka kk kk_Arab kl km kn ko kok ku ky lb lij lkt ln lo lt lv
mk ml mn mr ms mt my nb nb_NOR ne nl nn no nso om or pa pa_Guru pa_Guru_IND pl ps pt ro ru sa se
si sk sl smn sq sr sr_Cyrl sr_Cyrl_BIH sr_Cyrl_MNE sr_Cyrl_SRB sr_Latn sr_Latn_BIH sr_Latn_SRB
st sv sw ta te th tk tn to tr ug uk ur uz vi wae wo xh yi yo zh zh_Hans zh_Hans_CHN zh_Hans_SGP
zh_Hant zh_Hant_HKG zh_Hant_MAC zh_Hant_TWN zu
"""
_SPELLING = {name.upper(): name for name in (*_BYTEWISE, *_LOCALES.split())}

# Modifier → its group, which is named after the member that is written (the other is the default).
_MODIFIERS = {"CS": "CI", "CI": "CI", "AS": "AI", "AI": "AI", "RTRIM": "RTRIM"}


def normalize_collation(name: str) -> str | None:
    """The one spelling of a collation name, or None when Spark does not know it."""
    parts = name.upper().split("_")
    given: dict[str, str] = {}
    while len(parts) > 1 and parts[-1] in _MODIFIERS:
        modifier = parts.pop()
        group = _MODIFIERS[modifier]
        if group in given:
            return None
        given[group] = modifier
    base = _SPELLING.get("_".join(parts))
    if base is None or (base in _BYTEWISE and given.keys() - {"RTRIM"}):
        return None
    return "_".join([base, *(m for m in ("CI", "AI", "RTRIM") if given.get(m) == m)])
