"""Data files, opened by the paths that Spark prints and people write."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import pyarrow as pa
from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem

from catalog.errors import BrokenFile
from catalog.files.formats import key_of, same_storage
from catalog.schema.names import shown

# Opens the file at a path, to be read from any position; raises BrokenFile if it cannot. For a
# folder the error's values have `files`, the paths of all files below it.
OpenFile = Callable[[str], pa.NativeFile]

_PREFIX = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<host>//[^/]*)?(?=/)")
_LOCAL = ("file", "dbfs")
_FAILURES = (OSError, ValueError, pa.ArrowException)
_SHOWN = 400


@dataclass(frozen=True)
class Files:
    """Opens files on local disk and in object stores; an `OpenFile`.

    It travels to executors as a value, without the connections that it has made.

    Attributes:
        connect: gives the file system of a URI such as `s3://bucket/`, and the path of the URI in
            it. By default pyarrow does, with the credentials of the environment.
    """

    connect: Callable[[str], tuple[FileSystem, str]] = FileSystem.from_uri
    _made: dict[str, tuple[FileSystem, str]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _lock: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.connect,)

    def __call__(self, path: str) -> pa.NativeFile:
        """The file at a path, which is not a URI: nothing in it is escaped."""
        system, inside = self.locate(path)
        try:
            return system.open_input_file(inside)
        except _FAILURES as error:
            raise _problem(path, system, inside, error) from error

    def locate(self, path: str) -> tuple[FileSystem, str]:
        """The file system that a path is in, and the path as it is called there."""
        local = local_path(path)
        if local is not None:
            return LocalFileSystem(), local
        scheme, host = _prefix(path)
        try:
            system, root = self._connected(f"{same_storage(scheme)}:{host}/")
        except _FAILURES as error:
            raise BrokenFile(
                f"{named(path)} cannot be reached: {_reason(error)}; use a path on local disk or "
                "a scheme that pyarrow has (s3, gs, abfss, hdfs) with its credentials, or pass an "
                "open_file of your own",
                path=path,
            ) from error
        return system, root.rstrip("/") + key_of(path)

    def _connected(self, uri: str) -> tuple[FileSystem, str]:
        # One at a time: threads that begin together would all ask for the region of one bucket.
        with self._lock:
            if uri not in self._made:
                self._made[uri] = self.connect(uri)
            return self._made[uri]


def named(path: str) -> str:
    """The path as a message may print it."""
    return shown(path, _SHOWN)


def local_path(path: str) -> str | None:
    """The path as local disk has it; none if it is elsewhere."""
    scheme, host = _prefix(path)
    if scheme not in _LOCAL or host != "//":
        return None
    inside = key_of(path)
    # Databricks mounts its own file system there, and volumes at the root.
    mounted = scheme == "dbfs" and not inside.startswith("/Volumes/")
    return f"/dbfs{inside}" if mounted else inside


def _prefix(path: str) -> tuple[str, str]:
    """The scheme and the host of a path; what has neither is on local disk."""
    found = _PREFIX.match(path)
    return (found["scheme"].lower(), found["host"] or "//") if found else ("file", "//")


def _problem(path: str, system: FileSystem, inside: str, error: Exception) -> BrokenFile:
    """What is wrong with a path; asked after a failure only, as most files are there."""
    if isinstance(error, PermissionError):
        return BrokenFile(
            f"{named(path)} may not be read by this process; grant it access", path=path
        )
    try:
        kind = system.get_file_info(inside).type
        if kind == FileType.Directory:
            files = _below(path, system, inside)
            return BrokenFile(
                f"{named(path)} is a folder with {len(files)} files; name one of them",
                path=path,
                files=files,
            )
    except _FAILURES:
        kind = FileType.Unknown
    if kind == FileType.NotFound:
        return BrokenFile(f"there is no file {named(path)}; check the path", path=path)
    return BrokenFile(f"{named(path)} cannot be opened: {_reason(error)}", path=path)


def _below(path: str, system: FileSystem, inside: str) -> list[str]:
    found = system.get_file_info(FileSelector(inside, recursive=True))
    above = inside.rstrip("/")
    return sorted(
        path.rstrip("/") + each.path.removeprefix(above)
        for each in found
        if each.type == FileType.File
    )


def _reason(error: Exception) -> str:
    return shown(str(error), _SHOWN)
