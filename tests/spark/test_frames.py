"""Publishing DataFrames: never through the driver, staged once, all or nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession

from catalog import Catalog, CatalogError
from catalog.errors import DuplicateSegment, InvalidInput, InvalidSegment, SegmentConflict
from tests.unit.builders import segment


def frame_of(spark: SparkSession, rows: int, ddl: str = "'a INT'", start: int = 0) -> DataFrame:
    return spark.range(start, start + rows).selectExpr(
        "concat('big/', id) AS segment_id", f"{ddl} AS schema", "id AS num_rows"
    )


def staged_rows(catalog: Catalog) -> int:
    return catalog._shared.staging._session.sql(
        f"SELECT count(*) AS n FROM {catalog._shared.staging._relation}"
    ).collect()[0]["n"]


@pytest.mark.connect
def test_a_frame_is_published_like_the_list_of_its_rows(
    spark: SparkSession, catalog: Catalog
) -> None:
    frame = spark.sql(
        """SELECT 'orders' AS datasource, '2024-01-0' || id AS name,
           IF(id = 1, 'b string, a int', 'A INT') AS schema, CAST(id AS INT) AS num_rows,
           10L AS size_bytes, IF(id = 1, NULL, 'it''s | here') AS location,
           TIMESTAMP '2024-01-01 00:00:00.000001+00:00' AS starts_at,
           CAST(NULL AS TIMESTAMP) AS ends_at FROM range(3)"""
    )
    result = catalog.publish(frame, reason="bulk")
    assert (result.version, result.inserted, len(result.fingerprints)) == (1, 3, 2)
    one = catalog.segments().where("name = '2024-01-02'").collect()[0]
    same = segment(
        "orders/2024-01-02",
        "A INT",
        rows=2,
        size_bytes=10,
        location="it's | here",
        starts_at=one["starts_at"].astimezone(),
    )
    # Digests computed in SQL and in Python agree, or this would be refused.
    assert catalog.publish([same]).existing == 1
    again = catalog.publish(frame)
    assert (again.version, again.inserted, again.existing) == (1, 0, 3)
    assert staged_rows(catalog) == 0
    assert catalog.verify(since=0).ok


@pytest.mark.stress
def test_frames_take_the_same_modes_as_lists(spark: SparkSession, catalog: Catalog) -> None:
    catalog.publish(frame_of(spark, 10))
    wider = frame_of(spark, 10, "'a INT, b STRING'", start=5)
    with pytest.raises(SegmentConflict, match="big/5") as caught:
        catalog.publish(wider)
    assert caught.value.values["count"] == 5
    assert catalog.version == 1
    skipped = catalog.publish(wider, on_existing="skip")
    assert (skipped.inserted, skipped.existing, skipped.replaced) == (5, 5, 0)
    replaced = catalog.publish(wider, on_existing="replace")
    assert (replaced.inserted, replaced.existing, replaced.replaced) == (0, 5, 5)
    nothing = catalog.publish(wider, on_existing="replace")
    assert (nothing.version, nothing.existing) == (replaced.version, 10)
    assert catalog.verify(since=0).ok


def test_rows_that_repeat_are_written_once(spark: SparkSession, catalog: Catalog) -> None:
    frame = frame_of(spark, 5)
    result = catalog.publish(frame.union(frame).union(frame))
    assert (result.inserted, result.existing) == (5, 0)
    assert catalog.verify().ok


BAD: list[tuple[str, type[CatalogError], str]] = [
    ("SELECT 'a/1' segment_id, 'a INT' schema", InvalidInput, "num_rows"),
    ("SELECT 'a/1' segment_id, 'a INT' schema, 1 num_rows, 1 size", InvalidInput, "size"),
    ("SELECT 'a/1' segment_id, 'a INT' schema, '1' num_rows", InvalidInput, "num_rows"),
    (
        "SELECT 'a/1' segment_id, 'a INT' schema, 1 num_rows, '2024-01-01' starts_at",
        InvalidInput,
        "starts_at",
    ),
    (
        "SELECT 'a/1' segment_id, 'a' datasource, '1' name, 'a INT' schema, 1 num_rows",
        InvalidInput,
        "either",
    ),
    ("SELECT 'nope' segment_id, 'a INT' schema, 1 num_rows", InvalidSegment, "'nope'"),
    ("SELECT 'a/b' datasource, 'c' name, 'a INT' schema, 1 num_rows", InvalidSegment, "named"),
    ("SELECT 'a/1' segment_id, 'a INT' schema, -1 num_rows", InvalidSegment, "negative"),
    ("SELECT 'a/1' segment_id, 'a INTT' schema, 1 num_rows", InvalidSegment, "INTT"),
    (
        "SELECT 'a/1' segment_id, CAST(NULL AS STRING) schema, 1 num_rows",
        InvalidSegment,
        "neither a schema nor a location",
    ),
    (
        "SELECT 'a/1' segment_id, 'a INT' schema, id num_rows FROM range(2)",
        DuplicateSegment,
        "a/1",
    ),
]


def test_bad_frames_are_named_and_change_nothing(spark: SparkSession, catalog: Catalog) -> None:
    for text, error, words in BAD:
        with pytest.raises(error) as caught:
            catalog.publish(spark.sql(text))
        assert words in str(caught.value), text
    assert catalog.version == 0
    assert staged_rows(catalog) == 0


def test_an_empty_frame_is_no_change(spark: SparkSession, catalog: Catalog) -> None:
    assert catalog.publish(frame_of(spark, 0)).version == 0


def test_a_frame_that_changes_meanwhile_is_read_once(
    spark: SparkSession, open_catalog: Callable[..., Catalog], tmp_path: object
) -> None:
    from catalog.environment import Environment

    source = f"{tmp_path}/source"
    frame_of(spark, 5).write.format("delta").save(source)

    def add_rows(point: str) -> None:
        if point == "publish.staged":
            late = frame_of(spark, 5, "'late STRING'", start=100)
            late.write.format("delta").mode("append").save(source)

    catalog = open_catalog(environment=Environment(at=add_rows))
    result = catalog.publish(spark.read.format("delta").load(source))
    assert (result.inserted, len(result.fingerprints)) == (5, 1)
    assert spark.read.format("delta").load(source).count() == 10
    assert catalog.cache().datasources() == {"big": 5}
    assert catalog.verify(since=0).ok


@pytest.mark.timeout(900)
@pytest.mark.parametrize("rows", [100_000, pytest.param(1_000_000, marks=pytest.mark.stress)])
def test_many_rows_pass_the_driver_by(spark: SparkSession, catalog: Catalog, rows: int) -> None:
    frame = spark.range(rows).selectExpr(
        "concat('ds', id % 50, '/', id) AS segment_id",
        "concat('id BIGINT, c', id % 200, ' STRING') AS schema",
        "id AS num_rows",
        "concat('s3://bucket/', id) AS location",
    )
    result = catalog.publish(frame, deadline=600)
    assert (result.inserted, len(result.fingerprints), result.version) == (rows, 200, 1)
    cache = catalog.cache()
    assert len(cache.snapshot) == rows
    assert cache.snapshot.index.nbytes <= 32 * rows
    assert cache.schema_of("ds7/1007").ddl == "id BIGINT, c7 STRING"
    found = cache.lookup([f"ds{n % 50}/{n}" for n in range(0, rows, 1000)])
    assert found.column("num_rows").to_pylist() == list(range(0, rows, 1000))
    catalog.publish([segment("ds7/new", "id BIGINT, c7 STRING")])
    assert (cache.poll().added, cache.num_rows("ds7/new")) == (1, 1)
