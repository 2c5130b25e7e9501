"""Which atomic types can hold each other's values: the order for merging and reading.

Types widen in chains that never meet, so that the least common type of any number of them does not
depend on their order:

    tinyint < smallint < int < bigint            float < double            date < timestamp_ntz
    decimal(p,s)        whichever digits before and behind the point are needed, up to 38 in all
    char(n) < varchar(n) < varchar(n + 1) < string                time(p) < time(p + 1)
    interval year, interval month < interval year to month        and the like for days to seconds
    geometry(srid) < geometry(any)               geography(srid) < geography(any)
    void < everything

An int and a double, a number and a text, or strings of two collations are in no order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyspark.sql.types as spark
from pyspark.sql.types import DataType

from catalog.schema import atoms

_CHAINS: tuple[tuple[type[DataType], ...], ...] = (
    (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType),
    (spark.FloatType, spark.DoubleType),
    (spark.DateType, spark.TimestampNTZType),
)
_RANKS = {
    kind: (number, rank) for number, chain in enumerate(_CHAINS) for rank, kind in enumerate(chain)
}


def widest(a: DataType, b: DataType) -> DataType | None:
    """The least atomic type that holds the values of both, or None.

    Structs, arrays and maps are compared by what they hold, not here.
    """
    if isinstance(a, spark.NullType):
        return b
    if isinstance(b, spark.NullType):
        return a
    first, second = _RANKS.get(type(a)), _RANKS.get(type(b))
    if first is not None and second is not None:
        if first[0] != second[0]:
            return None
        return a if first[1] >= second[1] else b
    for family, join in _FAMILIES:
        if type(a).__name__ in family and type(b).__name__ in family:
            return join(a, b)
    text = atoms.text_of(a)
    return a if text is not None and text == atoms.text_of(b) else None


def _decimal(a: Any, b: Any) -> DataType | None:
    scale = max(a.scale, b.scale)
    precision = max(a.precision - a.scale, b.precision - b.scale) + scale
    return None if precision > atoms.MAX_PRECISION else spark.DecimalType(precision, scale)


def _text(a: Any, b: Any) -> DataType | None:
    if isinstance(a, spark.StringType) and isinstance(b, spark.StringType):
        return a if a.collation == b.collation else None
    for one, other in ((a, b), (b, a)):
        if isinstance(one, spark.StringType):
            return spark.StringType() if atoms.text_of(one) == "string" else None
        if isinstance(one, spark.CharType) and one == other:
            return one
    # Blanks belong to the value of a char: in one of another length it would be another value.
    return spark.VarcharType(max(a.length, b.length))


def _time(a: Any, b: Any) -> DataType:
    return a if a.precision >= b.precision else b  # type: ignore[no-any-return]


def _interval(a: Any, b: Any) -> DataType:
    start, end = min(a.startField, b.startField), max(a.endField, b.endField)
    return type(a)(start, end)  # type: ignore[no-any-return]


def _spatial(a: Any, b: Any) -> DataType:
    return a if a.srid == b.srid else type(a)("ANY")  # type: ignore[no-any-return]


# By class name: Spark 4.0, which some managed runtimes still carry, lacks the last three.
_FAMILIES: tuple[tuple[frozenset[str], Callable[[Any, Any], DataType | None]], ...] = (
    (frozenset({"DecimalType"}), _decimal),
    (frozenset({"StringType", "CharType", "VarcharType"}), _text),
    (frozenset({"YearMonthIntervalType"}), _interval),
    (frozenset({"DayTimeIntervalType"}), _interval),
    (frozenset({"TimeType"}), _time),
    (frozenset({"GeometryType"}), _spatial),
    (frozenset({"GeographyType"}), _spatial),
)
