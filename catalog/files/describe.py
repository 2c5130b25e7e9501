"""Footers of many files, read on the executors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from catalog.errors import BrokenFile, InvalidSegment
from catalog.files.deltalog import TableLog, is_table, read_log
from catalog.files.footers import Footer, read_footer
from catalog.files.formats import FORMATS, Place, place_of
from catalog.files.opening import OpenFile
from catalog.files.splitting import Describe, described_apart
from catalog.model import Segment
from catalog.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A task takes some ten milliseconds to begin, and should read for half a second or so: thus many
# from local disk, and fewer of what comes from afar.
_EACH_TASK, _FEWEST_TASKS = 5_000, 4
_EACH_TASK_AFAR, _FEWEST_TASKS_AFAR = 250, 16
# Storage that is far away answers late, and many can wait for it at once.
_THREADS = 16
# So few are read sooner than a Spark job begins.
_FEW = 64
# So many are asked at once where progress is told: a commit may hold more.
_SLICE = 5_000
# Not on a disk of this machine; some stores are mounted as if they were.
_FAR = re.compile(r"(?!file:)[a-z][a-z0-9+.-]*:/|/(?:Volumes|dbfs)/", re.IGNORECASE)
_DELTA = "delta"
_FILES = tuple(form for form in FORMATS if form != _DELTA)

# So many travel to the tasks with the function at the most.
_EACH_JOB = 50_000
# The number of a file, its path and its format.
_Asked = tuple[int, str, str]

_TOLD_DDL = (
    "number BIGINT, fingerprint STRING, num_rows BIGINT, size_bytes BIGINT, inferred BOOLEAN, "
    "problem STRING, schema STRING"
)
_TOLD_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("number", pa.int64()),
    ("fingerprint", pa.string()),
    ("num_rows", pa.int64()),
    ("size_bytes", pa.int64()),
    ("inferred", pa.bool_()),
    ("problem", pa.string()),
    ("schema", pa.string()),
]
_TOLD = pa.schema(_TOLD_COLUMNS)


@dataclass(frozen=True)
class ReadFooters:
    """Turns the number of a share into what the files of that share say; runs where the data is.

    The shares travel with the function: a frame of paths would have to be shuffled first, which
    takes longer than a task takes for a thousand footers. A schema is told once by each task; what
    is wrong with a file is told in its row.
    """

    open_file: OpenFile
    shares: Sequence[Sequence[_Asked]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        told: set[str] = set()
        with ThreadPoolExecutor(_THREADS) as pool:
            for batch in batches:
                mine: Any = batch.column(0).to_pylist()
                for share in mine:
                    numbers, paths, formats = zip(*self.shares[share], strict=True)
                    far = any(map(_FAR.match, paths))
                    footers = list((pool.map if far else map)(self._look, paths, formats))
                    rows = [_told(footer, told) for footer in footers]
                    # By columns: a dictionary for each row would cost a tenth of its reading.
                    columns: list[Any] = [numbers, *zip(*rows, strict=True)]
                    arrays = [pa.array(c, f.type) for c, f in zip(columns, _TOLD, strict=True)]
                    yield pa.RecordBatch.from_arrays(arrays, schema=_TOLD)

    def _look(self, path: str, format: str) -> Footer | str:
        return _read_here(self.open_file, path, format)


def _told(footer: Footer | str, told: set[str]) -> tuple[Any, ...]:
    """The row of a file: fingerprint, rows, bytes, inferred, problem, and the schema if it is the
    first to have it."""
    if isinstance(footer, str):
        return None, None, None, None, footer, None
    schema = footer.schema
    known = schema.fingerprint in told
    told.add(schema.fingerprint)
    return (
        schema.fingerprint,
        footer.num_rows,
        footer.size_bytes,
        footer.inferred,
        None,
        None if known else schema.json,
    )


class TableLogs:
    """The logs of Delta tables, each read once; for one piece of work, as tables move on."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._tables: dict[str, bool] = {}
        self._read: dict[tuple[str, int | None], TableLog | BrokenFile] = {}

    def footer(self, path: str, version: int | None) -> Footer:
        """What the Delta table or the partition at a path is, at a version or the newest."""
        root = self.table_of(path)
        if root is None:
            raise BrokenFile(f"there is no Delta table at {path}", path=path)
        if (root, version) not in self._read:
            self._read[root, version] = self._log(root, version)
        log = self._read[root, version]
        if isinstance(log, BrokenFile):
            raise log
        return log.footer(path.rstrip("/")[len(root) + 1 :])

    def table_of(self, path: str) -> str | None:
        """The root of the Delta table that is at a path, or that has a partition there."""
        roots = list(_roots(path))
        for root in roots:
            if self._tables.get(root):
                return root
        for root in roots:
            if root not in self._tables:
                self._tables[root] = is_table(self._spark, root)
            if self._tables[root]:
                return root
        return None

    def _log(self, root: str, version: int | None) -> TableLog | BrokenFile:
        try:
            return read_log(self._spark, root, version)
        except BrokenFile as error:
            return error


def _roots(path: str) -> Iterator[str]:
    """A path, and what is above it as far as it may be a partition."""
    root = path.rstrip("/")
    while root:
        yield root
        root, _, last = root.rpartition("/")
        if "=" not in last:
            return


def read_footers(
    spark: SparkSession, places: Sequence[Place], open_file: OpenFile
) -> list[Footer | str]:
    """What the data at each place says of itself, or in words why it does not.

    Files are read by a Spark job in the given session; a Delta table says it in its log, which is
    read once for all of its partitions. A job that fails is split until what fails is alone.
    """
    return described_apart(partial(_read_together, spark, open_file), places)


def _read_together(
    spark: SparkSession, open_file: OpenFile, places: Sequence[Place]
) -> list[Footer | str]:
    outcomes: list[Footer | str] = list(map(_not_read, places))
    logs = TableLogs(spark)
    for number, place in enumerate(places):
        if place.format == _DELTA:
            outcomes[number] = _of_table(logs, place)
    asked = [
        (number, place.path, place.format)
        for number, place in enumerate(places)
        if place.format in _FILES
    ]
    for begin in range(0, len(asked), _EACH_JOB):
        for number, outcome in _ask(spark, asked[begin : begin + _EACH_JOB], open_file):
            outcomes[number] = outcome
    return outcomes


def _ask(
    spark: SparkSession, asked: Sequence[_Asked], open_file: OpenFile
) -> Iterator[tuple[int, Footer | str]]:
    """What files say, by their numbers: one Spark job."""
    shares = _shares(asked)
    told = (
        spark.range(0, len(shares), 1, len(shares))
        .mapInArrow(ReadFooters(open_file, shares), _TOLD_DDL)
        .toArrow()
        .to_pydict()
    )
    definitions = zip(told["fingerprint"], told.pop("schema"), strict=True)
    schemas = {name: Schema.of(text) for name, text in definitions if text is not None}
    for number, fingerprint, rows, size, inferred, problem in zip(*told.values(), strict=True):
        yield number, problem or Footer(schemas[fingerprint], rows, size, inferred)


def _shares(asked: Sequence[_Asked]) -> list[Sequence[_Asked]]:
    """The files of each task: every n-th, as large ones may stand together."""
    far = any(_FAR.match(path) for _, path, _ in asked)
    each, fewest = (_EACH_TASK_AFAR, _FEWEST_TASKS_AFAR) if far else (_EACH_TASK, _FEWEST_TASKS)
    tasks = max(len(asked) // each, min(fewest, len(asked)))
    return [asked[task::tasks] for task in range(tasks)]


def read_few(
    spark: SparkSession, places: Sequence[Place], open_file: OpenFile
) -> list[Footer | str]:
    """The same for somebody who waits: a few files are read right here, by some threads."""
    if not places or len(places) > _FEW or any(place.format not in _FILES for place in places):
        return read_footers(spark, places, open_file)
    with ThreadPoolExecutor(_THREADS) as pool:
        paths, formats = zip(*((place.path, str(place.format)) for place in places), strict=True)
        return list(pool.map(partial(_read_here, open_file), paths, formats))


def _read_here(open_file: OpenFile, path: str, format: str) -> Footer | str:
    try:
        return read_footer(path, format, open_file)
    except BrokenFile as error:
        return error.message


def _of_table(logs: TableLogs, place: Place) -> Footer | str:
    """What the log of a Delta table says of the table or of one of its partitions."""
    try:
        return logs.footer(place.path, place.version)
    except BrokenFile as error:
        return error.message


def _not_read(place: Place) -> str:
    if place.format is None:
        return (
            f"the location {place.path} does not say its format; name it, as in "
            f"parquet.`{place.path}`, or say which format such locations have"
        )
    known = ", ".join(FORMATS)
    return f"{place.format} is not a format whose files can be asked; there are {known}"


# --- from footers to segments ---------------------------------------------------------------------


def slices(count: int, batch: int, most: int = _SLICE) -> Iterator[tuple[int, int, bool]]:
    """Where each slice begins and ends, and whether it is the last one of a batch."""
    for first in range(0, count, batch):
        after = min(first + batch, count)
        for begin in range(first, after, most):
            end = min(begin + most, after)
            yield begin, end, end == after


def segments_of(
    describe: Describe, places: Mapping[str, Place]
) -> tuple[dict[str, Segment], dict[str, str]]:
    """The segments at places, which are given by their ids; and in words why others are none."""
    segments: dict[str, Segment] = {}
    problems: dict[str, str] = {}
    outcomes = describe(list(places.values()))
    for (name, place), outcome in zip(places.items(), outcomes, strict=True):
        if isinstance(outcome, str):
            problems[name] = outcome
            continue
        try:
            segments[name] = segment_of(name, _location(place), outcome)
        except InvalidSegment as error:  # a path that makes no id
            problems[name] = error.message
    return segments, problems


def segment_of(segment_id: str, location: str, footer: Footer) -> Segment:
    """The segment at a location, with what its data says."""
    return Segment(
        segment_id,
        footer.schema,
        footer.num_rows,
        footer.size_bytes,
        location,
        inferred=footer.inferred,
    )


def _location(place: Place) -> str:
    """A location that says its format, also where the path does not."""
    if place_of(place.path).format == place.format:
        return place.path
    return f"{place.format}.`{place.path}`"
