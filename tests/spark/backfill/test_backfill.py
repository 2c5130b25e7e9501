"""Segments that come without a schema, and the backfill that finds it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Schema, Segment, Step
from catalog.commit.rows import DIGEST_SQL, ENTRY, entry_table
from catalog.delta.statements import CONTRADICTS
from catalog.environment import Environment
from catalog.errors import InvalidInput, InvalidSegment, NotInSnapshot, ReadOnly, SegmentConflict
from catalog.model import micros
from catalog.segments.batch import KnownSegment, contradicts
from tests.concurrency.gates import assert_promises
from tests.spark.files import broken, parquet

Open = Callable[..., Catalog]
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def state(catalog: Catalog) -> dict[str, tuple[str | None, int | None]]:
    rows = catalog.inspect.segment_schemas().select("segment_id", "ddl", "num_rows").collect()
    return {row["segment_id"]: (row["ddl"], row["num_rows"]) for row in rows}


@pytest.mark.connect
def test_a_segment_without_a_schema_is_visible_counted_and_backfilled(
    catalog: Catalog, tmp_path: Path
) -> None:
    paths = [parquet(tmp_path / f"{n}.parquet", "a INT, b STRING", rows=n) for n in (1, 2)]
    given = [Segment(f"orders/{n}", location=path) for n, path in enumerate(paths)]
    first = catalog.publish([*given, Segment("orders/9", "a INT", 9)])
    assert (first.inserted, len(first.fingerprints)) == (3, 1)
    cache = catalog.cache()
    (row,) = catalog.datasources().collect()
    assert (row["num_segments"], row["segments_without_schema"]) == (3, 2)
    assert cache.fingerprint_of("orders/0") is None
    with pytest.raises(NotInSnapshot, match="published without a schema"):
        cache.schema_of("orders/0")
    assert catalog.stats().segments_without_schema == 2
    assert catalog.backfill(dry_run=True).waiting == 2

    steps: list[Step] = []
    report = catalog.backfill(batch=1, progress=steps.append)
    assert (report.waiting, report.completed, report.left) == (2, 2, 0)
    assert [(step.done, step.total) for step in steps] == [(0, 2), (1, 2), (2, 2)]
    assert steps[0].what == "backfill segments"
    assert steps[1].what.endswith(" a second")
    assert state(catalog)["orders/1"] == ("a INT, b STRING", 2)
    assert cache.poll().changed == 2
    assert cache.schema_of("orders/0").ddl == "a INT, b STRING"
    assert catalog.segments().where("size_bytes > 0 AND revision = 2").count() == 2

    # The writer who published them without a schema, and whose answer was lost, tries again.
    again = catalog.publish(given)
    assert (again.inserted, again.existing) == (0, 2)
    frame = catalog.segments().selectExpr(
        "segment_id",
        "CAST(NULL AS STRING) AS schema",
        "CAST(NULL AS BIGINT) AS num_rows",
        "location",
    )
    replaced = catalog.publish(
        frame.where("location IS NOT NULL"), on_existing="replace", reason="the same from a frame"
    )
    assert (replaced.inserted, replaced.existing, replaced.replaced) == (0, 2, 0)
    assert state(catalog)["orders/1"] == ("a INT, b STRING", 2)
    assert catalog.backfill().waiting == 0
    assert catalog.verify(since=0).ok


def test_a_segment_without_a_schema_contradicts_only_what_it_says(catalog: Catalog) -> None:
    catalog.publish([Segment("orders/1", location="/a", num_rows=5)])
    for other in (
        Segment("orders/1", location="/b", num_rows=5),
        Segment("orders/1", location="/a", num_rows=6),
        Segment("orders/1", location="/a", num_rows=5, size_bytes=1),
        Segment("orders/1", location="/a", num_rows=5, starts_at=NOON),
        Segment("orders/1", "a INT", 5, location="/a"),
    ):
        with pytest.raises(SegmentConflict, match="orders/1"):
            catalog.publish([other])
    assert catalog.publish([Segment("orders/1", location="/a")]).existing == 1
    known = catalog.publish([Segment("orders/1", "a INT", 5, location="/a")], on_existing="replace")
    assert known.replaced == 1
    # Who does not know the schema does not take it away from who does.
    less = catalog.publish([Segment("orders/1", location="/a")], on_existing="replace")
    assert (less.replaced, less.existing) == (0, 1)
    assert catalog.cache().schema_of("orders/1").ddl == "a INT"
    assert catalog.verify(since=0).ok


def test_a_frame_may_hold_segments_without_schemas(spark: SparkSession, catalog: Catalog) -> None:
    columns = "segment_id STRING, schema STRING, num_rows BIGINT, location STRING"
    rows = [("orders/1", None, None, "/a"), ("orders/2", "a INT", 1, None)]
    assert catalog.publish(spark.createDataFrame(rows, columns)).inserted == 2
    only = spark.createDataFrame([("orders/3", None, None, "/c")], columns)
    assert catalog.publish(only).inserted == 1
    bad = spark.createDataFrame([("orders/4", None, None, None)], columns)
    with pytest.raises(InvalidSegment, match="neither a schema nor a location"):
        catalog.publish(bad)
    assert catalog.inspect.segments_without_schema().count() == 2


def test_what_does_not_say_its_schema_is_quarantined_and_tried_again_later(
    open_catalog: Open, tmp_path: Path
) -> None:
    now = [NOON]
    catalog = open_catalog(environment=Environment(clock=lambda: now[0]))
    catalog.publish(
        [
            Segment("orders/good", location=parquet(tmp_path / "good.parquet")),
            Segment("orders/bad", location=broken(tmp_path / "bad.parquet")),
            Segment("orders/gone", location=str(tmp_path / "gone.parquet")),
            Segment("orders/rows", num_rows=7, location=parquet(tmp_path / "rows.parquet")),
            Segment("orders/what", location=str(tmp_path / "what")),
        ]
    )
    report = catalog.backfill()
    assert (report.completed, report.left, report.resting) == (1, 0, 0)
    reasons = {each.segment_id: each.reason for each in report.quarantined}
    assert set(reasons) == {"orders/bad", "orders/gone", "orders/rows", "orders/what"}
    assert "published with 7 rows, and the data has 1" in reasons["orders/rows"]
    assert "does not say its format" in reasons["orders/what"]
    listed = (
        catalog.inspect.segments_without_schema().where("segment_id = 'orders/bad'").collect()[0]
    )
    assert (listed["quarantined"], listed["attempts"]) == (True, 1)
    assert listed["reason"] == reasons["orders/bad"]
    assert catalog.stats().segments_quarantined == 4

    resting = catalog.backfill()
    assert (resting.waiting, resting.resting) == (0, 4)
    parquet(tmp_path / "bad.parquet")
    parquet(tmp_path / "what")
    now[0] += timedelta(minutes=6)
    later = catalog.backfill(format="parquet")
    assert (later.waiting, later.completed) == (4, 2)
    assert {each.attempts for each in later.quarantined} == {2}
    forced = catalog.backfill(retry_quarantined=True)
    assert (forced.waiting, {each.attempts for each in forced.quarantined}) == (2, {3})
    catalog.drop(["orders/gone", "orders/rows"])
    assert catalog.inspect.segments_without_schema().count() == 0
    assert catalog.verify(since=0).ok


def test_a_backfill_may_be_limited_to_some_datasources_and_to_a_number(
    catalog: Catalog, tmp_path: Path
) -> None:
    path = parquet(tmp_path / "x.parquet")
    catalog.publish([Segment(f"{d}/{n}", location=path) for d in ("a", "b", "c") for n in (1, 2)])
    assert catalog.backfill(datasources=["b"]).completed == 2
    part = catalog.backfill(limit=3, batch=2)
    assert (part.waiting, part.completed, part.left) == (4, 3, 1)
    assert catalog.backfill().completed == 1
    for bad in ({"limit": 0}, {"batch": -1}, {"datasources": "a"}, {"format": "xml"}):
        with pytest.raises(InvalidInput, match=str(next(iter(bad)))):
            catalog.backfill(**bad)


def test_a_read_only_catalog_counts_and_does_not_backfill(open_catalog: Open) -> None:
    open_catalog().publish([Segment("orders/1", location="/x.parquet")])
    reader = open_catalog(read_only=True)
    assert reader.backfill(dry_run=True).waiting == 1
    with pytest.raises(ReadOnly):
        reader.backfill()
    with pytest.raises(ReadOnly):
        reader.cache(resolve=True)


def test_a_backfill_reads_each_format_and_marks_what_it_inferred(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    frame = spark.range(3).selectExpr("id", "CAST(id AS STRING) AS name")
    frame.coalesce(1).write.orc(str(tmp_path / "x.orc"))
    frame.write.format("delta").save(str(tmp_path / "table"))
    (tmp_path / "x.json").write_text('{"id": 1, "name": "a"}\n{"id": 2}\n')
    (tmp_path / "x.csv").write_text("id,name\n1,a\n")
    catalog.publish(
        [
            Segment("mixed/orc", location=str(tmp_path / "x.orc")),
            Segment("mixed/delta", location=f"delta.`{tmp_path}/table`"),
            Segment("mixed/json", location=str(tmp_path / "x.json")),
            Segment("mixed/csv", location=str(tmp_path / "x.csv")),
        ]
    )
    assert catalog.backfill().completed == 4
    rows = {row["segment_id"]: row for row in catalog.segments().collect()}
    assert {name: row["num_rows"] for name, row in rows.items()} == {
        "mixed/orc": 3,
        "mixed/delta": 3,
        "mixed/json": 2,
        "mixed/csv": 1,
    }
    assert [name for name, row in sorted(rows.items()) if row["inferred"]] == [
        "mixed/csv",
        "mixed/json",
    ]
    both = Schema.of("id BIGINT, name STRING").fingerprint
    assert {rows["mixed/orc"]["fingerprint"], rows["mixed/delta"]["fingerprint"]} == {both}
    assert catalog.read("mixed", policy="widest").count() == 9
    assert catalog.verify(since=0).ok


def test_publishing_alone_and_backfill_alone_both_suffice(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    paths = {n: parquet(tmp_path / f"{n}.parquet", f"c{n % 2} INT", rows=n) for n in range(1, 5)}
    # No resolver, no backfill: publish and poll are enough.
    told = catalog.cache()
    catalog.publish(
        [Segment(f"orders/{n}", f"c{n % 2} INT", n, location=p) for n, p in paths.items()]
    )
    told.poll()
    assert catalog.backfill(dry_run=True).waiting == 0
    # And a catalog in which nobody ever published a schema.
    with Catalog.open(spark, str(tmp_path / "filled")) as filled:
        found = filled.cache()
        filled.publish([Segment(f"orders/{n}", location=path) for n, path in paths.items()])
        assert filled.schemas().count() == 0
        assert filled.backfill().completed == 4
        found.poll()
        for n in paths:
            assert told.schema_of(f"orders/{n}").ddl == f"c{n % 2} INT"
            assert found.fingerprint_of(f"orders/{n}") == told.fingerprint_of(f"orders/{n}")
            assert (found.num_rows(f"orders/{n}"), told.num_rows(f"orders/{n}")) == (n, n)
        assert filled.schemas().count() == catalog.schemas().count() == 2
        assert_promises(filled)


def test_what_contradicts_what_is_the_same_in_python_and_in_sql(spark: SparkSession) -> None:
    """Every pair of segments that differ in what is left open, as row and as newcomer."""
    later = NOON + timedelta(hours=1)
    segments = [
        Segment("o/1", ddl, rows, size, location, starts, inferred=inferred)
        for ddl in (None, "a INT", "b INT")
        for rows in (None, 1, 2)
        for size in (None, 1, 2)
        for location in (None, "/a", "/b")
        for starts in (None, later)
        for inferred in (False, True)
        if (ddl or (location and not inferred)) and (rows is not None or not ddl or inferred)
    ]
    numbers = range(len(segments))
    columns = ["number", *ENTRY.names]
    rows = entry_table(segments, ["x"] * len(segments), {}, 16, "c", NOON)
    frame = spark.createDataFrame(rows.add_column(0, "number", pa.array(numbers))).select(*columns)
    wrong = frame.where(f"digest <> {DIGEST_SQL}").count()
    assert wrong == 0
    pairs = frame.alias("t").crossJoin(frame.alias("s"))
    found = pairs.where(CONTRADICTS).selectExpr("t.number AS t", "s.number AS s").toArrow()
    known = [
        KnownSegment(
            each.digest,
            "c",
            each.num_rows,
            each.size_bytes,
            each.location,
            each.starts_at and micros(each.starts_at),
            None,
        )
        for each in segments
    ]
    wanted = {(t, s) for t in numbers for s in numbers if contradicts(segments[s], known[t])}
    assert set(zip(*found.to_pydict().values(), strict=True)) == wanted
    assert 0 < len(wanted) < len(segments) ** 2
