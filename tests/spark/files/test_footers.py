"""What files say of themselves, held against what Spark reads of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyarrow import orc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from catalog.errors import BrokenFile
from catalog.files.footer import Footer, read_footer
from catalog.files.storage import Files
from catalog.schema import Schema
from tests.unit.files import test_orc, test_parquet, test_sample, test_sample_types

OPTIONS = {"csv": {"header": "true", "inferSchema": "true"}}
ALL = (
    "b BOOLEAN, t TINYINT, s SMALLINT, i INT NOT NULL, l BIGINT, f FLOAT, d DOUBLE, "
    "small DECIMAL(9,2), large DECIMAL(38,10), st STRING, bin BINARY, da DATE, ts TIMESTAMP, "
    "ntz TIMESTAMP_NTZ, ym INTERVAL YEAR TO MONTH, dt INTERVAL DAY TO SECOND, h INTERVAL HOUR, "
    "arr ARRAY<TIMESTAMP>, m MAP<STRING, STRUCT<x: INT NOT NULL, y: ARRAY<TIMESTAMP_NTZ>>>, "
    "stru STRUCT<`a.b`: INT, q: STRUCT<z: DATE> NOT NULL>"
)
NOTED = (
    *("c CHAR(5)", "v VARCHAR(7)", "s STRUCT<c: CHAR(3)>", "t TIME(3)"),
    "o STRING COLLATE UTF8_LCASE",
)
NOTE = b"org.apache.spark.sql.parquet.row.metadata"


def loose(kind: Any) -> Any:
    """The type with null allowed everywhere, as Spark reads files."""
    if isinstance(kind, StructType):
        return StructType([StructField(each.name, loose(each.dataType)) for each in kind])
    if isinstance(kind, ArrayType):
        return ArrayType(loose(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(loose(kind.keyType), loose(kind.valueType))
    assert isinstance(kind, DataType)
    return kind


def of_spark(spark: SparkSession, path: Path, form: str) -> DataFrame:
    # Strata reads without taking names of folders for columns.
    options = {"recursiveFileLookup": "true", **OPTIONS.get(form, {})}
    return spark.read.format(form).options(**options).load(str(path))


def check(spark: SparkSession, path: Path, form: str) -> Footer:
    """What a file says, which must be what Spark reads."""
    footer = read_footer(str(path), form, Files())
    frame = of_spark(spark, path, form)
    assert Schema.of(loose(footer.schema.struct())).ddl == Schema.of(loose(frame.schema)).ddl
    assert footer.num_rows == frame.count()
    return footer


@contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    for name, value in values.items():
        spark.conf.set(name, value)
    yield
    for name in values:
        spark.conf.unset(name)


# --- Parquet ---


@pytest.mark.parametrize("case", test_parquet.READ)
def test_spark_reads_columns_of_others_as_they_say(
    spark: SparkSession, tmp_path: Path, case: str
) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(test_parquet.written(*test_parquet.READ[case][0]))
    check(spark, path, "parquet")


@pytest.mark.parametrize("case", test_parquet.REFUSED)
def test_spark_does_not_read_what_is_refused(
    spark: SparkSession, tmp_path: Path, case: str
) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(test_parquet.written(*test_parquet.REFUSED[case][0]))
    with pytest.raises((PySparkException, Py4JError)):
        of_spark(spark, path, "parquet").collect()
    with pytest.raises(BrokenFile):
        read_footer(str(path), "parquet", Files())


@pytest.mark.parametrize(("kind", "options", "ddl"), test_parquet.ARROW, ids=str)
def test_spark_reads_what_arrow_wrote_as_it_says(
    spark: SparkSession, tmp_path: Path, kind: pa.DataType, options: dict[str, Any], ddl: str
) -> None:
    path = tmp_path / "a.parquet"
    test_parquet.arrow_written(path, kind, options)
    check(spark, path, "parquet")


def test_spark_counts_the_rows_of_row_groups(spark: SparkSession, tmp_path: Path) -> None:
    test_parquet.understated(tmp_path / "a.parquet")
    assert check(spark, tmp_path / "a.parquet", "parquet").num_rows == 6


def write_nothing(spark: SparkSession, path: Path, form: str) -> None:
    """One file with all columns and without rows."""
    frame = spark.createDataFrame([], Schema.of(ALL).struct())
    frame.coalesce(1).write.format(form).save(str(path))


@pytest.mark.parametrize("timestamps", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
@pytest.mark.parametrize("legacy", ["true", "false"])
def test_spark_reads_what_it_wrote_with_its_note_and_without(
    spark: SparkSession, tmp_path: Path, timestamps: str, legacy: str
) -> None:
    how = {
        "spark.sql.parquet.outputTimestampType": timestamps,
        "spark.sql.parquet.writeLegacyFormat": legacy,
    }
    with settings(spark, how):
        write_nothing(spark, tmp_path / "x", "parquet")
    footer = check(spark, tmp_path / "x", "parquet")
    assert footer.schema == Schema.of(ALL)
    (part,) = (tmp_path / "x").glob("part-*.parquet")
    assert footer.size_bytes == part.stat().st_size
    data = part.read_bytes()
    assert data.count(NOTE) == 1
    # A key of the same length that nobody looks for: only the columns are left.
    (tmp_path / "without.parquet").write_bytes(data.replace(NOTE, b"x" + NOTE[1:]))
    check(spark, tmp_path / "without.parquet", "parquet")


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_the_rows_of_all_files_in_a_partitioned_folder_are_counted(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    frame = spark.range(100).selectExpr("id", "id % 3 AS k", "CAST(id % 2 AS STRING) AS _l")
    frame.repartition(2).write.partitionBy("k", "_l").format(form).save(str(tmp_path / "x"))
    footer = check(spark, tmp_path / "x", form)
    files = [each for each in (tmp_path / "x").rglob("part-*") if each.is_file()]
    assert len(files) > 6
    assert footer.num_rows == 100
    assert footer.size_bytes == sum(each.stat().st_size for each in files)
    assert [column.name for column in footer.schema.columns] == ["id"]


@pytest.mark.parametrize(
    ("form", "column"),
    [
        *(("parquet", column) for column in NOTED),
        *(("orc", column) for column in NOTED),
        # Spark does not write these to ORC.
        *(("parquet", column) for column in ("n VOID", "v VARIANT", "g GEOMETRY(4326)")),
    ],
)
def test_types_that_files_do_not_have_are_noted_in_them(
    spark: SparkSession, tmp_path: Path, form: str, column: str
) -> None:
    spark.sql("DROP TABLE IF EXISTS files")
    spark.sql(f"CREATE TABLE files (id INT, {column}) USING {form} LOCATION '{tmp_path}/x'")
    spark.sql("INSERT INTO files (id) VALUES (1)")
    spark.sql("DROP TABLE files")
    check(spark, tmp_path / "x", form)


def test_lengths_of_texts_are_kept_by_those_who_keep_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    with settings(spark, {"spark.sql.preserveCharVarcharTypeInfo": "true"}):
        spark.sql("SELECT CAST('a' AS VARCHAR(4)) AS v").write.parquet(str(tmp_path / "x"))
        footer = check(spark, tmp_path / "x", "parquet")
    assert footer.schema.ddl == "v VARCHAR(4) NOT NULL"


# --- ORC ---


def test_spark_reads_the_orc_that_it_wrote_as_it_says(spark: SparkSession, tmp_path: Path) -> None:
    write_nothing(spark, tmp_path / "x", "orc")
    footer = check(spark, tmp_path / "x", "orc")
    # ORC does not say that something is never null.
    assert footer.schema == Schema.of(loose(Schema.of(ALL).struct()))


@pytest.mark.parametrize("compression", ["none", "zlib", "snappy", "lz4", "zstd"])
def test_orc_is_read_however_it_is_compressed(
    spark: SparkSession, tmp_path: Path, compression: str
) -> None:
    wide = spark.range(1000).selectExpr(*(f"id + {n} AS column_{n}" for n in range(100)))
    wide.coalesce(1).write.option("compression", compression).orc(str(tmp_path / "x"))
    assert check(spark, tmp_path / "x", "orc").num_rows == 1000


def test_spark_reads_the_orc_that_arrow_wrote_as_it_says(
    spark: SparkSession, tmp_path: Path
) -> None:
    kinds = [kind for kind, _ in test_orc.ARROW]
    schema = pa.schema([(f"c{number}", kind) for number, kind in enumerate(kinds)])
    orc.write_table(schema.empty_table(), str(tmp_path / "a.orc"))
    check(spark, tmp_path / "a.orc", "orc")


# --- samples ---


@pytest.mark.parametrize("case", test_sample.LINES)
def test_spark_guesses_the_same_of_json_lines(
    spark: SparkSession, tmp_path: Path, case: str
) -> None:
    (tmp_path / "a.json").write_bytes(test_sample.LINES[case][0])
    check(spark, tmp_path / "a.json", "json")


@pytest.mark.parametrize("case", test_sample.TABLES)
def test_spark_guesses_the_same_of_csv(spark: SparkSession, tmp_path: Path, case: str) -> None:
    (tmp_path / "a.csv").write_bytes(test_sample.TABLES[case][0])
    check(spark, tmp_path / "a.csv", "csv")


def test_spark_guesses_the_same_of_texts(spark: SparkSession, tmp_path: Path) -> None:
    columns = [texts for texts, _ in test_sample_types.TEXTS]
    longest = max(map(len, columns))
    rows = zip(*(texts + [""] * (longest - len(texts)) for texts in columns), strict=True)
    lines = [[f"c{number}" for number in range(len(columns))], *rows]
    (tmp_path / "a.csv").write_text("".join(",".join(line) + "\n" for line in lines))
    check(spark, tmp_path / "a.csv", "csv")


def test_spark_guesses_the_same_of_json_values(spark: SparkSession, tmp_path: Path) -> None:
    longest = max(len(values) for values, _ in test_sample_types.VALUES)
    lines = [
        ", ".join(
            f'"c{number}": {values[row]}'
            for number, (values, _) in enumerate(test_sample_types.VALUES)
            if row < len(values)
        )
        for row in range(longest)
    ]
    (tmp_path / "a.json").write_text("".join(f"{{{line}}}\n" for line in lines))
    check(spark, tmp_path / "a.json", "json")


@pytest.mark.parametrize("compression", ["none", "gzip", "bzip2"])
@pytest.mark.parametrize("form", ["json", "csv"])
def test_folders_that_spark_wrote_are_sampled_compressed_or_not(
    spark: SparkSession, tmp_path: Path, form: str, compression: str
) -> None:
    # The first of the three tasks has no rows, and may write a file nevertheless.
    frame = (
        spark.range(0, 90, 1, 3)
        .where("id >= 30")
        .selectExpr("id", "concat('say \"', id, '\", please') AS note", "id % 2 = 0 AS even")
    )
    writer = frame.write.options(header="true", compression=compression).format(form)
    writer.save(str(tmp_path / "x"))
    footer = check(spark, tmp_path / "x", form)
    assert (footer.num_rows, footer.inferred) == (60, True)


# --- where it runs ---


def test_footers_are_read_on_executors(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(10).repartition(3).write.parquet(str(tmp_path / "x"))
    (tmp_path / "x" / "part-9.parquet").write_bytes(b"PAR1")
    files, paths = Files(), [str(path) for path in (tmp_path / "x").glob("part-*")]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path in batch.column("path").to_pylist():
                try:
                    footer = read_footer(path, "parquet", files)
                    said = {"rows": footer.num_rows, "ddl": footer.schema.ddl}
                except BrokenFile as error:
                    said = {"broken": error.message}
                yield pa.RecordBatch.from_pylist([{"said": json.dumps(said)}])

    frame = spark.createDataFrame([(path,) for path in paths], "path STRING").repartition(2)
    said = [json.loads(row["said"]) for row in frame.mapInArrow(read, "said STRING").collect()]
    assert sum(each.get("rows", 0) for each in said) == 10
    assert {each["ddl"] for each in said if "ddl" in each} == {"id BIGINT NOT NULL"}
    assert len([each for each in said if "broken" in each]) == 1
