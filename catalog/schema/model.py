"""A schema as a value: immutable, comparable, small to pickle; its columns, and the stored form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any, Never, final

import pyarrow as pa
from pyspark.sql.types import DataType, StructType

from catalog.errors import CorruptSchema, InvalidSchema
from catalog.schema import canonical, rules
from catalog.schema.arrow import from_arrow, to_arrow
from catalog.schema.ddl import parse_ddl, print_ddl
from catalog.schema.names import child, held, shown, type_text
from catalog.schema.spark_json import compact, parse_json, read_json, write_json

PAYLOAD_FORMAT = 1


@dataclass(frozen=True, slots=True)
class SchemaColumn:
    """A column at any level.

    Attributes:
        path: Names from the top, joined by dots; what an array or a map holds continues as
            `element`, `key` or `value`. Odd names are in backquotes.
        position: Place among the columns of the same struct, from 0.
        depth: How many columns it is inside of.
        type: Spark's short name for the type, such as `array<struct<x:int>>`.
    """

    path: str
    name: str
    position: int
    depth: int
    type: str
    nullable: bool
    comment: str | None


@final
class Schema:
    """A definition of columns, types and nullability; its id is its fingerprint.

    Two schemas are equal when their canonical forms are: column order, comments and the spelling of
    types make no difference, though each schema keeps its own. Build one with `Schema.of`.
    """

    json: str

    def __init__(self, json: str) -> None:
        """Trust a JSON text that has passed the rules; anything else goes through `of`."""
        self.__dict__["json"] = json

    @classmethod
    def of(
        cls,
        definition: Schema | str | StructType | pa.Schema | Mapping[str, Any],
        dialect: str | None = None,
    ) -> Schema:
        """The schema of a definition.

        Args:
            definition: DDL or Spark's JSON as text, a StructType, an Arrow schema or Spark's JSON
                as a mapping; with a dialect, what that dialect has.
            dialect: "ddl", "json", "spark", "arrow", "avro" or "json-schema". The last two take
                text or a mapping, and drop what a schema does not keep; `from_avro` and
                `from_json_schema` report it.

        Raises:
            InvalidSchema: The definition is malformed, breaks a rule or has no equal in Spark.
            InvalidInput: There is no such dialect.
        """
        if dialect is not None:
            # Not at the top: it builds on this module, and few processes read Avro.
            from catalog.schema import dialects

            return dialects.read(definition, dialect)
        if isinstance(definition, Schema):
            return definition
        if isinstance(definition, str):
            return _of_text(definition)
        if isinstance(definition, StructType):
            return _of_struct(definition)
        if isinstance(definition, pa.Schema):
            return _of_struct(from_arrow(definition))
        if isinstance(definition, Mapping):
            return _of_struct(read_json(definition))
        raise InvalidSchema(
            f"a schema cannot be made of {type(definition).__name__}; pass DDL, Spark's JSON, a "
            "StructType or an Arrow schema",
            value=shown(repr(definition)),
        )

    def to(self, dialect: str, **options: str | None) -> Any:
        """The schema in a dialect: text ("ddl", "json"), a StructType ("spark"), an Arrow schema
        ("arrow"), or a dict that JSON can hold ("avro", "json-schema").

        Args:
            dialect: One of these names.
            options: `name` and `namespace` of the Avro record, `title` of the JSON Schema.

        Raises:
            InvalidSchema: The dialect has no form for a column; the message has its path.
            InvalidInput: There is no such dialect or option.
        """
        from catalog.schema import dialects

        return dialects.write(self, dialect, **options)

    @classmethod
    def from_payload(cls, text: str) -> Schema:
        """The schema in a payload."""
        return _of_payload(text)

    def struct(self) -> StructType:
        """A new StructType, which the caller may change."""
        return read_json(json.loads(self.json))

    def arrow(self) -> pa.Schema:
        """The Arrow schema; InvalidSchema names a column that Arrow has no type for."""
        return to_arrow(self.struct())

    @cached_property
    def canonical(self) -> str:
        """The canonical form, which the fingerprint is computed from."""
        return canonical.canonical(self.struct())

    @cached_property
    def fingerprint(self) -> str:
        """The schema's id: 32 hex digits, the same in every catalog."""
        return canonical.fingerprint(self.canonical)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical form, in hex."""
        return canonical.digest(self.canonical)

    @cached_property
    def ddl(self) -> str:
        """One line of DDL. It cannot say that elements or values are never null; `json` can."""
        return print_ddl(self.struct())

    @cached_property
    def columns(self) -> tuple[SchemaColumn, ...]:
        """Every column at any depth, in the order of the definition."""
        return tuple(_columns(self.struct()))

    @cached_property
    def payload(self) -> str:
        """The JSON document that the catalog stores."""
        return compact(
            {
                "format": PAYLOAD_FORMAT,
                "ddl": self.ddl,
                "type": json.loads(self.json),
                "columns": [asdict(column) for column in self.columns],
            }
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        return self is other or self.canonical == other.canonical

    def __hash__(self) -> int:
        return hash(self.canonical)

    def __repr__(self) -> str:
        return f"Schema({self.fingerprint[:8]}, {shown(self.ddl)!r})"

    def __reduce__(self) -> tuple[type[Schema], tuple[str]]:
        return Schema, (self.json,)

    def __setattr__(self, name: str, value: object) -> Never:
        raise AttributeError(f"a schema never changes, so {name!r} cannot be set; make another one")

    def __delattr__(self, name: str) -> Never:
        raise AttributeError(f"a schema never changes, so {name!r} cannot be deleted")


def _of_struct(struct: StructType) -> Schema:
    rules.check(struct)
    schema = Schema(write_json(struct))
    # Nearly every caller needs the fingerprint next, and here the struct need not be read again.
    schema.__dict__["canonical"] = canonical.canonical(struct)
    return schema


# Rows come in millions and definitions in dozens, so a text is parsed once.
@lru_cache(maxsize=4096)
def _of_text(text: str) -> Schema:
    if text.lstrip().startswith("{"):
        return _of_struct(read_json(parse_json(text)))
    return _of_struct(parse_ddl(text))


@lru_cache(maxsize=4096)
def _of_payload(text: str) -> Schema:
    document = parse_json(text)
    found = document.get("format") if isinstance(document, dict) else None
    if found != PAYLOAD_FORMAT:
        raise InvalidSchema(
            f"a payload must be a JSON object of format {PAYLOAD_FORMAT}, not {found!r}; read it "
            "with the release that wrote it",
            value=shown(text),
        )
    return _of_struct(read_json(document.get("type")))


def read_stored(fingerprint: str, payload: str) -> Schema:
    """The schema in a payload that is stored under a fingerprint, which is checked."""
    try:
        schema = Schema.from_payload(payload)
    except InvalidSchema as error:
        raise CorruptSchema(
            f"What is stored as schema {fingerprint} cannot be read: {error.message}.",
            fingerprint=fingerprint,
        ) from error
    if schema.fingerprint != fingerprint:
        raise CorruptSchema(
            f"What is stored as schema {fingerprint} is schema {schema.fingerprint}. Run verify to "
            "see what else is wrong, and restore the row from an earlier version.",
            fingerprint=fingerprint,
            found=schema.fingerprint,
        )
    return schema


# --- columns ---


def _columns(struct: StructType, path: str = "", depth: int = 0) -> Iterator[SchemaColumn]:
    """Every column of the struct and, right after each, the columns inside it."""
    for position, field in enumerate(struct.fields):
        here = child(path, field.name)
        yield SchemaColumn(
            path=here,
            name=field.name,
            position=position,
            depth=depth,
            type=type_text(field.dataType),
            nullable=bool(field.nullable),
            comment=field.metadata.get("comment"),
        )
        yield from _inside(field.dataType, here, depth + 1)


def _inside(kind: DataType, path: str, depth: int) -> Iterator[SchemaColumn]:
    if isinstance(kind, StructType):
        yield from _columns(kind, path, depth)
    for name, inner, _ in held(kind):
        yield from _inside(inner, f"{path}.{name}", depth)
