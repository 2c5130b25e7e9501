"""The text of a page: markup in which all other text is escaped, and figures in readable units."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from datetime import UTC, datetime

# --- markup ---------------------------------------------------------------------------------------

# Characters that no page can carry (NUL, lone surrogates, other controls) and those that change the
# direction of the text around them (bidirectional overrides and isolates). Tab and newline stay.
_UNSHOWABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)
_VOID = frozenset({"input", "meta"})


class Html(str):
    """Markup that goes into a page as it is; any other text is escaped."""

    __slots__ = ()


def escape(text: str) -> Html:
    """Text as markup that shows it, in content and in quoted attributes alike."""
    shown = _UNSHOWABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return Html(html.escape(shown, quote=True))


def join(parts: Iterable[str | None], between: str = "") -> Html:
    """The parts that are not none, one after another; text that is not markup is escaped."""
    return Html(_safe(between).join(_safe(part) for part in parts if part is not None))


def tag(name: str, /, *children: str | None, **attributes: str | int | bool | None) -> Html:
    """An element; `_` in an attribute becomes `-`, a trailing one avoids a keyword of Python."""
    given = "".join(
        _attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items()
    )
    if name in _VOID:
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{join(children)}</{name}>")


def _attribute(name: str, value: str | int | bool | None) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


def _safe(part: str) -> str:
    return part if isinstance(part, Html) else escape(part)


# --- figures --------------------------------------------------------------------------------------

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
    """A count with its noun, in the plural unless it is one."""
    return f"{exact(count)} {noun}{'' if count == 1 else 's'}"


def size(size_bytes: int) -> str:
    """Bytes to one decimal of their unit: 4.5 GiB."""
    return _in_units(size_bytes, 1024, _BYTES) or f"{size_bytes}{_SPACE}B"


def utc(moment: datetime) -> datetime:
    """The moment in UTC; one without a time zone is in UTC already."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def clock(moment: datetime) -> str:
    """Date and time in UTC, to the second, without the zone."""
    return utc(moment).replace(tzinfo=None).isoformat(sep=" ", timespec="seconds")


def duration(milliseconds: int) -> str:
    """A span of time in its two largest units."""
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
        # A value that rounds up to a whole unit is shown in it: 1 M rather than 1,000 k.
        if _tenths(value, base ** (power - 1)) >= 10 * base:
            whole, tenth = divmod(_tenths(value, base**power), 10)
            return f"{whole:,}{f'.{tenth}' if tenth else ''}{_SPACE}{names[power - 1]}"
    return None


def _tenths(value: int, unit: int) -> int:
    # In whole numbers: a sum of rows may have more digits than a float.
    return (value * 10 + unit // 2) // unit
