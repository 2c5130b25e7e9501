"""JSON Schema's references and unions, followed to the one schema that they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from catalog.dialects.translation import refused
from catalog.errors import InvalidSchema
from catalog.schema.names import shown

_MAX_STEPS = 100
_CHOICES = ("anyOf", "oneOf", "allOf")
_DYNAMIC = ("$dynamicRef", "$recursiveRef")
# Said of the use or of the thing used; the outer one is nearer to the column.
_ANNOTATIONS = ("description", "title", "default", "examples", "$comment", "deprecated")


@dataclass(frozen=True, slots=True)
class Node:
    """A schema without references and unions.

    Attributes:
        nullable: Whether a union on the way here lets the value be null.
        inside: The identities of the schemas that it is in, itself included.
    """

    keywords: dict[str, Any]
    nullable: bool
    inside: frozenset[int]


def follow(root: dict[str, Any], schema: object, path: str, inside: frozenset[int]) -> Node:
    """The schema that a place in the document stands for."""
    beside: dict[str, Any] = {}
    nullable = False
    for _ in range(_MAX_STEPS):
        if isinstance(schema, dict):
            inside |= {id(schema)}
        keywords = _joined(_keywords(schema, path), beside, path)
        for word in _DYNAMIC:
            if word in keywords:
                raise refused(path, f"has a {word}, which only a validator follows; use $ref", word)
        if "$ref" in keywords:
            word, schema = "$ref", _target(root, keywords["$ref"], path)
            if isinstance(schema, dict) and id(schema) in inside:
                raise _recursive(keywords["$ref"], path)
        elif choice := next((word for word in _CHOICES if word in keywords), None):
            word = choice
            schema, may_be_null = _chosen(word, keywords[word], path)
            nullable |= may_be_null
        else:
            return Node(keywords, nullable, inside)
        beside = {key: value for key, value in keywords.items() if key != word}
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


def _joined(inner: dict[str, Any], beside: dict[str, Any], path: str) -> dict[str, Any]:
    for key, value in beside.items():
        if key not in _ANNOTATIONS and inner.get(key, value) != value:
            raise refused(
                path,
                f"has {shown(key)!r} both beside a reference and in what it refers to; say it in "
                "one place",
                key,
            )
    return {**inner, **beside} if beside else inner


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
        elif isinstance(found, list) and _is_place(name, found):
            found = found[int(name)]
        else:
            raise refused(
                path, f"refers to {shown(ref)}, which the document does not have; add it", ref
            )
    return found


def _is_place(name: str, items: list[Any]) -> bool:
    return name.isascii() and name.isdigit() and len(name) < 8 and int(name) < len(items)


def _recursive(ref: str, path: str) -> InvalidSchema:
    return refused(
        path,
        f"refers to {shown(ref)}, which it is inside of, and Spark's columns end somewhere; unroll "
        "it to the depth that the data has",
        ref,
    )
