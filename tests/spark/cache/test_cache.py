"""The cache: lookups, polls that equal full loads, gaps, the poller, broadcast."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from catalog import Cache, Catalog
from catalog.errors import InvalidInput, NotInSnapshot, NotLoaded
from tests.unit.builders import segment


def equals_full_load(cache: Cache, catalog: Catalog) -> bool:
    loader = cache._loader
    return loader.load_at(cache.snapshot.position).content() == cache.snapshot.content()


@pytest.mark.connect
def test_polls_follow_the_table_and_equal_full_loads(catalog: Catalog) -> None:
    cache = catalog.cache()
    assert (cache.version, len(cache.snapshot)) == (0, 0)
    catalog.publish([segment("orders/1"), segment("orders/2", "b INT")])
    catalog.publish([segment("orders/1", rows=5)], on_existing="replace")
    poll = cache.poll()
    assert (poll.before, poll.after, poll.added, poll.reloaded) == (0, 2, 2, False)
    assert len(poll.schemas) == 2
    assert cache.num_rows("orders/1") == 5
    assert equals_full_load(cache, catalog)
    old = cache.snapshot
    catalog.drop(["orders/2"])
    poll = cache.poll()
    assert (poll.removed, cache.datasources()) == (1, {"orders": 1})
    assert old.schema_of("orders/2").ddl == "b INT"  # I5: a snapshot never changes
    nothing = cache.poll()
    assert (nothing.before, nothing.after, nothing.added) == (3, 3, 0)
    assert equals_full_load(cache, catalog)


def test_lookups_take_arrays_of_ids_or_of_keys_that_spark_computed(
    spark: SparkSession, catalog: Catalog
) -> None:
    catalog.publish([segment(f"orders/{n}", f"c{n % 2} INT", rows=n) for n in range(10)])
    cache = catalog.cache()
    ids = ["orders/3", "nope/1", "orders/8"]
    expected = cache.lookup(ids).to_pylist()
    assert [row["found"] for row in expected] == [True, False, True]
    assert [row["num_rows"] for row in expected] == [3, None, 8]
    assert expected[0]["fingerprint"] == cache.fingerprint_of("orders/3")
    for array in (np.array(ids), pa.array(ids), pa.chunked_array([ids])):
        assert cache.lookup(array).to_pylist() == expected
    keys = (
        spark.createDataFrame([(i,) for i in ids], "id STRING")
        .selectExpr("xxhash64(id) AS k1", "xxhash64('strata', id) AS k2")
        .toArrow()
    )
    by_key = cache.lookup_keys(keys.column("k1").to_numpy(), keys.column("k2").to_numpy())
    assert by_key.to_pylist() == expected
    assert cache.lookup([None, "orders/1"]).column("found").to_pylist() == [False, True]


def test_not_loaded_is_not_the_same_as_not_found(catalog: Catalog) -> None:
    cache = catalog.cache(load=False)
    with pytest.raises(NotLoaded):
        cache.schema_of("orders/1")
    cache.poll()
    with pytest.raises(NotInSnapshot, match="version 0"):
        cache.schema_of("orders/1")


def test_a_restricted_cache_holds_and_follows_some_datasources(catalog: Catalog) -> None:
    catalog.publish([segment("orders/1"), segment("clicks/1"), segment("o'x/1")])
    cache = catalog.cache(datasources=["orders", "o'x"])
    assert cache.datasources() == {"orders": 1, "o'x": 1}
    catalog.publish([segment("orders/2"), segment("clicks/2", "new INT")])
    assert cache.poll().added == 1
    assert cache.datasources() == {"orders": 2, "o'x": 1}
    with pytest.raises(NotInSnapshot):
        cache.schema_of("clicks/2")
    with pytest.raises(InvalidInput, match="list"):
        catalog.cache(datasources="orders")


def test_a_gap_after_vacuum_leads_to_a_full_load(
    spark: SparkSession, catalog: Catalog, location: str
) -> None:
    catalog.publish([segment("orders/1")])
    cache = catalog.cache()
    catalog.publish([segment("orders/2")])
    catalog.publish([segment("orders/1", rows=9)], on_existing="replace")
    table = f"delta.`{location}/entries`"
    session = catalog._context.store.session
    session.sql(f"OPTIMIZE {table}")
    session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.sql(
        f"ALTER TABLE {table} SET TBLPROPERTIES "
        "('delta.deletedFileRetentionDuration' = 'interval 0 hours')"
    )
    session.sql(f"VACUUM {table} RETAIN 0 HOURS")
    poll = cache.poll()
    assert poll.reloaded
    assert cache.num_rows("orders/1") == 9
    assert equals_full_load(cache, catalog)


@pytest.mark.stress
def test_polls_and_publishers_go_on_through_a_restore(
    spark: SparkSession, catalog: Catalog, location: str
) -> None:
    catalog.publish([segment("orders/1")])
    cache = catalog.cache()
    catalog.publish([segment("orders/2", "b INT")])
    cache.poll()
    spark.sql(f"RESTORE TABLE delta.`{location}/entries` TO VERSION AS OF 1")
    assert cache.poll().after == 3
    assert cache.datasources() == {"orders": 1}
    assert equals_full_load(cache, catalog)
    assert catalog.publish([segment("orders/3", "b INT")]).inserted == 1
    cache.poll()
    assert cache.schema_of("orders/3").ddl == "b INT"
    assert equals_full_load(cache, catalog)
    assert catalog.verify(since=0).ok


def test_a_table_that_was_created_again_is_loaded_again(
    spark: SparkSession, catalog: Catalog, location: str
) -> None:
    import shutil

    catalog.publish([segment("orders/1")])
    cache = catalog.cache()
    shutil.rmtree(location)
    again = Catalog.open(spark, location)
    again.publish([segment("orders/2")])
    poll = cache.poll()
    assert (poll.reloaded, poll.after) == (True, 1)
    with pytest.raises(NotInSnapshot):
        cache.schema_of("orders/1")
    assert cache.num_rows("orders/2") == 1
    again.publish([segment("orders/3")])
    assert not cache.poll().reloaded


def test_the_poller_survives_a_failing_poll_and_stops(catalog: Catalog, location: str) -> None:
    cache = catalog.cache()
    with cache.start(every=0.05):
        catalog.publish([segment("orders/1")])
        wait_for(lambda: cache.version == 1)
        moved = Path(location).rename(f"{location}-away")
        wait_for(lambda: cache.last_error is not None)
        assert cache.num_rows("orders/1") == 1  # lookups go on
        moved.rename(location)
        catalog.publish([segment("orders/2")])
        wait_for(lambda: cache.version == 2 and cache.last_error is None)
        poller = cache._poller
    assert poller is not None
    assert not poller.is_alive()


def wait_for(condition, seconds: float = 60) -> None:  # type: ignore[no-untyped-def]
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "waited too long"
        time.sleep(0.02)


@pytest.mark.connect
def test_executors_ask_the_broadcast_cache(spark: SparkSession, catalog: Catalog) -> None:
    catalog.publish([segment(f"orders/{n}", f"c{n % 2} INT", rows=n) for n in range(4)])
    cache = catalog.cache()
    handle = cache.broadcast()
    assert cache.broadcast() is handle
    ids = spark.range(4).selectExpr("concat('orders/', id) AS segment_id")

    @F.udf("string")
    def schema_of(segment_id):  # type: ignore[no-untyped-def]
        return handle.schema_of(segment_id).ddl

    answers = {
        row[0]: row[1] for row in ids.select("segment_id", schema_of("segment_id")).collect()
    }
    assert answers["orders/3"] == "c1 INT"

    def count_rows(batches):  # type: ignore[no-untyped-def]
        for batch in batches:
            found = handle.lookup(batch.column(0))
            yield pa.RecordBatch.from_arrays(
                [found.column("num_rows").combine_chunks()], names=["num_rows"]
            )

    rows = ids.mapInArrow(count_rows, "num_rows BIGINT").collect()
    assert sorted(row[0] for row in rows) == [0, 1, 2, 3]

    missing = spark.sql("SELECT 'orders/99' AS segment_id").select(schema_of("segment_id"))
    with pytest.raises(Exception, match=r"NOT_IN_SNAPSHOT.*version 1"):
        missing.collect()

    catalog.publish([segment("orders/99")])
    cache.poll()
    fresh = cache.broadcast()
    assert (handle.version, fresh.version) == (1, 2)
    assert fresh.fingerprint_of("orders/99") == cache.fingerprint_of("orders/99")
    assert handle.num_rows("orders/1") == 1  # the old handle still answers
