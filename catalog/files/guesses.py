"""Which type values have that say nothing of it, guessed as Spark guesses."""

from __future__ import annotations

import re
from calendar import isleap
from collections.abc import Callable
from functools import reduce
from typing import Any

from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from catalog.schema.atoms import MAX_PRECISION
from catalog.schema.ddl import parse_type

# The name of a type, or "null" as long as there is no value; for objects a dict of guesses, for
# arrays a list of one.
Guess = Any

NOTHING: Guess = "null"
_DECIMAL = re.compile(r"decimal\((\d+),0\)")
_DIGITS = {"int": 10, "bigint": 20}


def of_json(value: Any) -> Guess:
    """The guess for a value of a JSON document."""
    match value:
        case None:
            return NOTHING
        case bool():
            return "boolean"
        case int():
            return "bigint" if -(2**63) <= value < 2**63 else _decimal(str(value))
        case float():
            return "double"
        case str():
            return "string"
        case list():
            return [reduce(merged, map(of_json, value), NOTHING)]
    return {name: of_json(inner) for name, inner in value.items()}


def after_text(guess: Guess, text: str) -> Guess:
    """The guess for a column of texts after one more of them."""
    if not text or guess == "string":
        return guess
    # Spark tries the type so far and then those that come after it, so that 2024 is a number, but
    # a timestamp among dates.
    kinds = list(_TRIES)
    begin = 0 if guess == NOTHING else kinds.index(guess.partition("(")[0])
    found = next((kind for kind in kinds[begin:] if _TRIES[kind](text)), "string")
    return merged(guess, _decimal(text) if found == "decimal" else found)


def merged(one: Guess, other: Guess) -> Guess:
    """The guess for values of two guesses; text if they have nothing in common."""
    if one == other or other == NOTHING:
        return one
    if one == NOTHING:
        return other
    match one, other:
        case dict(), dict():
            return one | {name: merged(one.get(name, NOTHING), other[name]) for name in other}
        case list(), list():
            return [merged(one[0], other[0])]
        case ("date", "timestamp") | ("timestamp", "date"):
            return "timestamp"
        case ("int", "bigint") | ("bigint", "int"):
            return "bigint"
    digits = [_digits(one), _digits(other)]
    if 0 in digits:
        return "string"
    return _decimal("9" * max(digits))


def spark_type(guess: Guess) -> DataType | None:
    """The type of a guess; none for objects without members, which are no columns."""
    if isinstance(guess, dict):
        found = {name: spark_type(guess[name]) for name in sorted(guess)}
        fields = [StructField(name, kind) for name, kind in found.items() if kind is not None]
        return StructType(fields) if fields else None
    if isinstance(guess, list):
        element = spark_type(guess[0])
        return None if element is None else ArrayType(element)
    return atom(guess)


def atom(guess: str) -> DataType:
    """The type of a guess that is the name of a type; text if there was no value."""
    return parse_type("string" if guess == NOTHING else guess)


# --- numbers ---


def _decimal(number: str) -> str:
    """The decimal that holds a whole number; a double if none is large enough."""
    digits = len(number.strip("+-.").lstrip("0")) or 1
    return f"decimal({digits},0)" if digits <= MAX_PRECISION else "double"


def _digits(guess: Guess) -> int:
    """How many digits numbers of a guess may have; 0 if it is no number."""
    if guess == "double":
        return MAX_PRECISION + 1
    found = _DECIMAL.fullmatch(str(guess))
    return int(found[1]) if found else _DIGITS.get(str(guess), 0)


# --- texts ---

_WHOLE = re.compile(r"[+-]?\d+")
# As Java reads a double, and two words of Spark's.
_DOUBLE = re.compile(
    r"-?Inf|[\x00- ]*[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?)[\x00- ]*"
)
_DATE = re.compile(r"-?\d{4}-\d\d-\d\d")
_DAY = re.compile(r"[+-]?(?P<year>\d{4,6})(?:-(?P<month>\d\d?)(?:-(?P<day>\d\d?))?)?")
_CLOCK = re.compile(
    r"(\d\d?)(?::(\d\d?)(?::(\d\d?)(?:\.\d*)?)?)?"
    r"(?: ?(?:Z|(?:UTC?|GMT)?[+-]\d\d?(?::?\d\d?(?::?\d\d)?)?|UTC?|GMT|[A-Z]\w+(?:/[\w+-]+)+))?"
)
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _is_whole(text: str, bits: int) -> bool:
    # Python refuses to convert thousands of digits, and none of these is so long.
    if len(text) > 20 or not _WHOLE.fullmatch(text):
        return False
    return -(1 << bits - 1) <= int(text) < 1 << bits - 1


def _is_timestamp(text: str) -> bool:
    text = text.strip()
    day = _DAY.match(text)
    if day is None:
        return ":" in text and _is_clock(text.removeprefix("T"))
    rest = text[day.end() :]
    if rest and (day["day"] is None or rest[0] not in " T" or not _is_clock(rest[1:])):
        return False
    return _is_day(int(day["year"]), int(day["month"] or 1), int(day["day"] or 1))


def _is_day(year: int, month: int, day: int) -> bool:
    # The calendar of Spark has years that Python's dates have not.
    return 1 <= month <= 12 and 1 <= day <= _LENGTHS[month - 1] + (month == 2 and isleap(year))


def _is_clock(text: str) -> bool:
    found = _CLOCK.fullmatch(text)
    return found is not None and all(
        int(part or 0) < limit for part, limit in zip(found.groups(), (24, 60, 60), strict=True)
    )


_TRIES: dict[str, Callable[[str], bool]] = {
    "int": lambda text: _is_whole(text, 32),
    "bigint": lambda text: _is_whole(text, 64),
    "decimal": lambda text: bool(_WHOLE.fullmatch(text.removesuffix("."))),
    "double": lambda text: bool(_DOUBLE.fullmatch(text)),
    "date": lambda text: bool(_DATE.fullmatch(text)) and _is_timestamp(text),
    "timestamp": _is_timestamp,
    "boolean": lambda text: text.lower() in ("true", "false"),
}
