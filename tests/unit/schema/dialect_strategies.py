"""Random schemas that a dialect can say, what it cannot, and rows of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    CalendarIntervalType,
    CharType,
    DataType,
    DecimalType,
    GeographyType,
    GeometryType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimeType,
    VarcharType,
    VariantType,
    YearMonthIntervalType,
)

from catalog.errors import InvalidSchema
from catalog.schema import Schema, atoms
from catalog.schema.names import child, shown
from catalog.schema.translation import Translation

from .strategies import arrow_atoms, names, structs

TEXT = (StringType, CharType, VarcharType)
FORMLESS = {
    "json": (GeometryType, GeographyType),
    "avro": (GeometryType, GeographyType, VariantType, CalendarIntervalType),
}

year_months = st.sampled_from([YearMonthIntervalType(0, 1), YearMonthIntervalType(1, 1)])
keys = st.sampled_from([StringType(), StringType("UTF8_LCASE"), CharType(2), VarcharType(9)])
avro_names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,3}", fullmatch=True)


def sayable(
    leaves: st.SearchStrategy[DataType], field_names: st.SearchStrategy[str]
) -> st.SearchStrategy[StructType]:
    """Schemas whose keys are text, and whose voids may be null."""
    kinds = st.recursive(
        leaves,
        lambda inner: st.one_of(
            structs(inner, min_size=0, field_names=field_names),
            st.builds(ArrayType, inner, st.booleans()),
            st.builds(MapType, keys, inner, st.booleans()),
        ),
        max_leaves=6,
    )
    return structs(kinds, field_names=field_names).map(with_null_voids)


def with_null_voids(struct: StructType) -> StructType:
    """The same schema, in which whatever is void may be null."""

    def changed(kind: DataType) -> DataType:
        if isinstance(kind, StructType):
            return with_null_voids(kind)
        if isinstance(kind, ArrayType):
            void = isinstance(kind.elementType, NullType)
            return ArrayType(changed(kind.elementType), kind.containsNull or void)
        if isinstance(kind, MapType):
            void = isinstance(kind.valueType, NullType)
            return MapType(kind.keyType, changed(kind.valueType), kind.valueContainsNull or void)
        return kind

    return StructType(
        [
            StructField(
                field.name,
                changed(field.dataType),
                field.nullable or isinstance(field.dataType, NullType),
                field.metadata,
            )
            for field in struct.fields
        ]
    )


avro_schemas = sayable(st.one_of(arrow_atoms, year_months, st.just(NullType())), avro_names)
json_schemas = sayable(
    st.one_of(
        arrow_atoms,
        year_months,
        st.sampled_from([NullType(), VariantType(), CalendarIntervalType()]),
    ),
    names,
)


def faults(struct: StructType, dialect: str, path: str = "") -> Iterator[str]:
    """The paths of the columns that a dialect cannot say."""
    for field in struct.fields:
        here = child(path, field.name)
        if dialect == "avro" and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", field.name):
            yield here
        yield from _faults(field.dataType, field.nullable, dialect, here)


def _faults(kind: DataType, nullable: bool, dialect: str, path: str) -> Iterator[str]:
    if isinstance(kind, FORMLESS[dialect]) or (isinstance(kind, NullType) and not nullable):
        yield path
    elif isinstance(kind, StructType):
        yield from faults(kind, dialect, path)
    elif isinstance(kind, ArrayType):
        yield from _faults(kind.elementType, kind.containsNull, dialect, f"{path}.element")
    elif isinstance(kind, MapType):
        if not isinstance(kind.keyType, TEXT):
            yield f"{path}.key"
        yield from _faults(kind.valueType, kind.valueContainsNull, dialect, f"{path}.value")


def attempt(
    translate: Callable[[Schema], Translation], schema: Schema
) -> tuple[dict[str, Any] | None, str | None]:
    """The document, or the path that the refusal names."""
    try:
        return translate(schema).document, None
    except InvalidSchema as error:
        path = str(error.values["column"])
        return None, path if f"column {shown(path)} " in error.message else "not in the message"


# --- rows ---

AVRO_VALUES = {
    "boolean": True,
    "tinyint": -128,
    "smallint": 32767,
    "int": -(2**31),
    "bigint": 2**63 - 1,
    "float": 0.5,
    "double": 0.1,
    "date": date(2024, 2, 29),
    "timestamp": datetime(2024, 2, 29, 1, 2, 3, 4, UTC),
    "timestamp_ntz": datetime(2024, 2, 29, 1, 2, 3, 4),
}
JSON_VALUES = AVRO_VALUES | {
    "date": "2024-02-29",
    "timestamp": "2024-02-29T01:02:03.000004Z",
    "timestamp_ntz": "2024-02-29T01:02:03.000004",
    "variant": {"a": [1, None]},
}


def value(kind: DataType, dialect: str) -> Any:
    """A value of the type as the dialect's data has it."""
    if isinstance(kind, StructType):
        return {field.name: value(field.dataType, dialect) for field in kind.fields}
    if isinstance(kind, ArrayType):
        return [value(kind.elementType, dialect)]
    if isinstance(kind, MapType):
        return {"": value(kind.valueType, dialect)}
    values = AVRO_VALUES if dialect == "avro" else JSON_VALUES
    if (text := str(atoms.text_of(kind))) in values:
        return values[text]
    if isinstance(kind, NullType):
        return None
    if dialect == "json":
        return _json_value(kind)
    if isinstance(kind, DecimalType):
        return Decimal(1).scaleb(-kind.scale)
    if isinstance(kind, TimeType):
        return time(1, 2, 3, 4)
    if isinstance(kind, BinaryType):
        return b"\x00\xff"
    return "" if isinstance(kind, TEXT) else 12


def _json_value(kind: DataType) -> Any:
    if isinstance(kind, DecimalType):
        return 0.5 if kind.scale else 10**30
    if isinstance(kind, TimeType):
        return "01:02:03"
    return "P1D" if str(atoms.text_of(kind)).startswith("interval") else ""
