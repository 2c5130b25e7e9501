"""JSON Schema (draft 2020-12) to Spark's schemas and back.

What JSON Schema can hold but not name (`decimal(10,2)`, a collation) is noted in the keyword
`x-spark-type`, so that every type with a JSON form comes back as it was. Unions of several types
are refused: a column has one type. Values of any type are a `variant`.

`date-time-local` and `time-local` are formats that OpenAPI lists: the draft's own `date-time` and
`time` need an offset, which `timestamp_ntz` and `time` do not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    VarcharType,
    VariantType,
)

from catalog.schema import atoms
from catalog.schema.ddl import parse_type
from catalog.schema.json_references import ANYTHING, Resolved, kind_of, resolve
from catalog.schema.model import Schema
from catalog.schema.names import child, shown
from catalog.schema.rules import refused
from catalog.schema.translation import (
    TEXT,
    DocumentReader,
    DocumentWriter,
    Reading,
    Translation,
    fitting,
    plain_document,
)

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_NOTE = "x-spark-type"


def to_json_schema(schema: Schema, *, title: str | None = None) -> Translation:
    """The JSON Schema of a schema's rows as objects.

    Raises:
        InvalidSchema: JSON has no form of a column's type; the message has its path.
    """
    writer = _JsonSchemaWriter()
    head = {"$schema": _DRAFT} | ({} if title is None else {"title": title})
    return Translation(head | writer.struct(schema.struct(), ""), tuple(writer.unsaid))


def from_json_schema(document: Mapping[str, Any] | str) -> Reading:
    """The schema of the objects that a JSON Schema describes, given as a mapping or as text.

    Raises:
        InvalidSchema: The document is malformed, or describes what Spark has no equal of.
    """
    reader = _JsonSchemaReader(plain_document(document))
    return Reading(Schema.of(reader.top()), tuple(reader.unsaid))


# --- atomic types ---

_BOUNDS = {
    name: {"minimum": -(2 ** (bits - 1)), "maximum": 2 ** (bits - 1) - 1}
    for name, bits in {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}.items()
}
# JavaScript rounds the bounds of bigint to 9223372036854776000, and those still count as its own.
_BEYOND = 2**63 + 1024
_LIMITS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")

_STRING = {"type": "string"}
_WRITTEN: dict[str, dict[str, Any]] = {
    "boolean": {"type": "boolean"},
    **{name: {"type": "integer", **bounds} for name, bounds in _BOUNDS.items()},
    "float": {"type": "number", "format": "float"},
    "double": {"type": "number"},
    "string": _STRING,
    "binary": {**_STRING, "contentEncoding": "base64"},
    "date": {**_STRING, "format": "date"},
    "timestamp": {**_STRING, "format": "date-time"},
    "timestamp_ntz": {**_STRING, "format": "date-time-local"},
    "time": {**_STRING, "format": "time-local"},
    "interval": {**_STRING, "format": "duration"},
    "year-month": {**_STRING, "format": "duration"},
    "day-time": {**_STRING, "format": "duration"},
    "void": {"type": "null"},
}

_FORMATS = {
    "integer": {"int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint"},
    "number": {"float": "float", "double": "double"},
    "string": {
        "date": "date",
        "date-time": "timestamp",
        "date-time-local": "timestamp_ntz",
        "time": "time(6)",
        "time-local": "time(6)",
        "byte": "binary",
        "binary": "binary",
    },
}
_PLAIN = {"boolean": "boolean", "integer": "bigint", "number": "double", "string": "string"}


def _written(kind: DataType) -> dict[str, Any] | None:
    if isinstance(kind, DecimalType):
        return {"type": "number" if kind.scale else "integer"}
    if isinstance(kind, VariantType):
        return {"type": [*ANYTHING]}
    stem = atoms.stem(kind)
    if stem in ("char", "varchar"):
        length: Any = getattr(kind, "length", None)
        return {**_STRING, "maxLength": length}
    found = _WRITTEN.get(stem)
    return None if found is None else dict(found)


def _plainly(kind: DataType) -> DataType | None:
    """The type that an atomic type is read as without its note."""
    found = _written(kind)
    if found is None or isinstance(kind, VariantType | NullType):
        return None if found is None else kind
    return _plain_atom(found, found["type"], "")[0]


def _plain_atom(found: dict[str, Any], word: str, path: str) -> tuple[DataType, set[str]]:
    """The atomic type of values of one JSON type, and the keywords that it expresses."""
    for name, bounds in _BOUNDS.items():
        if word == "integer" and all(found.get(key) == bound for key, bound in bounds.items()):
            return parse_type(name), {*bounds}
    if word == "string" and found.get("contentEncoding") == "base64":
        return parse_type("binary"), {"contentEncoding"}
    form = found.get("format", "")
    if not isinstance(form, str):
        raise refused(path, f"has the format {shown(repr(form))}; use text", form)
    if name := _FORMATS.get(word, {}).get(form, ""):
        # The draft's `time` has an offset, which is not kept.
        return parse_type(name), {"format"} if form != "time" else set()
    length = _length(found, path) if word == "string" else None
    if length is not None and length <= atoms.MAX_LENGTH:
        return VarcharType(length), {"maxLength"}
    return parse_type(_PLAIN[word]), set()


def _length(found: dict[str, Any], path: str) -> int | None:
    length = found.get("maxLength")
    if isinstance(length, float) and length.is_integer():
        length = int(length)
    if length is not None and (type(length) is not int or length < 0):
        raise refused(
            path, f"has the maxLength {shown(repr(length))}; use a whole number from 0", length
        )
    return length


def _atom(keywords: dict[str, Any], word: str, path: str) -> tuple[DataType, set[str]]:
    """The same, with the type of the note if that fits."""
    found, said = _plain_atom(keywords, word, path)
    noted = fitting(keywords.get(_NOTE), found, _plainly)
    kind = noted or found
    for key in _LIMITS if isinstance(kind, LongType) else ():
        bound = keywords.get(key)
        if isinstance(bound, int | float) and abs(bound) > _BEYOND:
            raise refused(
                path,
                f"may be as large as {shown(str(bound))}, and a bigint has 64 bits; note a decimal "
                f'with "{_NOTE}": "decimal(20,0)", or narrow the bounds',
                bound,
            )
    said |= {key for key, value in (_written(kind) or {}).items() if keywords.get(key) == value}
    return kind, said | ({_NOTE} if noted else set())


# --- to JSON Schema ---


class _JsonSchemaWriter(DocumentWriter):
    dialect, maps, note = "JSON", "objects", _NOTE
    written = staticmethod(_written)
    plainly = staticmethod(_plainly)

    def struct(self, struct: StructType, path: str) -> dict[str, Any]:
        properties = {field.name: self._field(field, path) for field in struct.fields}
        required = [field.name for field in struct.fields if not field.nullable]
        made: dict[str, Any] = {"type": "object", "properties": properties}
        return made | ({"required": required} if required else {})

    def _field(self, field: StructField, path: str) -> dict[str, Any]:
        made: dict[str, Any] = self.field(field, child(path, field.name))
        comment = field.metadata.get("comment")
        return made | ({} if comment is None else {"description": comment})

    def optional(self, made: Any) -> Any:
        types = made["type"] if isinstance(made["type"], list) else [made["type"]]
        return made | {"type": [*types, "null"]}

    def map(self, key: Any, value: Any) -> dict[str, Any]:
        names = {} if key == _STRING else {"propertyNames": key}
        return {"type": "object", "additionalProperties": value, **names}


# --- from JSON Schema ---


class _JsonSchemaReader(DocumentReader):
    quiet = frozenset(
        {"type", "nullable", "title", "examples", "$comment"}
        | {"$schema", "$id", "$anchor", "$defs", "definitions"}
    )

    def __init__(self, root: dict[str, Any]) -> None:
        super().__init__()
        self._root = root

    def top(self) -> StructType:
        """The columns of the objects that the document describes."""
        kind, nullable = self._value(resolve(self._root, self._root, "", frozenset()), "", 0, set())
        if not isinstance(kind, StructType):
            raise refused(
                "", "must be an object with properties; wrap it in one", kind.simpleString()
            )
        if nullable:
            self.report("", "the whole object may be null")
        return kind

    def _value(
        self, found: Resolved, path: str, depth: int, said: set[str]
    ) -> tuple[DataType, bool]:
        """The type and nullability; `said` has the keywords that the caller has read."""
        keywords = found.keywords
        word, nullable = kind_of(keywords, path)
        self.count(path, depth if word in ("object", "array") else 0, keywords)
        nullable = nullable or found.nullable or keywords.get("nullable") is True
        if nullable and keywords.get("default") is None:
            said = said | {"default"}
        if word == "object":
            return self._object(found, path, depth, said), nullable
        if word == "array":
            return self._array(found, path, depth, said), nullable
        if word in ("any", "null"):
            self.leave_out(path, keywords, said)
            return VariantType() if word == "any" else NullType(), nullable
        kind, words = _atom(keywords, word, path)
        self.leave_out(path, keywords, said | words)
        return kind, nullable

    def _inner(self, schema: object, found: Resolved, path: str) -> Resolved:
        return resolve(self._root, schema, path, found.inside)

    def _array(self, found: Resolved, path: str, depth: int, said: set[str]) -> ArrayType:
        items = found.keywords.get("items", True)
        if "prefixItems" in found.keywords or isinstance(items, list):
            raise refused(
                path,
                "is a tuple, with a schema for each place; use one schema in items, or an object "
                "with a property for each place",
                "prefixItems",
            )
        self.leave_out(path, found.keywords, said | {"items"})
        here = f"{path}.element"
        return ArrayType(*self._value(self._inner(items, found, here), here, depth + 1, set()))

    def _object(self, found: Resolved, path: str, depth: int, said: set[str]) -> DataType:
        keywords = found.keywords
        if "patternProperties" in keywords:
            raise refused(
                path,
                "has patternProperties, and a column is a struct or a map; use properties or "
                "additionalProperties",
                "patternProperties",
            )
        properties = keywords.get("properties", {})
        if not isinstance(properties, dict):
            raise refused(path, "must have an object as properties; repair it", properties)
        more = keywords.get("additionalProperties", "properties" not in keywords)
        if properties or more is False:
            return self._struct(found, path, depth, said)
        self.leave_out(path, keywords, said | {"additionalProperties", "propertyNames"})
        key = self._key(keywords.get("propertyNames", True), f"{path}.key", found)
        here = f"{path}.value"
        return MapType(key, *self._value(self._inner(more, found, here), here, depth + 1, set()))

    def _struct(self, found: Resolved, path: str, depth: int, said: set[str]) -> StructType:
        keywords = found.keywords
        required = keywords.get("required", [])
        if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
            raise refused(path, "must have a list of names as required; repair it", required)
        said = said | {"properties", "required"}
        if isinstance(keywords.get("additionalProperties"), bool):
            said = said | {"additionalProperties"}
        self.leave_out(path, keywords, said)
        properties = keywords.get("properties", {})
        needed = set(required)
        for name in sorted(needed - properties.keys()):
            self.report(path, f"required {name}, which is not among the properties")
        fields = []
        for name, schema in properties.items():
            here = child(path, name)
            inner = self._inner(schema, found, here)
            kind, nullable = self._value(inner, here, depth + 1, {"description"})
            comment = inner.keywords.get("description", "")
            if not isinstance(comment, str):
                problem = f"has the description {shown(repr(comment))}; use text"
                raise refused(here, problem, comment)
            metadata = {"comment": comment} if "description" in inner.keywords else None
            fields.append(StructField(name, kind, nullable or name not in needed, metadata))
        return StructType(fields)

    def _key(self, schema: object, path: str, found: Resolved) -> DataType:
        keywords = {"type": "string"} | self._inner(schema, found, path).keywords
        word, _ = kind_of(keywords, path)
        if word != "string":
            raise refused(
                path, f"is {word}, and the keys of JSON objects are text; use string", word
            )
        kind, said = _atom(keywords, word, path)
        if not isinstance(kind, TEXT):
            kind, said = StringType(), set()
        self.leave_out(path, keywords, said)
        return kind
