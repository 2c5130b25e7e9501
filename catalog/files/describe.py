"""Footers of many files, read on the executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa

from catalog.errors import BrokenFile
from catalog.files.deltalog import read_table
from catalog.files.footers import Footer, read_footer
from catalog.files.opening import OpenFile
from catalog.read.formats import FORMATS, Place
from catalog.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A task reads about so many, so that one slow task is not all there is at the end.
_EACH_TASK = 250
_FEWEST_TASKS = 8
# Storage that is far away answers late, and many can wait for it at once.
_THREADS = 16
# So few are read sooner than a Spark job begins.
_FEW = 64
_NEAR = ("", "file", "dbfs")
_DELTA = "delta"
_FILES = tuple(form for form in FORMATS if form != _DELTA)

_ASKED_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("number", pa.int64()),
    ("path", pa.string()),
    ("format", pa.string()),
]
_ASKED = pa.schema(_ASKED_COLUMNS)
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
    """Turns batches of (number, path, format) into what the files say; runs where the data is.

    A schema is told once by each task; what is wrong with a file is told in its row.
    """

    open_file: OpenFile

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        told: set[str] = set()
        with ThreadPoolExecutor(_THREADS) as pool:
            for batch in batches:
                rows = batch.to_pylist()
                near = all(urlsplit(row["path"]).scheme in _NEAR for row in rows)
                each = map(self._look, rows) if near else pool.map(self._look, rows)
                yield pa.RecordBatch.from_pylist([_once(row, told) for row in each], schema=_TOLD)

    def _look(self, row: dict[str, Any]) -> dict[str, Any]:
        try:
            footer = read_footer(row["path"], row["format"], self.open_file)
        except BrokenFile as error:
            return {"number": row["number"], "problem": error.message}
        return {
            "number": row["number"],
            "fingerprint": footer.schema.fingerprint,
            "num_rows": footer.num_rows,
            "size_bytes": footer.size_bytes,
            "inferred": footer.inferred,
            "schema": footer.schema.json,
        }


def _once(row: dict[str, Any], told: set[str]) -> dict[str, Any]:
    fingerprint = row.get("fingerprint")
    if fingerprint in told:
        return {**row, "schema": None}
    if fingerprint is not None:
        told.add(fingerprint)
    return row


def read_footers(
    spark: SparkSession, places: Sequence[Place], open_file: OpenFile
) -> list[Footer | str]:
    """What the data at each place says of itself, or in words why it does not.

    Files are read by a Spark job in the given session; a Delta table says it in its log.
    """
    outcomes: list[Footer | str] = list(map(_not_read, places))
    for number, place in enumerate(places):
        if place.format == _DELTA:
            outcomes[number] = _of_table(spark, place)
    readable = [n for n, place in enumerate(places) if place.format in _FILES]
    if not readable:
        return outcomes
    asked = pa.table(
        [readable, [places[n].path for n in readable], [places[n].format for n in readable]],
        schema=_ASKED,
    )
    tasks = max(len(readable) // _EACH_TASK, min(_FEWEST_TASKS, len(readable)))
    told = (
        spark.createDataFrame(asked)
        .repartition(tasks)
        .mapInArrow(ReadFooters(open_file), _TOLD_DDL)
        .toArrow()
        .to_pylist()
    )
    schemas = {
        row["fingerprint"]: Schema.of(row["schema"]) for row in told if row["schema"] is not None
    }
    for row in told:
        outcomes[row["number"]] = row["problem"] or Footer(
            schemas[row["fingerprint"]], row["num_rows"], row["size_bytes"], row["inferred"]
        )
    return outcomes


def read_few(
    spark: SparkSession, places: Sequence[Place], open_file: OpenFile
) -> list[Footer | str]:
    """The same for somebody who waits: a few files are read right here, by some threads."""
    if len(places) > _FEW or any(place.format not in _FILES for place in places):
        return read_footers(spark, places, open_file)
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(partial(_read_here, open_file), places))


def _read_here(open_file: OpenFile, place: Place) -> Footer | str:
    assert place.format is not None
    try:
        return read_footer(place.path, place.format, open_file)
    except BrokenFile as error:
        return error.message


def _of_table(spark: SparkSession, place: Place) -> Footer | str:
    """What the log of a Delta table says of the table or of one of its partitions."""
    try:
        return read_table(spark, place.path, place.version)
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
