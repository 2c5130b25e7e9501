"""The schema of JSON lines or CSV, inferred as Spark would from the first records of the file.

Spark reads the whole file to infer a schema, so values after the sample may not fit. A line that
Spark skips because it cannot be parsed is refused here with its number. pyarrow infers types too,
but others than Spark: no decimals, another order of columns, dates among years.
"""

from __future__ import annotations

import json
import re
from calendar import isleap
from collections import Counter
from collections.abc import Callable, Iterable
from functools import reduce
from json import JSONDecodeError
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from catalog.errors import BrokenFile
from catalog.files.storage import named
from catalog.schema import Schema
from catalog.schema.atoms import MAX_PRECISION
from catalog.schema.ddl import parse_type
from catalog.schema.names import shown

_MOST_BYTES = 1 << 20
_MOST_RECORDS = 1_000
_BOM = b"\xef\xbb\xbf"
_CODECS: dict[str, Literal["gzip", "bz2", "zstd"]] = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_OTHER_CODECS = (".snappy", ".deflate", ".lz4", ".xz")

# Lines that are not blank, with their numbers.
_Lines = list[tuple[int, str]]

# A quote ends a value before a comma or the end of the line, but not after a backslash. A value
# with quotes elsewhere goes on to the next comma: that is how Spark splits a line.
_VALUE = re.compile(
    r'"(?P<quoted>(?:[^"\\]|\\.)*)"(?=,|\Z)|(?P<open>"(?:[^"\\]|\\.?)*\Z)|(?P<bare>[^,]*)'
)
_ESCAPED = re.compile(r'\\(["\\])')


def read_json_lines(file: pa.NativeFile, path: str) -> tuple[Schema, int | None]:
    """The schema of a file with an object, or an array of objects, on each line; and the number of
    objects if the sample is the whole file."""
    lines, whole = _sample(file, path, _MOST_RECORDS)
    guess: Guess = {}
    rows = 0
    for number, line in lines:
        for record in _records(line, number, path):
            guess = merged(guess, of_json(record))
            rows += 1
    kind = spark_type(guess)
    # Without a single column it is refused like any other schema that has none.
    schema = Schema.of(kind if isinstance(kind, StructType) else StructType())
    return schema, rows if whole else None


def read_csv(file: pa.NativeFile, path: str) -> tuple[Schema, int | None]:
    """The schema of a file with a header and a record on each line; and the number of records if
    the sample is the whole file."""
    ((first, header), *lines), whole = _sample(file, path, _MOST_RECORDS + 1)
    names = _values(header, first, path)
    guesses: list[Guess] = [NOTHING] * len(names)
    for number, line in lines:
        values = _values(line, number, path)
        if len(values) != len(names):
            hint = '; write a quote inside a value as \\"' if '"' in line else ""
            raise _broken(
                path, number, f"does not fit the header: {len(values)} for {len(names)} names{hint}"
            )
        guesses = [after_text(guess, value) for guess, value in zip(guesses, values, strict=True)]
    fields = [StructField(name, _atom(guess)) for name, guess in zip(names, guesses, strict=True)]
    return Schema.of(StructType(fields)), len(lines) if whole else None


def _sample(file: pa.NativeFile, path: str, most: int) -> tuple[_Lines, bool]:
    """The first lines, at most `most`, and whether they are the whole file."""
    data = _beginning(file, path)
    whole = len(data) <= _MOST_BYTES
    lines = data[:_MOST_BYTES].removeprefix(_BOM).splitlines(keepends=True)
    if not whole and not lines[-1].endswith((b"\n", b"\r")):
        lines.pop()
    found = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not found and whole:
        raise BrokenFile(
            f"{named(path)} has no records, so its schema is not known", path=path, empty=True
        )
    if not found:
        raise BrokenFile(
            f"the first line of {named(path)} is longer than {_MOST_BYTES:,} bytes; write one "
            "record on each line",
            path=path,
        )
    kept = [(number, _text(line, number, path)) for number, line in found[:most]]
    return kept, whole and len(kept) == len(found)


def _beginning(file: pa.NativeFile, path: str) -> bytes:
    """The first bytes of the text: one more than the sample, if there are more."""
    ending = path[path.rfind(".") :].lower()
    if ending in _OTHER_CODECS:
        raise BrokenFile(
            f"{named(path)} is compressed in a way that is not read here; use no compression or "
            f"{', '.join(_CODECS)}",
            path=path,
        )
    stream = pa.CompressedInputStream(file, _CODECS[ending]) if ending in _CODECS else file
    data = b""
    while len(data) <= _MOST_BYTES and (more := stream.read(_MOST_BYTES + 1 - len(data))):
        data += more
    return data


def _text(line: bytes, number: int, path: str) -> str:
    try:
        return line.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise _broken(path, number, f"is not UTF-8 at byte {error.start}") from None


def _broken(path: str, number: int, problem: str) -> BrokenFile:
    return BrokenFile(f"line {number} of {named(path)} {problem}", path=path, line=number)


def _records(line: str, number: int, path: str) -> Iterable[dict[str, Any]]:
    try:
        value = json.loads(line, object_pairs_hook=_object)
    except RecursionError:
        raise _broken(path, number, "is nested too deeply to be read; flatten it") from None
    except JSONDecodeError as error:
        # Its own words would count lines within this one.
        why = f"{error.msg} (character {error.colno})"
        raise _broken(path, number, f"is no JSON object: {why}") from None
    except ValueError as error:
        raise _broken(path, number, f"is no JSON object: {error}") from None
    records = value if isinstance(value, list) else [value]
    if not all(isinstance(record, dict) for record in records):
        raise _broken(path, number, f"is {shown(line, 40)}, which is no JSON object")
    return records


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{shown(twice)!r} is in it twice")
    return made


def _values(line: str, number: int, path: str) -> list[str]:
    if '"' not in line:
        return line.split(",")
    values, at = [], 0
    while at <= len(line):
        found = _VALUE.match(line, at)
        if found is None or found["open"]:
            raise _broken(path, number, "has a quote that is not closed on it")
        quoted = found["quoted"]
        values.append(found["bare"] if quoted is None else _ESCAPED.sub(r"\1", quoted))
        at = found.end() + 1
    return values


# --- types ----------------------------------------------------------------------------------------

# The name of a type, or "null" before the first value; for objects a dict of guesses, for arrays a
# list of one.
Guess = Any

NOTHING: Guess = "null"
_DECIMAL = re.compile(r"decimal\((\d+),0\)")
_DIGITS = {"int": 10, "bigint": 20}


def of_json(value: Any) -> Guess:
    """The type of a value of a JSON document."""
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
    """The type of a column of texts after one more of them."""
    if not text or guess == "string":
        return guess
    # Spark tries the type so far and then the later ones, so that 2024 is a number, but a timestamp
    # among dates.
    kinds = list(_TRIES)
    begin = 0 if guess == NOTHING else kinds.index(guess.partition("(")[0])
    found = next((kind for kind in kinds[begin:] if _TRIES[kind](text)), "string")
    return merged(guess, _decimal(text) if found == "decimal" else found)


def merged(one: Guess, other: Guess) -> Guess:
    """The common type of two guesses; text if they have none."""
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
    """The Spark type of a guess; none for objects without members, which are no columns."""
    if isinstance(guess, dict):
        found = {name: spark_type(guess[name]) for name in sorted(guess)}
        fields = [StructField(name, kind) for name, kind in found.items() if kind is not None]
        return StructType(fields) if fields else None
    if isinstance(guess, list):
        element = spark_type(guess[0])
        return None if element is None else ArrayType(element)
    return _atom(guess)


def _atom(guess: str) -> DataType:
    """The Spark type of a name; text if there was no value."""
    return parse_type("string" if guess == NOTHING else guess)


def _decimal(number: str) -> str:
    """The decimal that holds a whole number; a double if none is large enough."""
    digits = len(number.strip("+-.").lstrip("0")) or 1
    return f"decimal({digits},0)" if digits <= MAX_PRECISION else "double"


def _digits(guess: Guess) -> int:
    """The digits that numbers of a guess may have; 0 if it is no number."""
    if guess == "double":
        return MAX_PRECISION + 1
    found = _DECIMAL.fullmatch(str(guess))
    return int(found[1]) if found else _DIGITS.get(str(guess), 0)


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
    # Python refuses to convert thousands of digits; no such number fits.
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
