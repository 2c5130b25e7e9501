"""Projections on Arrow tables."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.errors import WouldLose
from catalog.evolution.projection import (
    Cast,
    Elements,
    Entries,
    Field,
    Fields,
    Fill,
    How,
    Keep,
    Projection,
)
from catalog.schema.names import shown


def projected(table: pa.Table, projection: Projection) -> pa.Table:
    """The table in the schema of the projection's target."""
    target = projection.target.arrow()
    columns = [
        _column(table, field, kind.type)
        for field, kind in zip(projection.fields, target, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=target)


def _column(table: pa.Table, field: Field, kind: pa.DataType) -> Any:
    if field.source is None:
        return pa.chunked_array([_nothing(table.num_rows, kind)])
    try:
        chunks = [_value(field.how, _plain(chunk), kind) for chunk in table[field.source].chunks]
    except pa.ArrowInvalid as error:
        # A finer unit of time than a schema can say, for instance.
        raise WouldLose(
            f"Column {shown(field.name)} has values that do not fit: {error}.", column=field.name
        ) from error
    return cast(Any, pa).chunked_array(chunks, kind)


def _plain(array: Any) -> Any:
    """The array without the encodings that a schema does not tell apart."""
    while isinstance(array.type, pa.DictionaryType | pa.RunEndEncodedType):
        is_dictionary = isinstance(array.type, pa.DictionaryType)
        array = array.dictionary_decode() if is_dictionary else cast(Any, pc).run_end_decode(array)
    return array


def _value(how: How, array: Any, kind: Any) -> Any:
    match how:
        case Keep() | Cast():
            return array if array.type == kind else array.cast(kind)
        case Fill():
            return _nothing(len(array), kind)
        case Fields(fields, _):
            return _struct(fields, array, kind)
        case Elements(element):
            if not isinstance(array.type, pa.ListType):
                array = array.cast(pa.list_(array.type.value_type))
            offsets, first, last = _offsets(array)
            values = _plain(array.values.slice(first, last - first))
            inner = _value(element, values, kind.value_type)
            return cast(Any, pa.ListArray).from_arrays(offsets, inner, kind, mask=_nulls(array))
        case Entries(key, entry):
            offsets, first, last = _offsets(array)
            keys = _value(key, _plain(array.keys.slice(first, last - first)), kind.key_type)
            items = _value(entry, _plain(array.items.slice(first, last - first)), kind.item_type)
            return cast(Any, pa.MapArray).from_arrays(
                offsets, keys, items, kind, mask=_nulls(array)
            )


def _struct(fields: tuple[Field, ...], array: Any, kind: Any) -> Any:
    made = [
        _nothing(len(array), inner.type)
        if field.source is None
        else _value(field.how, _plain(array.field(field.source)), inner.type)
        for field, inner in zip(fields, kind, strict=True)
    ]
    return cast(Any, pa.StructArray).from_arrays(made, fields=list(kind), mask=array.is_null())


def _nothing(count: int, kind: Any) -> Any:
    return pa.nulls(count, kind)


def _offsets(array: Any) -> tuple[Any, int, int]:
    """The offsets of a list or map array, from zero, and the range of its values that it uses."""
    offsets = array.offsets.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    return pa.array(offsets - np.int32(first)), first, last


def _nulls(array: Any) -> Any:
    return array.is_null() if array.null_count else None
