"""Schemas in the dialects that have a name, read and written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from catalog.errors import InvalidInput, InvalidSchema
from catalog.schema.avro import from_avro, to_avro
from catalog.schema.ddl import parse_ddl
from catalog.schema.json_schema import from_json_schema, to_json_schema
from catalog.schema.model import Schema
from catalog.schema.names import shown
from catalog.schema.spark_json import parse_json, read_json
from catalog.words import chosen


class Dialect(StrEnum):
    """A form of a schema; `json` is Spark's own, which is not JSON Schema."""

    DDL = "ddl"
    JSON = "json"
    SPARK = "spark"
    ARROW = "arrow"
    AVRO = "avro"
    JSON_SCHEMA = "json-schema"


def _from_json(document: Mapping[str, Any] | str) -> Schema:
    return Schema.of(read_json(parse_json(document) if isinstance(document, str) else document))


_TEXT = (str, "text")
_DOCUMENT = ((str, Mapping), "text or a mapping")

# What a dialect is read from, in Python and in words, and how.
_READERS: dict[Dialect, tuple[tuple[Any, str], Callable[[Any], Schema]]] = {
    Dialect.DDL: (_TEXT, lambda text: Schema.of(parse_ddl(text))),
    Dialect.JSON: (_DOCUMENT, _from_json),
    Dialect.SPARK: ((StructType, "a StructType"), Schema.of),
    Dialect.ARROW: ((pa.Schema, "an Arrow schema"), Schema.of),
    Dialect.AVRO: (_DOCUMENT, lambda document: from_avro(document).schema),
    Dialect.JSON_SCHEMA: (_DOCUMENT, lambda document: from_json_schema(document).schema),
}

_WRITERS: dict[Dialect, Callable[..., Any]] = {
    Dialect.DDL: lambda schema: schema.ddl,
    Dialect.JSON: lambda schema: schema.json,
    Dialect.SPARK: Schema.struct,
    Dialect.ARROW: Schema.arrow,
    Dialect.AVRO: lambda schema, **options: to_avro(schema, **options).document,
    Dialect.JSON_SCHEMA: lambda schema, **options: to_json_schema(schema, **options).document,
}

_OPTIONS = {Dialect.AVRO: ("name", "namespace"), Dialect.JSON_SCHEMA: ("title",)}


def read(definition: object, dialect: str) -> Schema:
    """The schema of a definition in a dialect."""
    (types, words), reader = _READERS[chosen(Dialect, "dialect", dialect)]
    if not isinstance(definition, types):
        raise InvalidSchema(
            f"a schema in the dialect {dialect} is {words}, not {type(definition).__name__}",
            value=shown(repr(definition)),
        )
    return reader(definition)


def write(schema: Schema, dialect: str, **options: str | None) -> Any:
    """The schema in a dialect: text, a StructType, an Arrow schema or a dict that JSON can hold."""
    wanted = chosen(Dialect, "dialect", dialect)
    known = _OPTIONS.get(wanted, ())
    if unknown := sorted(options.keys() - {*known}):
        raise InvalidInput(
            f"the dialect {dialect} has no option {', '.join(unknown)}; "
            + (f"it has {' and '.join(known)}" if known else "it has none"),
            options=unknown,
        )
    given = {key: value for key, value in options.items() if value is not None}
    return _WRITERS[wanted](schema, **given)
