"""Objects as they are put and as they stand: values, checked when they are made."""

from __future__ import annotations

import json as jsons
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, Self

from catalog.errors import InvalidObject
from catalog.model import LONGEST_DATASOURCE, check_datasource
from catalog.objects.body import body_json, canonical
from catalog.objects.keys import check_key, check_text
from catalog.schema import Schema


class Named:
    """What follows from the key and the text of a body, wherever an object is."""

    __slots__ = ()
    key: str
    json: str

    @property
    def type(self) -> str:
        """The part of the key before the first slash."""
        return self.key.partition("/")[0]

    @property
    def path(self) -> str:
        """The part of the key after the first slash."""
        return self.key.partition("/")[2]

    @property
    def body(self) -> dict[str, Any]:
        """A copy of the body, of the caller's own."""
        body: dict[str, Any] = jsons.loads(self.json)
        return body


@dataclass(frozen=True, slots=True, init=False)
class Object(Named):
    """A named thing of the platform as a caller wants it to be, whatever is there now.

    Two are equal if their content is: the spelling of the schema makes no difference.

    Args:
        key: `type/path`, such as `table/sales/orders`. The type is a lowercase identifier. No part
            of the path is empty or begins with an underscore.
        body: a JSON object of at most 1 MiB; none stands for an empty one.
        links: keys of the objects that this one refers to. A change of one of them gives this one
            a new revision too.
        schema: anything that `Schema.of` takes, if the object has a schema.
        datasource: the datasource that the object stands for, if it stands for one.
    """

    key: str
    # The canonical text of the body. Unlike a dict, nobody can change it, and 1 and true differ.
    json: str
    links: tuple[str, ...]
    fingerprint: str | None
    datasource: str | None
    # None beside a fingerprint: only that is known, because the object was staged.
    schema: Schema | None = field(compare=False)

    def __init__(
        self,
        key: str,
        body: dict[str, Any] | None = None,
        links: Iterable[str] = (),
        schema: Any = None,
        datasource: str | None = None,
    ) -> None:
        check_key(key)
        text = body_json(key, {} if body is None else body)
        targets = _checked_links(key, links)
        definition = None if schema is None else Schema.of(schema)
        fingerprint = None if definition is None else definition.fingerprint
        self._fill(key, text, targets, fingerprint, _checked(key, datasource), definition)

    @classmethod
    def of_content(
        cls,
        key: str,
        json: str,
        links: Iterable[str],
        fingerprint: str | None,
        datasource: str | None,
        schema: Schema | None = None,
    ) -> Object:
        """An object made of content that was checked before; its schema need not be at hand."""
        made = cls.__new__(cls)
        made._fill(key, json, tuple(sorted(set(links))), fingerprint, datasource, schema)
        return made

    @property
    def digest(self) -> str:
        """SHA-256 over everything but the key; revisions are not part of it."""
        return digest_of(self.json, self.links, self.fingerprint, self.datasource)

    def _fill(self, *values: Any) -> None:
        names = ("key", "json", "links", "fingerprint", "datasource", "schema")
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)


@dataclass(frozen=True, slots=True)
class Node(Named):
    """An object among the others: what it is, and at which revision it knows those it links to."""

    key: str
    # Given when the object was created: a key that was removed and created again has another.
    id: str
    revision: int
    json: str
    links: Mapping[str, int]
    fingerprint: str | None
    datasource: str | None
    digest: str

    def payload(self) -> str:
        """The JSON document that the catalog stores."""
        return canonical({"id": self.id, "body": self.body, "links": dict(self.links)})

    @classmethod
    def from_payload(cls, payload: str, *, key: str, **columns: Any) -> Self:
        """What a payload and the other columns of its row hold, by the names of the fields."""
        document = parsed(key, payload, {"id": str, "body": dict, "links": dict})
        text = canonical(document["body"])
        return cls(key=key, id=document["id"], json=text, links=document["links"], **columns)


@dataclass(frozen=True, slots=True)
class StoredObject(Node):
    """An object as it stood at one version, with the commit that changed its row last."""

    commit_id: str
    published_at: datetime
    changed_at: datetime
    changed_by: str | None


def digest_of(
    json: str, links: Iterable[str], fingerprint: str | None, datasource: str | None
) -> str:
    """SHA-256 over the canonical JSON of an object's content; only the keys of links count."""
    rest = {"datasource": datasource, "fingerprint": fingerprint, "links": sorted(links)}
    # As if the body stood among the rest: "body" comes first in the order of keys.
    return sha256(f'{{"body":{json},{canonical(rest)[1:]}'.encode()).hexdigest()


def parsed(key: str, payload: Any, fields: Mapping[str, type]) -> dict[str, Any]:
    """The document in a payload, which has these fields of these types."""
    try:
        document = jsons.loads(payload)
    except (TypeError, ValueError):
        document = None
    if not isinstance(document, dict) or not all(
        isinstance(document.get(name), kind) for name, kind in fields.items()
    ):
        raise InvalidObject(
            f"The payload of object {key} must be a JSON object with {', '.join(sorted(fields))}, "
            f"not {payload!r:.80}; read it with the release that wrote it.",
            key=key,
        )
    return document


def _checked_links(key: str, links: Any) -> tuple[str, ...]:
    if isinstance(links, str) or not isinstance(links, Iterable):
        raise InvalidObject(
            f"links of object {key} takes a list of keys, not {links!r:.80}.", key=key
        )
    targets = {check_key(target, f"A link of object {key}") for target in links}
    if key in targets:
        raise InvalidObject(f"Object {key} links to itself; leave that link out.", key=key)
    return tuple(sorted(targets))


def _checked(key: str, datasource: str | None) -> str | None:
    if datasource is None:
        return None
    check_text(f"The datasource of object {key},", check_datasource(datasource), key)
    if len(datasource) > LONGEST_DATASOURCE:
        raise InvalidObject(
            f"The datasource of object {key} has {len(datasource)} characters; at most "
            f"{LONGEST_DATASOURCE} are kept.",
            key=key,
            datasource=datasource,
        )
    return datasource
