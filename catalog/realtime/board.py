"""The folder through which announcements travel: one small file for each writer, replaced whole."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyarrow import fs

from catalog.delta.location import local_path
from catalog.errors import InvalidInput, InvalidLocation
from catalog.files.paths import same_storage
from catalog.schema.names import shown

SUFFIX = ".json"
# The coarsest clock that storage stamps files with: two seconds on FAT, one on S3.
SETTLED = 2.0
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a listing says of a file; not every storage says when it was written."""

    size: int
    mtime_ns: int | None


class _Store(Protocol):
    def write(self, file: str, content: bytes) -> None: ...

    def read(self, file: str) -> bytes | None: ...

    def stamps(self) -> Iterator[tuple[str, Stamp]]: ...

    def remove(self, file: str) -> None: ...


class Board:
    """A folder of files, each replaced by its writer and read by everybody.

    A folder that is not there is empty, and made by the first write.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Args:
        path: a local path, plain or as `file:`, or a URI of a file system that Arrow knows.
        """
        self._path = os.fspath(path)
        self._store = _store(self._path)

    def __str__(self) -> str:
        return self._path

    def write(self, name: str, content: bytes) -> None:
        """Puts a writer's file in the place of the one before."""
        self._store.write(check_name(name) + SUFFIX, content)

    def read(self, name: str) -> bytes | None:
        """A writer's file; none if there is none."""
        return self._store.read(check_name(name) + SUFFIX)

    def remove(self, name: str) -> None:
        """Takes a writer's file away, if there is one."""
        self._store.remove(check_name(name) + SUFFIX)

    def listing(self) -> dict[str, Stamp]:
        """The writers that have a file, sorted, with what tells whether it changed."""
        return {
            file.removesuffix(SUFFIX): stamp
            for file, stamp in sorted(self._store.stamps(), key=lambda each: each[0])
            if file.endswith(SUFFIX) and _NAME.fullmatch(file.removesuffix(SUFFIX))
        }

    def read_all(self) -> dict[str, bytes]:
        """The files of all writers; one that goes while they are read is left out."""
        contents = {name: self.read(name) for name in self.listing()}
        return {name: content for name, content in contents.items() if content is not None}


def check_name(name: Any) -> str:
    """The name of a writer, which is safe as the name of a file."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidInput(
            "A writer's name must be 1 to 100 letters, digits, dots, dashes and underscores, not "
            f"beginning with a dot, such as orders-stream; {shown(repr(name))} is not.",
            writer=name,
        )
    return name


@dataclass(frozen=True)
class Look:
    """What is on a board: who has a file, those that may have changed, and those not readable."""

    names: frozenset[str]
    changed: dict[str, bytes]
    failed: dict[str, OSError | pa.ArrowException]


@dataclass(frozen=True, slots=True)
class _Seen:
    stamp: Stamp
    since: float
    settled: bool
    digest: bytes


class Watch:
    """Looks at a board again and again, and reads only files that changed."""

    def __init__(self, board: Board, clock: Callable[[], float]) -> None:
        self._board = board
        self._clock = clock
        self._seen: dict[str, _Seen] = {}

    def look(self) -> Look:
        """What changed since the last look; a file that cannot be read is tried again next time."""
        moment = self._clock()
        listing = self._board.listing()
        known = {name: seen for name, seen in self._seen.items() if name in listing}
        names, changed, failed = set(listing), {}, {}
        for name, stamp in listing.items():
            seen = known.get(name)
            same = seen if seen is not None and seen.stamp == stamp else None
            if same is not None and same.settled:
                continue
            try:
                content = self._board.read(name)
            except (OSError, pa.ArrowException) as error:
                failed[name] = error
                continue
            if content is None:
                names.discard(name)
                known.pop(name, None)
                continue
            digest = hashlib.sha256(content).digest()
            if seen is None or seen.digest != digest:
                changed[name] = content
            # Two writes in one tick of the storage's clock can leave the same stamp. Once it has
            # been the same for longer than a tick, no later write can have it.
            since = moment if same is None else same.since
            settled = stamp.mtime_ns is not None and moment - since > SETTLED
            known[name] = _Seen(stamp, since, settled, digest)
        # Only now: what a look that failed has read is news to the next one.
        self._seen = known
        return Look(frozenset(names), changed, failed)


def _store(path: str) -> _Store:
    if not path.strip():
        raise InvalidLocation("The path of a board must not be empty; name a folder.", path=path)
    local = local_path(path)
    if local is not None:
        return _Disk(local)
    scheme, colon, rest = path.partition(":")
    try:
        return _Remote(*fs.FileSystem.from_uri(same_storage(scheme) + colon + rest))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidLocation(
            f"Announcements cannot be kept at {shown(path)} ({error}). Give a local path, such as "
            "that of a mounted volume, or a URI of a file system that Arrow knows, such as s3://.",
            path=path,
        ) from error


class _Disk:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, file: str, content: bytes) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        # Not through tempfile: its files are for their owner's eyes only.
        temporary = self._folder / f".{file}.{uuid.uuid4().hex}.tmp"
        try:
            with temporary.open("xb") as out:
                out.write(content)
                out.flush()
                # Without it a crash can leave the new name with nothing behind it.
                os.fsync(out.fileno())
            os.replace(temporary, self._folder / file)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def read(self, file: str) -> bytes | None:
        try:
            return (self._folder / file).read_bytes()
        except FileNotFoundError:
            return None

    def stamps(self) -> Iterator[tuple[str, Stamp]]:
        try:
            entries = list(os.scandir(self._folder))
        except FileNotFoundError:
            return
        for entry in entries:
            try:
                status = entry.stat()
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode):
                yield entry.name, Stamp(status.st_size, status.st_mtime_ns)

    def remove(self, file: str) -> None:
        (self._folder / file).unlink(missing_ok=True)


class _Remote:
    """A folder of an object store, where a file appears whole when its upload is complete.

    Where it does not, as on HDFS, half a file is no JSON: readers say so and look again.
    """

    def __init__(self, system: fs.FileSystem, folder: str) -> None:
        self._system = system
        self._folder = folder.rstrip("/")

    def write(self, file: str, content: bytes) -> None:
        try:
            self._put(file, content)
        except FileNotFoundError:
            # Object stores need no folder, and may not let us make one; the others say so.
            self._system.create_dir(self._folder, recursive=True)
            self._put(file, content)

    def _put(self, file: str, content: bytes) -> None:
        with self._system.open_output_stream(self._at(file), compression=None) as out:
            out.write(content)

    def read(self, file: str) -> bytes | None:
        try:
            with self._system.open_input_stream(self._at(file), compression=None) as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None

    def stamps(self) -> Iterator[tuple[str, Stamp]]:
        for info in self._system.get_file_info(fs.FileSelector(self._folder, allow_not_found=True)):
            if info.is_file:
                yield info.base_name, Stamp(info.size, info.mtime_ns)

    def remove(self, file: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._system.delete_file(self._at(file))

    def _at(self, file: str) -> str:
        return f"{self._folder}/{file}"
