"""Opening: by path or schema, created once, and nothing that is not ours is touched."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, CatalogError, Settings
from catalog.errors import (
    CatalogNotFound,
    InvalidInput,
    InvalidLocation,
    LayoutTooNew,
    NotACatalog,
    ReadOnly,
)
from tests.unit.builders import segment

Open = Callable[..., Catalog]


def test_opening_twice_gives_the_same_catalog(open_catalog: Open) -> None:
    first = open_catalog()
    first.publish([segment("orders/1")])
    assert open_catalog().version == first.version == 1


def test_a_schema_name_gives_a_catalog_with_persistent_views(
    spark: SparkSession, schema_name: str
) -> None:
    catalog = Catalog.open(spark, schema_name)
    result = catalog.publish([segment("orders/1"), segment("orders/2", ddl="b STRING")])
    assert (result.version, result.inserted) == (1, 2)
    assert catalog.cache().schema_of("orders/2").ddl == "b STRING"
    rows = spark.sql(f"SELECT segment_id FROM {schema_name}.segments ORDER BY 1").collect()
    assert [row[0] for row in rows] == ["orders/1", "orders/2"]
    assert Catalog.open(spark, f"spark_catalog.{schema_name}").version == 1
    frame = spark.sql("SELECT 'orders/3' segment_id, 'c INT' schema, 3 num_rows")
    assert catalog.publish(frame).inserted == 1
    catalog.drop(["orders/3"])
    assert catalog.verify(since=0).ok


def test_one_table_whatever_its_path_is_spelled_like(spark: SparkSession, tmp_path: Path) -> None:
    real = tmp_path / "real dir%20'x'`y"
    real.mkdir()
    link = tmp_path / "link"
    link.symlink_to(real)
    by_link = Catalog.open(spark, link / "meta")
    by_link.publish([segment("orders/1")])
    by_path = Catalog.open(spark, f"{real}/meta/")
    by_uri = Catalog.open(spark, f"file:{link}/meta")
    assert by_path.location == by_link.location
    assert by_uri.location.path == f"file:{by_link.location.path}"
    assert by_uri.publish([segment("orders/1")]).existing == 1
    assert (real / "meta" / ".entries.lock").exists()


def test_many_that_create_at_once_get_one_catalog(spark: SparkSession, tmp_path: Path) -> None:
    opened: list[Catalog] = []
    errors: list[BaseException] = []
    start = threading.Barrier(5)

    def create() -> None:
        try:
            start.wait()
            # Without the lock, so that the creations really meet in Delta.
            settings = Settings(file_lock=False)
            opened.append(Catalog.open(spark, tmp_path / "meta", settings=settings))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=create) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert {catalog.version for catalog in opened} == {0}
    opened[0].publish([segment("orders/1")])
    assert {catalog.version for catalog in opened} == {1}


def test_read_only_neither_creates_nor_writes(open_catalog: Open, location: str) -> None:
    with pytest.raises(CatalogNotFound, match="read_only"):
        open_catalog(read_only=True)
    assert not Path(location).exists()
    open_catalog().publish([segment("orders/1")])
    before = {p: p.stat().st_mtime_ns for p in Path(location).rglob("*")}
    reader = open_catalog(read_only=True)
    assert reader.cache().num_rows("orders/1") == 1
    assert reader.drop(datasource="orders", dry_run=True).dropped == 1
    for write in (
        lambda: reader.publish([segment("orders/2")]),
        lambda: reader.drop(datasource="orders"),
        lambda: reader.cleanup(),
    ):
        with pytest.raises(ReadOnly):
            write()
    assert {p: p.stat().st_mtime_ns for p in Path(location).rglob("*")} == before


def _alter(spark: SparkSession, location: str, change: str) -> None:
    spark.sql(f"ALTER TABLE delta.`{location}/entries` {change}")


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ("SET TBLPROPERTIES ('strata.layout' = '99')", LayoutTooNew, "layout 99"),
        ("UNSET TBLPROPERTIES ('strata.layout')", NotACatalog, "not a Strata catalog"),
        (
            "SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')",
            NotACatalog,
            "enableChangeDataFeed",
        ),
        ("UNSET TBLPROPERTIES ('delta.isolationLevel')", NotACatalog, "isolationLevel"),
    ],
)
def test_a_table_without_what_is_needed_is_refused(
    spark: SparkSession,
    open_catalog: Open,
    location: str,
    change: str,
    error: type[CatalogError],
    words: str,
) -> None:
    open_catalog()
    _alter(spark, location, change)
    with pytest.raises(error, match=words):
        open_catalog()


def test_what_is_not_ours_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    spark.range(3).write.format("delta").save(str(foreign))
    with pytest.raises(NotACatalog, match="Delta table of its own"):
        Catalog.open(spark, foreign)
    spark.range(3).write.format("delta").save(str(tmp_path / "meta" / "entries"))
    with pytest.raises(NotACatalog, match="not a Strata catalog"):
        Catalog.open(spark, tmp_path / "meta")
    spark.range(3).write.parquet(str(tmp_path / "files" / "entries"))
    with pytest.raises(NotACatalog, match="something else"):
        Catalog.open(spark, tmp_path / "files")
    assert spark.read.parquet(str(tmp_path / "files" / "entries")).count() == 3


@pytest.mark.parametrize(
    ("options", "place", "error"),
    [
        ({}, "", InvalidLocation),
        ({}, "a.b.c.d", InvalidLocation),
        ({}, "/tmp/with\nnewline", InvalidLocation),
        ({"settings": Settings(segment_buckets=0)}, None, InvalidInput),
        ({"settings": Settings(deadline=-1)}, None, InvalidInput),
        ({"actor": "new\nline"}, None, InvalidInput),
    ],
)
def test_bad_arguments_are_named(
    spark: SparkSession,
    location: str,
    options: dict[str, Any],
    place: str | None,
    error: type[CatalogError],
) -> None:
    with pytest.raises(error):
        Catalog.open(spark, location if place is None else place, **options)


def test_buckets_are_chosen_at_creation(spark: SparkSession, tmp_path: Path) -> None:
    catalog = Catalog.open(spark, tmp_path / "meta", settings=Settings(segment_buckets=3))
    catalog.publish([segment(f"ds{n}/1") for n in range(20)])
    rows = spark.read.format("delta").load(f"{tmp_path}/meta/entries").where("kind = 'segment'")
    assert {row["bucket"] for row in rows.select("bucket").distinct().collect()} == {0, 1, 2}
    assert Catalog.open(spark, tmp_path / "meta").publish([segment("ds1/1")]).existing == 1
    assert catalog.verify().ok
