"""Avro's names: which are allowed, which are free, and what each stands for."""

from __future__ import annotations

import re
from typing import Any

from catalog.dialects.translation import refused
from catalog.errors import InvalidInput, InvalidSchema
from catalog.schema.names import shown

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PRIMITIVE = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
# What fastavro leaves in a schema that it parsed; it would take such a one on trust.
_MARKS = ("__fastavro_parsed", "__named_schemas")


def check_record_name(name: str, namespace: str | None) -> None:
    """Raise InvalidInput unless Avro has such names."""
    if not _NAME.fullmatch(name) or name in PRIMITIVE:
        raise InvalidInput(
            f"an Avro record cannot be named {shown(name)!r}; use letters, digits and _ without a "
            "digit in front, not the name of a primitive type, and give the namespace by itself",
            name=name,
        )
    if namespace is not None and not all(map(_NAME.fullmatch, namespace.split("."))):
        raise InvalidInput(
            f"an Avro namespace cannot be {shown(namespace)!r}; use names of letters, digits and "
            "_, joined by dots",
            namespace=namespace,
        )


def check_field_name(name: str, path: str) -> None:
    """Raise InvalidSchema unless Avro has such names for fields."""
    if not _NAME.fullmatch(name):
        raise refused(
            path,
            "has a name that Avro does not allow; rename it with letters, digits and _, and no "
            "digit in front",
            name,
        )


class Names:
    """The names of the records in one document, each used once."""

    def __init__(self, top: str) -> None:
        self._top = top
        self._taken = {top}

    def of(self, path: str) -> str:
        """A free name for the record at a path: `record_address` for `address`."""
        wanted = f"{self._top}_{path.replace('.', '_')}"
        name, count = wanted, 1
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        return name


def parsed(document: dict[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The document as fastavro understands it, and its named types by their full names."""
    try:
        from fastavro.schema import UnknownType, parse_schema
    except ImportError:
        raise InvalidInput(
            "reading Avro needs fastavro: pip install 'strata-catalog[avro]'"
        ) from None
    named: dict[str, Any] = {}
    given = {key: value for key, value in document.items() if key not in _MARKS}
    try:
        top: Any = parse_schema(given, named)
    # It raises whatever its code trips on: its own errors, KeyError, TypeError and others.
    except Exception as error:
        problem = str(error) or type(error).__name__
        if isinstance(error, UnknownType):
            problem = f"type {error.name!r} is not known"
        elif isinstance(error, KeyError):
            problem = f"{error} is missing"
        raise InvalidSchema(
            f"fastavro refuses the Avro schema: {shown(problem, 200)}; repair it",
            value=shown(repr(document)),
        ) from None
    return {key: value for key, value in top.items() if key not in _MARKS}, named
