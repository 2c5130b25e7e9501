"""The schema and the row count of a Parquet file as Spark reads it, with the file's nullability.

Spark takes the schema that a Spark wrote into the file, and derives it from the columns otherwise.
The rules on nesting are those of Spark's `ParquetToSparkSchemaConverter`: the Arrow schema that
pyarrow derives follows notes of Arrow writers (a duration, a dictionary) that Spark ignores.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, VariantType

from catalog.errors import InvalidSchema
from catalog.files.orc import varint
from catalog.schema import Schema, atoms
from catalog.schema.names import child, shown
from catalog.schema.spark_json import parse_json, read_json

_NOTE = b"org.apache.spark.sql.parquet.row.metadata"
# pyarrow gives the annotation of a group only in print.
_LINE = re.compile(r" *(\w+) \S+ field_id=-?\d+ (.*)( \{|;)")
_ANNOTATED = re.compile(r"(?P<name>.*) \((?P<annotation>List|Map|Variant)(?:\(\d+\))?\)")

_PHYSICAL = {
    "BOOLEAN": "boolean",
    "INT32": "int",
    "INT64": "bigint",
    "INT96": "timestamp",
    "FLOAT": "float",
    "DOUBLE": "double",
    "BYTE_ARRAY": "binary",
    "FIXED_LEN_BYTE_ARRAY": "binary",
}
_LOGICAL = {
    "String": "string",
    "Enum": "string",
    "JSON": "string",
    "BSON": "binary",
    "Date": "date",
}
# Spark has no unsigned integers and takes the next larger type.
_SIGNED = {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}
_UNSIGNED = {8: "smallint", 16: "int", 32: "bigint", 64: "decimal(20,0)"}
_MOST_DIGITS = {"INT32": 9, "INT64": 18}
_WAYS_OUT = {
    "Timestamp": "write it in microseconds",
    "Time": "write it in microseconds and without a time zone",
    "Float16": "write it as float",
    "UUID": "write it as text",
    "Interval": "write its months, days and milliseconds as columns of their own",
    "Decimal": "write it with at most 38 digits, and as bytes if they are more than 18",
}


def read_parquet(file: pa.NativeFile) -> tuple[Schema, int]:
    """The schema and the number of rows of an open file; InvalidSchema names a column that Spark
    cannot read."""
    metadata = _metadata(file)
    note = (metadata.metadata or {}).get(_NOTE)
    schema = None if note is None else _noted(note)
    return schema or _converted(_Printed(metadata.schema)), _rows(metadata)


def parquet_rows(file: pa.NativeFile) -> int:
    """The number of rows of an open file."""
    return _rows(_metadata(file))


def _metadata(file: pa.NativeFile) -> pq.FileMetaData:
    try:
        return pq.read_metadata(file)
    except pa.ArrowInvalid as error:
        if "Map keys" not in str(error):
            raise
        return pq.read_metadata(_with_required_keys(file))


def _rows(metadata: pq.FileMetaData) -> int:
    # Spark counts the rows of row groups; some writers leave the total of the file at 0.
    return sum(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))


@lru_cache(maxsize=1024)
def _noted(note: bytes) -> Schema | None:
    """The schema that a Spark wrote into the file; none if it is not one that can be read."""
    try:
        struct = read_json(parse_json(note.decode()))
    except (InvalidSchema, UnicodeDecodeError):
        # Spark goes on with the columns too. A user-defined type is what it is stored as.
        return None
    return Schema.of(struct)


# --- from columns to a schema ---------------------------------------------------------------------


class _Printed:
    """A schema that is compared by its printed text.

    Files come in thousands and their schemas in dozens. The text holds everything that counts, and
    nothing of the notes of other writers, which may differ in each file.
    """

    def __init__(self, schema: pq.ParquetSchema) -> None:
        _, _, self.text = str(schema).partition("\n")  # the first line names the object
        self.schema = schema

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Printed) and self.text == other.text


@dataclass(frozen=True)
class _Node:
    """A group of columns, or one column with its physical and its logical type (as JSON)."""

    name: str
    repetition: str
    annotation: str | None = None
    children: list[_Node] = field(default_factory=list)
    stored: tuple[str, str] | None = None


@lru_cache(maxsize=1024)
def _converted(printed: _Printed) -> Schema:
    columns = [printed.schema.column(number) for number in range(len(printed.schema))]
    for column in columns:
        if "\n" in column.path:  # in print it would look like another column
            raise InvalidSchema(
                f"column {shown(column.path)} has a control character in its name; remove it",
                column=column.path,
            )
    return Schema.of(_struct(_nodes(iter(printed.text.split("\n")[1:]), deque(columns), ""), ""))


def _nodes(lines: Iterator[str], leaves: deque[Any], above: str) -> list[_Node]:
    """The columns of a group, from its printed lines up to the closing brace."""
    nodes = []
    while found := _LINE.fullmatch(next(lines)):
        repetition, name, end = found.groups()
        if end == ";":
            leaf = leaves.popleft()
            stored = (leaf.physical_type, leaf.logical_type.to_json())
            nodes.append(_Node(leaf.name, repetition, stored=stored))
            continue
        annotation = None
        # A name may end like an annotation; the path of the first column inside decides.
        inside = leaves[0].path if leaves else ""
        if (said := _ANNOTATED.fullmatch(name)) and not inside.startswith(f"{above}{name}."):
            name, annotation = said["name"], said["annotation"]
        children = _nodes(lines, leaves, f"{above}{name}.")
        nodes.append(_Node(name, repetition, annotation, children))
    return nodes


def _struct(nodes: Sequence[_Node], path: str) -> StructType:
    fields = []
    for node in nodes:
        kind = _type(node, child(path, node.name))
        # What repeats outside of lists and maps is a required array of required elements.
        if node.repetition == "repeated":
            kind = ArrayType(kind, containsNull=False)
        fields.append(StructField(node.name, kind, node.repetition == "optional"))
    return StructType(fields)


def _type(node: _Node, path: str) -> DataType:
    if node.stored is not None:
        return _atom(*node.stored, path)
    match node.annotation, node.children:
        case "List", [_Node(repetition="repeated") as repeated]:
            element = repeated if _is_element(repeated, node.name) else repeated.children[0]
            kind = _type(element, f"{path}.element")
            return ArrayType(kind, element.repetition == "optional")
        case "Map", [_Node(repetition="repeated", children=[key, value])]:
            kinds = _type(key, f"{path}.key"), _type(value, f"{path}.value")
            return MapType(*kinds, value.repetition == "optional")
        case "Map", _:
            raise InvalidSchema(
                f"column {shown(path)} is a map without values, which Spark does not read; write "
                "it as an array",
                column=path,
            )
        case "Variant", _ if {"metadata", "value"} <= {each.name for each in node.children}:
            return VariantType()
    return _struct(node.children, path)


def _is_element(repeated: _Node, parent: str) -> bool:
    """Whether a repeated field of a list is its element, as older writers have it."""
    return len(repeated.children) != 1 or repeated.name in ("array", f"{parent}_tuple")


def _atom(physical: str, logical_json: str, path: str) -> DataType:
    logical = json.loads(logical_json)
    name = _name(physical, logical)
    try:
        if name is not None:
            # Spark's JSON, as it has other names than SQL for coordinate systems.
            document = {"type": "struct", "fields": [{"name": "a", "type": name}]}
            return read_json(document)["a"].dataType
    except InvalidSchema:
        pass
    said = ", ".join(str(value) for value in logical.values() if not isinstance(value, bool))
    raise InvalidSchema(
        f"column {shown(path)} has the Parquet type {physical} ({shown(said)}), which Spark "
        f"does not read; {_WAYS_OUT.get(logical['Type'], 'write it as another type')}",
        column=path,
        value=said,
    )


def _name(physical: str, logical: Mapping[str, Any]) -> str | None:
    """The name of the type that Spark reads such a column as; none if it refuses to."""
    match logical:
        # An Arrow writer's column of nulls has no type, and Spark takes what it is stored as.
        case {"Type": "None" | "Null"}:
            return _PHYSICAL.get(physical)
        case {"Type": "Int", "bitWidth": width, "isSigned": signed}:
            return (_SIGNED if signed else _UNSIGNED).get(width)
        case {"Type": "Decimal", "precision": precision, "scale": scale}:
            fits = precision <= _MOST_DIGITS.get(physical, atoms.MAX_PRECISION)
            return f"decimal({precision},{scale})" if fits else None
        case {"Type": "Timestamp", "timeUnit": "milliseconds" | "microseconds"}:
            return "timestamp" if logical["isAdjustedToUTC"] else "timestamp_ntz"
        # A session reads it with spark.sql.timeType.enabled only.
        case {"Type": "Time", "timeUnit": "microseconds", "isAdjustedToUTC": False}:
            return "time(6)"
        case {"Type": "Geometry"}:
            return f"geometry({logical.get('crs', 'OGC:CRS84')})"
        case {"Type": "Geography"}:
            return f"geography({logical.get('crs', 'OGC:CRS84')}, SPHERICAL)"
    return _LOGICAL.get(logical["Type"])


# --- optional keys of maps, which pyarrow refuses and Spark reads ---------------------------------

# Of Thrift's compact protocol.
_BINARY, _LIST, _STRUCT = 8, 9, 12
_FIXED_SIZES = {1: 0, 2: 0, 3: 1, 7: 8}  # booleans, a byte, a double


def _with_required_keys(file: pa.NativeFile) -> pa.BufferReader:
    """The footer of a file as a file of its own, in which the keys of maps are required."""
    end = file.size() - 8  # after the footer come its size and the magic number
    file.seek(end)
    size = int.from_bytes(file.read(4), "little")
    file.seek(end - size)
    footer = bytearray(file.read(size))
    at = _fields(footer, 0)[0][2]
    count, _, at = _list(footer, at)
    elements = []
    for _ in range(count):
        fields, at = _fields(footer, at)
        elements.append(fields)
    # In the order of the tree: a map is followed by its entries, and these by their key.
    for outer, _, key in zip(elements, elements[1:], elements[2:], strict=False):
        old = 6 in outer and footer[outer[6]] in (2, 4)  # MAP, MAP_KEY_VALUE
        new = 10 in outer and footer[outer[10]] >> 4 == 2
        if (old or new) and 3 in key:
            footer[key[3]] = 0  # required; one byte, as optional is
    return pa.BufferReader(b"PAR1" + footer + size.to_bytes(4, "little") + b"PAR1")


def _fields(data: bytearray, at: int) -> tuple[dict[int, int], int]:
    """Where the values of a struct begin, by the numbers of its fields; and where it ends."""
    places: dict[int, int] = {}
    number = 0
    while head := data[at]:
        at += 1
        if step := head >> 4:
            number += step
        else:
            number, at = varint(data, at)
            number >>= 1
        places[number] = at
        at = _after(data, at, head & 15)
    return places, at + 1


def _after(data: bytearray, at: int, kind: int) -> int:
    """Where the value after one of this kind begins."""
    if kind == _STRUCT:
        return _fields(data, at)[1]
    if kind == _LIST:
        count, inner, at = _list(data, at)
        for _ in range(count):
            at = _after(data, at, inner)
        return at
    if kind in _FIXED_SIZES:
        return at + _FIXED_SIZES[kind]
    size, at = varint(data, at)
    return at + size if kind == _BINARY else at


def _list(data: bytearray, at: int) -> tuple[int, int, int]:
    """How many elements a list has, of which kind, and where they begin."""
    head, at = data[at], at + 1
    count, at = (head >> 4, at) if head >> 4 < 15 else varint(data, at)
    return count, head & 15, at
