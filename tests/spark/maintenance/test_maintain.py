"""Maintenance: files are compacted and removed, and nobody who reads or writes is disturbed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Settings, Step
from catalog.errors import ReadOnly, RetentionTooShort, VersionNotFound
from tests.concurrency.gates import Gate, Side, assert_promises
from tests.unit.builders import segment

Open = Callable[..., Catalog]
NOW = timedelta(0)


def fill(catalog: Catalog, publishes: int = 6) -> None:
    """Several small files in one partition, their key ranges overlapping."""
    for number in range(publishes):
        ids = (number, 50 - number)
        catalog.publish([segment(f"orders/{key:02}", f"c{number % 2} INT") for key in ids])


def files(spark: SparkSession, catalog: Catalog) -> list[tuple[str, str]]:
    """The lowest and highest key of each file of segments, in order."""
    rows = spark.sql(
        "SELECT min(key) AS low, max(key) AS high FROM (SELECT key, _metadata.file_path AS path "
        f"FROM {catalog.location.table('entries')} WHERE kind = 'segment') GROUP BY path "
        "ORDER BY low"
    ).collect()
    return [(row["low"], row["high"]) for row in rows]


def test_a_dry_run_says_what_would_be_done_and_does_nothing(catalog: Catalog) -> None:
    fill(catalog)
    version = catalog.version
    report = catalog.maintain(dry_run=True)
    assert [(c.kind, c.before, c.after) for c in report.compacted] == [("segment", 6, None)]
    assert [(v.table, v.files) for v in report.vacuumed] == [("entries", 0)]
    assert (report.dry_run, report.version, catalog.version) == (True, version, version)


@pytest.mark.stress
def test_compaction_sorts_by_key_so_that_a_publish_reads_few_files(
    spark: SparkSession, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(catalog)
    before = files(spark, catalog)
    assert all(low < other for low, _ in before for _, other in before)  # each overlaps each
    size = sum(
        f.stat().st_size
        for f in Path(f"{catalog.location}/entries").glob("kind=segment/*/*.parquet")
    )
    monkeypatch.setattr("catalog.delta.upkeep.FILE_BYTES", size // 2)
    cache = catalog.cache()
    steps: list[Step] = []
    report = catalog.maintain(vacuum=False, progress=steps.append)
    after = files(spark, catalog)
    assert report.compacted[0].after == len(after) < len(before)
    assert all(high < low for (_, high), (low, _) in pairwise(after))
    compacting = [(step.done, step.total) for step in steps if step.what != "audit"]
    assert compacting == [(0, 1), (1, 1)]
    # Nothing changed for readers: a poll follows and finds no change.
    polled = cache.poll()
    assert (polled.added, polled.removed, polled.changed, polled.reloaded) == (0, 0, 0, False)
    assert catalog.maintain(vacuum=False).compacted == ()  # and once is enough
    assert_promises(catalog)


@pytest.mark.stress
def test_a_poller_within_the_retention_follows_and_one_beyond_it_loads_anew(
    catalog: Catalog,
) -> None:
    fill(catalog)
    cache = catalog.cache()
    catalog.publish([segment("orders/99")])
    with pytest.raises(RetentionTooShort, match="cut_off_pollers"):
        catalog.maintain(retain=NOW)
    assert catalog.maintain().vacuumed[0].files == 0  # seven days have not passed
    assert cache.poll().reloaded is False
    catalog.publish([segment("orders/98")])
    report = catalog.maintain(retain=NOW, cut_off_pollers=True)
    assert (report.retention, report.vacuumed[0].files) == (NOW, 7)
    with pytest.raises(VersionNotFound, match="can no longer be read"):
        catalog.audit.changes(1).collect()
    polled = cache.poll()
    assert (polled.reloaded, cache.num_rows("orders/98")) == (True, 1)
    report = catalog.verify()
    assert report.ok, report
    # The retention stays what it was set to: shorter than a poller may be behind, so refused.
    with pytest.raises(RetentionTooShort):
        catalog.maintain()
    catalog.maintain(retain=timedelta(days=60))  # the log is kept as long as the files
    assert "set-retention" in {row["verb"] for row in catalog.audit.history(5).collect()}
    catalog.publish([segment("orders/97")])


def test_a_publish_under_way_survives_a_compaction(open_catalog: Open, tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    free = Settings(file_lock=False)
    upkeep = open_catalog(settings=free)
    fill(upkeep)
    publisher = open_catalog(settings=free, environment=gate.inside("publish"))
    publish = Side(lambda: publisher.publish([segment("orders/25", "c0 INT")]))
    gate.await_reached()
    assert len(upkeep.maintain(vacuum=False).compacted) == 1
    gate.open()
    assert publish.result.retries >= 1  # the files that it had read were replaced
    assert upkeep.segments().where("segment_id = 'orders/25'").count() == 1
    assert_promises(upkeep)


def test_a_catalog_that_is_only_read_can_be_asked_what_maintenance_would_do(
    open_catalog: Open,
) -> None:
    fill(open_catalog(), 2)
    reader = open_catalog(read_only=True)
    assert reader.maintain(dry_run=True).compacted == ()
    with pytest.raises(ReadOnly):
        reader.maintain()


@pytest.mark.connect
@pytest.mark.stress
def test_a_catalog_in_a_metastore_is_maintained_with_its_runs(
    spark: SparkSession, schema_name: str
) -> None:
    from datetime import UTC, datetime

    from catalog import Run

    with Catalog.open(spark, schema_name, actor="ann") as catalog:
        fill(catalog, 5)
        now = datetime.now(UTC)
        for status in ("running", "done"):
            run = Run("r1", "publish", {"a": "'`\\"}, "ann", now, now, figures={"n": len(status)})
            catalog.audit.record(run)
        (row,) = spark.sql(f"SELECT * FROM {schema_name}.runs").collect()
        assert (row["run_id"], row["figures"], row["arguments"]) == (
            "r1",
            {"n": 4.0},
            '{"a": "\'`\\\\"}',
        )
        report = catalog.maintain()
        assert [(c.before, c.after) for c in report.compacted] == [(5, 1)]
        assert [v.table for v in report.vacuumed] == ["entries", "runs"]
        assert report.audit is not None
        assert catalog.maintain().vacuumed[2].table == "audit"
        assert catalog.verify().ok
