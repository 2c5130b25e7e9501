"""Declarations of types as a JSON document: what `strata objects declare` reads."""

from __future__ import annotations

import json
from typing import Any

from catalog.cli.object_lines import text_of, told, unique_names
from catalog.errors import InvalidInput
from catalog.objects.declaration import type_from
from catalog.objects.platform import PLATFORM
from catalog.objects.types import ObjectType

# Stands for the types of the platform, which no file has to declare.
BUILT_IN = "platform"


def read_types(file: str) -> tuple[ObjectType, ...]:
    """The types of a file, of standard input if it is `-`, or those of the platform."""
    if file == BUILT_IN:
        return PLATFORM
    found = types_in(text_of(file), told(file))
    if not found:
        raise InvalidInput(f"There is no declaration in {told(file)}; write one.", file=file)
    return found


def types_in(text: str, source: str) -> tuple[ObjectType, ...]:
    """The types that a document declares: one, or a list of them."""
    try:
        document = json.loads(text, object_pairs_hook=unique_names)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{source} is not JSON: {error}.", file=source) from error
    each = document if isinstance(document, list) else [document]
    return tuple(_type(declaration, source) for declaration in each)


def _type(declaration: Any, source: str) -> ObjectType:
    if not isinstance(declaration, dict) or not isinstance(declaration.get("name"), str):
        raise InvalidInput(
            f"A declaration in {source} is a JSON object with the name of the type, such as "
            f'{{"name": "team", "fields": {{}}}}, not {json.dumps(declaration):.80}.',
            file=source,
        )
    body = {name: value for name, value in declaration.items() if name != "name"}
    return type_from(declaration["name"], body)
