"""HTML as a value: text becomes part of a page only through `escape`."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

# What no page can carry (NUL, lone surrogates, other controls) and what would turn the text around
# it about (bidirectional overrides and isolates). Tab and newline may stay.
_UNSHOWABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)
_VOID = frozenset({"input", "meta"})


class Html(str):
    """Markup that goes into a page as it is; any other text is escaped on its way."""

    __slots__ = ()


def escape(text: str) -> Html:
    """Text as markup that shows it, in content and in quoted attributes alike."""
    shown = _UNSHOWABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return Html(html.escape(shown, quote=True))


def join(parts: Iterable[str | None], between: str = "") -> Html:
    """The parts one after another, without those that are none; what is not markup is escaped."""
    return Html(_safe(between).join(_safe(part) for part in parts if part is not None))


def tag(name: str, /, *children: str | None, **attributes: str | int | bool | None) -> Html:
    """An element; `_` in an attribute stands for `-`, a trailing one avoids a word of Python."""
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
