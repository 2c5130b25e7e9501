"""Words that callers choose from, such as policies and modes, and lists in messages."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TypeVar

from catalog.errors import InvalidInput

Word = TypeVar("Word", bound=StrEnum)


def chosen(words: type[Word], parameter: str, given: str) -> Word:
    """The word that was given for a parameter; what is none of them is refused with all of them."""
    try:
        return words(given)
    except ValueError:
        *most, last = (f'"{word}"' for word in words)
        raise InvalidInput(
            f"{parameter} must be {', '.join(most)} or {last}, not {given!r}.", **{parameter: given}
        ) from None


def listed(items: Sequence[object], joint: str = "; ", most: int = 5) -> str:
    """The first items as text for a message, and how many more there are."""
    more = f"{joint}and {len(items) - most} more" if len(items) > most else ""
    return joint.join(map(str, items[:most])) + more
