"""Caches that know more than is published: resolved on a miss, announced by streams."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog import Catalog, Schema, Segment, Settings
from catalog.environment import Environment
from catalog.errors import InvalidInput, NotInSnapshot, Unreadable
from catalog.files.storage import Files
from tests.concurrency.gates import assert_promises
from tests.spark.files import broken, parquet
from tests.spark.operating import staged
from tests.unit.builders import segment

Open = Callable[..., Catalog]


class CountedFiles:
    """Opens files and counts how often each was opened, on the driver."""

    def __init__(self) -> None:
        self.opened: Counter[str] = Counter()
        self._files = Files()

    def __call__(self, path: str) -> Any:
        self.opened[path] += 1
        return self._files(path)


# --- resolve -------------------------------------------------------------------------------------


@pytest.mark.connect
def test_a_miss_is_answered_from_the_data_at_once_and_published_in_the_end(
    open_catalog: Open, tmp_path: Path
) -> None:
    files = CountedFiles()
    storing, stored = threading.Event(), threading.Event()

    def hold(point: str, frame: DataFrame) -> DataFrame:
        if point == "backfill":
            stored.set()
            assert storing.wait(60)
        return frame

    catalog = open_catalog(settings=Settings(open_file=files), environment=Environment(source=hold))
    path = parquet(tmp_path / "x.parquet", "a INT, b STRING", rows=4)
    catalog.publish([Segment("orders/1", location=path), segment("orders/2", "a INT")])
    cache = catalog.cache(resolve=True)
    answers: list[str] = []
    callers = [
        threading.Thread(target=lambda: answers.append(cache.schema_of("orders/1").ddl))
        for _ in range(5)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert answers == ["a INT, b STRING"] * 5
    assert files.opened == {path: 1}
    assert stored.wait(60)
    assert cache.place("orders/1") == "pending"
    assert (cache.num_rows("orders/1"), cache.metrics().pending) == (4, 1)
    storing.set()
    assert cache.flush() == 0
    assert cache.place("orders/1") == "backfilled"
    assert cache.snapshot.fingerprint_of("orders/1") is None  # no poll yet
    found = cache.lookup(["orders/1", "orders/2", "none/1"]).to_pydict()
    assert found["found"] == [True, True, False]
    assert found["num_rows"] == [4, 1, None]
    schema = Schema.of("a INT, b STRING")
    assert found["fingerprint"][0] == schema.fingerprint
    assert cache.schema(schema.fingerprint).ddl == schema.ddl
    both = cache.datasource_schema("orders")
    assert (both.segments, both.segments_without_schema) == (2, 0)
    assert both.schema is not None
    assert both.schema.ddl == "a INT, b STRING"
    cache.poll()
    assert cache.place("orders/1") == "published"
    metrics = cache.metrics()
    assert (metrics.pending, metrics.backfilled, metrics.resolved, metrics.stored) == (0, 0, 1, 1)
    assert files.opened == {path: 1}
    cache.write_metrics(tmp_path / "cache.prom", cache="test")
    assert 'strata_cache_resolved{cache="test"} 1.0' in (tmp_path / "cache.prom").read_text()
    assert cache.stop().left == ()
    assert catalog.verify(since=0).ok


def test_many_misses_are_resolved_together_and_broken_ones_say_why(
    catalog: Catalog, tmp_path: Path
) -> None:
    good = {f"orders/{n}": parquet(tmp_path / f"{n}.parquet", rows=n) for n in range(1, 80)}
    bad = broken(tmp_path / "bad.parquet")
    catalog.publish([Segment(name, location=path) for name, path in good.items()])
    catalog.publish([Segment("orders/bad", location=bad)])
    with catalog.cache(resolve=True) as cache:
        found = cache.lookup(name for name in [*good, "orders/bad"]).to_pydict()
        assert found["num_rows"] == [*range(1, 80), None]
        assert found["fingerprint"][-1] is None
        with pytest.raises(Unreadable, match=r"orders/bad is published without a schema.*again"):
            cache.schema_of("orders/bad")
        assert (cache.fingerprint_of("orders/bad"), cache.num_rows("orders/bad")) == (None, None)
        assert cache.metrics().quarantined == 1
        with pytest.raises(NotInSnapshot):
            cache.schema_of("orders/none")
    assert catalog.cache().lookup(list(good))["num_rows"].to_pylist() == list(range(1, 80))


def test_a_cache_that_is_behind_polls_for_what_others_completed(
    catalog: Catalog, tmp_path: Path
) -> None:
    path = parquet(tmp_path / "x.parquet")
    catalog.publish([Segment("orders/1", location=path), Segment("orders/2", location=path)])
    cache = catalog.cache(resolve=True)
    catalog.backfill()
    catalog.drop(["orders/2"])
    behind = catalog.cache(resolve=True, load=False)
    behind._snapshot = cache.snapshot
    assert behind.lookup(["orders/1", "orders/2"])["found"].to_pylist() == [True, False]
    assert cache.schema_of("orders/1").ddl == "a INT"
    with pytest.raises(NotInSnapshot, match="orders/2"):
        cache.schema_of("orders/2")
    assert cache.metrics().resolved == 0
    cache.stop()


def test_what_an_operation_claims_stays_pending_and_holds_up_nothing_else(
    open_catalog: Open, tmp_path: Path
) -> None:
    files = CountedFiles()
    catalog = open_catalog(settings=Settings(open_file=files))
    paths = [parquet(tmp_path / f"{n}.parquet") for n in range(4)]
    catalog.publish([Segment(f"orders/{n}", location=path) for n, path in enumerate(paths)])
    cache = catalog.cache(resolve=True)
    operation = staged(catalog, drop=["orders/0", "orders/1"])
    assert [cache.num_rows(f"orders/{n}") for n in (0, 2)] == [1, 1]
    assert cache.flush() == 1
    cache.poll()
    assert [cache.place(f"orders/{n}") for n in (0, 2)] == ["pending", "published"]
    # A backfill gets past them too: they are the first ones in its order.
    report = catalog.backfill(limit=1)
    assert (report.waiting, report.completed, report.overtaken) == (3, 1, 0)
    assert (report.claimed, report.left) == (2, 0)
    operation.abort()
    cache.poll()
    assert cache.flush() == 0
    cache.poll()
    assert cache.place("orders/0") == "published"
    assert files.opened[paths[0]] == 1
    assert cache.stop().left == ()
    assert_promises(catalog)


# --- realtime ------------------------------------------------------------------------------------


def test_an_announced_segment_is_known_until_it_is_published(catalog: Catalog) -> None:
    catalog.publish([segment("orders/1", "a INT")])
    cache = catalog.cache(realtime=True)
    with catalog.announcer("ingest-1") as announcer:
        announcer.announce("orders/open", "a INT", 5)
        with pytest.raises(NotInSnapshot):
            cache.schema_of("orders/open")  # not before a poll
        cache.poll()
        assert (cache.place("orders/open"), cache.num_rows("orders/open")) == ("realtime", 5)
        announcer.announce("orders/open", "a BIGINT, b STRING", 9)
        cache.poll()
        assert cache.schema_of("orders/open").ddl == "a BIGINT, b STRING"
        assert cache.datasources() == {"orders": 2}
        wide = cache.datasource_schema("orders")
        assert wide.schema is not None
        assert wide.schema.ddl == "a BIGINT, b STRING"
        assert cache.metrics().announcers == 1
        assert catalog.segments().count() == 1  # nothing was committed
        closed = Segment("orders/open", "a BIGINT, b STRING", 12)
        assert announcer.publish([closed]).inserted == 1
        assert dict(announcer.announced) == {}
        assert cache.num_rows("orders/open") == 9  # the last word until the poll
        cache.poll()
        assert (cache.place("orders/open"), cache.num_rows("orders/open")) == ("published", 12)
    assert cache.metrics().realtime == 0
    assert catalog.version == 2


def test_a_writer_that_stops_renewing_is_forgotten(catalog: Catalog) -> None:
    announcer = catalog.announcer("ingest-1", ttl=timedelta(seconds=0.3))
    announcer.announce("orders/open", "a INT")
    cache = catalog.cache(realtime=True)
    assert cache.place("orders/open") == "realtime"
    threading.Event().wait(0.4)
    cache.poll()
    assert cache.place("orders/open") is None
    announcer.close()


def test_a_metastore_catalog_needs_a_folder_for_announcements(
    spark: SparkSession, schema_name: str, tmp_path: Path
) -> None:
    with Catalog.open(spark, schema_name) as catalog, pytest.raises(InvalidInput, match="Volumes"):
        catalog.announcer("ingest-1")
    settings = Settings(announcements=str(tmp_path / "announcements"))
    with Catalog.open(spark, schema_name, settings=settings) as catalog:
        catalog.announcer("ingest-1").announce("orders/open", "a INT")
        assert catalog.cache(realtime=True).place("orders/open") == "realtime"


def test_a_structured_stream_announces_its_open_segment_and_publishes_it(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    """Files of events come in; each day is an open segment until an event of the next one comes."""
    source, target = tmp_path / "events", tmp_path / "days"
    source.mkdir()
    cache = catalog.cache(realtime=True)
    seen: list[dict[str, str | None]] = []

    with catalog.announcer("days") as announcer:

        def write(batch: DataFrame, number: int) -> None:
            for row in batch.groupBy("day").agg(F.count("*").alias("n")).orderBy("day").collect():
                day, path = row["day"], str(target / f"{row['day']}.parquet")
                part = batch.where(F.col("day") == day).drop("day")
                part.coalesce(1).write.mode("append").parquet(path)
                for open_day in list(announcer.announced):
                    if open_day < f"days/{day}":
                        announced = announcer.announced[open_day]
                        where = str(target / f"{open_day.partition('/')[2]}.parquet")
                        announcer.publish(
                            [
                                Segment(
                                    open_day, announced.schema, announced.num_rows, location=where
                                )
                            ]
                        )
                before = announcer.announced.get(f"days/{day}")
                rows = row["n"] + (before.num_rows or 0 if before else 0)
                announcer.announce(f"days/{day}", part.schema, rows)
            cache.poll()
            seen.append({f"days/{d}": cache.place(f"days/{d}") for d in ("01", "02", "03")})

        for number, days in enumerate(["01 01", "01 02", "02 02", "03"]):
            lines = [f'{{"day": "{day}", "value": {number}}}' for day in days.split()]
            (source / f"{number}.json").write_text("\n".join(lines) + "\n")
            query = (
                spark.readStream.schema("day STRING, value BIGINT")
                .json(str(source))
                .writeStream.foreachBatch(write)
                .option("checkpointLocation", str(tmp_path / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
    assert seen == [
        {"days/01": "realtime", "days/02": None, "days/03": None},
        {"days/01": "published", "days/02": "realtime", "days/03": None},
        {"days/01": "published", "days/02": "realtime", "days/03": None},
        {"days/01": "published", "days/02": "published", "days/03": "realtime"},
    ]
    assert cache.num_rows("days/01") == 3
    assert catalog.read("days").count() == 6
    assert catalog.verify(since=0).ok
