"""What a translation gives, and what it names as unsaid."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import StructField

from catalog.errors import InvalidSchema
from catalog.schema import Schema
from catalog.schema.names import shown
from catalog.schema.rules import MAX_COLUMNS, check_depth

MAX_PARTS = 1_000_000
_MAX_TYPES = 4 * MAX_COLUMNS


@dataclass(frozen=True, slots=True)
class Unsaid:
    """Something that the other side has no words for.

    Attributes:
        path: The column's path, as in `Column`; empty for the schema as a whole.
        what: What is not said, or what is said instead.
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


class Findings:
    """What a reader meets in a document: its size so far, and what stays unsaid."""

    def __init__(self, quiet: frozenset[str]) -> None:
        """Keywords in `quiet` say nothing about values, so leaving them out is not worth a word."""
        self.unsaid: list[Unsaid] = []
        self._quiet = quiet
        self._types = 0
        self._parts = 0
        self._texts: dict[int, str] = {}

    def meet(self, path: str, depth: int, keywords: Mapping[str, Any]) -> None:
        """Count a type; a named one that holds another twice doubles with each level."""
        check_depth(depth, path)
        self._types += 1
        self._parts += sum(
            1 + (len(value) if isinstance(value, list) else 0) for value in keywords.values()
        )
        if self._types > _MAX_TYPES or self._parts > MAX_PARTS:
            raise refused(path, "is where the document unfolds into too many types; split it", "")

    def leave_out(self, path: str, keywords: Mapping[str, Any], said: Collection[str]) -> None:
        """Name the keywords that the type does not say."""
        for key, value in keywords.items():
            if key not in said and key not in self._quiet:
                self.add(path, f"{key} {self._text(value)}")

    def add(self, path: str, what: str) -> None:
        """Name one thing."""
        self.unsaid.append(Unsaid(path, shown(what, 200)))

    def _text(self, value: object) -> str:
        # By identity: many columns may share one definition, and it may be long.
        if id(value) not in self._texts:
            self._texts[id(value)] = json.dumps(value, ensure_ascii=False)
        return self._texts[id(value)]


def metadata_unsaid(field: StructField, path: str) -> Iterator[Unsaid]:
    """What a field's metadata holds besides the comment; only Spark has a place for it."""
    return (Unsaid(path, f"metadata {shown(key)}") for key in field.metadata if key != "comment")


def refused(path: str, problem: str, value: object) -> InvalidSchema:
    """The error that a column, or the schema as a whole, cannot be translated."""
    where = f"column {shown(path)}" if path else "the schema"
    return InvalidSchema(f"{where} {problem}", column=path, value=value)
