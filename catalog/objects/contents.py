"""What a body must hold by its fields, and fields as JSON declares them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from catalog.errors import InvalidInput, InvalidType
from catalog.objects.body import canonical
from catalog.objects.fields import Field, FieldType
from catalog.schema.names import child
from catalog.secret import is_reference

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_DEEPEST = 20


class Problem(NamedTuple):
    """What is wrong at one place of a body, and the name of the rule that says so."""

    rule: str
    path: str
    text: str


# --- what a body holds ---------------------------------------------------------------------------


def filled(fields: Mapping[str, Field], body: Mapping[str, Any]) -> dict[str, Any]:
    """The body with defaults in place of what is not given."""
    result = dict(body)
    for name, field in fields.items():
        value = result.get(name, field.default)
        if field.fields is not None and isinstance(value, dict):
            value = filled(field.fields, value)
        if value is not None:
            result[name] = value
    return result


def problems(
    fields: Mapping[str, Field],
    body: Mapping[str, Any],
    path: str = "body",
    *,
    open: bool = False,
    partial: bool = False,
) -> Iterator[Problem]:
    """What in a body is not as its fields are declared.

    With `open` there may be others. With `partial` those that are required may still come.
    """
    for name in sorted(set() if open else body.keys() - fields.keys()):
        known = ", ".join(sorted(fields)) or "none"
        yield _wrong(child(path, name), f"is not declared; its fields are: {known}")
    for name, field in fields.items():
        value = body.get(name)
        if value is None:
            if field.required and not partial:
                yield _wrong(child(path, name), "is required; give it")
        else:
            yield from _value_problems(field, value, child(path, name))


def _value_problems(field: Field, value: Any, path: str) -> Iterator[Problem]:
    match field.type:
        case FieldType.SECRET:
            # Never the value: it may be the secret.
            if not is_reference(value):
                how = "must name where the secret is kept, as secret://scope/name; it is not shown"
                yield Problem("secret", path, how)
        case FieldType.LIST:
            if not isinstance(value, list):
                yield _wrong(path, f"must be a list, not {_kind(value)}")
            elif field.of is not None:
                for index, inner in enumerate(value):
                    yield from _value_problems(field.of, inner, f"{path}[{index}]")
        case FieldType.RECORD:
            if not isinstance(value, dict):
                yield _wrong(path, f"must be a JSON object, not {_kind(value)}")
            else:
                yield from problems(field.fields or {}, value, path)
        case FieldType.FIELDS:
            try:
                fields_from(value, path)
            except InvalidInput as error:
                yield _wrong(path, f"must declare fields: {error.message.rstrip('.')}")
        case FieldType.JSON:
            pass
        case _:
            wrong = _scalar_problem(field, value)
            if wrong is not None:
                shown = _kind(value) if isinstance(value, dict | list) else canonical(value)
                yield _wrong(path, f"must be {wrong}, not {shown:.80}")


def _scalar_problem(field: Field, value: Any) -> str | None:
    """What a value must be, if it is not."""
    match field.type:
        case FieldType.TEXT:
            return None if isinstance(value, str) else "a text"
        case FieldType.BOOLEAN:
            return None if isinstance(value, bool) else "true or false"
        case FieldType.ONE_OF:
            fits = isinstance(value, str) and value in field.words
            return None if fits else f"one of {', '.join(field.words)}"
    whole = field.type is FieldType.WHOLE
    fits = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if (
        fits
        and (field.low is None or value >= field.low)
        and (field.high is None or value <= field.high)
    ):
        return None
    bounds = [
        f"{word} {bound}"
        for word, bound in (("at least", field.low), ("at most", field.high))
        if bound is not None
    ]
    return " ".join(["a whole number" if whole else "a number", " and ".join(bounds)]).strip()


def _wrong(path: str, text: str) -> Problem:
    return Problem("fields", path, text)


def _kind(value: Any) -> str:
    """The JSON type of a value: a large one is not shown, nor what may be secret in it."""
    names = {str: "a text", bool: "a boolean", list: "a list", dict: "a JSON object"}
    return names.get(type(value), "null" if value is None else "a number")


# --- out of JSON ---------------------------------------------------------------------------------

_KEYS = frozenset(
    {"type", "required", "default", "low", "high", "words", "of", "fields", "comment"}
)
# What some types have, and the others not.
_OF_TYPES: dict[str, frozenset[FieldType]] = {
    "low": frozenset({FieldType.WHOLE, FieldType.NUMBER}),
    "high": frozenset({FieldType.WHOLE, FieldType.NUMBER}),
    "words": frozenset({FieldType.ONE_OF}),
    "of": frozenset({FieldType.LIST}),
    "fields": frozenset({FieldType.RECORD}),
}


def fields_from(document: Any, path: str = "fields", depth: int = 0) -> dict[str, Field]:
    """The fields that a JSON object declares; `InvalidType` says where it does not."""
    if not isinstance(document, dict):
        raise _invalid(path, f"must be a JSON object of declarations, not {_kind(document)}")
    for name in document:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            how = "has lowercase letters, digits and underscores and begins with a letter"
            raise _invalid(child(path, str(name)), f"is no name of a field, which {how}")
    return {name: _field(said, child(path, name), depth + 1) for name, said in document.items()}


def _field(said: Any, path: str, depth: int) -> Field:
    if not isinstance(said, dict):
        raise _invalid(path, f'must be a declaration such as {{"type": "text"}}, not {_kind(said)}')
    if depth > _DEEPEST:
        raise _invalid(path, f"lies more than {_DEEPEST} levels deep; flatten it")
    for name in sorted(said.keys() - _KEYS):
        raise _invalid(child(path, name), f"is not known; there are {', '.join(sorted(_KEYS))}")
    try:
        type = FieldType(str(said.get("type")))
    except ValueError:
        types = ", ".join(FieldType)
        raise _invalid(child(path, "type"), f"must be one of {types}") from None
    for name in sorted(said.keys() & _OF_TYPES.keys()):
        if type not in _OF_TYPES[name]:
            raise _invalid(child(path, name), f"says nothing of a field of type {type.value}")
    field = Field(
        type,
        _flag(said, "required", path),
        said.get("default"),
        _bound(said, "low", path),
        _bound(said, "high", path),
        _words(said, path) if type is FieldType.ONE_OF else (),
        _field(said.get("of"), child(path, "of"), depth + 1) if type is FieldType.LIST else None,
        fields_from(said.get("fields"), child(path, "fields"), depth + 1)
        if type is FieldType.RECORD
        else None,
        _comment(said, path),
    )
    if field.default is not None:
        for problem in _value_problems(field, field.default, child(path, "default")):
            raise _invalid(problem.path, problem.text)
    return field


def _flag(said: Mapping[str, Any], name: str, path: str) -> bool:
    value = said.get(name, False)
    if not isinstance(value, bool):
        raise _invalid(child(path, name), "must be true or false")
    return value


def _bound(said: Mapping[str, Any], name: str, path: str) -> float | None:
    value = said.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise _invalid(child(path, name), "must be a number")
    return value


def _words(said: Mapping[str, Any], path: str) -> tuple[str, ...]:
    words = said.get("words")
    if not isinstance(words, list) or not words or not all(isinstance(w, str) for w in words):
        raise _invalid(child(path, "words"), "must be a list of one text or more")
    return tuple(words)


def _comment(said: Mapping[str, Any], path: str) -> str:
    comment = said.get("comment", "")
    if not isinstance(comment, str):
        raise _invalid(child(path, "comment"), "must be a text")
    return comment


def _invalid(path: str, text: str) -> InvalidType:
    return InvalidType(f"{path} {text}.", path=path)
