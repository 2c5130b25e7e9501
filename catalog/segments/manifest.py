"""Segments as tables: the columns of a frame, and manifests in Parquet, CSV or JSON lines."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql import types as T

from catalog.delta.failures import first_line
from catalog.delta.statements import BULK_ROWS
from catalog.errors import InvalidInput, InvalidSegment
from catalog.model import Segment
from catalog.schema.names import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ACCEPTED: dict[str, tuple[type[T.DataType], ...]] = {
    "bigint": (T.ByteType, T.ShortType, T.IntegerType, T.LongType),
    "string": (T.StringType,),
    "timestamp": (T.TimestampType,),
}
_REQUIRED = {"schema": "string", "num_rows": "bigint"}
_OPTIONAL = {
    "size_bytes": "bigint",
    "location": "string",
    "starts_at": "timestamp",
    "ends_at": "timestamp",
}
_COLUMNS = "segment_id (or datasource and name), schema, num_rows, " + ", ".join(_OPTIONAL)

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


# --- the columns of a frame --------------------------------------------------------------------


def normalised(frame: DataFrame) -> DataFrame:
    """The frame's columns under the names and types that are staged; raises on any other."""
    # The schema is read once: on Connect each access is a round trip.
    types = {field.name: field.dataType for field in frame.schema.fields}
    named_by_parts = {"datasource", "name"} <= types.keys()
    if ("segment_id" in types) == named_by_parts:
        raise InvalidInput(
            "A frame of segments needs either a column segment_id or the columns datasource and "
            f"name; it has {sorted(types)}.",
            columns=sorted(types),
        )
    ids = ("datasource", "name") if named_by_parts else ("segment_id",)
    expected = {**dict.fromkeys(ids, "string"), **_REQUIRED, **_OPTIONAL}
    unknown = sorted(types.keys() - expected.keys())
    missing = sorted(expected.keys() - types.keys() - _OPTIONAL.keys())
    if unknown or missing:
        raise InvalidInput(
            f"A frame of segments has the columns {_COLUMNS}; unknown here: {unknown}, missing: "
            f"{missing}. Rename or drop them.",
            unknown=unknown,
            missing=missing,
        )
    for name, data_type in types.items():
        accepted = _ACCEPTED[expected[name]]
        if not isinstance(data_type, accepted):
            wanted = " or ".join(t.typeName() for t in accepted)
            raise InvalidInput(
                f"The column {name} must be {wanted}, not {data_type.simpleString()}; cast it.",
                column=name,
                type=data_type.simpleString(),
            )
    segment_id = (
        F.when(F.contains("datasource", F.lit("/")), F.lit("")).otherwise(
            F.concat("datasource", F.lit("/"), "name")
        )
        if named_by_parts
        else F.col("segment_id")
    )
    return frame.select(
        segment_id.alias("segment_id"),
        *(
            (F.col(name) if name in types else F.lit(None)).cast(kind).alias(name)
            for name, kind in {**_REQUIRED, **_OPTIONAL}.items()
        ),
    )


# --- manifests ------------------------------------------------------------------------------------


def format_of(path: str) -> str:
    """The format of a manifest, by the suffix of its path."""
    suffixes = [suffix.lower() for suffix in PurePosixPath(path.rstrip("/")).suffixes]
    while suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    found = _SUFFIXES.get(suffixes[-1]) if suffixes else None
    if found is None:
        raise InvalidInput(
            f"The format does not follow from the suffix of {path!r}; give one of "
            f"{', '.join(FORMATS)}.",
            path=path,
        )
    return found


def read_manifest(spark: SparkSession, path: str, format: str | None = None) -> DataFrame:
    """A manifest's segments, with the columns that `Catalog.publish` takes.

    In CSV (with a header) and JSON lines all values are read as strings and converted here, so that
    an error names the value which is no number or time.
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


def few_segments(frame: DataFrame, most: int = BULK_ROWS) -> list[Segment] | None:
    """A frame's segments as objects, or none if there are more than `most`.

    A few are published in one small commit, without staging. The frame is read for it, so this is
    for frames that are cheap to read, as manifests are.
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
