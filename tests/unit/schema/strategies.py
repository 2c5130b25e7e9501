"""Random schemas: every type, odd names, comments, nesting."""

from __future__ import annotations

import random

from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    CalendarIntervalType,
    CharType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    GeographyType,
    GeometryType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
    VarcharType,
    VariantType,
    YearMonthIntervalType,
)

letters = st.characters(exclude_categories=("Cc", "Cs"))
names = st.one_of(
    st.sampled_from(
        ["a", "b", "id", "Name", "struct", "not", "comment", "1a", "a.b", "`", '"', "ß"]
    ),
    st.text(letters, min_size=1, max_size=8),
)
comments = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)

decimals = st.integers(1, 38).flatmap(
    lambda precision: st.builds(DecimalType, st.just(precision), st.integers(0, precision))
)
day_times = st.integers(0, 3).flatmap(
    lambda start: st.builds(DayTimeIntervalType, st.just(start), st.integers(start, 3))
)

# What Arrow can hold, so that a round trip through it must lose nothing.
arrow_atoms: st.SearchStrategy[DataType] = st.one_of(
    st.sampled_from(
        [
            BooleanType(),
            ByteType(),
            ShortType(),
            IntegerType(),
            LongType(),
            FloatType(),
            DoubleType(),
            BinaryType(),
            DateType(),
            TimestampType(),
            TimestampNTZType(),
            StringType(),
            StringType("UTF8_LCASE"),
            StringType("de_CI_AI"),
        ]
    ),
    decimals,
    day_times,
    st.builds(CharType, st.integers(0, 300)),
    st.builds(VarcharType, st.integers(0, 2**31 - 1)),
    st.builds(TimeType, st.integers(0, 6)),
)
atoms: st.SearchStrategy[DataType] = st.one_of(
    arrow_atoms,
    st.sampled_from(
        [
            NullType(),
            VariantType(),
            CalendarIntervalType(),
            YearMonthIntervalType(0, 0),
            YearMonthIntervalType(0, 1),
            YearMonthIntervalType(1, 1),
            GeometryType(4326),
            GeometryType("ANY"),
            GeographyType(4326),
        ]
    ),
)


def structs(
    kinds: st.SearchStrategy[DataType],
    min_size: int = 1,
    field_names: st.SearchStrategy[str] = names,
) -> st.SearchStrategy[StructType]:
    """Structs whose columns have these types."""
    fields = st.builds(
        lambda name, kind, nullable, comment: StructField(
            name, kind, nullable, None if comment is None else {"comment": comment}
        ),
        field_names,
        kinds,
        st.booleans(),
        st.none() | comments,
    )
    unique = st.lists(
        fields, min_size=min_size, max_size=4, unique_by=lambda field: field.name.casefold()
    )
    return unique.map(StructType)


def nested(
    leaves: st.SearchStrategy[DataType], flags: st.SearchStrategy[bool]
) -> st.SearchStrategy[DataType]:
    """Types that hold each other; `flags` says whether elements and values may be null."""
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            structs(inner, min_size=0),
            st.builds(ArrayType, inner, flags),
            st.builds(MapType, inner, inner, flags),
        ),
        max_leaves=6,
    )


schemas = structs(nested(atoms, st.booleans()))
ddl_schemas = structs(nested(atoms, st.just(True)))
arrow_schemas = structs(nested(arrow_atoms, st.booleans()))
# So few that two of them are often the same.
tiny_schemas = structs(
    nested(st.sampled_from([IntegerType(), StringType()]), st.booleans()),
    field_names=st.sampled_from(["a", "A1", 'q"', "x>,y"]),
)


def shuffled(kind: DataType, seed: int) -> DataType:
    """The same type with the columns of every struct in another order."""
    if isinstance(kind, StructType):
        fields = [
            StructField(f.name, shuffled(f.dataType, seed), f.nullable, f.metadata)
            for f in kind.fields
        ]
        random.Random(seed).shuffle(fields)
        return StructType(fields)
    if isinstance(kind, ArrayType):
        return ArrayType(shuffled(kind.elementType, seed), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(
            shuffled(kind.keyType, seed), shuffled(kind.valueType, seed), kind.valueContainsNull
        )
    return kind


def shape(kind: DataType) -> object:
    """What a fingerprint stands for, as plain values: no order, no metadata."""
    if isinstance(kind, StructType):
        return frozenset((f.name, shape(f.dataType), f.nullable) for f in kind.fields)
    if isinstance(kind, ArrayType):
        return ("array", shape(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        return ("map", shape(kind.keyType), shape(kind.valueType), kind.valueContainsNull)
    return repr(kind)
