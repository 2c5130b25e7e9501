"""Names and texts as they are written in SQL, in paths and in messages."""

from __future__ import annotations

import re

_PARTS = re.compile(r"`(?:[^`]|``)*`|[^.]+")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SAFE = re.compile(r"[A-Za-z0-9_/=.:-]")


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


def identifier(name: str) -> str:
    """A name as one quoted SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A string literal in which every character that could mean something is escaped."""
    return "'" + "".join(c if _SAFE.match(c) else _escaped(c) for c in text) + "'"


def _escaped(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"
