"""Schemas in the dialects that have a name, read and written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from catalog.errors import InvalidInput, InvalidSchema
from catalog.schema import avro, json_schema
from catalog.schema.ddl import parse_ddl
from catalog.schema.model import Schema
from catalog.schema.names import shown
from catalog.schema.spark_json import parse_json, read_json
from catalog.schema.translation import Translation, Unsaid
from catalog.words import chosen


class Dialect(StrEnum):
    """A form of a schema; `json` is Spark's own, which is not JSON Schema."""

    DDL = "ddl"
    JSON = "json"
    SPARK = "spark"
    ARROW = "arrow"
    AVRO = "avro"
    JSON_SCHEMA = "json-schema"


@dataclass(frozen=True, slots=True)
class Reading:
    """The schema of a document in another dialect, and what a Spark schema does not keep of it."""

    schema: Schema
    unsaid: tuple[Unsaid, ...]


def to_avro(schema: Schema, *, name: str = "record", namespace: str | None = None) -> Translation:
    """The Avro record of a schema.

    Args:
        name: The record's name; the names of nested records begin with it.
        namespace: Names joined by dots, if the record has one.

    Raises:
        InvalidSchema: Avro has no form of a column's type or name; the message has its path.
    """
    return avro.write(schema.struct(), name, namespace)


def from_avro(document: Mapping[str, Any] | str) -> Reading:
    """The schema of an Avro record, given as a mapping or as JSON text.

    Raises:
        InvalidSchema: The document is not valid Avro, or has what Spark has no equal of.
    """
    struct, unsaid = avro.read(document)
    return Reading(Schema.of(struct), unsaid)


def to_json_schema(schema: Schema, *, title: str | None = None) -> Translation:
    """The JSON Schema of a schema's rows as objects.

    Raises:
        InvalidSchema: JSON has no form of a column's type; the message has its path.
    """
    return json_schema.write(schema.struct(), title)


def from_json_schema(document: Mapping[str, Any] | str) -> Reading:
    """The schema of the objects that a JSON Schema describes, given as a mapping or as text.

    Raises:
        InvalidSchema: The document is malformed, or describes what Spark has no equal of.
    """
    struct, unsaid = json_schema.read(document)
    return Reading(Schema.of(struct), unsaid)


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
    return _WRITERS[wanted](schema, **options)
