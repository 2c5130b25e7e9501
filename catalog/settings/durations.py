"""Times as people write them: `90s`, `12h`, `1d12h` (pure)."""

from __future__ import annotations

import re
from datetime import timedelta

_UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
LONGEST = timedelta(days=36_500)


def parse_duration(text: str) -> timedelta:
    """The time that a text stands for; raises `ValueError` that says what is wrong."""
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
    """A time as `parse_duration` reads it."""
    seconds = time.seconds + time.microseconds / 1_000_000
    parts = []
    if time.days:
        parts.append(f"{time.days}d")
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds >= size:
            parts.append(f"{int(seconds // size)}{unit}")
            seconds %= size
    if seconds:
        parts.append(f"{seconds:.6f}".rstrip("0").rstrip(".") + "s")
    return "".join(parts) or "0"
