"""Types out of JSON: what the body of an object `type/<name>` declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.errors import InvalidInput, InvalidType
from catalog.objects.contents import fields_from
from catalog.objects.types import ObjectType, Rule, States, invalid


def type_from(name: str, body: Any) -> ObjectType:
    """The type that the body of an object `type/<name>` declares, or `InvalidType`."""
    if not isinstance(body, dict):
        raise invalid(name, "must be declared by a JSON object")
    known = ObjectType.__dataclass_fields__.keys() - {"name"}
    for other in sorted(body.keys() - known):
        raise invalid(name, f"has no {other!r:.80}; there are {', '.join(sorted(known))}")
    try:
        return ObjectType(
            name,
            _text(name, body, "parent"),
            _texts(name, body.get("owners", []), "owners"),
            _text(name, body, "named_by"),
            fields_from(body.get("fields", {})),
            _mapping(name, body.get("references", {}), "references"),
            _states(name, body.get("states")),
            tuple(_rule(name, said) for said in _list(name, body.get("rules", []), "rules")),
            _flag(name, body, "open"),
            _text(name, body, "comment") or "",
        )
    except InvalidType:
        raise
    except InvalidInput as error:
        raise invalid(name, f"cannot be declared so: {error.message.rstrip('.')}") from error


def _states(name: str, said: Any) -> States | None:
    if said is None:
        return None
    if not isinstance(said, dict) or not isinstance(said.get("next"), dict):
        raise invalid(name, "must have states as a JSON object with initial and next")
    following = {state: _texts(name, after, "next") for state, after in said["next"].items()}
    return States(_texts(name, said.get("initial"), "initial"), following)


def _rule(name: str, said: Any) -> Rule:
    if not isinstance(said, list) or not said or not isinstance(said[0], str):
        raise invalid(name, 'must have each rule as a list such as ["unique", "host"]')
    return Rule(said[0], tuple(said[1:]))


def _text(name: str, body: Mapping[str, Any], what: str) -> str | None:
    value = body.get(what)
    if value is not None and not isinstance(value, str):
        raise invalid(name, f"must have a text as {what}")
    return value


def _flag(name: str, body: Mapping[str, Any], what: str) -> bool:
    value = body.get(what, False)
    if not isinstance(value, bool):
        raise invalid(name, f"must have true or false as {what}")
    return value


def _list(name: str, value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise invalid(name, f"must have a list as {what}")
    return value


def _texts(name: str, value: Any, what: str) -> tuple[str, ...]:
    if not all(isinstance(each, str) for each in _list(name, value, what)):
        raise invalid(name, f"must have a list of texts as {what}")
    return tuple(value)


def _mapping(name: str, value: Any, what: str) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise invalid(name, f"must have a JSON object of texts as {what}")
    return value
