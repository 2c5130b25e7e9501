"""A tour of a small catalog: publish, poll, look up, find schemas in files, drop, clean up, report.

Writes sample Parquet files, catalogs them, and prints what happens at each step.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog.cache.cache import Cache
from catalog.catalog import Catalog
from catalog.model import Segment
from catalog.report.content import collect
from catalog.report.page import render
from catalog.schema import Schema

FIRST_DAY = datetime(2024, 1, 1, tzinfo=UTC)


def tour(spark: SparkSession, home: Path) -> None:
    """Every verb once, in the order in which a platform would use them."""
    step("Write sample Parquet files: orders gained a column on the third day")
    segments = describe_files(write_files(home / "files"))
    show(
        spark.createDataFrame(
            [(s.id, s.num_rows, s.size_bytes, s.schema.ddl) for s in segments if s.schema],
            "segment_id STRING, num_rows BIGINT, size_bytes BIGINT, schema STRING",
        )
    )

    step("Open a catalog: one Delta table, created on first use")
    catalog = Catalog.open(spark, home / "meta", actor="demo")
    print(f"{catalog.location}, version {catalog.version}")

    step("Publish: segments and their schemas become visible in one commit")
    result = catalog.publish(segments, reason="first load")
    print(
        f"version {result.version}: {result.inserted} segments inserted, "
        f"{len(result.fingerprints)} schemas"
    )
    again = catalog.publish(segments, reason="the same again")
    print(f"the same again: {again.inserted} inserted, {again.existing} there already")
    show(catalog.schemas().select("fingerprint", "num_columns", "ddl"))
    show(catalog.datasources().select("datasource", "num_segments", "num_schemas", "num_rows"))

    step("Look up: the cache answers from memory")
    cache = catalog.cache()
    print(f"orders/2024-01-03 has {cache.schema_of('orders/2024-01-03').ddl}")

    step("Poll: the cache follows the table at the cost of what changed")
    late = Segment(
        "orders/2024-01-06",
        segments[0].schema,
        120,
        starts_at=FIRST_DAY + timedelta(days=5),
        ends_at=FIRST_DAY + timedelta(days=6),
    )
    catalog.publish([late], reason="late data")
    print(cache.poll())

    step("Look up on executors: a UDF asks the broadcast cache")
    show(look_up_in_a_udf(spark, cache))

    visits = write_visits(home / "visits")
    step("Publish files: they say themselves what they hold; a broken one is reported")
    found = catalog.publish_files("visits", f"{visits}/2024-01/*.parquet", reason="first load")
    print(f"{found.files} files, {found.published} published")
    for problem in found.broken:
        print(f"broken: {problem.reason}")

    step("Publish without a schema: segments are there at once, a backfill asks their data")
    for name in ("2024-02/01.parquet", "2024-02/02.parquet"):
        catalog.publish([Segment(f"visits/{name}", location=f"{visits}/{name}")], reason="in haste")
    print(f"{catalog.inspect.segments_without_schema().count()} segments wait for their schemas")
    filled = catalog.backfill(
        progress=lambda each: print(f"{each.what}: {each.done} of {each.total}"), reason="nightly"
    )
    print(f"{filled.completed} completed, {len(filled.quarantined)} in quarantine")
    show(catalog.inspect.segments_without_schema().select("segment_id", "attempts", "reason"))

    step("Drop: first a dry run")
    print(catalog.drop(datasource="clicks", dry_run=True))
    dropped = catalog.drop(datasource="clicks", reason="no longer kept")
    print(dropped)
    show(catalog.inspect.orphan_schemas().select("fingerprint", "ddl"))

    step("Clean up: the schema that nothing uses is retired; after the grace it would be purged")
    report = catalog.cleanup(grace=timedelta(0))
    for change in report.retired:
        print(f"retired {change.fingerprint}: {change.why}")
    show(catalog.inspect.retired_schemas().select("fingerprint", "retired_at", "ddl"))

    step("History: who did what and why")
    show(catalog.audit.history().select("version", "verb", "actors", "reasons"))

    step("Time travel: segments as they were before the drop")
    before = catalog.segments(as_of=dropped.version - 1)
    show(before.groupBy("datasource").agg(F.count("*").alias("segments")))

    step("Maintain: compact files, remove old ones; a dry run")
    print(catalog.maintain(dry_run=True))

    step("Verify: the promises at every version")
    print(catalog.verify(since=0))

    step("Report: one page about the catalog")
    page = home / "report.html"
    page.write_text(render(collect(catalog)), encoding="utf-8")
    print(f"{page}, {page.stat().st_size:,} bytes")
    catalog.close()


def write_files(directory: Path) -> dict[str, Path]:
    """Five days of orders and two of clicks."""
    directory.mkdir(parents=True, exist_ok=True)
    files = {}
    for day in range(5):
        columns: dict[str, pa.Array[Any]] = {
            "order_id": pa.array(range(100), pa.int64()),
            "amount": pa.array([9.5] * 100, pa.float64()),
        }
        if day >= 2:
            columns["currency"] = pa.array(["EUR"] * 100, pa.string())
        files[f"orders/{FIRST_DAY + timedelta(days=day):%Y-%m-%d}"] = pa.table(columns)
    for day in range(2):
        clicks = pa.table({"url": ["/", "/buy"], "at": pa.array([1, 2], pa.timestamp("us", "UTC"))})
        files[f"clicks/{FIRST_DAY + timedelta(days=day):%Y-%m-%d}"] = clicks
    paths = {}
    for segment_id, table in files.items():
        paths[segment_id] = directory / f"{segment_id.replace('/', '-')}.parquet"
        pq.write_table(table, paths[segment_id])
    return paths


def write_visits(directory: Path) -> Path:
    """Two months of visits, each with a file that is not what its name says."""
    for month in ("2024-01", "2024-02"):
        folder = directory / month
        folder.mkdir(parents=True, exist_ok=True)
        table = pa.table({"user": ["ann", "bob"], "pages": pa.array([3, 5], pa.int32())})
        pq.write_table(table, folder / "01.parquet")
        (folder / "02.parquet").write_text("user,pages\nann,3\n")
    return directory


def describe_files(paths: dict[str, Path]) -> list[Segment]:
    """A segment for each file, from its footer."""
    segments = []
    for segment_id, path in paths.items():
        footer = pq.read_metadata(path)
        day = datetime.strptime(segment_id.partition("/")[2], "%Y-%m-%d").replace(tzinfo=UTC)
        segments.append(
            Segment(
                segment_id,
                Schema.of(footer.schema.to_arrow_schema()),
                footer.num_rows,
                size_bytes=path.stat().st_size,
                location=path.as_uri(),
                starts_at=day,
                ends_at=day + timedelta(days=1),
            )
        )
    return segments


def look_up_in_a_udf(spark: SparkSession, cache: Cache) -> DataFrame:
    """Asks for some segments from Python workers."""
    handle = cache.broadcast()

    schema_of = F.udf(lambda segment_id: handle.schema_of(segment_id).ddl, "string")
    ids = [("orders/2024-01-01",), ("orders/2024-01-03",), ("orders/2024-01-06",)]
    return spark.createDataFrame(ids, "segment_id STRING").select(
        "segment_id", schema_of("segment_id").alias("schema")
    )


def step(title: str) -> None:
    print(f"\n--- {title}", flush=True)


def show(frame: DataFrame) -> None:
    frame.show(20, truncate=64)
