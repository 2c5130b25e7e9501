"""Hostile environment: the application's cache and settings must not change what happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog
from catalog.errors import SegmentConflict
from tests import sessions
from tests.unit.builders import segment

HOSTILE = {
    "spark.databricks.delta.write.txnAppId": "somebody",
    "spark.databricks.delta.write.txnVersion": "7",
    "spark.databricks.delta.commitInfo.userMetadata": "not ours",
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.session.timeZone": "America/St_Johns",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.shuffle.partitions": "7",
}


@pytest.fixture
def hostile(spark: SparkSession) -> Iterator[SparkSession]:
    before = {name: spark.conf.get(name, None) for name in HOSTILE}
    for name, value in HOSTILE.items():
        spark.conf.set(name, value)
    yield spark
    for name, old in before.items():
        if old is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, old)


@pytest.mark.filterwarnings("ignore:The SQL config:UserWarning")
def test_settings_of_the_session_change_nothing(
    hostile: SparkSession, open_catalog: Callable[..., Catalog]
) -> None:
    catalog = open_catalog()
    starts = datetime(2024, 3, 10, 7, 30, tzinfo=UTC)
    batch = [segment("o'\\x/1", starts_at=starts, ends_at=starts + timedelta(hours=1))]
    assert catalog.publish(batch).inserted == 1
    assert catalog.publish(batch).existing == 1
    for number in range(2):
        frame = hostile.sql(
            f"SELECT 'frame/{number}' segment_id, 'a INT' schema, 1 num_rows, "
            "TIMESTAMP '2024-03-10 07:30:00Z' starts_at"
        )
        assert catalog.publish(frame).inserted == 1
    same = segment("frame/0", "a INT", starts_at=starts)
    assert catalog.publish([same]).existing == 1
    assert catalog.drop(datasource="o'\\x").dropped == 1
    catalog.cleanup(grace=timedelta(0))
    assert catalog.cache().datasources() == {"frame": 2}
    assert catalog.verify(since=0).ok
    assert {name: hostile.conf.get(name, None) for name in HOSTILE} == HOSTILE


@pytest.mark.skipif(sessions.CONNECT, reason="the cache of a Connect server is asked the same way")
def test_a_table_that_the_application_cached_is_not_believed(
    spark: SparkSession, catalog: Catalog, location: str
) -> None:
    catalog.publish([segment("orders/1", "a INT"), segment("orders/2", "b INT")])
    table = f"delta.`{location}/entries`"
    cached = spark.sql(f"SELECT * FROM {table}").cache()
    spark.sql(f"CACHE TABLE stale AS SELECT * FROM {table}")
    assert cached.where("kind <> 'datasource'").count() == 4
    other = Catalog.open(spark, location)  # writes past the cached content
    other.drop(["orders/2"])
    other.cleanup(grace=timedelta(0))
    assert catalog.publish([segment("orders/2", "b INT", rows=8)]).inserted == 1
    with pytest.raises(SegmentConflict):
        catalog.publish([segment("orders/2", "b INT", rows=9)])
    assert catalog.segments().count() == 2
    assert catalog.cache().num_rows("orders/2") == 8
    assert catalog.verify(since=0).ok
    spark.catalog.clearCache()
