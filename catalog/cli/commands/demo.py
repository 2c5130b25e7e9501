"""The command for newcomers: builds a small catalog, explains every step, and leaves it to try."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog.cache.cache import Cache
from catalog.catalog import Catalog
from catalog.cli.arguments import argument
from catalog.cli.command import Access, Answer, Table, Work, command, fetch
from catalog.cli.output import renderer
from catalog.errors import InvalidInput
from catalog.model import Segment
from catalog.report.content import collect
from catalog.report.page import render
from catalog.schema import Schema

FIRST_DAY = datetime(2024, 1, 1, tzinfo=UTC)


@command(
    "demo",
    "build a small catalog and explain every step",
    argument(
        "--directory",
        "where to leave the catalog, its files and the report (default: a new temporary one)",
        type=Path,
    ),
    details="It ends with commands to try on the catalog.",
    example="--directory ./demo",
    access=Access.NONE,
    long=False,
)
def demo(work: Work) -> Answer:
    directory: Path | None = work.arguments.directory
    if directory is None:
        directory = Path(tempfile.mkdtemp(prefix="strata-demo-"))
    elif directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise InvalidInput(
            f"{directory} is not an empty directory; the demo overwrites nothing. Name another.",
            directory=str(directory),
        )
    home = directory.absolute()
    tour(work.spark, home)
    _step("What is left")
    print(f"The catalog and the report are in {home}. Try next:\n")
    for line in next_commands(home):
        print(f"  {line}")
    print(f"\nThen open {home / 'report.html'} in a browser.\n", flush=True)
    return Answer(facts={"location": str(home / "meta"), "report": str(home / "report.html")})


def next_commands(home: Path) -> list[str]:
    """Commands that work on the catalog of the demo when they are copied."""
    program = ["strata"]
    if shutil.which("strata") is None:
        started = Path(sys.argv[0])
        as_module = started.name == "__main__.py" or not started.is_file()
        program = [sys.executable, "-m", "catalog"] if as_module else [str(started)]
    location = ["--location", str(home / "meta")]
    words = (
        ["schema-of", "orders/2024-01-03"],
        ["diff", "orders/2024-01-01", "orders/2024-01-03"],
        ["audit", "history"],
    )
    return [shlex.join([*program, *each, *location]) for each in words]


def tour(spark: SparkSession, home: Path) -> None:
    """Every verb once, in the order in which a platform would use them."""
    _step("Write sample Parquet files: orders gains a column on the third day")
    segments = write_files(home / "files")
    rows = [(s.id, s.num_rows, s.size_bytes, s.schema.ddl) for s in segments if s.schema]
    _table("files", ("segment_id", "num_rows", "size_bytes", "schema"), rows)

    _step("Open a catalog: one Delta table, created on first use")
    catalog = Catalog.open(spark, home / "meta", actor="demo")
    print(f"The catalog at {catalog.location} has version {catalog.version}.")

    _step("Publish: segments and their schemas become visible in one commit")
    result = catalog.publish(segments, reason="first load")
    print(
        f"Version {result.version}: {result.inserted} segments inserted, "
        f"{len(result.fingerprints)} schemas."
    )
    again = catalog.publish(segments, reason="the same again")
    print(f"The same again: {again.inserted} inserted, {again.existing} unchanged.")
    _show("schemas", catalog.schemas().select("fingerprint", "num_columns", "ddl"))
    sizes = ("datasource", "num_segments", "num_schemas", "num_rows")
    _show("datasources", catalog.datasources().select(*sizes))

    _step("Look up: the cache answers from memory")
    cache = catalog.cache()
    print(f"orders/2024-01-03 has {cache.schema_of('orders/2024-01-03').ddl}.")

    _step("Poll: the cache follows the table at the cost of what changed")
    late = Segment(
        "orders/2024-01-06",
        segments[0].schema,
        120,
        starts_at=FIRST_DAY + timedelta(days=5),
        ends_at=FIRST_DAY + timedelta(days=6),
    )
    catalog.publish([late], reason="late data")
    poll = cache.poll()
    print(f"From version {poll.before} to {poll.after}: {poll.added} segment added.")

    _step("Look up on executors: a UDF reads the broadcast cache")
    _show("schemas of segments", _looked_up_in_a_udf(spark, cache))

    visits = write_visits(home / "visits")
    _step("Publish files: schemas and row counts are read from their footers; one is broken")
    found = catalog.publish_files("visits", f"{visits}/2024-01/*.parquet", reason="first load")
    print(f"{found.files} files, {found.published} published.")
    _table("broken", ("path", "reason"), [(each.path, each.reason) for each in found.broken])

    _step("Publish without a schema: segments are visible at once, a backfill reads their data")
    for name in ("2024-02/01.parquet", "2024-02/02.parquet"):
        catalog.publish([Segment(f"visits/{name}", location=f"{visits}/{name}")], reason="in haste")
    print(f"{catalog.inspect.segments_without_schema().count()} segments wait for their schemas.")
    filled = catalog.backfill(reason="nightly")
    print(f"{filled.completed} completed, {len(filled.quarantined)} in quarantine.")
    waiting = catalog.inspect.segments_without_schema().select("segment_id", "attempts", "reason")
    _show("segments without schema", waiting)

    _step("Drop: first a dry run")
    planned = catalog.drop(datasource="clicks", dry_run=True)
    print(f"{planned.dropped} segments of clicks would be dropped.")
    dropped = catalog.drop(datasource="clicks", reason="no longer kept")
    print(f"Version {dropped.version}: {dropped.dropped} segments dropped.")
    _show(
        "schemas that nothing uses", catalog.inspect.orphan_schemas().select("fingerprint", "ddl")
    )

    _step("Clean up: the schema that nothing uses is retired; after the grace it would be purged")
    retired = catalog.cleanup(grace=timedelta(0)).retired
    _table("retired", ("fingerprint", "why"), [(each.fingerprint, each.why) for each in retired])

    _step("History: who did what and why")
    _show("commits", catalog.audit.history().select("version", "verb", "actors", "reasons"))

    _step("Time travel: segments as they were before the drop")
    before = catalog.segments(as_of=dropped.version - 1)
    _show("segments", before.groupBy("datasource").agg(F.count("*").alias("segments")))

    _step("Maintain: compact files, remove old ones; a dry run")
    plan = catalog.maintain(dry_run=True)
    print(
        f"{len(plan.compacted)} partitions would be compacted and "
        f"{sum(each.files or 0 for each in plan.vacuumed)} files removed; replaced files are kept "
        f"for {plan.retention.days} days."
    )

    _step("Verify: the promises at every version")
    print(catalog.verify(since=0))

    _step("Report: one page about the catalog")
    page = home / "report.html"
    page.write_text(render(collect(catalog)), encoding="utf-8")
    print(f"{page} has {page.stat().st_size:,} bytes.")
    catalog.close()


def write_files(directory: Path) -> list[Segment]:
    """Five days of orders and two of clicks, a file and a segment for each."""
    directory.mkdir(parents=True, exist_ok=True)
    clicks = pa.table({"url": ["/", "/buy"], "at": pa.array([1, 2], pa.timestamp("us", "UTC"))})
    orders = pa.table({"order_id": pa.array(range(100), pa.int64()), "amount": [9.5] * 100})
    with_currency = orders.append_column("currency", pa.array(["EUR"] * 100, pa.string()))
    days = [
        *(("orders", day, orders if day < 2 else with_currency) for day in range(5)),
        *(("clicks", day, clicks) for day in range(2)),
    ]
    segments = []
    for datasource, day, table in days:
        start = FIRST_DAY + timedelta(days=day)
        path = directory / f"{datasource}-{start:%Y-%m-%d}.parquet"
        pq.write_table(table, path)
        segments.append(
            Segment(
                f"{datasource}/{start:%Y-%m-%d}",
                Schema.of(table.schema),
                table.num_rows,
                size_bytes=path.stat().st_size,
                location=path.as_uri(),
                starts_at=start,
                ends_at=start + timedelta(days=1),
            )
        )
    return segments


def write_visits(directory: Path) -> Path:
    """Two months of visits, each with a CSV file that is named .parquet."""
    for month in ("2024-01", "2024-02"):
        folder = directory / month
        folder.mkdir(parents=True, exist_ok=True)
        table = pa.table({"user": ["ann", "bob"], "pages": pa.array([3, 5], pa.int32())})
        pq.write_table(table, folder / "01.parquet")
        (folder / "02.parquet").write_text("user,pages\nann,3\n")
    return directory


def _looked_up_in_a_udf(spark: SparkSession, cache: Cache) -> DataFrame:
    """The schemas of some segments, looked up in Python workers."""
    handle = cache.broadcast()
    schema_of = F.udf(lambda segment_id: handle.schema_of(segment_id).ddl, "string")
    ids = [("orders/2024-01-01",), ("orders/2024-01-03",), ("orders/2024-01-06",)]
    return spark.createDataFrame(ids, "segment_id STRING").select(
        "segment_id", schema_of("segment_id").alias("schema")
    )


def _step(title: str) -> None:
    print(f"\n--- {title}", flush=True)


def _show(name: str, frame: DataFrame) -> None:
    _render(name, fetch(frame, 20))


def _table(name: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    _render(name, Table(tuple(columns), tuple(rows)))


def _render(name: str, table: Table) -> None:
    renderer("table", "demo").show(Answer(tables={name: table}))
