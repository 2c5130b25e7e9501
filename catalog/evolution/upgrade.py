"""Data of one schema given in another: DataFrames and Arrow tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame

from catalog.errors import InvalidInput
from catalog.evolution.arrow import projected
from catalog.evolution.diff import diff
from catalog.evolution.projection import Leeway, OnLoss, projection, shape
from catalog.evolution.sql import expressions
from catalog.schema import Schema
from catalog.words import chosen

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Data = TypeVar("Data", DataFrame, pa.Table)


def upgrade(
    data: Data,
    to: Schema | str | StructType | pa.Schema,
    *,
    source: Schema | str | StructType | pa.Schema | None = None,
    drop: bool = False,
    text: bool = False,
    on_loss: str = OnLoss.REFUSE,
) -> Data:
    """The data in another schema: columns are found by name, cast, and filled with null.

    Args:
        data: a DataFrame or an Arrow table.
        to: the schema to give it in, usually one that is superior to that of the data.
        source: the schema of the data, if it says more than the frame does: a DataFrame that was
            read from files has forgotten which columns are never null.
        drop: leave out columns that `to` does not have; otherwise they are refused.
        text: turn values into text where `to` has a string, as policy "widest" needs it.
        on_loss: "refuse", or "null" to give null for every value of a column whose type may not
            fit, such as a bigint that becomes an int.

    Raises:
        WouldLose: Something would be lost; the message names the columns.
    """
    if not isinstance(data, DataFrame | pa.Table):
        raise InvalidInput(
            f"upgrade takes a DataFrame or an Arrow table, not {type(data).__name__}.",
            data=type(data).__name__,
        )
    given = Schema.of(data.schema)
    if source is not None:
        declared = Schema.of(source)
        if shape(declared.struct()) != shape(given.struct()):
            raise InvalidInput(
                f"source is another schema than that of the data: {diff(given, declared)}",
                source=declared.ddl,
                data=given.ddl,
            )
        given = declared
    way = projection(given, Schema.of(to), Leeway(drop, text, chosen(OnLoss, "on_loss", on_loss)))
    if isinstance(data, DataFrame):
        return data.selectExpr(*expressions(way.fields))
    return projected(data, way)
