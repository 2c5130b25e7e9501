"""Spark's JSON form of a schema, read strictly.

pyspark's own reader imports the module that a user-defined type names, changes its input, and takes
`decimal(10,2)junk`; documents from storage or from others need more care.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from catalog.errors import InvalidSchema
from catalog.schema.ddl import parse_type
from catalog.schema.names import child, quote, shown
from catalog.schema.rules import check_depth

# Where Spark writes the collations of a column's strings: {"a.element": "icu.UNICODE_CI"}.
_COLLATIONS = "__COLLATIONS"
_SPATIAL = re.compile(r"geo(?:metry|graphy)(?:\(\w+(?::-?\w+)?(?:, ?\w+)?\))?")
_LEGACY = {"null": "void"}


def read_json(document: object) -> StructType:
    """The schema that a JSON document in Spark's form describes."""
    if not isinstance(document, Mapping) or document.get("type") != "struct":
        raise InvalidSchema(
            'a schema in JSON must be an object with "type": "struct"; pass what StructType.json() '
            'gives, or name another dialect: "avro" or "json-schema"',
            value=shown(repr(document)),
        )
    return _struct(document, path="", depth=0)


def parse_json(text: str) -> Any:
    """The JSON document in a text; InvalidSchema if it is none."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidSchema(f"JSON is malformed: {error}; repair it", value=shown(text)) from None
    except RecursionError:
        raise InvalidSchema(
            "JSON is nested too deeply to be a schema; flatten the schema", value=shown(text)
        ) from None


def write_json(schema: StructType) -> str:
    """The schema in Spark's JSON form, compact and with sorted keys."""
    return compact(schema.jsonValue(), sort_keys=True)


def compact(document: object, sort_keys: bool = False) -> str:
    """JSON text without spaces and without escaped characters."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False, sort_keys=sort_keys)


def _struct(document: Mapping[str, Any], path: str, depth: int) -> StructType:
    fields = _get(document, "fields", list, path)
    return StructType([_field(field, path, depth) for field in fields])


def _field(document: object, path: str, depth: int) -> StructField:
    if not isinstance(document, Mapping):
        raise _malformed(path, "a field must be an object", document)
    name = _get(document, "name", str, path)
    here = child(path, name)
    nullable = _get(document, "nullable", bool, here, default=True)
    metadata = dict(_get(document, "metadata", Mapping, here, default={}))
    collations = metadata.pop(_COLLATIONS, {})
    if not isinstance(collations, Mapping):
        raise _malformed(here, f"{_COLLATIONS} must be an object", collations)
    # Spark's keys are the bare names, ours may be quoted: one prefix for the other.
    names = {
        here + str(key).removeprefix(name): str(value).partition(".")[2]
        for key, value in collations.items()
    }
    kind = _type(document.get("type"), here, depth, names)
    if names:
        raise _malformed(here, f"{_COLLATIONS} must name strings of the column", sorted(names))
    return StructField(name, kind, nullable, metadata)


def _type(document: object, path: str, depth: int, collations: dict[str, str]) -> DataType:
    if isinstance(document, str):
        return _atom(document, path, collations)
    kind = document.get("type") if isinstance(document, Mapping) else None
    if not isinstance(document, Mapping) or kind not in ("struct", "array", "map"):
        raise _malformed(path, "a type must be a name, a struct, an array or a map", document)
    depth += 1
    check_depth(depth, path)
    if kind == "struct":
        return _struct(document, path, depth)
    if kind == "array":
        element = _type(document.get("elementType"), f"{path}.element", depth, collations)
        return ArrayType(element, _get(document, "containsNull", bool, path))
    key = _type(document.get("keyType"), f"{path}.key", depth, collations)
    value = _type(document.get("valueType"), f"{path}.value", depth, collations)
    return MapType(key, value, _get(document, "valueContainsNull", bool, path))


def _atom(text: str, path: str, collations: dict[str, str]) -> DataType:
    try:
        kind = _named(text)
        if isinstance(kind, StringType) and path in collations:
            kind = _named(f"string collate {quote(collations.pop(path))}")
    except (InvalidSchema, PySparkException) as error:
        message = getattr(error, "message", str(error))
        raise _malformed(path, f"type {shown(text)!r} is not known ({message})", text) from None
    if isinstance(kind, StructType | ArrayType | MapType):
        raise _malformed(path, "a nested type must be an object", text)
    return kind


@lru_cache(maxsize=1024)
def _named(text: str) -> DataType:
    if _SPATIAL.fullmatch(text):
        # Spark writes these two in JSON by their reference system, and has the only list of those.
        return StructField.fromJson({"name": "", "type": text, "metadata": {}}).dataType
    return parse_type(_LEGACY.get(text, text))


def _get(
    document: Mapping[str, Any], key: str, kind: type, path: str, default: object = None
) -> Any:
    value = document.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, kind):
        raise _malformed(path, f"{key!r} must be of type {kind.__name__}", value)
    return value


def _malformed(path: str, problem: str, value: object) -> InvalidSchema:
    where = f"column {shown(path)}" if path else "the schema"
    return InvalidSchema(
        f"JSON of {where} is malformed: {problem}, not {shown(repr(value))}; pass what "
        "StructType.json() gives",
        column=path,
        value=value,
    )
