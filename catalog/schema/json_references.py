"""JSON Schema's references and unions, resolved to one schema, and the type of its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from catalog.schema.names import shown
from catalog.schema.rules import refused

_MAX_STEPS = 100
_CHOICES = ("anyOf", "oneOf", "allOf")
_DYNAMIC = ("$dynamicRef", "$recursiveRef")
# They may be next to a reference and in its target; the outer one is nearer to the column.
_ANNOTATIONS = ("description", "title", "default", "examples", "$comment", "deprecated")


@dataclass(frozen=True, slots=True)
class Resolved:
    """A schema without references and unions.

    Attributes:
        nullable: Whether a union on the way here lets the value be null.
        inside: The identities of the schemas that it is in, itself included.
    """

    keywords: dict[str, Any]
    nullable: bool
    inside: frozenset[int]


def resolve(root: dict[str, Any], schema: object, path: str, inside: frozenset[int]) -> Resolved:
    """The schema that a place in the document refers to."""
    outer: dict[str, Any] = {}
    nullable = False
    for _ in range(_MAX_STEPS):
        if isinstance(schema, dict):
            inside |= {id(schema)}
        keywords = _joined(_keywords(schema, path), outer, path)
        for word in _DYNAMIC:
            if word in keywords:
                raise refused(path, f"has a {word}, which only a validator follows; use $ref", word)
        if "$ref" in keywords:
            word, ref = "$ref", keywords["$ref"]
            schema = _target(root, ref, path)
            if isinstance(schema, dict) and id(schema) in inside:
                raise refused(
                    path,
                    f"refers to {shown(ref)}, which it is inside of, and Spark's columns end "
                    "somewhere; unroll it to the depth that the data has",
                    ref,
                )
        elif choice := next((word for word in _CHOICES if word in keywords), None):
            word = choice
            schema, may_be_null = _chosen(word, keywords[word], path)
            nullable |= may_be_null
        else:
            return Resolved(keywords, nullable, inside)
        outer = {key: value for key, value in keywords.items() if key != word}
    raise refused(
        path, f"takes more than {_MAX_STEPS} references to get to its type; shorten the way", path
    )


def _keywords(schema: object, path: str) -> dict[str, Any]:
    if isinstance(schema, dict):
        return schema
    if schema is True:
        return {}
    if schema is False:
        raise refused(path, "may have no value at all; leave it out", False)
    raise refused(path, f"must be an object, not {shown(repr(schema))}; repair it", schema)


def _joined(inner: dict[str, Any], outer: dict[str, Any], path: str) -> dict[str, Any]:
    for key, value in outer.items():
        if key not in _ANNOTATIONS and inner.get(key, value) != value:
            raise refused(
                path,
                f"has {shown(key)!r} both next to a reference and in its target; say it in one "
                "place",
                key,
            )
    return {**inner, **outer} if outer else inner


def _chosen(word: str, branches: object, path: str) -> tuple[object, bool]:
    if not isinstance(branches, list) or not branches:
        raise refused(path, f"must have a list of schemas as {word}; repair it", branches)
    others = [branch for branch in branches if word == "allOf" or not _is_null(branch)]
    if len(others) > 1:
        way_out = (
            "write all that holds in one schema"
            if word == "allOf"
            else "make it an object with one property for each choice"
        )
        raise refused(
            path, f"has {len(others)} schemas in {word}, and a column has one; {way_out}", word
        )
    return (others or branches)[0], len(others) < len(branches)


def _is_null(branch: object) -> bool:
    if not isinstance(branch, dict):
        return False
    const = branch.get("const", "")
    return branch.get("type") in ("null", ["null"]) or branch.get("enum") == [None] or const is None


def _target(root: dict[str, Any], ref: object, path: str) -> object:
    if not isinstance(ref, str):
        raise refused(path, f"has the $ref {shown(repr(ref))}; use text", ref)
    fragment = unquote(ref.removeprefix("#"))
    if not ref.startswith("#") or not (fragment == "" or fragment.startswith("/")):
        raise refused(
            path,
            f"refers to {shown(ref)}, which is not a place in this document; copy it into $defs "
            "and refer to #/$defs/…",
            ref,
        )
    found: Any = root
    for token in fragment.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and _is_index(name, found):
            found = found[int(name)]
        else:
            raise refused(
                path, f"refers to {shown(ref)}, which the document does not have; add it", ref
            )
    return found


def _is_index(name: str, items: list[Any]) -> bool:
    return name.isascii() and name.isdigit() and len(name) < 8 and int(name) < len(items)


# --- the type of the values ---

# Every value but null; an integer is a number.
ANYTHING = ("array", "boolean", "number", "object", "string")
_TYPES = frozenset({*ANYTHING, "integer", "null"})
# In this order, because a bool is an int in Python.
_NAMES: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
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
    return next(name for kind, name in _NAMES.items() if isinstance(value, kind))
