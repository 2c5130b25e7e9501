"""The board: a folder with one small JSON file for each writer, which replaces it whole.

    {"format": 2, "writer": "w", "session": "5e…", "beat": 7,
     "renewed_at": "2024-05-01T10:00:00+00:00", "ttl": 120.0,
     "segments": {"<id>": {"schema": "<fingerprint>", "num_rows": 5}},
     "schemas": {"<fingerprint>": {"type": "struct", "fields": […]}}}

A file is absolute: it has all open segments of its writer.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import NoneType
from typing import Any

import pyarrow as pa
from pyarrow import fs

from catalog.delta.location import local_path
from catalog.errors import InvalidInput, InvalidLocation
from catalog.files.paths import same_storage
from catalog.model import LARGEST_COUNT, check_segment_id
from catalog.schema import Schema
from catalog.schema.names import shown
from catalog.schema.spark_json import compact

FORMAT = 2
LONGEST_TTL = 7 * 86_400.0
SUFFIX = ".json"
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")


# --- files ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stamp:
    """Size and modification time of a file, as listed; not every storage has the time."""

    size: int
    mtime_ns: int | None


class Board:
    """A folder of files, each replaced by its writer and read by everybody.

    A folder that does not exist is empty; the first write creates it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Args:
        path: a local path, plain or as `file:`, or a URI of a file system that Arrow knows.
        """
        self._path = os.fspath(path)
        self._system, self._folder = _file_system(self._path)

    def __str__(self) -> str:
        return self._path

    def write(self, name: str, content: bytes) -> None:
        """Replaces a writer's file."""
        file = self._file(name)
        if isinstance(self._system, fs.LocalFileSystem):
            _replace(Path(file), content)
            return
        # An object store shows a file when its upload is complete. Where it does not, as on HDFS,
        # half a file is no JSON: readers report it and read it again.
        try:
            self._upload(file, content)
        except FileNotFoundError:
            # Object stores need no folder, and may not allow creating one; others raise this.
            self._system.create_dir(self._folder, recursive=True)
            self._upload(file, content)

    def read(self, name: str) -> bytes | None:
        """A writer's file; none if there is none."""
        try:
            with self._system.open_input_stream(self._file(name), compression=None) as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None

    def remove(self, name: str) -> None:
        """Deletes a writer's file, if there is one."""
        with contextlib.suppress(FileNotFoundError):
            self._system.delete_file(self._file(name))

    def listing(self) -> dict[str, Stamp]:
        """The writers that have a file, sorted, with the stamp of each file."""
        selector = fs.FileSelector(self._folder, allow_not_found=True)
        stamps = {
            info.base_name.removesuffix(SUFFIX): Stamp(info.size, info.mtime_ns)
            for info in self._system.get_file_info(selector)
            if info.is_file and info.base_name.endswith(SUFFIX)
        }
        return {name: stamps[name] for name in sorted(stamps) if _NAME.fullmatch(name)}

    def _upload(self, file: str, content: bytes) -> None:
        with self._system.open_output_stream(file, compression=None) as out:
            out.write(content)

    def _file(self, name: str) -> str:
        return f"{self._folder}/{check_name(name)}{SUFFIX}"


def check_name(name: Any) -> str:
    """The name of a writer, if it is safe as the name of a file."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidInput(
            "A writer's name must be 1 to 100 letters, digits, dots, dashes and underscores, not "
            f"beginning with a dot, such as orders-stream; {shown(repr(name))} is not.",
            writer=name,
        )
    return name


def _file_system(path: str) -> tuple[fs.FileSystem, str]:
    if not path.strip():
        raise InvalidLocation("The path of a board must not be empty; name a folder.", path=path)
    local = local_path(path)
    if local is not None:
        return fs.LocalFileSystem(), str(local)
    scheme, colon, rest = path.partition(":")
    try:
        system, folder = fs.FileSystem.from_uri(same_storage(scheme) + colon + rest)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidLocation(
            f"Announcements cannot be kept at {shown(path)} ({error}). Give a local path, such as "
            "that of a mounted volume, or a URI of a file system that Arrow knows, such as s3://.",
            path=path,
        ) from error
    return system, folder.rstrip("/")


def _replace(file: Path, content: bytes) -> None:
    """Replaces a local file atomically."""
    file.parent.mkdir(parents=True, exist_ok=True)
    # Not with tempfile: only the owner may read its files.
    temporary = file.with_name(f".{file.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as out:
            out.write(content)
            out.flush()
            # Without it a crash can leave the new name with an empty file.
            os.fsync(out.fileno())
        os.replace(temporary, file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


# --- their content --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Announced:
    """An open segment: its schema so far, and its row count if known."""

    schema: Schema
    num_rows: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", Schema.of(self.schema))
        if self.num_rows is not None:
            _check_number("num_rows", self.num_rows, least=0)


@dataclass(frozen=True, slots=True)
class Announcement:
    """All open segments of a writer, at one write of its file.

    Attributes:
        session: random id of one announcer's life.
        beat: counts the writes of a session, also those that change nothing.
        renewed_at: when it was written, by the writer's clock.
        ttl: for how many seconds it is valid.
    """

    writer: str
    session: str
    beat: int
    renewed_at: datetime
    ttl: float
    segments: Mapping[str, Announced] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_number("beat", self.beat, least=1)
        if self.renewed_at.utcoffset() is None:
            raise _malformed("renewed_at must have a time zone", self.renewed_at)
        if not 0 < self.ttl <= LONGEST_TTL:
            raise _malformed(f"ttl must be above 0 and at most {LONGEST_TTL:.0f} s", self.ttl)

    def expired(self, now: datetime) -> bool:
        """Whether it is no longer valid, by the writer's clock."""
        return now - self.renewed_at >= timedelta(seconds=self.ttl)

    def to_json(self) -> str:
        """The announcement as a JSON document that has each schema once."""
        schemas: dict[str, str] = {}
        segments = {
            name: {"schema": _key(each.schema, schemas), "num_rows": each.num_rows}
            for name, each in self.segments.items()
        }
        document = {
            "format": FORMAT,
            "writer": self.writer,
            "session": self.session,
            "beat": self.beat,
            "renewed_at": self.renewed_at.astimezone(UTC).isoformat(),
            "ttl": float(self.ttl),
            "segments": segments,
            "schemas": {key: json.loads(text) for key, text in schemas.items()},
        }
        return compact(document)

    @classmethod
    def from_json(cls, text: str | bytes) -> Announcement:
        """The announcement of a JSON document; anything else raises `InvalidInput`."""
        try:
            return _parsed(json.loads(text))
        except InvalidInput:
            raise
        except (ValueError, OverflowError, RecursionError) as error:
            raise _malformed(f"it cannot be read ({error})") from None


def _key(schema: Schema, schemas: dict[str, str]) -> str:
    """The key of a schema in the document: its fingerprint, with a number added if the document
    has the fingerprint already with other comments or another order of columns.
    """
    key, number = schema.fingerprint, 1
    while schemas.setdefault(key, schema.json) != schema.json:
        number += 1
        key = f"{schema.fingerprint}#{number}"
    return key


def _parsed(document: Any) -> Announcement:
    found = document.get("format") if isinstance(document, dict) else None
    if type(found) is not int or found != FORMAT:
        raise _malformed(f"it must be a JSON object of format {FORMAT}", found)
    schemas = {key: _schema(key, each) for key, each in _get(document, "schemas", dict).items()}
    segments = _get(document, "segments", dict)
    for segment_id in segments:
        check_segment_id(segment_id)
    return Announcement(
        _get(document, "writer", str),
        _get(document, "session", str),
        _get(document, "beat", int),
        datetime.fromisoformat(_get(document, "renewed_at", str)),
        _get(document, "ttl", float),
        {name: _segment(each, schemas) for name, each in segments.items()},
    )


def _schema(key: str, document: Any) -> Schema:
    # As text, because `Schema.of` keeps parsed texts in memory.
    schema = Schema.of(compact(document, sort_keys=True))
    if schema.fingerprint != key.partition("#")[0]:
        raise _malformed(f"the schema under {shown(key)} has fingerprint {schema.fingerprint}")
    return schema


def _segment(document: Any, schemas: dict[str, Schema]) -> Announced:
    num_rows = _get(document, "num_rows", int, NoneType)
    key = _get(document, "schema", str)
    if key not in schemas:
        raise _malformed("a segment refers to a schema that is missing", key)
    return Announced(schemas[key], num_rows)


def _get(document: Any, key: str, *kinds: type) -> Any:
    if not isinstance(document, dict) or key not in document:
        raise _malformed(f"an object with {key} is expected", document)
    if type(document[key]) not in kinds:
        raise _malformed(f"{key} must be of type {kinds[0].__name__}", document[key])
    return document[key]


def _check_number(name: str, number: Any, least: int) -> None:
    if type(number) is not int or not least <= number <= LARGEST_COUNT:
        raise _malformed(f"{name} must be a whole number from {least} to 2^63-1", number)


def _malformed(problem: str, *value: Any) -> InvalidInput:
    found = "".join(f", not {shown(repr(each))}" for each in value)
    return InvalidInput(f"The announcement is malformed: {problem}{found}.", problem=problem)
