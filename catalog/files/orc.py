"""The schema of an ORC file as Spark reads it; ORC does not record whether a column may be null.

The types are read from the file's tail. pyarrow would convert them too, but it ends the whole
process when a damaged file has a decimal of more than 38 digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import cast

import pyarrow as pa
from pyarrow.orc import ORCFile
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from catalog.errors import InvalidSchema
from catalog.schema import Schema
from catalog.schema.ddl import parse_type
from catalog.schema.names import child, shown
from catalog.schema.rules import check_depth

# Where Spark notes types that ORC does not have, such as timestamp_ntz.
_NOTE = b"spark.sql.catalyst.type"

_LIST, _MAP, _STRUCT, _DECIMAL = 10, 11, 12, 14
_ATOMS = {
    0: "boolean",
    1: "tinyint",
    2: "smallint",
    3: "int",
    4: "bigint",
    5: "float",
    6: "double",
    7: "string",
    8: "binary",
    9: "timestamp",
    15: "date",
    16: "string",  # varchar: Spark leaves its length out
    17: "string",  # char
    18: "timestamp",  # with local time zone
}


@dataclass
class _Type:
    """One type of the file; `subtypes` are places in the list of all types."""

    kind: int = 0
    subtypes: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    # Files that are older than these two mean this.
    precision: int = 38
    scale: int = 10
    note: str | None = None


def read_orc(file: pa.NativeFile) -> tuple[Schema, int]:
    """The schema and the number of rows of an open file; InvalidSchema names a column that Spark
    cannot read."""
    opened = ORCFile(file)
    tail = cast(bytes, opened.reader.serialized_file_tail())
    footer = _messages(tail, 2)[0]
    return _converted(_messages(footer, 4)), opened.nrows


# Files come in thousands and their schemas in dozens.
@lru_cache(maxsize=1024)
def _converted(messages: tuple[bytes, ...]) -> Schema:
    types = [_read_type(message) for message in messages]
    root = _spark_type(types, 0, "", -1)
    if not isinstance(root, StructType):
        raise InvalidSchema(
            "the file has values without columns; write it with columns", value=root
        )
    return Schema.of(root)


def _spark_type(types: Sequence[_Type], number: int, path: str, depth: int) -> DataType:
    here = types[number]
    check_depth(depth, path)
    if any(inner <= number for inner in here.subtypes) or len(here.names) > len(here.subtypes):
        raise InvalidSchema(
            f"column {shown(path)} is inside itself or without a type; write the file again",
            column=path,
        )

    def inner(place: int, name: str) -> DataType:
        return _spark_type(types, here.subtypes[place], name, depth + 1)

    if here.kind == _STRUCT:
        return StructType(
            [
                StructField(name, inner(place, child(path, name)))
                for place, name in enumerate(here.names)
            ]
        )
    if here.kind == _LIST:
        return ArrayType(inner(0, f"{path}.element"))
    if here.kind == _MAP:
        return MapType(inner(0, f"{path}.key"), inner(1, f"{path}.value"))
    return _atom(here, path)


def _atom(here: _Type, path: str) -> DataType:
    decimal = f"decimal({here.precision},{here.scale})" if here.kind == _DECIMAL else None
    name = here.note or decimal or _ATOMS.get(here.kind, f"number {here.kind} of ORC's")
    try:
        return parse_type(name)
    except InvalidSchema:
        raise InvalidSchema(
            f"column {shown(path)} has the type {shown(name)}, which Spark does not read; write it "
            "as another type",
            column=path,
            value=name,
        ) from None


# --- ORC's messages, which are protocol buffers ---


def _read_type(message: bytes) -> _Type:
    made = _Type()
    # A value of another kind than it should have is ignored, as unknown fields are.
    for each in _fields(message):
        match each:
            case 1, int(kind):
                made.kind = kind
            case 2, int(place):
                made.subtypes.append(place)
            case 2, bytes(places):
                made.subtypes += _numbers(places)
            case 3, bytes(name):
                made.names.append(name.decode())
            case 5, int(precision):
                made.precision = precision
            case 6, int(scale):
                made.scale = scale
            case 7, bytes(attribute):
                match dict(_fields(attribute)):
                    case {1: key, 2: bytes(value)} if key == _NOTE:
                        made.note = value.decode()
    return made


def _messages(message: bytes, number: int) -> tuple[bytes, ...]:
    """The messages that a message holds in one of its fields."""
    return tuple(v for n, v in _fields(message) if n == number and isinstance(v, bytes))


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message by their numbers: whole numbers, or bytes of any meaning."""
    at = 0
    while at < len(message):
        tag, at = varint(message, at)
        wire = tag & 7
        if wire == 0:
            value, at = varint(message, at)
            yield tag >> 3, value
            continue
        size, at = varint(message, at) if wire == 2 else (8 if wire == 1 else 4, at)
        yield tag >> 3, message[at : at + size]
        at += size


def varint(message: bytes | bytearray, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, and where the next field begins."""
    value = shift = 0
    while message[at] & 0x80:
        value |= (message[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | message[at] << shift, at + 1


def _numbers(packed: bytes) -> list[int]:
    found, at = [], 0
    while at < len(packed):
        value, at = varint(packed, at)
        found.append(value)
    return found
