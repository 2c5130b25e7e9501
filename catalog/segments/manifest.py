"""Manifests: lists of segments in Parquet, CSV or JSON lines, read as a frame to be published."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from catalog.delta.failures import first_line
from catalog.errors import InvalidInput, InvalidSegment
from catalog.model import Segment
from catalog.schema.names import identifier
from catalog.segments.columns import normalised
from catalog.segments.group import BULK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = ("parquet", "csv", "json")
_SUFFIXES = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
_COMPRESSED = {".gz", ".bz2"}
_NUMBERS = ("num_rows", "size_bytes")
_TIMES = ("starts_at", "ends_at")
_BROKEN = "_broken_line"
_SHOWN = 5

# A time without a zone would mean another moment in every session.
_ZONE = r"(Z|[+-][0-9]{2}:?[0-9]{2})$"


def format_of(path: str) -> str:
    """The format that a path's ending tells."""
    suffixes = [suffix.lower() for suffix in PurePosixPath(path.rstrip("/")).suffixes]
    while suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    found = _SUFFIXES.get(suffixes[-1]) if suffixes else None
    if found is None:
        raise InvalidInput(
            f"The ending of {path!r} does not tell its format; say which: {', '.join(FORMATS)}.",
            path=path,
        )
    return found


def read_manifest(spark: SparkSession, path: str, format: str | None = None) -> DataFrame:
    """A manifest's segments, with the columns that `Catalog.publish` takes.

    In CSV (with a header) and JSON lines all values are read as texts and converted here, so that
    a value which is no number or time is refused by name.
    """
    chosen = format or format_of(path)
    if chosen not in FORMATS:
        raise InvalidInput(
            f"A manifest's format is {', '.join(FORMATS)}, not {chosen!r}.", format=chosen
        )
    try:
        if chosen == "parquet":
            frame = spark.read.parquet(path)
            _ = frame.schema  # on Connect this is when a missing file is noticed
            return frame
        texts = _csv(spark, path) if chosen == "csv" else _json(spark, path)
        _check(texts, path)
    except InvalidInput:
        raise
    except Exception as error:  # a broken file is py4j's error, a missing one Spark's
        raise InvalidInput(
            f"The manifest {path} cannot be read as {chosen}: {first_line(error)}",
            path=path,
            format=chosen,
        ) from error
    return _converted(texts)


def few_segments(frame: DataFrame, most: int = BULK) -> list[Segment] | None:
    """A frame's segments as objects, or none if there are more than `most`.

    A few are published in one small commit, which needs no staging. The frame is read for it, so
    this is for frames that are cheap to read, as manifests are.
    """
    rows = normalised(frame).limit(most + 1).toArrow()
    if rows.num_rows > most:
        return None
    return [_segment(row) for row in rows.to_pylist()]


def _segment(row: dict[str, Any]) -> Segment:
    if row["segment_id"] is None:
        known = {key: value for key, value in row.items() if value is not None}
        raise InvalidSegment(f"A segment without segment_id: {known}.", **known)
    return Segment(row.pop("segment_id"), **row)


def _csv(spark: SparkSession, path: str) -> DataFrame:
    reader = spark.read.option("header", "true").option("escape", '"').option("multiLine", "true")
    return reader.option("mode", "FAILFAST").option("inferSchema", "false").csv(path)


def _json(spark: SparkSession, path: str) -> DataFrame:
    # First the names, then everything as text: an object under `schema` stays the JSON it is.
    names = spark.read.json(path, primitivesAsString=True).columns
    names = [name for name in names if name != "_corrupt_record"]
    ddl = ", ".join(f"{identifier(name)} STRING" for name in [*names, _BROKEN])
    return spark.read.schema(ddl).option("columnNameOfCorruptRecord", _BROKEN).json(path)


def _check(texts: DataFrame, path: str) -> None:
    """Raises if a value is not what its column holds, and names the first ones."""
    columns = texts.columns
    problems = [
        f"IF({name} IS NOT NULL AND try_cast({name} AS BIGINT) IS NULL, "
        f"concat('{name} is no whole number: ', {name}), NULL)"
        for name in _NUMBERS
        if name in columns
    ]
    for name in (name for name in _TIMES if name in columns):
        problems.append(
            f"IF({name} IS NOT NULL AND try_cast({name} AS TIMESTAMP) IS NULL, "
            f"concat('{name} is no time: ', {name}), NULL)"
        )
        problems.append(
            f"IF(NOT rlike({name}, '{_ZONE}'), concat('{name} has no time zone: ', {name}), NULL)"
        )
    if _BROKEN in columns:
        problems.append(f"concat('not a JSON object: ', left({_BROKEN}, 200))")
    if not problems:
        return
    found = (
        texts.selectExpr(f"coalesce({', '.join(problems)}) AS problem")
        .where("problem IS NOT NULL")
        .limit(_SHOWN)
        .collect()
    )
    if found:
        shown = [row["problem"] for row in found]
        raise InvalidInput(
            f"The manifest {path} has values that cannot be read: {'; '.join(shown)}. "
            "Nothing was written.",
            path=path,
            problems=shown,
        )


def _converted(texts: DataFrame) -> DataFrame:
    types = {**dict.fromkeys(_NUMBERS, "BIGINT"), **dict.fromkeys(_TIMES, "TIMESTAMP")}
    return texts.selectExpr(
        *(
            f"CAST({identifier(name)} AS {types.get(name, 'STRING')}) AS {identifier(name)}"
            for name in texts.columns
            if name != _BROKEN
        )
    )
