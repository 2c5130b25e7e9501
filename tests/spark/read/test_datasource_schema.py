"""The schema of a datasource, four ways that must agree: cache, catalog, frame and SQL."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Schema, Segment
from catalog.errors import CorruptSchema, NotInSnapshot, UnknownSchema

V1 = Schema.of("id BIGINT NOT NULL, amount INT, s STRUCT<x: INT NOT NULL>")
V2 = Schema.of("id BIGINT NOT NULL, note STRING, amount BIGINT")
V3 = Schema.of("id BIGINT NOT NULL, amount STRING")


def segments(schema: Schema, first: int, count: int, datasource: str = "orders") -> list[Segment]:
    return [Segment(f"{datasource}/{n}", schema, 1) for n in range(first, first + count)]


def test_cache_catalog_frame_and_view_agree_as_segments_come_and_go(
    spark: SparkSession, catalog: Catalog
) -> None:
    catalog.publish(segments(V1, 0, 3) + segments(V3, 0, 1, "other"))
    cache = catalog.cache()
    assert cache.datasource_schema("orders").schema == V1
    first = catalog.version
    catalog.publish(segments(V2, 3, 4))
    cache.poll()
    both = cache.datasource_schema("orders")
    assert both.schema is not None
    assert [(c.path, c.type, c.nullable, c.segments) for c in both.columns] == [
        ("id", "bigint", False, 7),
        ("amount", "bigint", True, 7),
        ("s", "struct<x:int>", True, 3),
        ("s.x", "int", False, 3),
        ("note", "string", True, 4),
    ]
    assert cache.broadcast().datasource_schema("orders").schema == both.schema

    asked = catalog.datasource_schema("orders")
    assert (asked.schema, asked.fingerprints) == (both.schema, both.fingerprints)
    assert asked.columns == both.columns
    frame = {row["datasource"]: row for row in catalog.datasource_schemas().collect()}
    assert set(frame) == {"orders", "other"}
    assert frame["orders"]["ddl"] == both.schema.ddl
    assert frame["orders"]["fingerprint"] == both.schema.fingerprint
    assert (frame["orders"]["num_schemas"], frame["orders"]["num_segments"]) == (2, 7)
    assert frame["other"]["ddl"] == V3.ddl

    view = catalog.inspect.datasource_columns().where("datasource = 'orders'").collect()
    found = {row["path"]: row for row in view}
    for column in both.columns:
        row = found.pop(column.path)
        assert row["types"] == sorted(column.types)
        assert (row["num_schemas"], row["num_segments"]) == (
            len(column.fingerprints),
            column.segments,
        )
    assert not found
    assert {row["path"]: row["nullable"] for row in view}["id"] is False

    # What leaves with its last segment, and what was there before.
    catalog.drop([f"orders/{n}" for n in range(3)])
    assert cache.poll().removed == 3
    assert cache.datasource_schema("orders").schema == V2
    assert catalog.datasource_schema("orders", as_of=first).schema == V1
    assert catalog.datasource_schemas(as_of=first).count() == 2
    catalog.drop(datasource="orders")
    cache.poll()
    with pytest.raises(NotInSnapshot, match="orders"):
        cache.datasource_schema("orders")
    with pytest.raises(NotInSnapshot, match="orders"):
        catalog.datasource_schema("orders")


def test_a_conflict_is_reported_everywhere_and_goes_with_its_segments(catalog: Catalog) -> None:
    catalog.publish(segments(V1, 0, 1))
    catalog.publish(segments(V3, 1, 2))
    cache = catalog.cache()
    (conflict,) = cache.datasource_schema("orders").conflicts
    assert (conflict.path, conflict.seen, conflict.kept) == ("amount", ("int", "string"), "int")
    (row,) = catalog.datasource_schemas().collect()
    (told,) = row["conflicts"]
    assert (told["path"], told["types"], told["kept"]) == ("amount", ["int", "string"], "int")
    (row,) = catalog.datasource_schemas(policy="widest").collect()
    assert "amount STRING" in row["ddl"]
    catalog.drop(["orders/0"])
    cache.poll()
    assert cache.datasource_schema("orders").conflicts == ()
    assert cache.datasource_schema("orders").schema == V3


def test_a_schema_is_fetched_once_and_from_the_version_that_had_it(
    spark: SparkSession, open_catalog: Callable[..., Catalog]
) -> None:
    catalog = open_catalog()
    catalog.publish(segments(V1, 0, 1))
    there = catalog.version
    reader = open_catalog(read_only=True)
    found: list[Schema] = []
    threads = [
        threading.Thread(target=lambda: found.append(reader.schema(V1.fingerprint)))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [V1] * 6
    assert reader.schema(V1.fingerprint) is found[0]
    catalog.drop(["orders/0"])
    for _ in range(2):
        catalog.cleanup(grace=timedelta(0))
    fresh = open_catalog(read_only=True)
    with pytest.raises(UnknownSchema):
        fresh.schema(V1.fingerprint)
    with pytest.raises(UnknownSchema):
        fresh.schema(V1.fingerprint[:6])
    assert fresh.schema(V1.fingerprint[:6], as_of=there) == V1
    assert fresh.schema(V1.fingerprint) == V1  # in memory now, and it means the same for ever


def test_what_is_stored_under_another_fingerprint_is_not_believed(
    spark: SparkSession, catalog: Catalog
) -> None:
    catalog.publish(segments(V1, 0, 1) + segments(V2, 1, 1))
    table = catalog.location.table("entries")
    spark.sql(
        f"UPDATE {table} SET payload = (SELECT max(payload) FROM {table} WHERE key = "
        f"'{V2.fingerprint}') WHERE key = '{V1.fingerprint}'"
    ).collect()
    for ask in (
        lambda: catalog.schema(V1.fingerprint),
        lambda: catalog.schema(V1.fingerprint[:10]),
        lambda: catalog.datasource_schema("orders"),
        lambda: catalog.cache().schema_of("orders/0"),
    ):
        with pytest.raises(CorruptSchema, match=V1.fingerprint) as raised:
            ask()
        assert raised.value.values["found"] == V2.fingerprint
    assert not catalog.verify().ok
