"""Data files in storage: opened by the paths that Spark prints, and copied; runs on executors."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Lock
from typing import Any

import pyarrow as pa
from pyarrow import orc
from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem

from catalog.errors import BrokenFile
from catalog.files.parquet import parquet_rows
from catalog.files.paths import is_hidden, key_of, same_storage
from catalog.schema.names import shown

# Opens the file at a path for reading at any position; raises BrokenFile if it cannot. For a folder
# the error's values have `files`, the paths of all files below it.
OpenFile = Callable[[str], pa.NativeFile]

_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<host>//[^/]*)?(?=/)")
_LOCAL = ("file", "dbfs")
_FAILURES = (OSError, ValueError, pa.ArrowException)
_SHOWN = 400


@dataclass(frozen=True)
class Files:
    """Opens files on local disk and in object stores; an `OpenFile`.

    It is pickled for executors without its connections.

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
        """The file system of a path, and the path inside it."""
        local = local_path(path)
        if local is not None:
            return LocalFileSystem(), local
        scheme, host = _scheme_and_host(path)
        try:
            system, root = self._connected(f"{same_storage(scheme)}:{host}/")
        except _FAILURES as error:
            raise BrokenFile(
                f"{named(path)} cannot be reached: {reason_of(error)}; use a path on local disk or "
                "a scheme that pyarrow has (s3, gs, abfss, hdfs) with its credentials, or pass an "
                "open_file of your own",
                path=path,
            ) from error
        return system, root.rstrip("/") + key_of(path)

    def _connected(self, uri: str) -> tuple[FileSystem, str]:
        # One at a time: threads that begin together would all look up the region of one bucket.
        with self._lock:
            if uri not in self._made:
                self._made[uri] = self.connect(uri)
            return self._made[uri]


def named(path: str) -> str:
    """The path as a message may print it."""
    return shown(path, _SHOWN)


def reason_of(error: Exception) -> str:
    """The text of an error as a message may print it."""
    return shown(str(error) or type(error).__name__, _SHOWN)


def local_path(path: str) -> str | None:
    """The path on local disk; none if it is elsewhere."""
    scheme, host = _scheme_and_host(path)
    if scheme not in _LOCAL or host != "//":
        return None
    inside = key_of(path)
    # Databricks mounts its own file system there, and volumes at the root.
    mounted = scheme == "dbfs" and not inside.startswith("/Volumes/")
    return f"/dbfs{inside}" if mounted else inside


def visible(folder: str, files: Iterable[str]) -> dict[str, str]:
    """Those of the files in a folder that Spark does not ignore, by their paths below it."""
    begin = len(key_of(folder)) + 1
    below = {key_of(file)[begin:]: file for file in sorted(files)}
    return {n: file for n, file in below.items() if not any(map(is_hidden, n.split("/")))}


def _scheme_and_host(path: str) -> tuple[str, str]:
    """The scheme and the host of a path; without both it is on local disk."""
    found = _SCHEME.match(path)
    return (found["scheme"].lower(), found["host"] or "//") if found else ("file", "//")


def _problem(path: str, system: FileSystem, inside: str, error: Exception) -> BrokenFile:
    """Why a file was not opened; looked up after a failure only, as most files are there."""
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
    return BrokenFile(f"{named(path)} cannot be opened: {reason_of(error)}", path=path)


def _below(path: str, system: FileSystem, inside: str) -> list[str]:
    found = system.get_file_info(FileSelector(inside, recursive=True))
    above = inside.rstrip("/")
    return sorted(
        path.rstrip("/") + each.path.removeprefix(above)
        for each in found
        if each.type == FileType.File
    )


# --- copies ---------------------------------------------------------------------------------------

_CHUNK = 4 << 20
_LOG = "_delta_log"
# Making a folder there would only leave an empty object behind.
_WITHOUT_FOLDERS = ("s3", "gcs")
_COUNTED: dict[str, Callable[[pa.NativeFile], int]] = {
    "parquet": parquet_rows,
    "orc": lambda file: int(orc.ORCFile(file).nrows),
}


@dataclass(frozen=True)
class Copied:
    """Data that is at its target, the same as at its source.

    Attributes:
        files: the number of files.
        size_bytes: their total size.
        sha256: of the file; of several, of the list of their paths and checksums.
        fresh: whether any of it was written by this call.
    """

    files: int
    size_bytes: int
    sha256: str
    fresh: bool


@dataclass(frozen=True)
class Copier:
    """Copies files and folders; runs where the data is.

    Nothing at a target is ever replaced. A file appears there whole or not at all, so a copy that
    was killed can be repeated, and two at once do each other no harm.

    Attributes:
        open_file: opens the sources.
        files: finds the storage of the targets.
    """

    open_file: OpenFile
    files: Files

    def copy(self, path: str, format: str, target: str, num_rows: int | None = None) -> Copied:
        """Copies the data at a path into the folder `target`.

        Args:
            path: a file, or a folder whose files are copied under their paths below it, without
                those that Spark ignores.
            format: of the data; Parquet and ORC files must be whole.
            target: the folder.
            num_rows: the number of rows that was published; checked for Parquet and ORC.

        Raises:
            BrokenFile: Something cannot be read or written, is not what was published, or is at
                the target already and differs.
        """
        sources = self._sources(path)
        if format in _COUNTED:
            rows = sum(self._counted(source, format) for source in sources.values())
            if num_rows is not None and rows != num_rows:
                raise BrokenFile(
                    f"{named(path)} has {rows} rows, and {num_rows} were published; it is not what "
                    "the catalog says",
                    path=path,
                )
        copied = {
            name: self._copy_file(source, f"{target}/{name}") for name, source in sources.items()
        }
        sums = [f"{name}\0{each.sha256}\n" for name, each in sorted(copied.items())]
        only = next(iter(copied.values())).sha256
        return Copied(
            len(copied),
            sum(each.size_bytes for each in copied.values()),
            only if len(copied) == 1 else sha256("".join(sums).encode()).hexdigest(),
            any(each.fresh for each in copied.values()),
        )

    def _sources(self, path: str) -> dict[str, str]:
        """The data files at a path, by their paths below the target."""
        try:
            with self.open_file(path):
                return {key_of(path).rpartition("/")[2]: path}
        except BrokenFile as error:
            files = error.values.get("files")
            if files is None:
                raise
        if any(_LOG in key_of(file)[len(key_of(path)) :].split("/") for file in files):
            raise BrokenFile(
                f"{named(path)} is a Delta table, which is more than its files; it is not copied",
                path=path,
            )
        data = visible(path, files)
        if not data:
            raise BrokenFile(f"{named(path)} is a folder without data files", path=path)
        return data

    def _counted(self, path: str, format: str) -> int:
        with self.open_file(path) as file:
            if file.size() == 0:
                return 0  # the first task of a Spark job writes a file also when it has no rows
            try:
                return _COUNTED[format](file)
            # Damage can show as anything, and one file must not end the work on thousands.
            except Exception as error:
                raise BrokenFile(
                    f"{named(path)} cannot be read as {format}: {reason_of(error)}", path=path
                ) from error

    def _copy_file(self, source: str, target: str) -> Copied:
        system, inside = self.files.locate(target)
        with self.open_file(source) as stream:
            try:
                if system.get_file_info(inside).type == FileType.NotFound:
                    return Copied(1, *_write(system, inside, stream), fresh=True)
                read = _sum(stream)
                with system.open_input_stream(inside, compression=None) as found:
                    same = _sum(found) == read
            except _FAILURES as error:
                raise BrokenFile(
                    f"{named(source)} cannot be copied to {named(target)}: {reason_of(error)}",
                    path=source,
                    target=target,
                ) from error
        if not same:
            raise BrokenFile(
                f"{named(target)} is there already and is not what {named(source)} is now; move it "
                "away, or drop the segment yourself",
                path=source,
                target=target,
            )
        return Copied(1, *read, fresh=False)


def _write(system: FileSystem, target: str, stream: pa.NativeFile) -> tuple[int, str]:
    """Writes a file and reads it back; it gets its name only if both are the same."""
    folder = target.rpartition("/")[0]
    # A name of its own for each try, also where a file appears only when it is closed: pyarrow
    # closes one that failed half-way too, and that must not take the place of another's copy.
    written = f"{folder}/.{uuid.uuid4().hex}.part"
    if system.type_name not in _WITHOUT_FOLDERS:
        system.create_dir(folder, recursive=True)
    try:
        with system.open_output_stream(written, compression=None) as out:
            read = _sum(stream, out)
        with system.open_input_stream(written, compression=None) as again:
            found = _sum(again)
        if found != read:
            raise OSError(f"{read[0]} bytes were written and {found[0]} are there, which differ")
        system.move(written, target)
    except BaseException:
        # It may not be there or not be reachable; the error to raise is the first one.
        with suppress(OSError, pa.ArrowException):
            system.delete_file(written)
        raise
    return read


def _sum(stream: pa.NativeFile, out: pa.NativeFile | None = None) -> tuple[int, str]:
    """The size and the checksum of a stream, which is also written to `out`."""
    size, digest = 0, sha256()
    while chunk := stream.read(_CHUNK):
        size += len(chunk)
        digest.update(chunk)
        if out is not None:
            out.write(chunk)
    return size, digest.hexdigest()
