"""Fields of a body as they are declared: their types, bounds and defaults, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class FieldType(StrEnum):
    """What a field can hold."""

    TEXT = "text"
    WHOLE = "whole"
    NUMBER = "number"
    BOOLEAN = "boolean"
    ONE_OF = "one_of"
    LIST = "list"
    RECORD = "record"
    JSON = "json"
    # Where a secret is kept: secret://scope/name. Never the secret.
    SECRET = "secret"
    # Declarations of fields, which another object's field goes by.
    FIELDS = "fields"


@dataclass(frozen=True)
class Field:
    """What one field of a body must hold; `text()`, `whole()` and their like make one.

    Attributes:
        type: see `FieldType`.
        required: it must be there and not be null.
        default: what is stored if it is not given.
        low: the least number.
        high: the greatest number.
        words: the texts that there are, for `one_of`.
        of: what each value holds, for `list`.
        fields: what it holds by name, for `record`.
        comment: what it means, for people.
    """

    type: FieldType
    required: bool = False
    default: Any = None
    low: float | None = None
    high: float | None = None
    words: tuple[str, ...] = ()
    of: Field | None = None
    fields: Mapping[str, Field] | None = None
    comment: str = ""

    def document(self) -> dict[str, Any]:
        """The declaration as JSON has it, without what says nothing."""
        said: dict[str, Any] = {
            "required": self.required or None,
            "default": self.default,
            "low": self.low,
            "high": self.high,
            "words": list(self.words) or None,
            "of": self.of and self.of.document(),
            "fields": None if self.fields is None else documents(self.fields),
            "comment": self.comment or None,
        }
        given = {name: value for name, value in said.items() if value is not None}
        return {"type": self.type.value, **given}


def documents(fields: Mapping[str, Field]) -> dict[str, Any]:
    """Declarations of fields as JSON has them."""
    return {name: field.document() for name, field in fields.items()}


# --- making them ---------------------------------------------------------------------------------


def text(*, required: bool = False, default: str | None = None, comment: str = "") -> Field:
    """A text."""
    return Field(FieldType.TEXT, required, default, comment=comment)


def whole(
    low: int | None = None,
    high: int | None = None,
    *,
    required: bool = False,
    default: int | None = None,
    comment: str = "",
) -> Field:
    """A whole number, within bounds if they are given."""
    return Field(FieldType.WHOLE, required, default, low, high, comment=comment)


def number(
    low: float | None = None,
    high: float | None = None,
    *,
    required: bool = False,
    default: float | None = None,
    comment: str = "",
) -> Field:
    """A number, within bounds if they are given."""
    return Field(FieldType.NUMBER, required, default, low, high, comment=comment)


def boolean(*, required: bool = False, default: bool | None = None, comment: str = "") -> Field:
    """True or false."""
    return Field(FieldType.BOOLEAN, required, default, comment=comment)


def one_of(
    *words: str, required: bool = False, default: str | None = None, comment: str = ""
) -> Field:
    """One of some words."""
    return Field(FieldType.ONE_OF, required, default, words=words, comment=comment)


def list_of(
    of: Field, *, required: bool = False, default: list[Any] | None = None, comment: str = ""
) -> Field:
    """A list of values of one field."""
    return Field(FieldType.LIST, required, default, of=of, comment=comment)


def record(
    fields: Mapping[str, Field],
    *,
    required: bool = False,
    default: dict[str, Any] | None = None,
    comment: str = "",
) -> Field:
    """A JSON object with these fields and no others."""
    return Field(FieldType.RECORD, required, default, fields=fields, comment=comment)


def anything(*, required: bool = False, default: Any = None, comment: str = "") -> Field:
    """Any JSON value."""
    return Field(FieldType.JSON, required, default, comment=comment)


def secret(*, required: bool = False, comment: str = "") -> Field:
    """Where a secret is kept, `secret://scope/name`; never the secret."""
    return Field(FieldType.SECRET, required, comment=comment)


def declared_fields(*, required: bool = False, default: Any = None, comment: str = "") -> Field:
    """Declarations of fields, which a field of another object goes by."""
    return Field(FieldType.FIELDS, required, default, comment=comment)
