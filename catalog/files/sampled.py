"""The schema of JSON lines or CSV, guessed as Spark would from the first records of the file.

Spark reads all of a file to guess, so values after the sample may not fit. What Spark passes over,
such as a line that it cannot parse, is refused here with the line's number.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from json import JSONDecodeError
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from catalog.errors import BrokenFile
from catalog.files.guesses import NOTHING, Guess, after_text, atom, merged, of_json, spark_type
from catalog.files.opening import named
from catalog.schema import Schema
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
    """The schema of a file with one object, or an array of objects, a line; and how many there are
    if the sample is all of it."""
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
    """The schema of a file with a header and one record a line; and how many records there are if
    the sample is all of it."""
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
    columns = zip(names, map(atom, guesses), strict=True)
    schema = Schema.of(StructType([StructField(name, kind) for name, kind in columns]))
    return schema, len(lines) if whole else None


# --- the sample ---


def _sample(file: pa.NativeFile, path: str, most: int) -> tuple[_Lines, bool]:
    """At most so many lines from the beginning, and whether they are all of the file."""
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
    """The first bytes of the text: one more than a sample has, if there are more."""
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


# --- records ---


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
        raise ValueError(f"{shown(twice)!r} stands in it twice")
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
