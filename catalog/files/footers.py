"""What a data file says of itself, read without Spark, so that executors can do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from catalog.errors import BrokenFile, InvalidSchema
from catalog.files.formats import key_of
from catalog.files.opening import OpenFile, named
from catalog.files.orc import read_orc
from catalog.files.parquet import read_parquet
from catalog.files.patterns import is_hidden
from catalog.files.sampled import read_csv, read_json_lines
from catalog.schema import Schema
from catalog.schema.names import shown

_STATED = {"parquet": read_parquet, "orc": read_orc}
_SAMPLED = {"json": read_json_lines, "csv": read_csv}
_SHOWN = 400


@dataclass(frozen=True)
class Footer:
    """What a file says of itself.

    Attributes:
        schema: its schema, as Spark reads the file.
        num_rows: how many rows it has; none if only a sample was read.
        size_bytes: its size as it is stored.
        inferred: whether the schema was guessed from a sample.
    """

    schema: Schema
    num_rows: int | None
    size_bytes: int
    inferred: bool = False


def read_footer(path: str, format: str, open_file: OpenFile) -> Footer:
    """What the file at a path says of itself, or a folder of files that have one schema.

    Raises:
        BrokenFile: It cannot be opened or read, Spark could not read it, or it is a folder whose
            files differ.
    """
    if format not in _STATED and format not in _SAMPLED:
        hint = "; the log of a Delta table says it" if format == "delta" else ""
        raise BrokenFile(
            f"{named(path)} is of format {format}, and only files of "
            f"{', '.join([*_STATED, *_SAMPLED])} say what they are{hint}",
            path=path,
        )
    try:
        return _read_file(path, format, open_file)
    except BrokenFile as error:
        files = error.values.get("files")
        if files is None:
            raise
    return _read_folder(path, format, files, open_file)


def _read_file(path: str, format: str, open_file: OpenFile) -> Footer:
    try:
        with open_file(path) as file:
            return _read(file, path, format)
    except BrokenFile:
        raise
    except InvalidSchema as error:
        raise BrokenFile(
            f"{named(path)}: {error.message}", path=path, column=error.values.get("column")
        ) from error
    # Damage can show as anything, and one file must not end the work on thousands.
    except Exception as error:
        raise BrokenFile(
            f"{named(path)} cannot be read as {format}: "
            f"{shown(str(error) or type(error).__name__, _SHOWN)}",
            path=path,
        ) from error


def _read(file: pa.NativeFile, path: str, format: str) -> Footer:
    size = file.size()
    if size == 0:
        raise BrokenFile(
            f"{named(path)} is empty, so its schema is not known", path=path, empty=True
        )
    if format in _SAMPLED:
        schema, rows = _SAMPLED[format](file, path)
        return Footer(schema, rows, size, inferred=True)
    schema, stated = _STATED[format](file)
    if not 0 <= stated < 2**63:
        raise BrokenFile(f"{named(path)} says that it has {stated} rows", path=path)
    return Footer(schema, stated, size)


def _read_folder(path: str, format: str, files: Sequence[str], open_file: OpenFile) -> Footer:
    """What the data files below a folder say together; Spark reads all that are not hidden."""
    root = key_of(path)
    footers: dict[str, Footer] = {}
    for file in files:
        if any(map(is_hidden, key_of(file)[len(root) + 1 :].split("/"))):
            continue
        try:
            footers[file] = _read_file(file, format, open_file)
        except BrokenFile as error:
            # The first task of a Spark job writes a file also when it has no rows.
            if not error.values.get("empty"):
                raise
    if not footers:
        raise BrokenFile(
            f"{named(path)} is a folder without data files of format {format}", path=path
        )
    return _together(path, footers)


def _together(path: str, footers: Mapping[str, Footer]) -> Footer:
    """What the files of a folder say, if they agree."""
    # A header alone says nothing of types.
    bare = {file for file, each in footers.items() if each.inferred and each.num_rows == 0}
    telling = [file for file in footers if file not in bare] or [*footers]
    for one, other in pairwise(telling):
        if footers[one].schema != footers[other].schema:
            raise BrokenFile(
                f"{named(path)} is a folder whose files differ: {named(one)} has "
                f"{shown(footers[one].schema.ddl)}, and {named(other)} has "
                f"{shown(footers[other].schema.ddl)}; take its files one by one",
                path=path,
            )
    rows = [footer.num_rows for footer in footers.values()]
    return Footer(
        footers[telling[0]].schema,
        None if None in rows else sum(filter(None, rows)),
        sum(footer.size_bytes for footer in footers.values()),
        footers[telling[0]].inferred,
    )
