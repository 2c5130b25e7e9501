"""What a schema must satisfy before the catalog keeps it."""

from __future__ import annotations

import json
import unicodedata

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from catalog.errors import InvalidSchema
from catalog.schema import atoms
from catalog.schema.names import child, shown

MAX_DEPTH = 64
MAX_COLUMNS = 10_000
MAX_NAME = 255

# A map of maps that share one Python object doubles with each level and holds no column to count.
_MAX_TYPES = 4 * MAX_COLUMNS


def check(schema: StructType) -> None:
    """Raise InvalidSchema, naming the column, at the first rule that the schema breaks."""
    if not schema.fields:
        raise InvalidSchema("a schema must have at least one column; this one has none", value="")
    _Walk().struct(schema, path="", depth=0)


def check_depth(depth: int, path: str) -> None:
    """Raise InvalidSchema when a type is nested deeper than any table needs."""
    if depth > MAX_DEPTH:
        raise InvalidSchema(
            f"column {shown(path)} is nested deeper than {MAX_DEPTH} levels; flatten the schema",
            column=path,
            value=depth,
        )


class _Walk:
    def __init__(self) -> None:
        self._columns = 0
        self._types = 0

    def struct(self, struct: StructType, path: str, depth: int) -> None:
        seen: dict[str, str] = {}
        for field in struct.fields:
            here = child(path, field.name)
            _check_name(field.name, here)
            self._count_column(here)
            folded = field.name.casefold()
            if folded in seen:
                raise InvalidSchema(
                    f"column {shown(here)} differs from {shown(child(path, seen[folded]))} only in "
                    "case or not at all, and Spark could not tell them apart; rename one",
                    column=here,
                    value=field.name,
                )
            seen[folded] = field.name
            _check_flag(field.nullable, here)
            _check_metadata(field, here)
            self._type(field.dataType, here, depth)

    def _type(self, kind: DataType, path: str, depth: int) -> None:
        self._types += 1
        if self._types > _MAX_TYPES:
            raise InvalidSchema(
                f"a schema may have at most {_MAX_TYPES} types in all, and {shown(path)} is one "
                "more; split it",
                column=path,
                value=self._types,
            )
        if type(kind) is StructType:
            check_depth(depth + 1, path)
            self.struct(kind, path, depth + 1)
        elif type(kind) is ArrayType:
            check_depth(depth + 1, path)
            _check_flag(kind.containsNull, path)
            self._type(kind.elementType, f"{path}.element", depth + 1)
        elif type(kind) is MapType:
            check_depth(depth + 1, path)
            _check_flag(kind.valueContainsNull, path)
            self._type(kind.keyType, f"{path}.key", depth + 1)
            self._type(kind.valueType, f"{path}.value", depth + 1)
        else:
            _check_atom(kind, path)

    def _count_column(self, path: str) -> None:
        self._columns += 1
        if self._columns > MAX_COLUMNS:
            raise InvalidSchema(
                f"a schema may have at most {MAX_COLUMNS} columns, nested ones included, and "
                f"{shown(path)} is one more; split it",
                column=path,
                value=self._columns,
            )


def _check_name(name: str, path: str) -> None:
    problem = None
    if not name:
        problem = "has an empty name; name it"
    elif len(name) > MAX_NAME:
        problem = f"has a name of {len(name)} characters; use at most {MAX_NAME}"
    elif any(unicodedata.category(c) == "Cc" for c in name):
        problem = "has a control character in its name; remove it"
    elif any(unicodedata.category(c) == "Cs" for c in name):
        problem = "has half a surrogate pair in its name; use whole characters"
    if problem:
        raise InvalidSchema(f"column {shown(path)} {problem}", column=path, value=name)


def _check_flag(nullable: object, path: str) -> None:
    if type(nullable) is not bool:
        raise InvalidSchema(
            f"whether column {shown(path)} may be null must be True or False, not {nullable!r}",
            column=path,
            value=nullable,
        )


def _check_metadata(field: StructField, path: str) -> None:
    comment = field.metadata.get("comment")
    if comment is not None and not isinstance(comment, str):
        raise InvalidSchema(
            f"the comment of column {shown(path)} must be text, not {comment!r}; quote it",
            column=path,
            value=comment,
        )
    try:
        json.dumps(field.metadata, allow_nan=False, ensure_ascii=False, sort_keys=True).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidSchema(
            f"the comment or metadata of column {shown(path)} cannot be kept as JSON ({error}); "
            "remove or repair it",
            column=path,
            value=field.metadata,
        ) from None


def _check_atom(kind: DataType, path: str) -> None:
    if atoms.text_of(kind) is None:
        raise InvalidSchema(
            f"column {shown(path)} has type {type(kind).__name__}, which is not a type of Spark "
            "SQL tables; use the type that it is stored as",
            column=path,
            value=kind,
        )
    problem = atoms.fault(kind)
    if problem:
        raise InvalidSchema(f"column {shown(path)}: {problem}", column=path, value=kind)
