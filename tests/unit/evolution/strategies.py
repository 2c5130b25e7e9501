"""Random schemas that have much in common, so that they merge, widen and conflict often."""

from __future__ import annotations

import random

from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    CharType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
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

from catalog import Schema

_FAMILIES: list[list[DataType]] = [
    [ByteType(), ShortType(), IntegerType(), LongType()],
    [FloatType(), DoubleType()],
    [DecimalType(5, 2), DecimalType(10, 0), DecimalType(6, 4), DecimalType(38, 2)],
    [StringType(), CharType(3), CharType(5), VarcharType(4), VarcharType(9)],
    [DateType(), TimestampNTZType()],
    [TimeType(0), TimeType(6)],
    [YearMonthIntervalType(0, 0), YearMonthIntervalType(1, 1), YearMonthIntervalType(0, 1)],
    [DayTimeIntervalType(0, 1), DayTimeIntervalType(2, 3), DayTimeIntervalType(1, 1)],
    [GeometryType(4326), GeometryType(3857), GeometryType("ANY")],
    [TimestampType()],
    [VariantType()],
    [StringType("UTF8_LCASE")],
]
_NOT_IN_ARROW = (YearMonthIntervalType, GeometryType, VariantType)
_IN_ARROW = [family for family in _FAMILIES if not isinstance(family[0], _NOT_IN_ARROW)]
_NAMES = ("a", "b", "c", "d")


def related(count: int, arrow: bool = False) -> st.SearchStrategy[tuple[Schema, ...]]:
    """So many schemas, nested up to three deep, over the same few columns.

    They follow from one number: drawn choice by choice they would take fifty times as long.
    With `arrow` they have only types that Arrow has.
    """
    return st.integers(0, 2**63).map(lambda seed: _related(_Random(seed, arrow), count))


class _Random(random.Random):
    def __init__(self, seed: int, arrow: bool) -> None:
        super().__init__(seed)
        self.families = _IN_ARROW if arrow else _FAMILIES
        self.atoms = [atom for family in self.families for atom in family] + [NullType()]


def _related(rng: _Random, count: int) -> tuple[Schema, ...]:
    place = rng.randrange(256)
    first = _struct(rng, place, 3)
    # Some are unrelated but for the kinds of their columns, some a few steps from the first.
    others = (
        _varied(rng, first, place, 3) if rng.random() < 0.7 else _struct(rng, place, 3)
        for _ in range(count - 1)
    )
    return tuple(map(Schema.of, (first, *others)))


def _atom(rng: _Random, place: int) -> DataType:
    """Mostly of one family for a column, sometimes of any."""
    if rng.random() < 0.03:
        return rng.choice(rng.atoms)
    return rng.choice([*rng.families[place % len(rng.families)], NullType()])


def _type(rng: _Random, place: int, depth: int) -> DataType:
    """The kind of a column follows from its place, so that two schemas usually agree in it."""
    kind, inner = place % 4, place // 4
    if depth == 0 or kind == 0:
        return _atom(rng, inner)
    if kind == 1:
        return _struct(rng, inner, depth - 1)
    if kind == 2:
        element = _type(rng, inner, depth - 1)
        return ArrayType(element, isinstance(element, NullType) or rng.random() < 0.5)
    key = _atom(rng, inner)
    while isinstance(key, NullType):
        key = _atom(rng, inner)
    value = _type(rng, inner, depth - 1)
    return MapType(key, value, isinstance(value, NullType) or rng.random() < 0.5)


def _field(rng: _Random, number: int, place: int, depth: int) -> StructField:
    name = _NAMES[number].upper() if rng.random() < 0.01 else _NAMES[number]
    kind = _type(rng, place + number, depth)
    # A void that is never null has no rows, and no place in Arrow.
    return StructField(name, kind, isinstance(kind, NullType) or rng.random() < 0.5)


def _struct(rng: _Random, place: int, depth: int) -> StructType:
    numbers = rng.sample(range(len(_NAMES)), rng.randint(1, len(_NAMES)))
    return StructType([_field(rng, number, place, depth) for number in numbers])


def _varied(rng: _Random, struct: StructType, place: int, depth: int) -> StructType:
    """The struct with some columns lost, made nullable or made anew, in another order."""
    fields = []
    for field in struct.fields:
        change = rng.random()
        if change < 0.6:
            fields.append(field)
        elif change < 0.75:
            fields.append(StructField(field.name, field.dataType, True))
        elif change < 0.9:
            number = _NAMES.index(field.name.lower())
            fields.append(_field(rng, number, place, depth))
    rng.shuffle(fields)
    return StructType(fields or struct.fields)
