"""Footers: what data files say of themselves, read on the executors.

`read_footer` needs no session. `read_footers` runs it in Spark jobs over many files, and takes
Delta tables from their logs.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from catalog.delta.failures import Failure, classify, first_line
from catalog.errors import BrokenFile, CatalogError, InvalidSchema, UnreadableFiles
from catalog.files.deltalog import TableLogs
from catalog.files.orc import read_orc
from catalog.files.parquet import read_parquet
from catalog.files.paths import FORMATS, Format, Place
from catalog.files.sample import read_csv, read_json_lines
from catalog.files.storage import OpenFile, named, reason_of, visible
from catalog.schema import Schema
from catalog.schema.names import shown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_STATED = {"parquet": read_parquet, "orc": read_orc}
_SAMPLED = {"json": read_json_lines, "csv": read_csv}


@dataclass(frozen=True)
class Footer:
    """What a file says of itself.

    Attributes:
        schema: its schema, as Spark reads the file.
        num_rows: the number of rows; none if only a sample was read.
        size_bytes: its size in storage.
        inferred: whether the schema was inferred from a sample.
    """

    schema: Schema
    num_rows: int | None
    size_bytes: int
    inferred: bool = False


# The footer of the data at each of some places, or the reason why there is none.
Describe = Callable[[Sequence[Place]], list[Footer | str]]


def read_footer(path: str, format: str, open_file: OpenFile) -> Footer:
    """The footer of the file at a path, or of a folder of files that have one schema.

    Raises:
        BrokenFile: It cannot be opened or read, Spark could not read it, or it is a folder whose
            files differ.
    """
    if format not in _STATED and format not in _SAMPLED:
        hint = "; the log of a Delta table says it" if format == Format.DELTA else ""
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
            f"{named(path)} cannot be read as {format}: {reason_of(error)}", path=path
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


def _read_folder(path: str, format: str, files: Iterable[str], open_file: OpenFile) -> Footer:
    """The footer of all data files below a folder, if they agree."""
    footers: dict[str, Footer] = {}
    for file in visible(path, files).values():
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
    # A header alone says nothing of types.
    bare = {file for file, each in footers.items() if each.inferred and each.num_rows == 0}
    typed = [file for file in footers if file not in bare] or [*footers]
    for one, other in pairwise(typed):
        if footers[one].schema != footers[other].schema:
            raise BrokenFile(
                f"{named(path)} is a folder whose files differ: {named(one)} has "
                f"{shown(footers[one].schema.ddl)}, and {named(other)} has "
                f"{shown(footers[other].schema.ddl)}; take its files one by one",
                path=path,
            )
    rows = [footer.num_rows for footer in footers.values()]
    return Footer(
        footers[typed[0]].schema,
        None if None in rows else sum(filter(None, rows)),
        sum(footer.size_bytes for footer in footers.values()),
        footers[typed[0]].inferred,
    )


# --- many files, on the executors -----------------------------------------------------------------

# A task takes some ten milliseconds to begin, and should read for half a second or so: thus many
# files from local disk, and fewer from remote storage.
_EACH_TASK, _FEWEST_TASKS = 5_000, 4
_EACH_TASK_REMOTE, _FEWEST_TASKS_REMOTE = 250, 16
# Files that travel to the tasks of one job with the function.
_EACH_JOB = 50_000
# Remote storage answers late, and many can wait for it at once.
_THREADS = 16
# Up to this number, files are read sooner than a Spark job starts.
_FEW = 64
# Not on a disk of this machine; some stores are mounted as if they were.
_REMOTE = re.compile(r"(?!file:)[a-z][a-z0-9+.-]*:/|/(?:Volumes|dbfs)/", re.IGNORECASE)
_FILES = tuple(form for form in FORMATS if form != Format.DELTA)

# The number of a file, its path and its format.
_Numbered = tuple[int, str, str]

_ROWS_DDL = (
    "number BIGINT, fingerprint STRING, num_rows BIGINT, size_bytes BIGINT, inferred BOOLEAN, "
    "problem STRING, schema STRING"
)
_ROWS = Schema.of(_ROWS_DDL).arrow()


@dataclass(frozen=True)
class ReadFooters:
    """Turns the number of a share into the footers of its files; runs where the data is.

    The shares travel with the function: a frame of paths would have to be shuffled first, which
    takes longer than a task takes for a thousand footers. Each task returns a schema once; what is
    wrong with a file is in its row.
    """

    open_file: OpenFile
    shares: Sequence[Sequence[_Numbered]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known: set[str] = set()
        with ThreadPoolExecutor(_THREADS) as pool:
            for batch in batches:
                mine: Any = batch.column(0).to_pylist()
                for share in mine:
                    numbers, paths, formats = zip(*self.shares[share], strict=True)
                    spread = pool.map if any(map(_REMOTE.match, paths)) else map
                    footers = spread(partial(_footer_or_reason, self.open_file), paths, formats)
                    rows = [_row(footer, known) for footer in footers]
                    # By columns: a dictionary for each row would cost a tenth of its reading.
                    columns: list[Any] = [numbers, *zip(*rows, strict=True)]
                    arrays = [pa.array(c, f.type) for c, f in zip(columns, _ROWS, strict=True)]
                    yield pa.RecordBatch.from_arrays(arrays, schema=_ROWS)


def _footer_or_reason(open_file: OpenFile, path: str, format: str) -> Footer | str:
    try:
        return read_footer(path, format, open_file)
    except BrokenFile as error:
        return error.message


def _row(footer: Footer | str, known: set[str]) -> tuple[Any, ...]:
    """The row of a file without its number, with the schema if it is the first to have it."""
    if isinstance(footer, str):
        return None, None, None, None, footer, None
    name = footer.schema.fingerprint
    definition = None if name in known else footer.schema.json
    known.add(name)
    return name, footer.num_rows, footer.size_bytes, footer.inferred, None, definition


def read_footers(
    spark: SparkSession, places: Sequence[Place], open_file: OpenFile
) -> list[Footer | str]:
    """The footer of the data at each place, or the reason why there is none.

    Files are read by Spark jobs in the given session, a Delta table's log once for all of its
    partitions. A job that fails is halved until the file that fails it is alone.
    """
    return described_apart(partial(_read_together, spark, open_file), places)


def read_few(
    spark: SparkSession, places: Sequence[Place], open_file: OpenFile
) -> list[Footer | str]:
    """The same for a caller that waits: a few files are read right here, by some threads."""
    if not places or len(places) > _FEW or any(place.format not in _FILES for place in places):
        return read_footers(spark, places, open_file)
    with ThreadPoolExecutor(_THREADS) as pool:
        paths, formats = zip(*((place.path, str(place.format)) for place in places), strict=True)
        return list(pool.map(partial(_footer_or_reason, open_file), paths, formats))


def _read_together(
    spark: SparkSession, open_file: OpenFile, places: Sequence[Place]
) -> list[Footer | str]:
    outcomes: list[Footer | str] = []
    files: list[_Numbered] = []
    logs = TableLogs(spark)
    for number, place in enumerate(places):
        if place.format in _FILES:
            files.append((number, place.path, place.format))
        outcomes.append(_of_table(logs, place) if place.format == Format.DELTA else _unknown(place))
    for begin in range(0, len(files), _EACH_JOB):
        for number, outcome in _run_job(spark, files[begin : begin + _EACH_JOB], open_file):
            outcomes[number] = outcome
    return outcomes


def _run_job(
    spark: SparkSession, files: Sequence[_Numbered], open_file: OpenFile
) -> Iterator[tuple[int, Footer | str]]:
    """The footers of files by their numbers, in one Spark job."""
    shares = _shares(files)
    found = (
        spark.range(0, len(shares), 1, len(shares))
        .mapInArrow(ReadFooters(open_file, shares), _ROWS_DDL)
        .toArrow()
        .to_pydict()
    )
    definitions = zip(found["fingerprint"], found.pop("schema"), strict=True)
    schemas = {name: Schema.of(text) for name, text in definitions if text is not None}
    for number, fingerprint, rows, size, inferred, problem in zip(*found.values(), strict=True):
        yield number, problem or Footer(schemas[fingerprint], rows, size, inferred)


def _shares(files: Sequence[_Numbered]) -> list[Sequence[_Numbered]]:
    """The files of each task: every n-th, as large ones may be neighbours."""
    remote = any(_REMOTE.match(path) for _, path, _ in files)
    each = _EACH_TASK_REMOTE if remote else _EACH_TASK
    fewest = _FEWEST_TASKS_REMOTE if remote else _FEWEST_TASKS
    tasks = max(len(files) // each, min(fewest, len(files)))
    return [files[task::tasks] for task in range(tasks)]


def _of_table(logs: TableLogs, place: Place) -> Footer | str:
    try:
        return Footer(*logs.stated(place.path, place.version))
    except BrokenFile as error:
        return error.message


def _unknown(place: Place) -> str:
    if place.format is None:
        return (
            f"the location {place.path} does not say its format; name it, as in "
            f"parquet.`{place.path}`, or say which format such locations have"
        )
    known = ", ".join(FORMATS)
    return f"{place.format} is not a format whose files can be read; there are {known}"


# Files between two reports of progress; a commit may hold more.
_SLICE = 5_000


def slices(count: int, batch: int, most: int = _SLICE) -> Iterator[tuple[int, int, bool]]:
    """Where each slice begins and ends, and whether it is the last one of a batch."""
    for first in range(0, count, batch):
        after = min(first + batch, count)
        for begin in range(first, after, most):
            end = min(begin + most, after)
            yield begin, end, end == after


# --- files that end the job which reads them ------------------------------------------------------

_NOWHERE = Place("/strata/no such file", "parquet")
# Neither is about the files: the connection broke, or the job was cancelled.
_NOT_THE_FILES = (Failure.LOST, Failure.CANCELLED)


def described_apart(describe: Describe, places: Sequence[Place]) -> list[Footer | str]:
    """The outcomes of `describe`; a job that fails is halved until the file that fails is alone.

    Raises:
        UnreadableFiles: Spark runs no such job at all.
    """
    if not places:
        return []
    try:
        return describe(places)
    except Exception as error:
        if isinstance(error, CatalogError) or classify(error) in _NOT_THE_FILES:
            raise
        log.warning("Reading %d files failed as a whole: %s", len(places), first_line(error))
        if len(places) == 1:
            _check_that_jobs_run(describe, places[0], error)
            return [f"reading it failed: {first_line(error)}"]
    middle = len(places) // 2
    return [
        *described_apart(describe, places[:middle]),
        *described_apart(describe, places[middle:]),
    ]


def _check_that_jobs_run(describe: Describe, place: Place, cause: Exception) -> None:
    """Describes a file that cannot exist: if that works, the other file is to blame."""
    try:
        describe([_NOWHERE])
    except Exception as error:
        if classify(error) in _NOT_THE_FILES:
            raise
        raise UnreadableFiles(
            f"Spark cannot run the job that reads files, so it is not the files: "
            f"{first_line(error)}",
            location=place.path,
        ) from cause
