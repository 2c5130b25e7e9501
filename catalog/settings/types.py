"""Types of setting values: how each is checked, stored and written by people (pure)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from catalog.secret import is_reference

LONGEST = timedelta(days=36_500)
LONGEST_TEXT = 4000
_UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")

# --- durations ------------------------------------------------------------------------------------


def parse_duration(text: str) -> timedelta:
    """The duration written as `90s`, `12h` or `1d12h`; raises `ValueError` for anything else."""
    if text == "0":
        return timedelta(0)
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text):
        raise ValueError(f"{text!r} is not a time such as 90s, 30m, 12h, 7d or 1d12h")
    try:
        found = sum((timedelta(**{_UNITS[unit]: float(n)}) for n, unit in parts), timedelta())
    except OverflowError:
        found = timedelta.max
    if found > LONGEST:
        raise ValueError(f"{text!r} is more than {LONGEST.days} days")
    return found


def duration_text(time: timedelta) -> str:
    """A duration in the form that `parse_duration` reads."""
    seconds = time.seconds + time.microseconds / 1_000_000
    parts = [f"{time.days}d"] if time.days else []
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds >= size:
            parts.append(f"{int(seconds // size)}{unit}")
            seconds %= size
    if seconds:
        parts.append(f"{seconds:.6f}".rstrip("0").rstrip(".") + "s")
    return "".join(parts) or "0"


# --- types ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SettingType:
    """A type of values.

    Attributes:
        what: the allowed values, in words.
        check: converts an input to a value, or raises `ValueError` with the reason.
        stored: converts a value to what is stored as JSON.
    """

    what: str
    check: Callable[[Any], Any]
    stored: Callable[[Any], Any] = lambda value: value


def _seconds(given: Any) -> float:
    found = given
    if isinstance(found, str):
        try:
            found = float(found)
        except ValueError:
            found = parse_duration(found)
    if isinstance(found, timedelta):
        found = found.total_seconds()
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise ValueError(f"{given!r} is not a number")
    if not 0 < found <= LONGEST.total_seconds():
        raise ValueError(f"{given!r} is not a time above zero")
    return float(found)


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
    # The message must not repeat the input: it may be the secret itself.
    if not is_reference(given):
        raise ValueError("secrets are not kept here; give a reference, secret://scope/name")
    return str(given)


SECONDS = SettingType("a time above zero, in seconds or as 90s", _seconds)
COUNT = SettingType("a whole number above zero", _count)
DURATION = SettingType("a time such as 90s, 12h or 7d", _duration, duration_text)
TEXT = SettingType("a text", _text)
ANYTHING = SettingType("any JSON value", _anything)
SECRET = SettingType("a reference, secret://scope/name", _reference)
