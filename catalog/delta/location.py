"""Where a catalog is: a path or a schema, what Spark makes of it, and the lock of a local table."""

from __future__ import annotations

import fcntl
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pyspark.errors import PySparkException

from catalog.delta.failures import ALREADY_THERE, condition_of
from catalog.environment import Deadline
from catalog.errors import CatalogNotFound, InvalidLocation, NotACatalog
from catalog.schema.names import identifier

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENTRIES = "entries"
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
        """The quoted name of one of the catalog's tables."""
        if self.path is not None:
            return f"delta.{identifier(f'{self.path}/{name}')}"
        return ".".join(identifier(part) for part in (*self.schema, name))

    def at(self, path: str) -> Location:
        """The same catalog under another spelling of its path, `file:` as before."""
        given = self.path or ""
        return Location(path=f"file:{path}" if given.startswith("file:") else path)

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
    """The local path of a URI that Spark reported, with symbolic links resolved."""
    parts = urlsplit(uri)
    if parts.scheme not in ("", "file"):
        return None
    # Delta writes paths as Hadoop prints them, `file:/a b%20`: nothing is escaped.
    return Path(os.path.realpath(uri.removeprefix("file:")))


def absolute(session: SparkSession, location: Location) -> Location:
    """The location with a relative path made absolute, as Delta needs it."""
    if location.path is None or not is_relative(location.path):
        return location
    uri = table_uri(session, location)
    local = local_path(uri)
    return Location(path=uri.removesuffix(f"/{ENTRIES}") if local is None else str(local.parent))


def table_uri(session: SparkSession, location: Location) -> str:
    """The URI of the catalog's table: only Spark knows the file system of a plain path."""
    if location.path is None:
        name = ".".join(identifier(part) for part in location.schema)
        try:
            session.sql(f"CREATE SCHEMA IF NOT EXISTS {name}")
        except PySparkException as error:
            if condition_of(error) not in ALREADY_THERE:
                raise
        rows = session.sql(f"DESCRIBE SCHEMA {name}").collect()
        places = [row["info_value"] for row in rows if row["info_name"] == "Location"]
        return f"{places[0]}/{ENTRIES}" if places else "unknown:"
    probe = f"/.strata-{uuid.uuid4().hex}"
    try:
        # Two paths: for a single missing one Spark logs a stack trace.
        _ = session.read.text([f"{location.path}{probe}"] * 2).schema
    except PySparkException as error:
        found = (error.getMessageParameters() or {}).get("path", "")
        if condition_of(error) == "PATH_NOT_FOUND" and found.endswith(probe):
            return f"{found.removesuffix(probe)}/{ENTRIES}"
        raise CatalogNotFound(
            f"The location {location} cannot be reached: {error}", location=str(location)
        ) from error
    raise NotACatalog(f"{location} holds {probe}, which cannot be.", location=str(location))


class TableLock:
    """An operating-system lock on a file next to a local table; no lock on other storage.

    On local disk Delta excludes concurrent writers only inside one JVM.
    """

    _LOOK_AGAIN = 0.01

    def __init__(self, file: Path | None) -> None:
        self._file = file

    @classmethod
    def of(cls, table: Path | None) -> TableLock:
        """The lock of the table at a local path; `None` for any other storage."""
        return cls(None if table is None else table.parent / f".{table.name}.lock")

    @property
    def real(self) -> bool:
        """Whether holding it keeps every other writer out."""
        return self._file is not None

    @contextmanager
    def held(self, deadline: Deadline) -> Iterator[None]:
        """Holds the lock; raises `GaveUp` when the deadline passes first."""
        if self._file is None:
            yield
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        # A new descriptor each time: flock is held by the open file, so two threads that shared
        # one would not exclude each other.
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            while not _try_lock(descriptor):
                deadline.wait(self._LOOK_AGAIN, f"the lock {self._file}")
            yield
        finally:
            os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
