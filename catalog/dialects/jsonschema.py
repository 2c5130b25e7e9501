"""JSON Schema (draft 2020-12) to Spark's schemas and back.

What JSON Schema can hold but not say (`decimal(10,2)`, a collation) is noted in the keyword
`x-spark-type`, so that every type with a JSON form comes back as it was. Unions of several types
are refused: a column has one type. What may be any value is a `variant`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    NullType,
    StructField,
    StructType,
)

from catalog.dialects import jsontypes, notes
from catalog.dialects.documents import plain
from catalog.dialects.jsonreader import NOTE, Reader
from catalog.dialects.translation import Reading, Translation, Unsaid, metadata_unsaid, refused
from catalog.schema import Schema, atoms
from catalog.schema.names import child

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def to_json_schema(schema: Schema, *, title: str | None = None) -> Translation:
    """The JSON Schema of a schema's rows as objects.

    Raises:
        InvalidSchema: A column has a type that JSON has no form of; the message has its path.
    """
    writer = _Writer()
    head = {"$schema": _DRAFT} | ({} if title is None else {"title": title})
    return Translation(head | writer.struct(schema.struct(), ""), tuple(writer.unsaid))


def from_json_schema(document: Mapping[str, Any] | str) -> Reading:
    """The schema of objects that a JSON Schema describes, given as a mapping or as text.

    Raises:
        InvalidSchema: The document is malformed, or describes what Spark has no equal of.
    """
    reader = Reader(plain(document))
    return Reading(Schema.of(reader.top()), tuple(reader.findings.unsaid))


class _Writer:
    def __init__(self) -> None:
        self.unsaid: list[Unsaid] = []

    def struct(self, struct: StructType, path: str) -> dict[str, Any]:
        properties = {field.name: self._field(field, path) for field in struct.fields}
        required = [field.name for field in struct.fields if not field.nullable]
        made: dict[str, Any] = {"type": "object", "properties": properties}
        return made | ({"required": required} if required else {})

    def _field(self, field: StructField, path: str) -> dict[str, Any]:
        here = child(path, field.name)
        self.unsaid.extend(metadata_unsaid(field, here))
        made = self._value(field.dataType, field.nullable, here)
        comment = field.metadata.get("comment")
        return made | ({} if comment is None else {"description": comment})

    def _value(self, kind: DataType, nullable: bool, path: str) -> dict[str, Any]:
        made = self._type(kind, path)
        if isinstance(kind, NullType):
            if not nullable:
                raise refused(
                    path, "is void and never null; let it be null or leave it out", "void"
                )
            return made
        types = made["type"] if isinstance(made["type"], list) else [made["type"]]
        return made | ({"type": [*types, "null"]} if nullable else {})

    def _type(self, kind: DataType, path: str) -> dict[str, Any]:
        if isinstance(kind, StructType):
            return self.struct(kind, path)
        if isinstance(kind, ArrayType):
            element = self._value(kind.elementType, kind.containsNull, f"{path}.element")
            return {"type": "array", "items": element}
        if isinstance(kind, MapType):
            key = self._key(kind.keyType, f"{path}.key")
            value = self._value(kind.valueType, kind.valueContainsNull, f"{path}.value")
            return {"type": "object", "additionalProperties": value, **key}
        return self._atom(kind, path)

    def _key(self, kind: DataType, path: str) -> dict[str, Any]:
        if not isinstance(kind, notes.TEXT):
            raise refused(
                path,
                "is not text, and the keys of JSON objects are; cast it to string, or use an array "
                "of structs of key and value",
                str(kind),
            )
        made = self._atom(kind, path)
        return {} if made == {"type": "string"} else {"propertyNames": made}

    def _atom(self, kind: DataType, path: str) -> dict[str, Any]:
        made = jsontypes.written(kind)
        text = atoms.text_of(kind)
        if made is None:
            raise refused(
                path,
                f"has type {text}, which JSON has no form of; cast it, for instance to string, or "
                "leave it out",
                text,
            )
        if not jsontypes.is_said(kind, made):
            self.unsaid.append(Unsaid(path, notes.lost(kind, jsontypes.words(made))))
        noted = not notes.same(jsontypes.plainly(kind), kind)
        return made | ({NOTE: text} if noted else {})
