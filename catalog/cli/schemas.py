"""A schema on the command line: named by what has it, read from a file, shown in a dialect."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from catalog.cli.arguments import STDIN, text_of
from catalog.errors import InvalidInput, NotInSnapshot, UnknownName, UnknownSchema
from catalog.names.model import reference
from catalog.schema import Schema
from catalog.schema.avro import from_avro, to_avro
from catalog.schema.canonical import is_prefix
from catalog.schema.json_schema import from_json_schema, to_json_schema
from catalog.schema.translation import Unsaid

if TYPE_CHECKING:
    from catalog.catalog import Catalog
    from catalog.delta.store import AsOf

_WORDS = ("fingerprint", "segment", "datasource", "named", "ddl")
HELP = (
    "a fingerprint or its beginning, a segment (datasource/name), a datasource, a named schema "
    "(orders@3, orders@current), or DDL; to be "
    f"exact begin with {': or '.join(_WORDS)}:"
)
DIALECTS = ("ddl", "json", "json-schema", "avro")


def schema_in(dialect: str, text: str) -> tuple[Schema, tuple[Unsaid, ...]]:
    """The schema of a document in another dialect, and what Spark's schema does not keep of it."""
    reading = from_avro(text) if dialect == "avro" else from_json_schema(text)
    return reading.schema, reading.unsaid


def written_in(dialect: str, schema: Schema) -> tuple[Any, tuple[Unsaid, ...]]:
    """A schema in a dialect, and what that dialect cannot say."""
    if dialect in ("ddl", "json"):
        text = schema.to(dialect)
        return (text if dialect == "ddl" else json.loads(text)), ()
    translation = to_avro(schema) if dialect == "avro" else to_json_schema(schema)
    return translation.document, translation.unsaid


def schema_given(catalog: Catalog, text: str) -> Schema | str:
    """The text of a local file or of standard input for `-`, or a schema by name."""
    if text == STDIN or os.path.isfile(text):  # unlike Path, it takes any text
        return text_of(text)
    return schema_named(catalog, text)


def schema_named(catalog: Catalog, text: str, as_of: AsOf = None) -> Schema:
    """The schema that a text names.

    A text with a blank is a definition, one with a slash a segment, hex digits are a fingerprint
    and one that ends like @3 or @current a named schema unless there is none such, and anything
    else is a datasource.
    """
    word, _, rest = text.partition(":")
    # In DDL a colon may follow a name too, and then a blank.
    if word in _WORDS and rest and (word == "ddl" or not rest[0].isspace()):
        return _of(catalog, word, rest, as_of)
    if any(character.isspace() for character in text.strip()) or text.lstrip().startswith("{"):
        return _of(catalog, "ddl", text, as_of)
    if "/" in text:
        return _of(catalog, "segment", text, as_of)
    if is_prefix(text):
        try:
            return catalog.schema(text, as_of)
        except UnknownSchema:
            pass  # a datasource may have such a name too
    if reference(text) is not None:
        try:
            return _of(catalog, "named", text, as_of)
        except UnknownName as error:
            if "current" in error.values:  # the name exists, and has no such version
                raise
    return _of(catalog, "datasource", text, as_of)


def _of(catalog: Catalog, word: str, text: str, as_of: AsOf) -> Schema:
    if word == "fingerprint":
        return catalog.schema(text, as_of)
    if word == "ddl":
        return Schema.of(text)
    if word == "named":
        name, number = reference(text) or (text, None)
        return catalog.names.get(name, number, as_of).schema
    if word == "segment":
        return _of_segment(catalog, text, as_of)
    schema = catalog.datasource_schema(text, as_of=as_of).schema
    if schema is None:
        raise InvalidInput(f"No segment of datasource {text} has a known schema.", datasource=text)
    return schema


def _of_segment(catalog: Catalog, segment_id: str, as_of: AsOf) -> Schema:
    segments = catalog.segments(as_of).where(F.col("segment_id") == F.lit(segment_id))
    rows = segments.select("fingerprint").collect()
    if not rows:
        raise NotInSnapshot(f"Segment {segment_id} is not in the catalog.", segment_id=segment_id)
    if rows[0]["fingerprint"] is None:
        raise NotInSnapshot(
            f"Segment {segment_id} is published without a schema.", segment_id=segment_id
        )
    return catalog.schema(rows[0]["fingerprint"], as_of)
