"""Clean-up: what is retired, purged and restored, when, and what the report says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog
from catalog.environment import Environment
from tests.unit.builders import segment

NOW = timedelta(0)


def fingerprint(ddl: str) -> str:
    return segment(ddl=ddl).schema.fingerprint


def test_an_orphan_is_retired_then_purged_and_may_come_back(catalog: Catalog) -> None:
    catalog.publish([segment("orders/1", "a INT"), segment("orders/2", "b INT")])
    catalog.drop(["orders/2"])
    assert [r["fingerprint"] for r in catalog.inspect.orphan_schemas().collect()] == [
        fingerprint("b INT")
    ]
    dry = catalog.cleanup(grace=NOW, dry_run=True)
    assert [c.fingerprint for c in dry.retired] == [fingerprint("b INT")]
    assert catalog.version == dry.version == 2
    report = catalog.cleanup(grace=NOW)
    assert [(c.fingerprint, c.why) for c in report.retired] == [
        (fingerprint("b INT"), "nothing refers to it")
    ]
    assert [r["ddl"] for r in catalog.inspect.retired_schemas().collect()] == ["b INT"]
    assert catalog.schema(fingerprint("b INT")[:8]).ddl == "b INT"  # still readable
    catalog.publish([segment("orders/3", "b INT")])
    report = catalog.cleanup(grace=NOW)
    assert [c.why for c in report.purged] == ["it is live again"]
    assert (report.retired, report.restored) == ((), ())
    catalog.drop(["orders/3"])
    assert len(catalog.cleanup(grace=NOW).retired) == 1
    assert len(catalog.cleanup(grace=NOW).purged) == 1
    assert catalog.schemas().count() == 1
    assert catalog.verify(since=0).ok


def test_the_grace_counts_from_publication_and_from_retirement(
    open_catalog: Callable[..., Catalog],
) -> None:
    time = [datetime(2024, 1, 1, tzinfo=UTC)]
    catalog = open_catalog(environment=Environment(clock=lambda: time[0]))
    catalog.publish([segment("orders/1")])
    catalog.drop(["orders/1"])
    grace = timedelta(days=1)
    time[0] += timedelta(hours=23)
    assert catalog.cleanup(grace=grace).retired == ()
    time[0] += timedelta(hours=1)
    assert len(catalog.cleanup(grace=grace).retired) == 1
    time[0] += timedelta(hours=23)
    assert catalog.cleanup(grace=grace).purged == ()
    time[0] += timedelta(hours=1)
    assert len(catalog.cleanup(grace=grace).purged) == 1


@pytest.mark.stress
def test_the_limit_caps_a_run_and_the_next_goes_on(catalog: Catalog) -> None:
    catalog.publish([segment(f"orders/{n}", f"c{n} INT") for n in range(5)])
    catalog.drop(datasource="orders")
    assert len(catalog.cleanup(grace=NOW, limit=2).retired) == 2
    second = catalog.cleanup(grace=NOW, limit=2)
    assert (len(second.purged), len(second.retired)) == (2, 2)
    third = catalog.cleanup(grace=NOW, limit=2)
    assert (len(third.purged), len(third.retired)) == (2, 1)
    assert catalog.verify(since=0).ok


def test_a_retired_schema_that_is_referred_to_is_restored(
    spark: SparkSession, catalog: Catalog, location: str
) -> None:
    catalog.publish([segment("orders/1", "a INT COMMENT 'kept'")])
    # As a cleaner that died before its last step would leave it.
    spark.sql(
        f"UPDATE delta.`{location}/entries` SET kind = 'retired', commit_id = 'x' "
        "WHERE kind = 'schema'"
    )
    assert catalog.cache().schema_of("orders/1").ddl == "a INT COMMENT 'kept'"
    row = catalog.inspect.segment_schemas().collect()[0]
    assert (row["ddl"], row["retired"]) == ("a INT COMMENT 'kept'", True)
    report = catalog.cleanup(grace=NOW)
    assert [c.why for c in report.restored] == ["something refers to it"]
    assert report.purged == ()
    assert [r["ddl"] for r in catalog.schemas().collect()] == ["a INT COMMENT 'kept'"]
    assert len(catalog.cleanup(grace=NOW).purged) == 1
    assert catalog.verify().ok


def test_batches_left_behind_in_staging_are_swept(spark: SparkSession, catalog: Catalog) -> None:
    catalog.publish(spark.sql("SELECT 'a/1' segment_id, 'a INT' schema, 1 num_rows"))
    staging = catalog._shared.staging._relation
    spark.sql(
        f"INSERT INTO {staging} (batch, staged_at) VALUES "
        "('old', current_timestamp() - INTERVAL 3 DAYS), ('new', current_timestamp())"
    )
    catalog.cleanup()
    rows = spark.sql(f"SELECT batch FROM {staging}").collect()
    assert [row["batch"] for row in rows] == ["new"]
