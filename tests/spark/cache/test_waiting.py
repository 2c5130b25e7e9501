"""Readers beside a writer on one table: waiting for its version, expecting its schema."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from catalog import Catalog, Schema
from catalog.errors import CacheBehind, GaveUp, SchemaVersionMismatch
from tests.spark.operating import staged
from tests.unit.builders import segment

Open = Callable[..., Catalog]

OLD, NEW = Schema.of("a INT"), Schema.of("a BIGINT, b STRING")


def change(writer: Catalog, segment_id: str = "orders/1", schema: Schema = NEW) -> int:
    """Publishes a segment with another schema; its version."""
    return writer.publish([segment(segment_id, schema.ddl)], on_existing="replace").version


def test_caches_of_another_catalog_reach_the_version_that_was_published(
    open_catalog: Open,
) -> None:
    writer, reader = open_catalog(), open_catalog()
    cache, some, later = reader.cache(), reader.cache(datasources=["x"]), reader.cache(load=False)
    version = change(writer)
    assert cache.version < version
    assert cache.wait_for(version) == cache.version == version
    assert cache.schema_of("orders/1") == NEW
    version = change(writer, "orders/2", OLD)
    reader._shared.caches.wait_for(version)
    assert (cache.version, some.version, later.loaded) == (version, version, False)
    with pytest.raises(GaveUp, match=f"for version {version + 1}: the newest version") as caught:
        cache.wait_for(version + 1, timeout=0.3)
    assert caught.value.values["reached"] == version


def test_what_a_cache_does_not_reach_is_published_all_the_same(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = catalog.cache()
    monkeypatch.setattr(cache, "poll", lambda: 1 / 0)
    operation = staged(catalog, "slow", publish=[segment("orders/1")])
    answers = []
    for call in (
        lambda: catalog.operations.publish_pending("orders/1", epoch=3, wait=True),
        lambda: catalog.operations.advance(3, wait=True),
        lambda: operation.publish(epoch=3, wait=True),
    ):
        with pytest.raises(CacheBehind) as caught:
            call()
        answers.append(caught.value.values["result"])
    (ready,), step, again = answers
    assert (ready.operation, ready.state) == (operation.id, "ready")
    assert (step.applied, step.version) == ((operation.id,), ready.version + 1)
    assert (again.state, again.repeated, again.version) == ("published", True, step.version)


def test_a_version_that_is_still_to_come_is_waited_for_beside_a_poller(open_catalog: Open) -> None:
    writer, reader = open_catalog(), open_catalog()
    with reader.cache().start(every=3600) as cache:  # whose next poll would be too late
        next_one = cache.version + 1
        publishing = threading.Timer(0.2, change, [writer])
        publishing.start()
        assert cache.wait_for(next_one, timeout=300) == next_one
        publishing.join()
        assert cache.schema_of("orders/1", expect=NEW) == NEW
        assert cache.last_error is None
    assert cache.metrics().mismatches == 0


@pytest.mark.connect
def test_an_expected_schema_is_polled_for_and_a_mismatch_says_what_was_found(
    open_catalog: Open,
) -> None:
    writer, reader = open_catalog(), open_catalog()
    change(writer, schema=OLD)
    cache = reader.cache()
    live = reader.cache(realtime=True)
    version = change(writer)
    for each in (cache, live):
        assert each.schema_of("orders/1") == OLD
        assert each.schema_of("orders/1", expect=NEW.fingerprint) == NEW
        assert each.fingerprint_of("orders/1", expect=NEW) == NEW.fingerprint
        with pytest.raises(SchemaVersionMismatch) as caught:
            each.schema_of("orders/1", expect=OLD)
        assert caught.value.values == {
            "segment_id": "orders/1",
            "expected": OLD.fingerprint,
            "found": NEW.fingerprint,
            "version": version,
        }
        with pytest.raises(SchemaVersionMismatch, match="orders/2 is not in the snapshot"):
            each.fingerprint_of("orders/2", expect=OLD)
        figures = each.metrics()
        assert (figures.mismatches, figures.mismatch_retries) == (3, 7)
        assert figures.mismatches_remained == 2


def test_executors_compare_with_the_version_of_their_handle(
    spark: SparkSession, open_catalog: Open
) -> None:
    writer, reader = open_catalog(), open_catalog()
    change(writer, schema=OLD)
    cache = reader.cache()
    handle = cache.broadcast()
    cache.wait_for(change(writer))
    asked = spark.sql("SELECT 'orders/1' AS id")

    def expecting(schema: Schema):  # type: ignore[no-untyped-def]
        wanted = schema.fingerprint
        return F.udf(lambda id: handle.schema_of(id, expect=wanted).ddl, "string")("id")

    assert asked.select(expecting(OLD)).first()[0] == OLD.ddl
    with pytest.raises(Exception, match=r"SCHEMA_VERSION_MISMATCH.*has schema .* make a new"):
        asked.select(expecting(NEW)).collect()
