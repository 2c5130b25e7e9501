"""What one call, or one part of an operation, changes; and what several parts change together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog.errors import InvalidObject, PartConflict
from catalog.objects.body import LARGEST_BODY, canonical
from catalog.objects.keys import check_key
from catalog.objects.model import Object, parsed
from catalog.schema import Schema
from catalog.schema.names import child

_NESTED = ("{", "[")


@dataclass(frozen=True)
class Changes:
    """Objects to put, by key, and keys to remove; no key is both."""

    puts: Mapping[str, Object] = field(default_factory=dict)
    removes: frozenset[str] = frozenset()

    @property
    def keys(self) -> frozenset[str]:
        """Every key that is put or removed."""
        return self.removes | self.puts.keys()


def changes_of(put: Iterable[Object] | Object = (), remove: Iterable[str] | str = ()) -> Changes:
    """The changes that a caller asks for; one object or one key may stand alone.

    Raises:
        InvalidObject: Something is no object or no key, one key is put twice with different
            content, or is put and removed.
    """
    puts: dict[str, Object] = {}
    for given in _several("put", put, Object):
        if not isinstance(given, Object):
            raise InvalidObject(f"put takes Object values, not {given!r:.80}.", value=given)
        if puts.setdefault(given.key, given) != given:
            raise InvalidObject(
                f"Object {given.key} is put twice with different content; put it once.",
                key=given.key,
            )
    removes = frozenset(map(check_key, _several("remove", remove, str)))
    for key in sorted(removes & puts.keys()):
        raise InvalidObject(
            f"Object {key} is put and removed by one call; do one of the two.", key=key
        )
    return Changes(puts, removes)


def _several(name: str, given: Any, one: type) -> Iterable[Any]:
    if isinstance(given, one):
        return (given,)
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise InvalidObject(f"{name} takes {one.__name__} or a list, not {given!r:.80}.")
    return given


# --- several parts -------------------------------------------------------------------------------


def united(parts: Mapping[int, Changes]) -> Changes:
    """What the parts of one operation change together; their order makes no difference.

    Puts of one object are united: their bodies by top-level field, their links, and schema and
    datasource, which a part that does not give them leaves to the others.

    Raises:
        PartConflict: Two parts contradict each other, or a body grows too large.
    """
    puts: dict[str, dict[int, Object]] = {}
    removers: dict[str, int] = {}
    # By number, so that a contradiction is told in the same words whoever comes first.
    for part, changes in sorted(parts.items()):
        for key, put in changes.puts.items():
            puts.setdefault(key, {})[part] = put
        for key in changes.removes:
            removers.setdefault(key, part)
    for key in sorted(puts.keys() & removers.keys()):
        how = f"one puts object {key} and the other removes it"
        raise _conflict(key, "action", (min(puts[key]), removers[key]), how)
    return Changes({key: _united(key, puts[key]) for key in sorted(puts)}, frozenset(removers))


def _united(key: str, puts: Mapping[int, Object]) -> Object:
    first, *others = puts.values()
    if not others:
        return first
    links = {target for put in puts.values() for target in put.links}
    fingerprint = _agreed(key, "schema", {part: put.fingerprint for part, put in puts.items()})
    datasource = _agreed(key, "datasource", {part: put.datasource for part, put in puts.items()})
    return Object.of_content(
        key, _body(key, puts), links, fingerprint, datasource, _schema(puts.values())
    )


def _body(key: str, puts: Mapping[int, Object]) -> str:
    said: dict[str, dict[int, str | None]] = {}
    body: dict[str, Any] = {}
    for part, put in puts.items():
        for name, value in put.body.items():
            # As texts: in Python 1 equals true and 1.0.
            said.setdefault(name, {})[part] = canonical(value)
            body[name] = value
    for name in sorted(said):
        _agreed(key, child("body", name), said[name])
    text = canonical(body)
    size = len(text.encode())
    if size > LARGEST_BODY:
        raise PartConflict(
            f"The parts {', '.join(map(str, puts))} give object {key} a body of {size} bytes "
            f"together, and at most {LARGEST_BODY} are kept; store the rest elsewhere.",
            key=key,
            field="body",
            parts=tuple(puts),
        )
    return text


def _agreed(key: str, name: str, said: Mapping[int, str | None]) -> str | None:
    """The one thing that the parts say, of those that say something."""
    found: tuple[int, str] | None = None
    for part, value in said.items():
        if value is None:
            continue
        if found is None:
            found = part, value
        elif found[1] != value:
            how = f"{name} of object {key} is {found[1]:.80} in one and {value:.80} in the other"
            # What is inside of others may be a secret that no type names yet.
            if found[1].startswith(_NESTED) or value.startswith(_NESTED):
                how = f"{name} of object {key} is not the same in both"
            raise _conflict(key, name, (found[0], part), how)
    return None if found is None else found[1]


def _schema(puts: Iterable[Object]) -> Schema | None:
    """One of the spellings of their schema: the same, whichever part comes first."""
    spellings = (put.schema for put in puts if put.schema is not None)
    return min(spellings, key=lambda schema: schema.json, default=None)


def _conflict(key: str, name: str, parts: tuple[int, int], how: str) -> PartConflict:
    one, other = sorted(parts)
    return PartConflict(
        f"Parts {one} and {other} of one operation contradict each other: {how}. Let only one of "
        "them say it.",
        key=key,
        field=name,
        parts=(one, other),
    )


# --- staged rows ---------------------------------------------------------------------------------


def put_payload(put: Object) -> str:
    """The JSON document of a staged put; fingerprint and datasource have columns of their own."""
    return canonical({"body": put.body, "links": put.links})


def put_from(key: str, payload: str, fingerprint: str | None, datasource: str | None) -> Object:
    """The put that a staged row holds; of its schema only the fingerprint is known."""
    document = parsed(key, payload, {"body": dict, "links": list})
    return Object.of_content(
        key, canonical(document["body"]), document["links"], fingerprint, datasource
    )
