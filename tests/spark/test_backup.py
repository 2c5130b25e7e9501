"""Backups: what they hold, what is refused, and how they come back."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession

from catalog import Catalog, Object, Step
from catalog.errors import (
    PathOccupied,
)
from catalog.table.runs import Run
from tests.spark.operating import ready, refusal, staged
from tests.unit.builders import segment

Open = Callable[..., Catalog]


def filled(catalog: Catalog) -> None:
    """Something of every kind: live and retired schemas, objects, operations, an epoch, a run."""
    now = catalog._surroundings.clock()
    catalog.publish([segment(f"orders/{n}", f"a INT, b{n % 3} INT", n) for n in range(1, 7)])
    catalog.publish([segment("visits/1", "gone INT")])
    catalog.put([Object("db/x", {"n": 1}), Object("table/x/y", {}, links=["db/x"])])
    staged(catalog, "done", id="done", publish=[segment("visits/2", "c INT")]).publish()
    staged(catalog, "open", id="open", publish=[segment("orders/8", "d INT")], drop=["orders/1"])
    ready(catalog, 4, "ready", id="ready", put=[Object("index/z", {})])
    catalog.advance(3)
    catalog.record(Run("run-1", "backup", {"a": 1}, "ann", now, now, figures={"x": 1.0, "y": 2.0}))
    catalog.drop(["visits/1"])
    catalog.cleanup(grace=timedelta(0))


def entries(catalog: Catalog) -> DataFrame:
    return catalog._store.rows(catalog.version)


def assert_same_rows(catalog: Catalog, rows: DataFrame) -> None:
    assert_df_equality(
        entries(catalog),
        rows,
        ignore_row_order=True,
        ignore_nullable=True,
        ignore_metadata=True,
    )


@pytest.mark.connect
def test_a_backup_of_everything_comes_back_after_all_is_lost(
    spark: SparkSession, open_catalog: Open, location: str, tmp_path: Path
) -> None:
    catalog = open_catalog(actor="tester")
    filled(catalog)
    path, steps = str(tmp_path / "backup"), list[Step]()
    counted = catalog.backup(path, dry_run=True)
    assert not Path(path).exists()
    report = catalog.backup(path, reason="before the move", progress=steps.append)
    assert (report.entries, report.runs) == (counted.entries, counted.runs)
    assert set(report.entries) >= {"segment", "schema", "retired", "staged", "epoch", "guard"}
    assert report.entries["segment"].rows == 7
    assert len(steps) == 4
    assert catalog.version == report.version
    version = catalog.publish([segment("orders/late")]).version
    assert catalog.backup(path, version=report.version).repeated
    refusal(catalog, PathOccupied, lambda: catalog.backup(path), "another version")
    refusal(catalog, PathOccupied, lambda: catalog.backup(location), "over the catalog")
    refusal(catalog, PathOccupied, lambda: catalog.backup(f"{location}/entries"), "over a table")
    cache = catalog.cache()
    assert cache.version == version

    with pytest.raises(PathOccupied):
        Catalog.restore(spark, path, location)
    kept = spark.createDataFrame(catalog._store.rows(report.version).toArrow())
    runs = catalog.runs().toArrow().to_pylist()
    shutil.rmtree(location)
    restored = Catalog.restore(spark, path, location, actor="tester", reason="all is lost")
    assert (restored.rows, restored.runs, restored.repeated) == (report.rows, 1, False)
    assert Catalog.restore(spark, path, location).repeated
    again = open_catalog(actor="tester")
    assert_same_rows(again, kept)
    assert again.runs().toArrow().to_pylist() == runs
    assert again.verify(since=0).ok

    # A poller that has outlived the table, even at the same version, sees the new one as a whole.
    assert cache.poll().reloaded
    assert cache.snapshot.content() == again.cache().snapshot.content()
    assert cache.datasources() == {"orders": 6, "visits": 1}
    # Operations go on where they were.
    assert again.operation(id="open").publish().state == "published"
    assert again.advance(4).applied == ("ready",)
    assert again.verify(since=0).ok
