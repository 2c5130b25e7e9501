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
        case Keep():
            return _kept(array, kind)
        case Cast():
            return array.cast(kind)
        case Fill():
            return _nothing(len(array), kind)
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
        return _struct(tuple(Field(f.name, f.name, Keep()) for f in kind), array, kind)
    if isinstance(kind, pa.ListType):
        return _list(Keep(), array, kind)
    if isinstance(kind, pa.MapType):
        return _map(Keep(), Keep(), array, kind)
    return array.cast(kind)


def _struct(fields: tuple[Field, ...], array: Any, kind: Any) -> Any:
    made = [
        _nothing(len(array), inner.type)
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


def _nothing(count: int, kind: Any) -> Any:
    return pa.nulls(count, kind)


def _nulls(array: Any) -> Any:
    return array.is_null() if array.null_count else None
