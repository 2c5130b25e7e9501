"""Objects as values: their keys, their JSON bodies, and objects as they are put and stored."""

from __future__ import annotations

import json as jsons
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, NoReturn, Self

from catalog.errors import InvalidObject
from catalog.model import LONGEST_DATASOURCE, check_datasource, text_problem
from catalog.schema import Schema
from catalog.schema.names import child, shown
from catalog.schema.spark_json import compact

LONGEST_KEY = 1024
LARGEST_BODY = 1 << 20
DEEPEST_BODY = 100
_TYPE = re.compile(r"[a-z][a-z0-9_]*")


# --- keys -----------------------------------------------------------------------------------------


def check_key(key: Any, what: str = "The key of an object") -> str:
    """The key, if it is a valid `type/path`; `what` begins the error message."""
    if not isinstance(key, str):
        raise InvalidObject(f"{what} must be a string, not {key!r:.80}.", key=key)
    kind, _, path = key.partition("/")
    if not _TYPE.fullmatch(kind) or not path:
        raise InvalidObject(
            f"{what} must be type/path with both parts filled and a type of lowercase letters, "
            f"digits and underscores that begins with a letter, such as table/sales/orders, "
            f"not {key!r:.80}.",
            key=key,
        )
    if len(key) > LONGEST_KEY:
        raise InvalidObject(
            f"{what} has {len(key)} characters and begins with {key[:80]!r}; at most "
            f"{LONGEST_KEY} are kept.",
            key=key,
        )
    wrong = text_problem(key) or next(filter(None, map(_part_problem, path.split("/"))), None)
    if wrong is not None:
        raise InvalidObject(f"{what} {key!r:.80} {wrong}.", key=key)
    return key


def _part_problem(part: str) -> str | None:
    if not part:
        return "has a part without a name between or after its slashes; name it or leave it out"
    if part.startswith("_"):
        return f"has the part {part!r:.80}, and names that begin with _ are reserved; rename it"
    if part != part.strip():
        return f"has the part {part!r:.80} with a space at its end or beginning; remove it"
    return None


def check_type(type: Any) -> str:
    """The type of an object, if a key can begin with it."""
    if not isinstance(type, str) or not _TYPE.fullmatch(type):
        raise InvalidObject(
            f"A type has lowercase letters, digits and underscores and begins with a letter, such "
            f"as table, not {type!r:.80}.",
            type=type,
        )
    return type


# --- bodies ---------------------------------------------------------------------------------------


def canonical(document: object) -> str:
    """The JSON text of a document: sorted keys, no spaces, no escaped characters."""
    return compact(document, sort_keys=True)


def body_json(key: str, body: Any) -> str:
    """The canonical text of a body; `InvalidObject` says where it is not JSON, or too large."""
    if not isinstance(body, dict):
        raise InvalidObject(
            f"The body of object {key} must be a dict, which JSON calls an object, not "
            f"{type(body).__name__}.",
            key=key,
        )
    _BodyCheck(key).visit(body)
    text = canonical(body)
    size = len(text.encode())
    if size > LARGEST_BODY:
        _refuse_size(key, f"{size} bytes")
    return text


def _refuse_size(key: str, size: str) -> NoReturn:
    raise InvalidObject(
        f"The body of object {key} has {size} as JSON, and at most {LARGEST_BODY} are kept; store "
        "the rest elsewhere and name the place.",
        key=key,
    )


class _BodyCheck:
    """A walk through a body that stops at the first value that JSON does not have."""

    def __init__(self, key: str) -> None:
        self._key = key
        # The path to the current value. It becomes a text only for a message: a long name would
        # otherwise be copied for everything below it.
        self._trail: list[str | int] = []
        # A lower bound of the text's size: a few lists that contain each other several times would
        # take too long to walk, and to write.
        self._size = 0

    def visit(self, value: Any) -> None:
        if len(self._trail) >= DEEPEST_BODY:
            self._refuse(f"lies more than {DEEPEST_BODY} levels deep, or inside itself; flatten it")
        self._count(1)
        if isinstance(value, str):
            self._text(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self._number(value)
        elif isinstance(value, dict):
            for name, inner in value.items():
                if not isinstance(name, str):
                    self._refuse(f"has the key {name!r:.80}; keys are strings in JSON")
                self._text(name)
                self._below(name, inner)
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                self._below(index, inner)
        elif value is not None and not isinstance(value, bool):
            self._refuse(
                f"is of type {type(value).__name__}; JSON has strings, numbers, booleans, null, "
                "lists and dicts"
            )

    def _below(self, step: str | int, inner: Any) -> None:
        self._trail.append(step)
        self.visit(inner)
        self._trail.pop()

    def _text(self, text: str) -> None:
        self._count(len(text))
        try:
            text.encode()
        except UnicodeEncodeError:
            self._refuse("has a lone surrogate, which UTF-8 cannot hold; remove it")

    def _number(self, number: float) -> None:
        try:
            finite = math.isfinite(number)
        except OverflowError:
            finite = False
        if not finite:
            self._refuse("is a number that is not finite as a double; give it as a string")

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > LARGEST_BODY:
            _refuse_size(self._key, f"more than {LARGEST_BODY} bytes")

    def _refuse(self, wrong: str) -> NoReturn:
        path = "body"
        for step in self._trail:
            path = child(path, step) if isinstance(step, str) else f"{path}[{step}]"
        raise InvalidObject(
            f"{shown(path, 200)} of object {self._key} {wrong}.", key=self._key, path=path
        )


# --- objects --------------------------------------------------------------------------------------


class Keyed:
    """The properties that every form of an object derives from its key and its body's text."""

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
        """A new copy of the body."""
        body: dict[str, Any] = jsons.loads(self.json)
        return body


@dataclass(frozen=True, slots=True, init=False)
class Object(Keyed):
    """A named thing of the platform as a caller puts it.

    Two are equal if their content is: the spelling of the schema makes no difference.

    Args:
        key: `type/path`, such as `table/sales/orders`. The type is a lowercase identifier. No part
            of the path is empty or begins with an underscore.
        body: a JSON object of at most 1 MiB; empty by default.
        links: keys of the objects that this one refers to. A change of one of them gives this one
            a new revision too.
        schema: anything that `Schema.of` takes, if the object has a schema.
        datasource: the datasource that the object represents, if it represents one.
    """

    key: str
    # The canonical text of the body. Unlike a dict it is immutable, and 1 and true differ.
    json: str
    links: tuple[str, ...]
    fingerprint: str | None
    datasource: str | None
    # None with a fingerprint: the object was staged, and only the fingerprint is known.
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
        """An object made of content that was checked before; its schema may be missing."""
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
class ObjectNode(Keyed):
    """An object among all others: its revision, and the revisions of those that it links to."""

    key: str
    # Given at creation: a key that is removed and created again has another id.
    id: str
    revision: int
    json: str
    links: Mapping[str, int]
    fingerprint: str | None
    datasource: str | None
    digest: str

    @classmethod
    def of_put(cls, put: Object, id: str = "", revision: int = 0) -> ObjectNode:
        """An object as it is put, with links whose revisions are not known yet."""
        links = dict.fromkeys(put.links, 0)
        return ObjectNode(
            put.key, id, revision, put.json, links, put.fingerprint, put.datasource, put.digest
        )

    def revised(self, revision: int, links: Mapping[str, int]) -> ObjectNode:
        """The same content at another revision."""
        # Not by `replace`: a `StoredObject` would keep the commit of its old revision.
        return ObjectNode(
            self.key,
            self.id,
            revision,
            self.json,
            links,
            self.fingerprint,
            self.datasource,
            self.digest,
        )

    def payload(self) -> str:
        """The JSON document that the catalog stores."""
        return canonical({"id": self.id, "body": self.body, "links": dict(self.links)})

    @classmethod
    def from_payload(cls, payload: str, *, key: str, **columns: Any) -> Self:
        """The object in a payload and the other columns of its row, by the names of the fields."""
        document = parsed(key, payload, {"id": str, "body": dict, "links": dict})
        text = canonical(document["body"])
        return cls(key=key, id=document["id"], json=text, links=document["links"], **columns)


@dataclass(frozen=True, slots=True)
class StoredObject(ObjectNode):
    """An object at one version of the table, with the commit that changed its row last."""

    commit_id: str
    published_at: datetime
    changed_at: datetime
    changed_by: str | None


def digest_of(
    json: str, links: Iterable[str], fingerprint: str | None, datasource: str | None
) -> str:
    """SHA-256 over the canonical JSON of an object's content; of links only the keys count."""
    rest = {"datasource": datasource, "fingerprint": fingerprint, "links": sorted(links)}
    # As if the body were among the rest: "body" comes first in the order of keys.
    return sha256(f'{{"body":{json},{canonical(rest)[1:]}'.encode()).hexdigest()


def parsed(key: str, payload: Any, fields: Mapping[str, type]) -> dict[str, Any]:
    """The document in a payload, which must have these fields of these types."""
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
    what = f"The datasource of object {key}"
    if problem := text_problem(check_datasource(datasource)):
        raise InvalidObject(f"{what}, {datasource!r:.80} {problem}.", key=key)
    if len(datasource) > LONGEST_DATASOURCE:
        raise InvalidObject(
            f"{what} has {len(datasource)} characters; at most {LONGEST_DATASOURCE} are kept.",
            key=key,
            datasource=datasource,
        )
    return datasource
