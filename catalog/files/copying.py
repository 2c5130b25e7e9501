"""Data copied from one storage to another, file by file, and compared; works on executors."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256

import pyarrow as pa
from pyarrow import orc
from pyarrow import parquet as pq
from pyarrow.fs import FileSystem, FileType

from catalog.errors import BrokenFile
from catalog.files.formats import key_of
from catalog.files.opening import Files, OpenFile, named
from catalog.files.patterns import is_hidden
from catalog.schema.names import shown

_CHUNK = 4 << 20
_LOG = "_delta_log"
# Making a folder there would only leave an empty object behind.
_WITHOUT_FOLDERS = ("s3", "gcs")
_COUNTED: dict[str, Callable[[pa.NativeFile], int]] = {
    "parquet": lambda file: int(pq.ParquetFile(file).metadata.num_rows),
    "orc": lambda file: int(orc.ORCFile(file).nrows),
}
_SHOWN = 400


@dataclass(frozen=True)
class Copied:
    """Data that is at its target, the same as at its source.

    Attributes:
        files: how many there are.
        size_bytes: their size together.
        sha256: of the file; of several, of a list of their paths and checksums.
        fresh: whether any of it had to be written; all was there already otherwise.
    """

    files: int
    size_bytes: int
    sha256: str
    fresh: bool


@dataclass(frozen=True)
class Copier:
    """Copies files and folders; runs where the data is.

    Nothing at a target is ever replaced. A file appears there whole or not at all, so whoever was
    killed is simply followed by another, and two at once do each other no harm.

    Attributes:
        open_file: opens what is read.
        files: finds the storage that is written.
    """

    open_file: OpenFile
    files: Files

    def copy(self, path: str, format: str, target: str, num_rows: int | None = None) -> Copied:
        """Copies the data at a path into the folder `target`.

        Args:
            path: a file, or a folder whose files are copied under their paths below it, but for
                those that Spark passes by.
            format: of the data; Parquet and ORC files must be whole.
            target: the folder.
            num_rows: how many rows the data is known to have; not asked of other formats.

        Raises:
            BrokenFile: Something cannot be read or written, is not what it should be, or is at the
                target already and differs.
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
        root = len(key_of(path)) + 1
        below = {key_of(file)[root:]: file for file in files}
        if any(_LOG in name.split("/") for name in below):
            raise BrokenFile(
                f"{named(path)} is a Delta table, which is more than its files; it is not copied",
                path=path,
            )
        data = {
            name: file
            for name, file in sorted(below.items())
            if not any(map(is_hidden, name.split("/")))
        }
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
                    f"{named(path)} cannot be read as {format}: {_told(error)}", path=path
                ) from error

    def _copy_file(self, source: str, target: str) -> Copied:
        system, inside = self.files.locate(target)
        with self.open_file(source) as stream:
            try:
                there = system.get_file_info(inside).type != FileType.NotFound
                if not there:
                    size, digest = _write(system, inside, stream)
                    return Copied(1, size, digest, fresh=True)
                read = _sum(_chunks(stream))
                with system.open_input_stream(inside, compression=None) as found:
                    same = _sum(_chunks(found)) == read
            except (OSError, ValueError, pa.ArrowException) as error:
                raise BrokenFile(
                    f"{named(source)} cannot be copied to {named(target)}: {_told(error)}",
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
    """Writes a file and reads it again; it has its name only if it is what was read."""
    folder = target.rpartition("/")[0]
    # A name of its own for each try, also where a file appears only when it is closed: pyarrow
    # closes one that failed half-way too, and that must not take the place of another's copy.
    written = f"{folder}/.{uuid.uuid4().hex}.part"
    if system.type_name not in _WITHOUT_FOLDERS:
        system.create_dir(folder, recursive=True)
    try:
        with system.open_output_stream(written, compression=None) as out:
            read = _sum(_chunks(stream), out)
        with system.open_input_stream(written, compression=None) as again:
            found = _sum(_chunks(again))
        if found != read:
            raise OSError(f"{read[0]} bytes were written and {found[0]} are there, which differ")
        system.move(written, target)
    except BaseException:
        _remove(system, written)
        raise
    return read


def _remove(system: FileSystem, path: str) -> None:
    try:
        system.delete_file(path)
    except (OSError, pa.ArrowException):
        return  # it was not there, or cannot be reached; what is told is why it was not written


def _chunks(stream: pa.NativeFile) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK):
        yield chunk


def _sum(chunks: Iterator[bytes], out: pa.NativeFile | None = None) -> tuple[int, str]:
    """How many bytes there are, and their checksum; they are written too, if there is where to."""
    size, digest = 0, sha256()
    for chunk in chunks:
        size += len(chunk)
        digest.update(chunk)
        if out is not None:
            out.write(chunk)
    return size, digest.hexdigest()


def _told(error: Exception) -> str:
    return shown(str(error) or type(error).__name__, _SHOWN)
