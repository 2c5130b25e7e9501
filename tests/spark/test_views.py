"""The views: comments on every column, and the past; the demo."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from chispa import assert_df_equality
from pyspark.sql import Row, SparkSession

from catalog import Catalog
from catalog.delta.runs import TASKS_VIEW
from catalog.errors import InvalidInput, VersionNotFound
from catalog.schema import Schema
from catalog.sql.audit_views import CHANGES
from catalog.sql.segment_views import SEGMENT_VIEWS
from catalog.sql.views import VIEWS
from tests.spark.prepared import NOW, operation, part, stable, staged, stored, write
from tests.unit.builders import segment


def fill(catalog: Catalog) -> None:
    catalog.publish(
        [
            segment("orders/1", "id BIGINT NOT NULL, tags ARRAY<STRUCT<k: STRING, v: INT>>", 5),
            segment("orders/2", "id BIGINT NOT NULL COMMENT 'key'", 7, size_bytes=10),
            segment("clicks/1", "m MAP<STRING, STRUCT<x: INT>>", 1),
        ]
    )
    catalog.drop(["clicks/1"])


def test_views_on_a_path_are_registered_with_a_prefix_and_follow_the_table(
    spark: SparkSession, catalog: Catalog
) -> None:
    names = catalog.inspect.create_views("meta_")
    assert names == [f"meta_{view.name}" for view in (*VIEWS, CHANGES)]
    assert spark.table("meta_segments").count() == 0
    fill(catalog)
    assert_df_equality(
        spark.sql("SELECT datasource, num_segments, num_schemas, num_rows FROM meta_datasources"),
        spark.createDataFrame(
            [("orders", 2, 2, 12)],
            "datasource STRING, num_segments BIGINT NOT NULL, num_schemas BIGINT NOT NULL, "
            "num_rows BIGINT",
        ),
        ignore_metadata=True,  # the comments on the view's columns
    )
    paths = spark.sql(
        "SELECT path, type, nullable FROM meta_schema_columns WHERE depth > 0 ORDER BY path"
    ).collect()
    assert [(r["path"], r["type"], r["nullable"]) for r in paths] == [
        ("m.value.x", "int", True),
        ("tags.element.k", "string", True),
        ("tags.element.v", "int", True),
    ]
    assert spark.table("meta_orphan_schemas").count() == 1


def test_every_column_of_every_view_has_a_comment(spark: SparkSession, schema_name: str) -> None:
    Catalog.open(spark, schema_name).tasks.run("recover")  # from then on there is a view of tasks
    for view in (*VIEWS, CHANGES, TASKS_VIEW):
        name = f"{schema_name}.{view.name}"
        described = {
            row["col_name"]: row["comment"] for row in spark.sql(f"DESCRIBE {name}").collect()
        }
        assert described == view.columns
        detail = spark.sql(f"DESCRIBE EXTENDED {name}").where("col_name = 'Comment'").collect()
        assert detail[0]["data_type"] == view.comment


def test_the_past_is_read_by_version_or_time(catalog: Catalog) -> None:
    fill(catalog)
    assert catalog.segments().count() == 2
    assert catalog.segments(as_of=1).count() == 3
    assert catalog.datasources(as_of=0).count() == 0
    moment = catalog.audit.history().where("version = 1").collect()[0]["timestamp"].astimezone(UTC)
    assert catalog.segments(as_of=moment).count() == 3
    assert catalog.segments(as_of=datetime.now(UTC) + timedelta(days=1)).count() == 2
    with pytest.raises(VersionNotFound, match="reach back"):
        catalog.segments(as_of=datetime(2001, 1, 1, tzinfo=UTC))
    with pytest.raises(InvalidInput, match="time zone"):
        catalog.segments(as_of=datetime(2001, 1, 1))
    frame = catalog.segments()
    catalog.drop(datasource="orders")
    assert frame.count() == 2  # pinned to the version it was made at


@pytest.mark.stress
def test_nothing_that_is_staged_shows_before_it_is_published(
    spark: SparkSession, catalog: Catalog, location: str
) -> None:
    fill(catalog)
    catalog.publish([segment("orders/3", "c INT")])
    catalog.drop(["orders/3"])  # leaves a schema that only what is staged refers to
    cache = catalog.cache()
    names = [view.name for view in SEGMENT_VIEWS if view.name != "orphan_schemas"]
    shown = {name: sorted(map(str, getattr(catalog.inspect, name)().collect())) for name in names}
    stats, orphans, version = (
        catalog.stats(),
        catalog.inspect.orphan_schemas().count(),
        catalog.version,
    )
    known = Schema.of("c INT").fingerprint
    columns = {"datasource": "orders", "num_rows": 1_000, "size_bytes": 9, "fingerprint": known}
    write(
        spark,
        location,
        operation("op", parts=2),
        part("op"),
        staged("op", "segment", "orders/9", "publish", **columns),
        staged("op", "segment", "orders/1", "replace", **columns),
        staged("op", "segment", "orders/2", "drop", datasource="orders"),
        staged("op", "object", "table/orders", "put", payload="{}", datasource="orders"),
        staged("op", "datasource", "orders", "hold"),
    )
    after = {name: sorted(map(str, getattr(catalog.inspect, name)().collect())) for name in names}
    assert after == shown
    assert catalog.inspect.objects().count() == catalog.inspect.object_links().count() == 0
    assert catalog.inspect.orphan_schemas().count() == orphans - 1  # a clean-up must leave it alone
    assert catalog.audit.changes(version).count() == 0
    growth = catalog.audit.growth(version).collect()
    assert [(row["added"], row["removed"], row["rows"]) for row in growth] == [(0, 0, 0)]
    now = catalog.stats()
    assert (now.rows, now.size_bytes, now.segments) == (stats.rows, stats.size_bytes, 2)
    assert (now.operations_open, now.operations_ready, now.objects) == (1, 0, 0)
    assert (cache.poll().after, cache.datasources()) == (version + 1, {"orders": 2})


def test_objects_show_their_bodies_as_they_were_put_and_their_links(
    spark: SparkSession, catalog: Catalog, location: str
) -> None:
    body = '{"a":1.10,"b":{"c":123456789012345678901234567890},"d":"ü \\u0007 \\"x\\""}'
    write(
        spark,
        location,
        stored("table/sales/orders", 3, body=body, datasource="orders"),
        stored("index/x", 2, {"table/sales/orders": 3}),
    )
    write(spark, location, stored("index/x", 3, {}))
    index, table = catalog.inspect.objects(as_of=1).orderBy("key").collect()
    assert (table["type"], table["path"], table["revision"]) == ("table", "sales/orders", 3)
    assert json.loads(table["body"]) == json.loads(body)
    assert len(table["object_id"]) == 32
    assert (index["links"], table["links"]) == ({"table/sales/orders": 3}, {})
    links = [tuple(row) for row in catalog.inspect.object_links(as_of=1).collect()]
    assert links == [("index/x", "table/sales/orders", 3)]
    assert catalog.inspect.object_links().count() == 0
    assert catalog.stats().objects == 2


def test_operations_show_what_is_staged_claimed_and_over(
    spark: SparkSession, catalog: Catalog, location: str
) -> None:
    assert [tuple(row) for row in epochs(catalog, spark)] == [(0, None, 0)]
    early = NOW - timedelta(hours=2)
    write(
        spark,
        location,
        operation("over", parts=None, opened_at=early, lease=timedelta(minutes=1)),
        operation("waits", "ready", epoch=7, opened_at=early, lease=timedelta(minutes=1)),
        operation("done", "published", epoch=2, opened_at=early, lease=timedelta(minutes=1)),
        *(part("over", number) for number in range(3)),
        *(staged("over", "object", "table/x", "put", number) for number in range(3)),
        staged("over", "segment", "table/x", "drop"),
        staged("over", "object", "table/y", "hold"),
        staged("waits", "object", "table/z", "bump"),
        staged("done", "object", "table/w", "put"),
        stable(2),
    )
    rows = {row["operation_id"]: row for row in catalog.inspect.operations().collect()}
    columns = ("state", "parts", "parts_staged", "claims", "epoch", "owner", "expired")
    assert {key: tuple(row[name] for name in columns) for key, row in rows.items()} == {
        "over": ("open", None, 3, 2, None, "ann", True),
        "waits": ("ready", 1, 0, 1, 7, "ann", False),  # only an advance ends it
        "done": ("published", 1, 0, 0, 2, "ann", False),
    }
    assert rows["over"]["opened_at"].astimezone(UTC) == early
    assert rows["over"]["lease_until"].astimezone(UTC) == early + timedelta(minutes=1)
    assert rows["over"]["age_seconds"] >= 7_200
    claims = catalog.inspect.claims().select(
        "operation_id", "target", "key", "action", "shared", "part"
    )
    assert sorted(map(tuple, claims.collect())) == [
        *(("over", "object", "table/x", "put", False, number) for number in range(3)),
        ("over", "object", "table/y", "hold", True, 0),
        ("over", "segment", "table/x", "drop", False, 0),
        ("waits", "object", "table/z", "bump", False, 0),
    ]
    assert [(row["epoch"], row["waiting"]) for row in epochs(catalog, spark)] == [(2, 1)]
    stats = catalog.stats()
    assert (stats.operations_open, stats.operations_ready) == (1, 1)


def epochs(catalog: Catalog, spark: SparkSession) -> list[Row]:
    """What a SQL user is told of the stable epoch."""
    catalog.inspect.create_views("its_")
    rows = spark.table("its_stable_epoch").collect()
    for view in VIEWS:
        spark.catalog.dropTempView(f"its_{view.name}")
    return rows


def test_the_demo_runs(spark: SparkSession, tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    from catalog.cli.commands.demo import tour

    tour(spark, tmp_path)
    shown = capsys.readouterr().out
    assert "7 segments inserted, 3 schemas" in shown
    assert "2 files, 1 published" in shown
    assert "2 segments wait for their schemas" in shown
    assert "1 completed, 1 in quarantine" in shown
    assert "All promises hold at versions 0 to" in shown
