"""A schema as a value: immutable, comparable, small to ship."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property, lru_cache
from typing import Any, Never, final

import pyarrow as pa
from pyspark.sql.types import StructType

from catalog.errors import InvalidSchema
from catalog.schema import canonical, rules
from catalog.schema.arrow import from_arrow, to_arrow
from catalog.schema.columns import Column, flatten
from catalog.schema.ddl import parse_ddl, print_ddl
from catalog.schema.names import shown
from catalog.schema.sparkjson import compact, parse_json, read_json, write_json

PAYLOAD_FORMAT = 1


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
    def of(cls, definition: Schema | str | StructType | pa.Schema | Mapping[str, Any]) -> Schema:
        """The schema of a definition: DDL or Spark's JSON as text, a StructType, an Arrow schema or
        Spark's JSON as a mapping.

        Raises:
            InvalidSchema: The definition is malformed or breaks a rule.
        """
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

    @classmethod
    def from_payload(cls, text: str) -> Schema:
        """The schema that a payload holds."""
        return _of_payload(text)

    def struct(self) -> StructType:
        """A StructType of the caller's own."""
        return read_json(json.loads(self.json))

    def arrow(self) -> pa.Schema:
        """The Arrow schema; InvalidSchema names the column that Arrow has no type for."""
        return to_arrow(self.struct())

    @cached_property
    def canonical(self) -> str:
        """The text that the fingerprint is taken of."""
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
    def columns(self) -> tuple[Column, ...]:
        """Every column at any depth, in the order of the definition."""
        return tuple(flatten(self.struct()))

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
    # Nearly every caller asks for the fingerprint next, and the struct is at hand.
    schema.__dict__["canonical"] = canonical.canonical(struct)
    return schema


# Rows come in millions and definitions in dozens, so a text that was read is not read again.
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
