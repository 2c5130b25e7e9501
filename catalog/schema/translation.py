"""What Avro and JSON Schema share: documents of others, notes of types, and what gets lost.

A type that the other dialect can hold but not name is written with a note, so that it comes back as
it was. What neither type nor note expresses is reported as `Unsaid`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    VarcharType,
)

from catalog.errors import InvalidSchema
from catalog.schema import atoms
from catalog.schema.ddl import parse_type
from catalog.schema.model import Schema
from catalog.schema.names import shown
from catalog.schema.rules import MAX_TYPES, check_depth, refused
from catalog.schema.spark_json import parse_json

# Types whose values are text, and so can be the keys of an object.
TEXT = (StringType, CharType, VarcharType)

_MAX_PARTS = 1_000_000
# Each level of a schema takes up to four in a document: record, fields, field and union.
_MAX_NESTING = 300
# Python does not print numbers of any length.
_MAX_BITS = 4096


@dataclass(frozen=True, slots=True)
class Unsaid:
    """Something that the other dialect cannot express.

    Attributes:
        path: The column's path, as in `SchemaColumn`; empty for the schema as a whole.
        what: What is not expressed, or what is written instead.
    """

    path: str
    what: str


@dataclass(frozen=True, slots=True)
class Translation:
    """A schema in another dialect, as values that JSON has, and what its readers do not see."""

    document: dict[str, Any]
    unsaid: tuple[Unsaid, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """The schema of a document in another dialect, and what a Spark schema does not keep of it."""

    schema: Schema
    unsaid: tuple[Unsaid, ...]


# --- notes ---


def same(one: DataType | None, other: DataType | None) -> bool:
    """Whether two are the same atomic type."""
    text = None if one is None else atoms.text_of(one)
    return text is not None and other is not None and text == atoms.text_of(other)


def fitting(
    note: object, found: DataType, plain: Callable[[DataType], DataType | None]
) -> DataType | None:
    """The type that a note names, if `plain` gives for it the type that was found.

    A note outlives a change of the column's type, so it counts only where it still fits.
    """
    named = _parsed(note) if isinstance(note, str) else None
    return named if named is not None and same(plain(named), found) else None


# Failures are cached too: many columns may share one note, and it may be long.
@lru_cache(maxsize=1024)
def _parsed(note: str) -> DataType | None:
    try:
        return parse_type(note)
    except InvalidSchema:
        return None


# --- writing ---

# The formats of JSON Schema's draft; others are known to some readers only.
_DRAFT_FORMATS = (None, "date", "date-time")


class DocumentWriter(ABC):
    """Writes a struct as a document; a subclass has the forms of its dialect."""

    # Its name in messages, what a map becomes there, and the key of a note.
    dialect: ClassVar[str]
    maps: ClassVar[str]
    note: ClassVar[str]

    def __init__(self) -> None:
        self.unsaid: list[Unsaid] = []

    @abstractmethod
    def written(self, kind: DataType) -> dict[str, Any] | None:
        """The form of an atomic type, if there is one."""

    @abstractmethod
    def plainly(self, kind: DataType) -> DataType | None:
        """The type that this form is read as without a note."""

    @abstractmethod
    def struct(self, struct: StructType, path: str) -> dict[str, Any]:
        """The form of a struct."""

    @abstractmethod
    def map(self, key: Any, value: Any) -> dict[str, Any]:
        """The form of a map, given those of its keys and values."""

    @abstractmethod
    def optional(self, made: Any) -> Any:
        """The form of values that may be null."""

    def field(self, field: StructField, path: str) -> Any:
        """The form of a field's values."""
        self.unsaid.extend(
            Unsaid(path, f"metadata {shown(key)}") for key in field.metadata if key != "comment"
        )
        return self._value(field.dataType, field.nullable, path)

    def atom(self, kind: DataType, path: str) -> Any:
        """The form of an atomic type, with a note where it would be read as another type."""
        made, text = self.written(kind), atoms.text_of(kind) or str(kind)
        if made is None:
            raise refused(
                path,
                f"has type {text}, which {self.dialect} has no form of; cast it, for instance to "
                "string, or leave it out",
                text,
            )
        noted = not same(self.plainly(kind), kind)
        if noted or made.get("format") not in _DRAFT_FORMATS:
            _, collated, collation = text.partition("string collate ")
            what = f"{text} is written as {_words(made)}"
            self.unsaid.append(Unsaid(path, f"collation {collation}" if collated else what))
        return made | ({self.note: text} if noted else {})

    def _value(self, kind: DataType, nullable: bool, path: str) -> Any:
        made = self._type(kind, path)
        if not isinstance(kind, NullType):
            return self.optional(made) if nullable else made
        if not nullable:
            raise refused(path, "is void and never null; let it be null or leave it out", "void")
        return made

    def _type(self, kind: DataType, path: str) -> Any:
        if isinstance(kind, StructType):
            return self.struct(kind, path)
        if isinstance(kind, ArrayType):
            element = self._value(kind.elementType, kind.containsNull, f"{path}.element")
            return {"type": "array", "items": element}
        if not isinstance(kind, MapType):
            return self.atom(kind, path)
        if not isinstance(kind.keyType, TEXT):
            raise refused(
                f"{path}.key",
                f"is not text, and the keys of {self.dialect} {self.maps} are; cast it to string, "
                "or use an array of structs of key and value",
                str(kind.keyType),
            )
        key = self.atom(kind.keyType, f"{path}.key")
        return self.map(key, self._value(kind.valueType, kind.valueContainsNull, f"{path}.value"))


def _words(made: dict[str, Any]) -> str:
    form = f" of format {made['format']}" if "format" in made else ""
    return f"{made.get('logicalType', made['type'])}{form}"


# --- reading ---


class DocumentReader:
    """Reads a document of others: limits how far it unfolds, and collects what stays unsaid.

    Attributes:
        quiet: Keywords that say nothing about values, and so are left out without a report.
    """

    quiet: ClassVar[frozenset[str]]

    def __init__(self) -> None:
        self.unsaid: list[Unsaid] = []
        self._types = 0
        self._parts = 0
        self._texts: dict[int, str] = {}

    def count(self, path: str, depth: int, keywords: Mapping[str, Any]) -> None:
        """Count a type; a named one that holds another twice doubles with each level."""
        check_depth(depth, path)
        self._types += 1
        self._parts += sum(
            1 + (len(value) if isinstance(value, list) else 0) for value in keywords.values()
        )
        if self._types > MAX_TYPES or self._parts > _MAX_PARTS:
            raise refused(path, "is where the document unfolds into too many types; split it", "")

    def leave_out(self, path: str, keywords: Mapping[str, Any], said: Collection[str]) -> None:
        """Report the keywords that the type does not express."""
        for key, value in keywords.items():
            if key not in said and key not in self.quiet:
                self.report(path, f"{key} {self._text(value)}")

    def report(self, path: str, what: str) -> None:
        """Report one thing that a Spark schema does not keep."""
        self.unsaid.append(Unsaid(path, shown(what, 200)))

    def _text(self, value: object) -> str:
        # By identity: many columns may share one definition, and it may be long.
        if id(value) not in self._texts:
            self._texts[id(value)] = json.dumps(value, ensure_ascii=False)
        return self._texts[id(value)]


def plain_document(document: Mapping[str, Any] | str) -> dict[str, Any]:
    """A copy of the document in dicts and lists, with text as every key, within limits."""
    parsed = parse_json(document) if isinstance(document, str) else document
    if not isinstance(parsed, Mapping):
        raise InvalidSchema(
            f"a schema must be an object or its JSON text, not {type(parsed).__name__}; pass the "
            "object that describes the whole record",
            value=type(parsed).__name__,
        )
    top: list[Any] = [parsed]
    # A loop, because recursion would end where the caller's stack does.
    pending: list[tuple[Any, Any, int]] = [(top, 0, 0)]
    parts = 0
    while pending:
        holder, key, depth = pending.pop()
        holder[key] = value = _copied(holder[key])
        parts += 1
        if depth > _MAX_NESTING or parts > _MAX_PARTS:
            raise InvalidSchema(
                f"a document may have at most {_MAX_NESTING} levels and {_MAX_PARTS} parts; "
                "flatten or split it",
                value=parts,
            )
        if isinstance(value, dict):
            pending.extend((value, name, depth + 1) for name in value)
        elif isinstance(value, list):
            pending.extend((value, place, depth + 1) for place in range(len(value)))
    result: dict[str, Any] = top[0]
    return result


def _copied(value: object) -> object:
    if isinstance(value, Mapping):
        odd = next((key for key in value if not isinstance(key, str)), None)
        if odd is not None or None in value:
            raise InvalidSchema(
                f"a document's keys must be text, not {type(odd).__name__}; write them in quotes",
                value=type(odd).__name__,
            )
        return dict(value)
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        raise InvalidSchema(
            f"a document holds a number of {value.bit_length()} bits; use at most {_MAX_BITS}",
            value=value.bit_length(),
        )
    if value is None or isinstance(value, str | int | float):
        return value
    raise InvalidSchema(
        f"a document holds what JSON has, not {type(value).__name__}; write it as JSON",
        value=type(value).__name__,
    )
