"""The columns that a frame of segments has, under the names and types that are staged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from catalog.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_OPTIONAL: dict[str, tuple[type[T.DataType], ...]] = {
    "size_bytes": _WHOLE,
    "location": (T.StringType,),
    "starts_at": (T.TimestampType,),
    "ends_at": (T.TimestampType,),
}
_EMPTY = {
    "size_bytes": "bigint",
    "location": "string",
    "starts_at": "timestamp",
    "ends_at": "timestamp",
}
_COLUMNS = "segment_id (or datasource and name), schema, num_rows, " + ", ".join(_OPTIONAL)


def normalised(frame: DataFrame) -> DataFrame:
    """The frame's columns under the names and types that are staged; raises on any other."""
    # One look at the schema: on Connect each is a round trip.
    types = {field.name: field.dataType for field in frame.schema.fields}
    named_by_parts = {"datasource", "name"} <= types.keys()
    if ("segment_id" in types) == named_by_parts:
        raise InvalidInput(
            "A frame of segments needs either a column segment_id or the columns datasource and "
            f"name; it has {sorted(types)}.",
            columns=sorted(types),
        )
    ids = ("datasource", "name") if named_by_parts else ("segment_id",)
    expected: dict[str, tuple[type[T.DataType], ...]] = {
        **dict.fromkeys(ids, (T.StringType,)),
        "schema": (T.StringType,),
        "num_rows": _WHOLE,
        **_OPTIONAL,
    }
    unknown = sorted(types.keys() - expected.keys())
    missing = sorted(expected.keys() - types.keys() - _OPTIONAL.keys())
    if unknown or missing:
        raise InvalidInput(
            f"A frame of segments has the columns {_COLUMNS}; unknown here: {unknown}, missing: "
            f"{missing}. Rename or drop them.",
            unknown=unknown,
            missing=missing,
        )
    for name, data_type in types.items():
        if not isinstance(data_type, expected[name]):
            wanted = " or ".join(t.typeName() for t in expected[name])
            raise InvalidInput(
                f"The column {name} must be {wanted}, not {data_type.simpleString()}; cast it.",
                column=name,
                type=data_type.simpleString(),
            )
    segment_id = (
        F.when(F.contains("datasource", F.lit("/")), F.lit("")).otherwise(
            F.concat("datasource", F.lit("/"), "name")
        )
        if named_by_parts
        else F.col("segment_id")
    )
    return frame.select(
        segment_id.alias("segment_id"),
        F.col("schema"),
        F.col("num_rows").cast("bigint").alias("num_rows"),
        *(_optional(name, types) for name in _OPTIONAL),
    )


def _optional(name: str, types: dict[str, T.DataType]) -> Column:
    column = F.col(name) if name in types else F.lit(None)
    return column.cast(_EMPTY[name]).alias(name)
