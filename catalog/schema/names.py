"""Column names as they are written in DDL, in paths and in messages."""

from __future__ import annotations

import re

_PARTS = re.compile(r"`(?:[^`]|``)*`|[^.]+")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quote(name: str) -> str:
    """The name as Spark SQL reads it back: in backquotes unless it is a plain identifier."""
    return name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def child(path: str, name: str) -> str:
    """The path of a column inside another; dots and odd characters in the name are quoted."""
    return f"{path}.{quote(name)}" if path else quote(name)


def parts(path: str) -> tuple[str, ...]:
    """The names of a path, without quotes."""
    return tuple(
        part[1:-1].replace("``", "`") if part.startswith("`") else part
        for part in _PARTS.findall(path)
    )


def folded(path: str) -> tuple[str, ...]:
    """The names of a path without case and quotes: what two spellings of a column share."""
    return tuple(part.casefold() for part in parts(path))


def shown(text: str, limit: int = 80) -> str:
    """The text as a message may print it: shortened, with unprintable characters escaped."""
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in short)
