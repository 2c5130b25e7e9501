"""Names, paths and types as they are written in SQL and in messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from catalog.schema import atoms

_PARTS = re.compile(r"`(?:[^`]|``)*`|[^.]+")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SAFE = re.compile(r"[A-Za-z0-9_/=.:-]")


def quote(name: str) -> str:
    """The name as Spark SQL reads it back: in backquotes unless it is a plain identifier."""
    return name if _PLAIN.fullmatch(name) else identifier(name)


def identifier(name: str) -> str:
    """The name as a quoted SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A SQL string literal in which every character that could have a meaning is escaped."""
    return "'" + "".join(c if _SAFE.match(c) else _escaped(c) for c in text) + "'"


def _escaped(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"


def child(path: str, name: str) -> str:
    """The path of a column inside another; names with dots or odd characters are quoted."""
    return f"{path}.{quote(name)}" if path else quote(name)


def parts(path: str) -> tuple[str, ...]:
    """The names of a path, without quotes."""
    return tuple(
        part[1:-1].replace("``", "`") if part.startswith("`") else part
        for part in _PARTS.findall(path)
    )


def folded(path: str) -> tuple[str, ...]:
    """The names of a path, case-folded and without quotes: equal for two spellings of a column."""
    return tuple(part.casefold() for part in parts(path))


def held(kind: DataType) -> tuple[tuple[str, DataType, bool], ...]:
    """What an array or a map holds: its name in paths, its type, and whether it may be null."""
    if isinstance(kind, ArrayType):
        return (("element", kind.elementType, kind.containsNull),)
    if isinstance(kind, MapType):
        return ("key", kind.keyType, False), ("value", kind.valueType, kind.valueContainsNull)
    return ()


def shown(text: str, limit: int = 80) -> str:
    """The text for a message: shortened, with unprintable characters escaped."""
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in short)


def _atom_text(kind: DataType) -> str:
    return atoms.text_of(kind) or kind.simpleString()


def type_text(
    kind: DataType,
    atom: Callable[[DataType], str] = _atom_text,
    name: Callable[[str], str] = quote,
    order: Callable[[Iterable[str]], Iterable[str]] = list,
) -> str:
    """The type as DESCRIBE shows it: lower case, without nullability and comments.

    `atom` and `name` spell atomic types and names, `order` arranges the columns of a struct.
    """

    def text(inner: DataType) -> str:
        if isinstance(inner, StructType):
            columns = (f"{name(field.name)}:{text(field.dataType)}" for field in inner.fields)
            return f"struct<{','.join(order(columns))}>"
        if isinstance(inner, ArrayType):
            return f"array<{text(inner.elementType)}>"
        if isinstance(inner, MapType):
            return f"map<{text(inner.keyType)},{text(inner.valueType)}>"
        return atom(inner)

    return text(kind)
