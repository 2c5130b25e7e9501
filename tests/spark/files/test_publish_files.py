"""Publishing files with what they say of themselves."""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Segment, Settings, Step
from catalog.errors import BrokenFile, InvalidInput, ReadOnly
from catalog.files.footer import Footer, read_footers
from catalog.files.paths import Place
from catalog.files.publisher import FileProblem
from catalog.files.storage import Files
from tests.spark.files import broken, parquet
from tests.unit.builders import segment

Open = Callable[..., Catalog]


def ids(catalog: Catalog) -> set[str]:
    return {row["segment_id"] for row in catalog.segments().select("segment_id").collect()}


@pytest.mark.connect
def test_files_become_segments_and_a_broken_one_is_reported(
    catalog: Catalog, tmp_path: Path
) -> None:
    data = tmp_path / "orders"
    for day in (1, 2, 3):
        parquet(data / "2024" / f"{day}.parquet", "a INT" if day < 3 else "a INT, b STRING", day)
    bad = broken(data / "bad.parquet")
    (data / "_SUCCESS").touch()
    (data / "notes.txt").write_text("not data")
    pattern = f"{data}/**/*.parquet"
    dry = catalog.publish_files("orders", pattern, dry_run=True)
    assert (dry.files, dry.published, dry.dry_run, catalog.version) == (4, 4, True, 0)

    steps: list[Step] = []
    report = catalog.publish_files("orders", pattern, batch=2, progress=steps.append)
    assert (report.files, report.published, report.unchanged) == (4, 3, 0)
    (problem,) = report.broken
    assert problem.path.endswith("/orders/bad.parquet")
    assert "bad.parquet" in problem.reason
    assert [(step.done, step.total) for step in steps[1:]] == [(0, 4), (2, 4), (4, 4)]
    assert ids(catalog) == {f"orders/2024/{day}.parquet" for day in (1, 2, 3)}
    rows = {row["name"]: row for row in catalog.segments().collect()}
    third = rows["2024/3.parquet"]
    assert third["num_rows"] == 3
    assert third["size_bytes"] == os.path.getsize(data / "2024" / "3.parquet")
    assert catalog.schemas().count() == 2
    assert catalog.read("orders").count() == 6

    parquet(Path(bad), "a INT", 4)
    again = catalog.publish_files("orders", pattern)
    assert (again.published, again.unchanged, again.broken) == (1, 3, ())
    # Asked for from another root or by a relative path, a file is still the segment that it is.
    assert catalog.publish_files("orders", f"{data}/2024/*.parquet").unchanged == 3
    assert catalog.publish_files("orders", os.path.relpath(data)).unchanged == 4
    assert catalog.verify(since=0).ok


class Poison:
    """Opens files, one of which ends the worker that reads it."""

    def __call__(self, path: str) -> Any:
        if path.endswith("poison.parquet"):
            os._exit(1)
        return Files()(path)


def test_a_file_that_ends_its_worker_is_reported_alone_and_a_cancelled_job_blames_none(
    spark: SparkSession, open_catalog: Callable[..., Catalog], tmp_path: Path
) -> None:
    catalog = open_catalog(settings=Settings(open_file=Poison()))
    first = parquet(tmp_path / "0.parquet")
    for name in ("1", "2", "poison"):
        shutil.copyfile(first, tmp_path / f"{name}.parquet")
    report = catalog.publish_files("files", f"{tmp_path}/*.parquet")
    assert (report.files, report.published) == (4, 3)
    assert [problem.path.rpartition("/")[2] for problem in report.broken] == ["poison.parquet"]
    assert "reading it failed" in report.broken[0].reason
    begun = tmp_path / "begun"
    cancel = threading.Thread(target=lambda: _cancel_when(spark, begun))
    cancel.start()
    with pytest.raises(Exception, match="SPARK_JOB_CANCELLED"):
        read_footers(spark, [Place(first, "parquet")], Endless(str(begun)))
    cancel.join()


@dataclass(frozen=True)
class Endless:
    """Begins to open a file, and does not come to an end."""

    begun: str

    def __call__(self, path: str) -> Any:
        Path(self.begun).touch()
        time.sleep(60)
        return Files()(path)


def _cancel_when(spark: SparkSession, begun: Path) -> None:
    while not begun.exists():
        time.sleep(0.01)
    spark.sparkContext.cancelAllJobs()


def test_files_that_changed_are_reported_and_those_that_are_gone_are_dropped_when_told(
    catalog: Catalog, tmp_path: Path
) -> None:
    data = tmp_path / "orders"
    paths = [parquet(data / f"{day}.parquet", rows=day) for day in (1, 2, 3)]
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    size = os.path.getsize(paths[0])
    # Told by hand, with an interval that no file tells, and spelled otherwise than Spark lists it.
    told = Segment("orders/1.parquet", "a INT", 1, size, paths[0], noon)
    catalog.publish([told, segment("orders/elsewhere", location="/other/1.parquet")])
    assert catalog.publish_files("orders", data).published == 2
    for path in (paths[0], paths[2]):
        os.utime(path, (4_000_000_000, 4_000_000_000))
    touched = ("orders/1.parquet", "orders/3.parquet")
    assert catalog.publish_files("orders", data, dry_run=True).changed == touched
    same = catalog.publish_files("orders", data, replace_changed=True)
    assert (same.changed, same.unchanged, same.replaced) == ((), 3, 0)
    parquet(data / "1.parquet", "a INT, more STRING", rows=9)
    (data / "2.parquet").unlink()
    seen = catalog.publish_files("orders", data)
    assert (seen.changed, seen.missing) == (("orders/1.parquet",), ("orders/2.parquet",))
    assert (seen.replaced, seen.dropped) == (0, 0)
    dry = catalog.publish_files(
        "orders", data, remove_missing=True, replace_changed=True, dry_run=True
    )
    assert (dry.changed, dry.missing, dry.dropped) == (touched, seen.missing, 0)
    assert len(ids(catalog)) == 4
    done = catalog.publish_files("orders", data, remove_missing=True, replace_changed=True)
    assert (done.replaced, done.dropped, done.unchanged) == (1, 1, 1)
    assert ids(catalog) == {"orders/1.parquet", "orders/3.parquet", "orders/elsewhere"}
    (kept,) = (
        catalog.segments()
        .where("name = '1.parquet'")
        .selectExpr("num_rows", "location", "unix_seconds(starts_at) AS starts", "ends_at")
        .collect()
    )
    assert tuple(kept) == (9, paths[0], noon.timestamp(), None)
    assert catalog.cache().schema_of("orders/1.parquet").ddl == "a INT, more STRING"
    after = catalog.publish_files("orders", data, remove_missing=True)
    assert (after.changed, after.missing, after.unchanged) == ((), (), 2)
    assert catalog.verify(since=0).ok


def test_an_id_that_is_taken_is_reported_and_the_rest_goes_on(
    catalog: Catalog, tmp_path: Path
) -> None:
    data = tmp_path / "orders"
    first = parquet(data / "1.parquet")
    parquet(data / "2.parquet")
    catalog.publish([segment("orders/1.parquet", location="/elsewhere")])
    report = catalog.publish_files("orders", data)
    assert report.published == 1
    reason = "its id orders/1.parquet belongs to a segment at another place"
    assert report.broken == (FileProblem(f"file:{first}", reason),)


def test_a_delta_table_is_published_by_partition_from_its_log(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    table = str(lake / "a,b" / "table")
    frame = spark.range(10).selectExpr("id", "IF(id < 4, 'EU', 'a b=c/d%') AS region")
    frame.coalesce(1).write.format("delta").partitionBy("region").save(table)
    report = catalog.publish_files("sales", table)
    assert (report.files, report.published) == (2, 2)
    rows = {row["name"]: row for row in catalog.segments().collect()}
    assert {name: row["num_rows"] for name, row in rows.items()} == {
        "region=EU": 4,
        "region=a b%3Dc%2Fd%25": 6,
    }
    assert catalog.read("sales").count() == 10
    assert catalog.cache().schema_of("sales/region=EU").ddl == "id BIGINT, region STRING"

    frame.where("id < 2").write.format("delta").mode("append").save(table)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE region <> 'EU'")
    seen = catalog.publish_files("sales", table)
    assert (seen.changed, seen.missing) == (
        ("sales/region=EU",),
        ("sales/region=a b%3Dc%2Fd%25",),
    )
    done = catalog.publish_files("sales", table, replace_changed=True, remove_missing=True)
    assert (done.replaced, done.dropped) == (1, 1)
    assert catalog.cache().num_rows("sales/region=EU") == 6
    respelled = catalog.publish_files("sales", f"file:{table}", remove_missing=True)
    assert (respelled.unchanged, respelled.broken, respelled.dropped) == (1, (), 0)
    parquet(lake / "other" / "1.parquet")
    # The table itself, a partition of it, and a folder above it.
    for pattern in (
        f"{table}/**/*.parquet",
        f"{table}/region=EU/*.parquet",
        f"{lake}/**/*.parquet",
    ):
        with pytest.raises(InvalidInput, match=f"{re.escape(table)} is a Delta table"):
            catalog.publish_files("sales", pattern)
    assert catalog.publish_files("other", f"{lake}/o*/*.parquet").published == 1
    paths = (f"{table}/region=EU", table, f"{table}/region=US")
    eu, whole, us = read_footers(spark, [Place(path, "delta") for path in paths], Files())
    assert isinstance(eu, Footer)
    assert eu == whole
    assert eu.num_rows == 6
    assert us == f"the Delta table {table} has no files in region=US at version 2"
    assert catalog.publish_files("old", f"delta.`{table}@v0`").published == 2
    assert catalog.read("old").count() == 10
    assert catalog.verify(since=0).ok


@pytest.mark.stress
def test_the_log_of_a_table_is_read_from_a_checkpoint_with_deletion_vectors(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    table = str(tmp_path / "table")
    spark.sql(
        f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta TBLPROPERTIES "
        "('delta.checkpointInterval' = '2', 'delta.enableDeletionVectors' = 'true')"
    )
    assert catalog.publish_files("t", table).published == 1
    assert catalog.cache().num_rows("t/table") == 0
    for begin in range(0, 40, 10):
        spark.range(begin, begin + 10, 1, 1).write.format("delta").mode("append").save(table)
        spark.sql(f"DELETE FROM delta.`{table}` WHERE id = {begin}")
    names = os.listdir(f"{table}/_delta_log")
    assert any("checkpoint" in name for name in names)
    for name in names:  # what a checkpoint holds may have expired
        if name.endswith(".json") and int(name[:20]) < 6:
            os.unlink(f"{table}/_delta_log/{name}")
    assert catalog.publish_files("t", table, replace_changed=True).replaced == 1
    (row,) = catalog.segments().collect()
    assert row["num_rows"] == spark.read.format("delta").load(table).count() == 36
    catalog.publish([Segment("u/1", location=f"delta.`{table}@v7`")])
    catalog.publish([Segment("u/2", location=f"delta.`{table}@v3`")])
    found = catalog.backfill()
    assert found.completed == 1
    assert "is not in its log, it has expired" in found.quarantined[0].reason
    assert catalog.cache().num_rows("u/1") == 37
    (newest,) = Path(table).glob("_delta_log/*08.checkpoint.parquet")
    newest.write_bytes(b"PAR1 cut off")
    (newest.parent / f".{newest.name}.crc").unlink(missing_ok=True)
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        with pytest.raises(BrokenFile, match="cannot be read"):
            catalog.publish_files("t", table)
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")


def test_what_cannot_be_published_is_refused_before_anything_is_written(
    open_catalog: Open, tmp_path: Path
) -> None:
    catalog = open_catalog()
    catalog.publish([segment("orders/1", location=str(tmp_path / "gone.parquet"))])
    (tmp_path / "empty").mkdir()
    for pattern, words in (
        (f"{tmp_path}/nowhere/*.parquet", "nothing at"),
        (f"{tmp_path}/empty", "No file fits"),
        ("", "empty"),
    ):
        with pytest.raises(InvalidInput, match=words):
            catalog.publish_files("orders", pattern, remove_missing=True)
    log = tmp_path / "cut" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text('{"commitInfo": {}}\n')
    with pytest.raises(BrokenFile, match="does not say its schema up to version 0"):
        catalog.publish_files("orders", tmp_path / "cut")
    parquet(tmp_path / "x.parquet")
    with pytest.raises(InvalidInput, match="datasource"):
        catalog.publish_files("or/ders", tmp_path)
    with pytest.raises(InvalidInput, match="format must be"):
        catalog.publish_files("orders", tmp_path, format="xml")
    assert ids(catalog) == {"orders/1"}
    with pytest.raises(ReadOnly):
        open_catalog(read_only=True).publish_files("orders", tmp_path)
