"""Data of one schema given in another: a projection carried out on DataFrames and Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from catalog.errors import InvalidInput, WouldLose
from catalog.evolution.diff import diff
from catalog.evolution.projection import (
    Cast,
    Elements,
    Entries,
    Fields,
    Fill,
    How,
    Keep,
    Leeway,
    OnLoss,
    ProjectedField,
    projection,
    shape,
    stored,
)
from catalog.schema import Schema
from catalog.schema.names import identifier, literal, shown, type_text
from catalog.words import chosen

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

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
    """The data in another schema: columns are matched by name, cast, and filled with null.

    Args:
        data: a DataFrame or an Arrow table.
        to: the schema to give it in, usually one that is superior to that of the data.
        source: the schema of the data, if it has more than the frame: a DataFrame over files does
            not know which columns are never null.
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
    target = Schema.of(to)
    fields = projection(given, target, Leeway(drop, text, chosen(OnLoss, "on_loss", on_loss)))
    if isinstance(data, DataFrame):
        return data.selectExpr(*expressions(fields))
    return _projected(data, target.arrow(), fields)


# --- DataFrames ---


def expressions(fields: Iterable[ProjectedField]) -> list[str]:
    """The expressions that a SELECT over the data lists, one for each column of the target."""
    return [f"{_field_sql(field, '')} AS {identifier(field.name)}" for field in fields]


def _type_sql(kind: DataType) -> str:
    """A type as CAST takes it; a char or a varchar is a string in a DataFrame."""
    return type_text(kind, atom=stored, name=identifier)


def _field_sql(field: ProjectedField, parent: str, depth: int = 0) -> str:
    name = field.source or field.name
    # Not by a dot: a table of the parent's name may have a column of this name.
    value = f"{parent}[{literal(name)}]" if parent else identifier(name)
    return _value_sql(field.how, value, depth)


def _value_sql(how: How, value: str, depth: int) -> str:
    """The expression that makes a value; `depth` keeps the variables of nested lambdas apart."""
    match how:
        case Keep():
            return value
        case Cast(to):
            return f"CAST({value} AS {_type_sql(to)})"
        case Fill(to):
            return f"CAST(NULL AS {_type_sql(to)})"
        case Fields(fields, nullable):
            inner = (f"{_field_sql(f, value, depth)} AS {identifier(f.name)}" for f in fields)
            made = f"struct({', '.join(inner)})"
            return f"IF({value} IS NULL, NULL, {made})" if nullable else made
        case Elements(element):
            each = f"x{depth}"
            return f"transform({value}, {each} -> {_value_sql(element, each, depth + 1)})"
        case Entries(key, entry):
            each = f"x{depth}"
            made = (
                f"struct({_value_sql(key, each + '.key', depth + 1)} AS key, "
                f"{_value_sql(entry, each + '.value', depth + 1)} AS value)"
            )
            return f"map_from_entries(transform(map_entries({value}), {each} -> {made}))"


# --- Arrow tables ---


def _projected(table: pa.Table, target: pa.Schema, fields: Iterable[ProjectedField]) -> pa.Table:
    columns = [_column(table, field, kind.type) for field, kind in zip(fields, target, strict=True)]
    return pa.Table.from_arrays(columns, schema=target)


def _column(table: pa.Table, field: ProjectedField, kind: Any) -> Any:
    if field.source is None:
        return pa.chunked_array([pa.nulls(table.num_rows, kind)])
    try:
        chunks = [_value(field.how, _plain(chunk), kind) for chunk in table[field.source].chunks]
    except pa.ArrowInvalid as error:
        # For instance a finer unit of time than a schema has.
        raise WouldLose(
            f"Column {shown(field.name)} has values that do not fit: {error}.", column=field.name
        ) from error
    return cast(Any, pa).chunked_array(chunks, kind)


def _plain(array: Any) -> Any:
    """The array decoded: a schema does not distinguish dictionaries and runs from plain values."""
    while isinstance(array.type, pa.DictionaryType | pa.RunEndEncodedType):
        is_dictionary = isinstance(array.type, pa.DictionaryType)
        array = array.dictionary_decode() if is_dictionary else cast(Any, pc).run_end_decode(array)
    return array


def _value(how: How, array: Any, kind: Any) -> Any:
    match how:
        case Keep():
            return _kept(array, kind)
        case Cast():
            return array.cast(kind)
        case Fill():
            return pa.nulls(len(array), kind)
        case Fields(fields, _):
            return _struct(fields, array, kind)
        case Elements(element):
            return _list(element, array, kind)
        case Entries(key, entry):
            return _map(key, entry, array, kind)


def _kept(array: Any, kind: Any) -> Any:
    """The same values in the form that the schema's own Arrow type has.

    Nested arrays are made anew: a cast of them loses track of nulls in lists of nothing.
    """
    if array.type == kind:
        return array
    if isinstance(kind, pa.StructType):
        return _struct(tuple(ProjectedField(f.name, f.name, Keep()) for f in kind), array, kind)
    if isinstance(kind, pa.ListType):
        return _list(Keep(), array, kind)
    if isinstance(kind, pa.MapType):
        return _map(Keep(), Keep(), array, kind)
    return array.cast(kind)


def _struct(fields: tuple[ProjectedField, ...], array: Any, kind: Any) -> Any:
    made = [
        pa.nulls(len(array), inner.type)
        if field.source is None
        else _value(field.how, _plain(array.field(field.source)), inner.type)
        for field, inner in zip(fields, kind, strict=True)
    ]
    return cast(Any, pa.StructArray).from_arrays(made, fields=list(kind), mask=array.is_null())


def _list(element: How, array: Any, kind: Any) -> Any:
    offsets, values = _spread(array)
    inner = _value(element, _plain(values), kind.value_type)
    return cast(Any, pa.ListArray).from_arrays(offsets, inner, kind, mask=_nulls(array))


def _map(key: How, entry: How, array: Any, kind: Any) -> Any:
    offsets, first, last = _offsets(array.offsets)
    keys = _value(key, _plain(array.keys[first:last]), kind.key_type)
    items = _value(entry, _plain(array.items[first:last]), kind.item_type)
    return cast(Any, pa.MapArray).from_arrays(offsets, keys, items, kind, mask=_nulls(array))


def _spread(array: Any) -> tuple[Any, Any]:
    """The values of a list array, and where each list begins among them."""
    if isinstance(array.type, pa.FixedSizeListType):
        size = array.type.list_size
        offsets = pa.array(np.arange(len(array) + 1, dtype=np.int32) * np.int32(size))
        return offsets, array.values[array.offset * size : (array.offset + len(array)) * size]
    if not isinstance(array.type, pa.ListType | pa.LargeListType):
        array = array.cast(pa.list_(array.type.value_type))
    offsets, first, last = _offsets(array.offsets)
    return offsets, array.values[first:last]


def _offsets(array: Any) -> tuple[Any, int, int]:
    """Offsets from zero, and the range of the values that they use."""
    offsets = array.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    return pa.array((offsets - first).astype(np.int32)), first, last


def _nulls(array: Any) -> Any:
    return array.is_null() if array.null_count else None
