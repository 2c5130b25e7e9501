"""Arrow schemas to Spark's and back, without a session.

What Arrow can hold but not name (`varchar(10)`, a collation, `time(3)`, `interval hour`) is noted
in the field's metadata, so that every type with an Arrow form comes back as it was. Unsigned
integers and half floats are refused and not widened: that would be another schema than the data's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pyarrow as pa
import pyarrow.types as is_
import pyspark.sql.types as spark
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from catalog.errors import InvalidSchema
from catalog.schema import atoms
from catalog.schema.ddl import parse_type
from catalog.schema.names import child, held, shown
from catalog.schema.rules import check_depth, refused

_NOTE = b"strata.type"
_COMMENT = b"comment"

_TO_ARROW: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "char": pa.string(),
    "varchar": pa.string(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "time": pa.time64("us"),
    "day-time": pa.duration("us"),
    "void": pa.null(),
}

# By Arrow's number of the type, so for any unit and size; times are read by class.
_TO_SPARK: dict[int, str] = {
    **{stored.id: name for name, stored in _TO_ARROW.items()},
    **{kind.id: "string" for kind in (pa.string(), pa.large_string(), pa.string_view())},
    **{kind.id: "binary" for kind in (pa.binary(1), pa.large_binary(), pa.binary_view())},
    pa.date64().id: "date",
    pa.duration("us").id: "interval day to second",
}

_LISTS = (
    pa.ListType,
    pa.LargeListType,
    pa.FixedSizeListType,
    pa.ListViewType,
    pa.LargeListViewType,
)
_TIME_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 6}

_HINTS: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (is_.is_unsigned_integer, "cast it to the next larger signed integer, or to decimal(20,0)"),
    (is_.is_float16, "cast it to float32"),
    (is_.is_decimal, "cast it to decimal128 with precision 1 to 38 and scale 0 to the precision"),
    (is_.is_interval, "store months, days and nanoseconds in columns of their own"),
    (is_.is_union, "make it a struct with one column for each choice"),
)


def from_arrow(schema: pa.Schema) -> StructType:
    """The Spark schema of an Arrow schema; nullability and `comment` metadata are kept."""
    return StructType([_spark_field(field, "", 0) for field in schema])


def to_arrow(schema: StructType) -> pa.Schema:
    """The Arrow schema of a Spark schema."""
    return pa.schema([_arrow_field(field, "", 0) for field in schema.fields])


# --- from Arrow ---


def _spark_field(field: pa.Field[pa.DataType], path: str, depth: int) -> StructField:
    here = child(path, field.name)
    comment = _noted(field, _COMMENT, here)
    metadata = None if comment is None else {"comment": comment}
    return StructField(field.name, _spark_type(field, here, depth), field.nullable, metadata)


def _spark_type(field: pa.Field[pa.DataType], path: str, depth: int) -> DataType:
    plain = _plain_type(field.type, path, depth)
    note = _noted(field, _NOTE, path)
    if note is None:
        return plain
    try:
        noted = parse_type(note)
    except InvalidSchema:
        return plain
    # The note outlives a cast of the column, so it counts only where the type still fits it.
    storage = _storage(noted)
    fits = storage is not None and _plain_type(storage, path, depth) == plain
    return noted if fits else plain


def _plain_type(kind: pa.DataType, path: str, depth: int) -> DataType:
    if isinstance(kind, pa.TimestampType):
        return spark.TimestampNTZType() if kind.tz is None else spark.TimestampType()
    if isinstance(kind, pa.Time32Type | pa.Time64Type):
        return parse_type(f"time({_TIME_DIGITS[kind.unit]})")
    if isinstance(kind, pa.DictionaryType | pa.RunEndEncodedType):
        return _plain_type(kind.value_type, path, depth)
    if is_.is_decimal(kind) and 1 <= kind.precision <= 38 and 0 <= kind.scale <= kind.precision:
        return spark.DecimalType(kind.precision, kind.scale)
    name = _TO_SPARK.get(kind.id)
    return _nested_type(kind, path, depth + 1) if name is None else parse_type(name)


def _nested_type(kind: pa.DataType, path: str, depth: int) -> DataType:
    check_depth(depth, path)
    if isinstance(kind, _LISTS):
        element: pa.Field[pa.DataType] = cast(Any, kind).value_field
        return ArrayType(_spark_type(element, f"{path}.element", depth), element.nullable)
    if isinstance(kind, pa.MapType):
        key = _spark_type(kind.key_field, f"{path}.key", depth)
        value = _spark_type(kind.item_field, f"{path}.value", depth)
        return MapType(key, value, kind.item_field.nullable)
    if isinstance(kind, pa.StructType):
        return StructType([_spark_field(field, path, depth) for field in kind])
    hints = (hint for matches, hint in _HINTS if matches(kind))
    hint = next(hints, "cast it to the type that it is stored as")
    problem = f"has Arrow type {shown(str(kind))}, which Spark has no equal of; {hint}"
    raise refused(path, problem, str(kind))


def _noted(field: pa.Field[pa.DataType], key: bytes, path: str) -> str | None:
    note = (field.metadata or {}).get(key)
    try:
        return None if note is None else note.decode()
    except UnicodeDecodeError:
        problem = f"must have UTF-8 text as its {key.decode()}; rewrite it"
        raise refused(path, problem, note) from None


# --- to Arrow ---


def _arrow_field(field: StructField, path: str, depth: int) -> pa.Field[pa.DataType]:
    here, comment = child(path, field.name), field.metadata.get("comment")
    return _slot(field.name, field.dataType, field.nullable, here, depth, comment)


def _slot(
    name: str, kind: DataType, nullable: bool, path: str, depth: int, comment: str | None = None
) -> pa.Field[pa.DataType]:
    """The Arrow field of a column, or of what an array or a map holds."""
    stored = _arrow_type(kind, path, depth + 1)
    if is_.is_null(stored) and not nullable:
        problem = "is void and never null, which Arrow refuses; let it be null or leave it out"
        raise refused(path, problem, "void")
    kept = {} if comment is None else {_COMMENT: comment.encode()}
    text = atoms.text_of(kind)
    if text is not None and atoms.text_of(_plain_type(stored, path, depth)) != text:
        kept[_NOTE] = text.encode()
    return pa.field(name, stored, nullable, kept or None)


def _arrow_type(kind: DataType, path: str, depth: int) -> pa.DataType:
    inside = held(kind)
    if inside or isinstance(kind, StructType):
        check_depth(depth, path)
    if isinstance(kind, StructType):
        return pa.struct([_arrow_field(field, path, depth) for field in kind.fields])
    if inside:
        slots = [_slot(name, inner, may, f"{path}.{name}", depth) for name, inner, may in inside]
        # The stubs know only types here; with fields the notes of key and value are kept.
        make: Any = pa.map_ if isinstance(kind, MapType) else pa.list_
        return cast(pa.DataType, make(*slots))
    stored = _storage(kind)
    if stored is None:
        name = atoms.text_of(kind) or str(kind)
        raise refused(
            path,
            f"has type {name}, which Arrow has no equal of; cast it, for instance to string, or "
            "leave it out",
            name,
        )
    return stored


def _storage(kind: DataType) -> pa.DataType | None:
    if isinstance(kind, spark.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    return _TO_ARROW.get(atoms.stem(kind))
