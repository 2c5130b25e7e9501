"""Documents that others wrote, made safe to walk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.dialects.translation import MAX_PARTS
from catalog.errors import InvalidSchema
from catalog.schema.sparkjson import parse_json

# Each level of a schema takes up to four in a document: record, fields, field and union.
_MAX_NESTING = 300
# Python does not print numbers of any length.
_MAX_BITS = 4096


def plain(document: Mapping[str, Any] | str) -> dict[str, Any]:
    """The document as dicts and lists that nobody else holds, with text as every key."""
    parsed = parse_json(document) if isinstance(document, str) else document
    if not isinstance(parsed, Mapping):
        raise InvalidSchema(
            f"a schema must be an object or its JSON text, not {type(parsed).__name__}; pass the "
            "object that describes the whole record",
            value=type(parsed).__name__,
        )
    top: list[Any] = [parsed]
    # A walk with a list of its own: recursion would end where the caller's stack does.
    pending: list[tuple[Any, Any, int]] = [(top, 0, 0)]
    parts = 0
    while pending:
        holder, key, depth = pending.pop()
        holder[key] = value = _copied(holder[key])
        parts += 1
        if depth > _MAX_NESTING or parts > MAX_PARTS:
            raise InvalidSchema(
                f"a document may have at most {_MAX_NESTING} levels and {MAX_PARTS} parts; flatten "
                "or split it",
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
