"""Bodies of objects: JSON objects, checked, and as the one text that stands for them."""

from __future__ import annotations

import math
from typing import Any, NoReturn

from catalog.errors import InvalidObject
from catalog.schema.names import child, shown
from catalog.schema.spark_json import compact

LARGEST_BODY = 1 << 20
DEEPEST_BODY = 100


def canonical(document: object) -> str:
    """The JSON text of a document: sorted keys, no spaces, characters stand for themselves."""
    return compact(document, sort_keys=True)


def body_json(key: str, body: Any) -> str:
    """The canonical text of a body; `InvalidObject` says where it is not JSON, or too large."""
    if not isinstance(body, dict):
        raise InvalidObject(
            f"The body of object {key} must be a dict, which JSON calls an object, not "
            f"{type(body).__name__}.",
            key=key,
        )
    _Walk(key).visit(body)
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


class _Walk:
    """One walk through a body, which stops where it can no longer become a text that is kept."""

    def __init__(self, key: str) -> None:
        self._key = key
        # The way to where the walk is. It becomes a text only for a message: a long name would
        # otherwise be copied for everything below it.
        self._trail: list[str | int] = []
        # A lower bound of the text's size. A few lists that hold each other several times would be
        # walked, and written, for longer than anybody waits.
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
                self._name(name)
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

    def _name(self, name: Any) -> None:
        if not isinstance(name, str):
            self._refuse(f"has the key {name!r:.80}; keys are strings in JSON")
        self._text(name)

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
