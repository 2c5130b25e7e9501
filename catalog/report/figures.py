"""Figures and moments in words that a reader takes in at a glance."""

from __future__ import annotations

from datetime import UTC, datetime

# A figure and its unit stay on one line.
_SPACE = "\N{NO-BREAK SPACE}"
_COUNTS = ("k", "M", "G", "T")
_BYTES = ("KiB", "MiB", "GiB", "TiB", "PiB")


def short(count: int) -> str:
    """A count to one decimal of its unit: 1.2 M."""
    return _in_units(count, 1000, _COUNTS) or str(count)


def exact(count: int) -> str:
    """A count with all its digits, in groups."""
    return f"{count:,}"


def counted(count: int, noun: str) -> str:
    """A count with its noun, which takes an s where there is not one."""
    return f"{exact(count)} {noun}{'' if count == 1 else 's'}"


def size(size_bytes: int) -> str:
    """Bytes to one decimal of their unit: 4.5 GiB."""
    return _in_units(size_bytes, 1024, _BYTES) or f"{size_bytes}{_SPACE}B"


def utc(moment: datetime) -> datetime:
    """The moment in UTC; one without a time zone is taken to be in UTC already."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def clock(moment: datetime) -> str:
    """Date and time in UTC, to the second, without the zone."""
    return utc(moment).replace(tzinfo=None).isoformat(sep=" ", timespec="seconds")


def duration(milliseconds: int) -> str:
    """How long something took, in its two largest units."""
    if milliseconds < 1000:
        return f"{milliseconds}{_SPACE}ms"
    if milliseconds < 60_000:
        return f"{milliseconds // 100 / 10:.1f}{_SPACE}s"
    minutes, seconds = divmod(milliseconds // 1000, 60)
    if minutes < 60:
        return f"{minutes}{_SPACE}min {seconds:02}{_SPACE}s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}{_SPACE}h {minutes:02}{_SPACE}min"
    days, hours = divmod(hours, 24)
    return f"{exact(days)}{_SPACE}d {hours:02}{_SPACE}h"


def _in_units(value: int, base: int, names: tuple[str, ...]) -> str | None:
    for power in range(len(names), 0, -1):
        # What rounds up to a whole unit is shown in it: 1 M rather than 1,000 k.
        if _tenths(value, base ** (power - 1)) >= 10 * base:
            whole, tenth = divmod(_tenths(value, base**power), 10)
            return f"{whole:,}{f'.{tenth}' if tenth else ''}{_SPACE}{names[power - 1]}"
    return None


def _tenths(value: int, unit: int) -> int:
    # In whole numbers: a sum of rows may have more digits than a float.
    return (value * 10 + unit // 2) // unit
