"""The sorts of values that settings have: how each is checked, written and read (pure)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from catalog.secret import is_reference
from catalog.settings.durations import LONGEST, duration_text, parse_duration

LONGEST_TEXT = 4000


@dataclass(frozen=True)
class Sort:
    """A sort of values.

    Attributes:
        what: what is allowed, for people.
        check: the value of what somebody gave, or raises `ValueError` that says what is wrong.
        stored: the value as it stands in JSON.
    """

    what: str
    check: Callable[[Any], Any]
    stored: Callable[[Any], Any] = lambda value: value


def _number(given: Any) -> float:
    if isinstance(given, str):
        try:
            given = float(given)
        except ValueError:
            given = parse_duration(given).total_seconds()
    if isinstance(given, timedelta):
        given = given.total_seconds()
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise ValueError(f"{given!r} is not a number")
    return float(given)


def _seconds(given: Any) -> float:
    found = _number(given)
    if not 0 < found <= LONGEST.total_seconds():
        raise ValueError(f"{given!r} is not a time above zero")
    return found


def _count(given: Any) -> int:
    if isinstance(given, str) and given.isdecimal():
        given = int(given)
    if isinstance(given, bool) or not isinstance(given, int) or not 0 < given < 1 << 31:
        raise ValueError(f"{given!r} is not a whole number above zero")
    return given


def _duration(given: Any) -> timedelta:
    found = parse_duration(given) if isinstance(given, str) else given
    if not isinstance(found, timedelta) or not timedelta(0) <= found <= LONGEST:
        raise ValueError(f"{given!r} is not a time such as 90s, 30m, 12h, 7d or 1d12h")
    return found


def _text(given: Any) -> str:
    if not isinstance(given, str) or not given or len(given) > LONGEST_TEXT:
        raise ValueError(f"{given!r:.80} is not a text of 1 to {LONGEST_TEXT} characters")
    return given


def _anything(given: Any) -> Any:
    try:
        text = json.dumps(given, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError(f"{given!r:.80} is not a JSON value") from None
    if given is None or len(text) > LONGEST_TEXT:
        raise ValueError(f"it is null or takes more than {LONGEST_TEXT} characters of JSON")
    return given


def _reference(given: Any) -> str:
    # What was given is not repeated: it may be the secret itself.
    if not is_reference(given):
        raise ValueError("secrets are not kept here; give a reference, secret://scope/name")
    return str(given)


SECONDS = Sort("a time above zero, in seconds or as 90s", _seconds)
COUNT = Sort("a whole number above zero", _count)
DURATION = Sort("a time such as 90s, 12h or 7d", _duration, duration_text)
TEXT = Sort("a text", _text)
ANYTHING = Sort("any JSON value", _anything)
SECRET = Sort("a reference, secret://scope/name", _reference)
