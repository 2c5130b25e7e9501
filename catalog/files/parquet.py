"""The schema of a Parquet file as Spark reads it, with what the file says about nulls.

Spark takes the schema that a Spark wrote into the file, and without one goes by the columns. The
Arrow schema that pyarrow gives of these is right about how they nest, but not about their types: it
follows notes of Arrow writers (a duration, a dictionary) that Spark does not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as is_
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, VariantType

from catalog.errors import InvalidSchema
from catalog.schema import Schema, atoms
from catalog.schema.names import child, shown
from catalog.schema.rules import check_depth
from catalog.schema.spark_json import parse_json, read_json

_NOTE = b"org.apache.spark.sql.parquet.row.metadata"
# pyarrow tells the annotation of a group only in print.
_VARIANT = re.compile(r"^ *\w+ group field_id=-?\d+ (.+) \(Variant\(\d+\)\) \{$", re.MULTILINE)

# The physical and the logical type of a column, the latter as JSON.
_Stored = tuple[str, str]

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
    metadata = pq.read_metadata(file)
    note = (metadata.metadata or {}).get(_NOTE)
    schema = None if note is None else _noted(note)
    return schema or _of_columns(metadata.schema), metadata.num_rows


@lru_cache(maxsize=1024)
def _noted(note: bytes) -> Schema | None:
    """The schema that a Spark wrote into the file; none if it is not one that can be read."""
    try:
        struct = read_json(parse_json(note.decode()))
    except (InvalidSchema, UnicodeDecodeError):
        # Spark goes on with the columns too. A user-defined type is what it is stored as.
        return None
    return Schema.of(struct)


def _of_columns(schema: pq.ParquetSchema) -> Schema:
    # Files come in thousands and their schemas in dozens. In print a schema says everything that
    # counts, and nothing of what others note beside it, which may be different in each file.
    _, _, text = str(schema).partition("\n")  # the first line names the object
    return _converted(_Printed(text, schema))


class _Printed:
    """A schema that is known by how it is printed."""

    def __init__(self, text: str, schema: pq.ParquetSchema) -> None:
        self.text = text
        self.schema = schema

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Printed) and self.text == other.text


@lru_cache(maxsize=1024)
def _converted(printed: _Printed) -> Schema:
    schema = printed.schema
    stored = [schema.column(number) for number in range(len(schema))]
    columns = iter([(each.physical_type, each.logical_type.to_json()) for each in stored])
    variants = _VARIANT.findall(printed.text) if "(Variant(" in printed.text else []
    walk = _Walk(columns, frozenset(variants))
    fields = [walk.field(field, "", 0) for field in schema.to_arrow_schema()]
    if next(columns, None) is not None:
        # Types would have gone to the wrong columns.
        raise InvalidSchema("its columns do not nest as pyarrow says; write the file anew")
    return Schema.of(StructType(fields))


class _Walk:
    """Goes through the nested fields of a file, and takes a column for each that holds values."""

    def __init__(self, stored: Iterator[_Stored], variants: frozenset[str]) -> None:
        self._stored = stored
        self._variants = variants

    def field(self, field: pa.Field[pa.DataType], path: str, depth: int) -> StructField:
        here = child(path, field.name)
        return StructField(field.name, self._type(field, here, depth), field.nullable)

    def _type(self, field: pa.Field[pa.DataType], path: str, depth: int) -> DataType:
        kind = _plain(field.type)
        if not is_.is_nested(kind):
            return _atom(next(self._stored), path)
        check_depth(depth + 1, path)
        if isinstance(kind, pa.StructType):
            if field.name in self._variants and {"metadata", "value"} <= {f.name for f in kind}:
                self._pass(kind)
                return VariantType()
            return StructType([self.field(each, path, depth + 1) for each in kind])
        if isinstance(kind, pa.MapType):
            key = self._type(kind.key_field, f"{path}.key", depth + 1)
            value = self._type(kind.item_field, f"{path}.value", depth + 1)
            return MapType(key, value, kind.item_field.nullable)
        element: pa.Field[pa.DataType] = cast(Any, kind).value_field
        return ArrayType(self._type(element, f"{path}.element", depth + 1), element.nullable)

    def _pass(self, kind: pa.DataType) -> None:
        """Leaves out the columns that a variant is stored in."""
        if not is_.is_nested(kind):
            next(self._stored)
            return
        for number in range(kind.num_fields):
            self._pass(_plain(cast(Any, kind).field(number).type))


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without what Arrow makes of it: extensions and dictionaries."""
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(kind.storage_type)
    return _plain(kind.value_type) if isinstance(kind, pa.DictionaryType) else kind


def _atom(stored: _Stored, path: str) -> DataType:
    physical, logical = stored[0], json.loads(stored[1])
    name = _name(physical, logical)
    kind = None if name is None else _named(name)
    if kind is None:
        said = ", ".join(str(value) for value in logical.values() if not isinstance(value, bool))
        raise InvalidSchema(
            f"column {shown(path)} has the Parquet type {physical} ({shown(said)}), which Spark "
            f"does not read; {_WAYS_OUT.get(logical['Type'], 'write it as another type')}",
            column=path,
            value=said,
        )
    return kind


def _named(name: str) -> DataType | None:
    try:
        # Spark's JSON, as it has other names than SQL for coordinate systems.
        return read_json({"type": "struct", "fields": [{"name": "a", "type": name}]})["a"].dataType
    except InvalidSchema:
        return None


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
