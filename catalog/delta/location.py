"""Where a catalog is, and how names and values are written in SQL."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from catalog.errors import InvalidLocation
from catalog.schema.names import identifier

_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`\s]+)")
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True)
class Location:
    """A path, or the parts of a schema name; exactly one of them is set."""

    path: str | None = None
    schema: tuple[str, ...] = ()

    @classmethod
    def parse(cls, location: str | os.PathLike[str]) -> Location:
        """Reads `/data/meta`, `s3://bucket/meta` as a path and `main.meta` as a schema."""
        text = os.fspath(location)
        if not isinstance(text, str) or not text.strip():
            raise InvalidLocation(
                "A catalog location must not be empty; give a path such as /data/meta "
                "or a schema such as main.meta.",
                location=text,
            )
        if any(ord(char) < 32 or ord(char) == 127 for char in text):
            raise InvalidLocation(
                f"The catalog location {text!r} has control characters; remove them.",
                location=text,
            )
        if isinstance(location, os.PathLike) or "/" in text.split("`")[0] or _SCHEME.match(text):
            return cls(path=text.rstrip("/") or "/")
        parts = _schema_parts(text)
        if not 1 <= len(parts) <= 2:
            raise InvalidLocation(
                f"The catalog location {text!r} is neither a path nor a schema name; write a path "
                "with a slash, or schema or catalog.schema, with backticks where a part has dots.",
                location=text,
            )
        return cls(schema=parts)

    def table(self, name: str) -> str:
        """The quoted relation of one of the catalog's tables."""
        if self.path is not None:
            return f"delta.{identifier(f'{self.path}/{name}')}"
        return ".".join(identifier(part) for part in (*self.schema, name))

    def at(self, path: str) -> Location:
        """The same catalog under the path that its file system knows it by."""
        return Location(path=path)

    def __str__(self) -> str:
        return self.path if self.path is not None else ".".join(self.schema)


def _schema_parts(text: str) -> tuple[str, ...]:
    parts: list[str] = []
    position = 0
    while position < len(text):
        match = _PART.match(text, position)
        if match is None:
            return ()
        parts.append((match[1] or match[2]).replace("``", "`"))
        position = match.end()
        if position < len(text):
            if text[position] != "." or position + 1 == len(text):
                return ()
            position += 1
    return tuple(parts)


def is_relative(path: str) -> bool:
    """True for a path that depends on the working directory or the user's home."""
    return not path.startswith("/") and not _SCHEME.match(path)


def local_path(uri: str) -> Path | None:
    """The local path behind a URI that Spark reported, with symbolic links resolved."""
    parts = urlsplit(uri)
    if parts.scheme not in ("", "file"):
        return None
    # Delta writes paths as Hadoop prints them, `file:/a b%20`: nothing is escaped.
    return Path(os.path.realpath(uri.removeprefix("file:")))
