"""Which of JSON's types the values of a JSON Schema have."""

from __future__ import annotations

from typing import Any

from catalog.dialects.translation import refused
from catalog.schema.names import shown

# Every value but null; an integer is a number.
ANYTHING = ("array", "boolean", "number", "object", "string")
_TYPES = frozenset({*ANYTHING, "integer", "null"})
_NESTED = {"properties": "object", "additionalProperties": "object", "items": "array"}


def kind_of(keywords: dict[str, Any], path: str) -> tuple[str, bool]:
    """The one type of the values that are not null, and whether null is a value too.

    It is `null` where there is no other value, and `any` where all are allowed.
    """
    lists = _listed(keywords, path)
    found = _types(keywords, lists, path)
    others = found - {"null"}
    if "number" in others:
        others -= {"integer"}
    if not others:
        return "null", True
    nullable = "null" in found and all(None in values for values in lists)
    if others == {*ANYTHING}:
        return "any", nullable
    if len(others) > 1:
        raise refused(
            path,
            f"is a union of {' and '.join(sorted(others))}, and a column has one type; choose one, "
            "or make it an object with one property for each choice",
            sorted(others),
        )
    return others.pop(), nullable


def _types(keywords: dict[str, Any], lists: list[list[Any]], path: str) -> set[str]:
    if "type" in keywords:
        given = keywords["type"]
        names = given if isinstance(given, list) else [given]
        if not names or not all(isinstance(name, str) and name in _TYPES for name in names):
            raise refused(
                path,
                f"has the type {shown(repr(given))}; use one of {', '.join(sorted(_TYPES))}",
                given,
            )
        return set(names)
    if lists:
        return {_type_of(value) for value in lists[0]}
    nested = {kind for word, kind in _NESTED.items() if word in keywords}
    return nested or {*_TYPES}


def _listed(keywords: dict[str, Any], path: str) -> list[list[Any]]:
    lists = [[keywords["const"]]] if "const" in keywords else []
    if "enum" in keywords:
        values = keywords["enum"]
        if not isinstance(values, list) or not values:
            raise refused(path, f"has the enum {shown(repr(values))}; list its values", values)
        lists.append(values)
    return lists


def _type_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"
