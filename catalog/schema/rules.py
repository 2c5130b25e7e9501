"""What a schema must satisfy before the catalog keeps it."""

from __future__ import annotations

import json
import unicodedata

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from catalog.errors import InvalidSchema
from catalog.schema import atoms
from catalog.schema.names import child, held, shown

MAX_DEPTH = 64
MAX_COLUMNS = 10_000
MAX_NAME = 255

# A map of maps that share one Python object doubles with each level and has no columns to count.
MAX_TYPES = 4 * MAX_COLUMNS


def check(schema: StructType) -> None:
    """Raise InvalidSchema, with the column, at the first rule that the schema breaks."""
    if not schema.fields:
        raise InvalidSchema("a schema must have at least one column; this one has none", value="")
    _RuleCheck().struct(schema, path="", depth=0)


def check_depth(depth: int, path: str) -> None:
    """Raise InvalidSchema when a type is nested deeper than any table needs."""
    if depth > MAX_DEPTH:
        problem = f"is nested deeper than {MAX_DEPTH} levels; flatten the schema"
        raise refused(path, problem, depth)


def refused(path: str, problem: str, value: object) -> InvalidSchema:
    """The error for a column, or for the schema as a whole if the path is empty."""
    where = f"column {shown(path)}" if path else "the schema"
    return InvalidSchema(f"{where} {problem}", column=path, value=value)


class _RuleCheck:
    def __init__(self) -> None:
        self._columns = 0
        self._types = 0

    def struct(self, struct: StructType, path: str, depth: int) -> None:
        seen: dict[str, str] = {}
        for field in struct.fields:
            here = child(path, field.name)
            _check_name(field.name, here)
            self._columns += 1
            if self._columns > MAX_COLUMNS:
                raise _too_many(f"{MAX_COLUMNS} columns, nested ones included", here, self._columns)
            folded = field.name.casefold()
            if folded in seen:
                raise refused(
                    here,
                    f"differs from {shown(child(path, seen[folded]))} only in case or not at all, "
                    "and Spark could not tell them apart; rename one",
                    field.name,
                )
            seen[folded] = field.name
            _check_flag(field.nullable, here)
            _check_metadata(field, here)
            self._type(field.dataType, here, depth)

    def _type(self, kind: DataType, path: str, depth: int) -> None:
        self._types += 1
        if self._types > MAX_TYPES:
            raise _too_many(f"{MAX_TYPES} types in all", path, self._types)
        if type(kind) not in (StructType, ArrayType, MapType):
            _check_atom(kind, path)
            return
        depth += 1
        check_depth(depth, path)
        if isinstance(kind, StructType):
            self.struct(kind, path, depth)
        for name, inner, nullable in held(kind):
            _check_flag(nullable, path)
            self._type(inner, f"{path}.{name}", depth)


def _too_many(limit: str, path: str, count: int) -> InvalidSchema:
    return InvalidSchema(
        f"a schema may have at most {limit}, and {shown(path)} is one more; split it",
        column=path,
        value=count,
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
        raise refused(path, problem, name)


def _check_flag(nullable: object, path: str) -> None:
    if type(nullable) is not bool:
        problem = f"is nullable or not, which must be True or False, not {nullable!r}"
        raise refused(path, problem, nullable)


def _check_metadata(field: StructField, path: str) -> None:
    comment = field.metadata.get("comment")
    if comment is not None and not isinstance(comment, str):
        raise refused(path, f"must have text as its comment, not {comment!r}; quote it", comment)
    try:
        json.dumps(field.metadata, allow_nan=False, ensure_ascii=False, sort_keys=True).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise refused(
            path,
            f"cannot be kept as JSON because of its comment or metadata ({error}); repair it",
            field.metadata,
        ) from None


def _check_atom(kind: DataType, path: str) -> None:
    if atoms.text_of(kind) is None:
        raise refused(
            path,
            f"has type {type(kind).__name__}, which is not a type of Spark SQL tables; use the "
            "type that it is stored as",
            kind,
        )
    if problem := atoms.fault(kind):
        raise InvalidSchema(f"column {shown(path)}: {problem}", column=path, value=kind)
