"""Fields of bodies: declared in Python or JSON, and bodies checked against them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, TypedDict, Unpack

from catalog.errors import InvalidInput, InvalidType
from catalog.objects.model import canonical
from catalog.schema.names import child
from catalog.secret import is_reference

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_DEEPEST = 20


class FieldType(StrEnum):
    """The types of values that a field can have."""

    TEXT = "text"
    WHOLE = "whole"
    NUMBER = "number"
    BOOLEAN = "boolean"
    ONE_OF = "one_of"
    LIST = "list"
    RECORD = "record"
    JSON = "json"
    # A reference to a secret: secret://scope/name. Never the secret.
    SECRET = "secret"
    # Declarations of fields, by which a field of another object is checked.
    FIELDS = "fields"


@dataclass(frozen=True)
class BodyField:
    """The declaration of one field of a body; made by `text()`, `whole()` and the like.

    Attributes:
        type: see `FieldType`.
        required: it must be given and not be null.
        default: the value that is stored if none is given.
        low: the lowest number.
        high: the highest number.
        words: the allowed texts, for `one_of`.
        of: the declaration of each value, for `list`.
        fields: the declarations by name, for `record`.
        comment: a description.
    """

    type: FieldType
    required: bool = False
    default: Any = None
    low: float | None = None
    high: float | None = None
    words: tuple[str, ...] = ()
    of: BodyField | None = None
    fields: Mapping[str, BodyField] | None = None
    comment: str = ""

    def document(self) -> dict[str, Any]:
        """The declaration as JSON, without defaults."""
        given: dict[str, Any] = {
            "required": self.required or None,
            "default": self.default,
            "low": self.low,
            "high": self.high,
            "words": list(self.words) or None,
            "of": self.of and self.of.document(),
            "fields": None if self.fields is None else documents(self.fields),
            "comment": self.comment or None,
        }
        given = {name: value for name, value in given.items() if value is not None}
        return {"type": self.type.value, **given}


def documents(fields: Mapping[str, BodyField]) -> dict[str, Any]:
    """Declarations of fields as JSON."""
    return {name: field.document() for name, field in fields.items()}


# --- in Python ------------------------------------------------------------------------------------


class FieldOptions(TypedDict, total=False):
    """The arguments that every field takes, see `BodyField`."""

    required: bool
    default: Any
    comment: str


def text(**options: Unpack[FieldOptions]) -> BodyField:
    """A text."""
    return BodyField(FieldType.TEXT, **options)


def whole(
    low: int | None = None, high: int | None = None, **options: Unpack[FieldOptions]
) -> BodyField:
    """A whole number, within bounds if they are given."""
    return BodyField(FieldType.WHOLE, low=low, high=high, **options)


def number(
    low: float | None = None, high: float | None = None, **options: Unpack[FieldOptions]
) -> BodyField:
    """A number, within bounds if they are given."""
    return BodyField(FieldType.NUMBER, low=low, high=high, **options)


def boolean(**options: Unpack[FieldOptions]) -> BodyField:
    """True or false."""
    return BodyField(FieldType.BOOLEAN, **options)


def one_of(*words: str, **options: Unpack[FieldOptions]) -> BodyField:
    """One of some words."""
    return BodyField(FieldType.ONE_OF, words=words, **options)


def list_of(of: BodyField, **options: Unpack[FieldOptions]) -> BodyField:
    """A list of values of one field."""
    return BodyField(FieldType.LIST, of=of, **options)


def record(fields: Mapping[str, BodyField], **options: Unpack[FieldOptions]) -> BodyField:
    """A JSON object with these fields and no others."""
    return BodyField(FieldType.RECORD, fields=fields, **options)


def anything(**options: Unpack[FieldOptions]) -> BodyField:
    """Any JSON value."""
    return BodyField(FieldType.JSON, **options)


def secret(*, required: bool = False, comment: str = "") -> BodyField:
    """A reference to a secret, `secret://scope/name`; never the secret."""
    return BodyField(FieldType.SECRET, required, comment=comment)


def declared_fields(**options: Unpack[FieldOptions]) -> BodyField:
    """Declarations of fields, by which a field of another object is checked."""
    return BodyField(FieldType.FIELDS, **options)


# --- in JSON --------------------------------------------------------------------------------------

# The fields of a declaration itself.
_DECLARATION = {
    "type": one_of(*FieldType, required=True),
    "required": boolean(),
    "default": anything(),
    "low": number(),
    "high": number(),
    "words": list_of(text()),
    "of": anything(),
    "fields": anything(),
    "comment": text(),
}
# Those that only some types have.
_OF_TYPES = {
    "low": (FieldType.WHOLE, FieldType.NUMBER),
    "high": (FieldType.WHOLE, FieldType.NUMBER),
    "words": (FieldType.ONE_OF,),
    "of": (FieldType.LIST,),
    "fields": (FieldType.RECORD,),
}


def fields_from(document: Any, path: str = "fields", depth: int = 0) -> dict[str, BodyField]:
    """The fields that a JSON object declares; `InvalidType` says where it does not."""
    if not isinstance(document, dict):
        raise _invalid(path, f"must be a JSON object of declarations, not {_kind(document)}")
    for name in document:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            how = "has lowercase letters, digits and underscores and begins with a letter"
            raise _invalid(child(path, str(name)), f"is no name of a field, which {how}")
    return {name: _field(given, child(path, name), depth + 1) for name, given in document.items()}


def _field(given: Any, path: str, depth: int) -> BodyField:
    if not isinstance(given, dict):
        how = f'must be a declaration such as {{"type": "text"}}, not {_kind(given)}'
        raise _invalid(path, how)
    if depth > _DEEPEST:
        raise _invalid(path, f"lies more than {_DEEPEST} levels deep; flatten it")
    for problem in problems(_DECLARATION, given, path):
        raise _invalid(problem.path, problem.text)
    type = FieldType(given["type"])
    for name in sorted(given.keys() & _OF_TYPES.keys()):
        if type not in _OF_TYPES[name]:
            raise _invalid(child(path, name), f"has no meaning for a field of type {type.value}")
    if type is FieldType.ONE_OF and not given.get("words"):
        raise _invalid(child(path, "words"), "must be a list of one text or more")
    field = BodyField(
        type,
        given.get("required") or False,
        given.get("default"),
        given.get("low"),
        given.get("high"),
        tuple(given.get("words") or ()),
        _field(given.get("of"), child(path, "of"), depth + 1) if type is FieldType.LIST else None,
        fields_from(given.get("fields"), child(path, "fields"), depth + 1)
        if type is FieldType.RECORD
        else None,
        given.get("comment") or "",
    )
    if field.default is not None:
        for problem in _value_problems(field, field.default, child(path, "default")):
            raise _invalid(problem.path, problem.text)
    return field


def _invalid(path: str, text: str) -> InvalidType:
    return InvalidType(f"{path} {text}.", path=path)


# --- bodies ---------------------------------------------------------------------------------------


class FieldProblem(NamedTuple):
    """What is wrong at one path of a body, and the name of the rule that it breaks."""

    rule: str
    path: str
    text: str


def filled(fields: Mapping[str, BodyField], body: Mapping[str, Any]) -> dict[str, Any]:
    """The body with defaults for fields that are not given."""
    result = dict(body)
    for name, field in fields.items():
        value = result.get(name, field.default)
        if field.fields is not None and isinstance(value, dict):
            value = filled(field.fields, value)
        if value is not None:
            result[name] = value
    return result


def problems(
    fields: Mapping[str, BodyField],
    body: Mapping[str, Any],
    path: str = "body",
    *,
    open: bool = False,
    partial: bool = False,
) -> Iterator[FieldProblem]:
    """What in a body does not match its declared fields.

    With `open` other fields are allowed. With `partial` required fields may be missing still.
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


def _value_problems(field: BodyField, value: Any, path: str) -> Iterator[FieldProblem]:
    match field.type:
        case FieldType.SECRET:
            # Never show the value: it may be the secret.
            if not is_reference(value):
                how = "must name where the secret is kept, as secret://scope/name; it is not shown"
                yield FieldProblem("secret", path, how)
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


def _scalar_problem(field: BodyField, value: Any) -> str | None:
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
    if (
        isinstance(value, int if whole else int | float)
        and not isinstance(value, bool)
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


def _wrong(path: str, text: str) -> FieldProblem:
    return FieldProblem("fields", path, text)


def _kind(value: Any) -> str:
    """The JSON type of a value, for one that is too large or may hold a secret."""
    names = {str: "a text", bool: "a boolean", list: "a list", dict: "a JSON object"}
    return names.get(type(value), "null" if value is None else "a number")
