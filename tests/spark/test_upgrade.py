"""Growing older: a catalog of an older layout is read as it is and written after an upgrade."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog
from catalog.cli import shell
from catalog.delta.layout import ENTRY_COLUMNS, LAYOUT, ColumnSpec, Layout, LayoutStep
from catalog.errors import LayoutTooNew, ReadOnly, UpgradeNeeded
from catalog.sql.audit_views import CHANGES
from catalog.sql.platform_views import PLATFORM_VIEWS
from catalog.sql.views import VIEWS
from tests.spark.prepared import operation, part, stable, staged, stored, write
from tests.unit.builders import segment

# The layout of the first releases, before there were operations.
FIRST = Layout(number=1, columns=ENTRY_COLUMNS)
OF_OPERATIONS = {"operations", "claims"}

# The layout that a later release might have: one more column and one more property.
EXTRA = ColumnSpec("owner", "STRING", "Who the row belongs to; it's new")
LATER = replace(
    LAYOUT,
    number=LAYOUT.number + 1,
    columns=(*LAYOUT.columns, EXTRA),
    steps={**LAYOUT.steps, LAYOUT.number: LayoutStep((EXTRA,), {"delta.checkpointInterval": "50"})},
)


def test_an_older_layout_is_read_and_upgraded_before_writing(
    open_catalog: Callable[..., Catalog], caplog: pytest.LogCaptureFixture
) -> None:
    open_catalog().publish([segment("orders/1")])
    with caplog.at_level(logging.WARNING):
        later = open_catalog(layout=LATER)
    assert "call upgrade()" in caplog.text
    assert later.cache().num_rows("orders/1") == 1
    with pytest.raises(UpgradeNeeded, match=r"upgrade\(\)"):
        later.publish([segment("orders/2")])
    version = later.version
    plan = later.upgrade(dry_run=True)
    assert (plan.before, plan.after) == (LAYOUT.number, LAYOUT.number + 1)
    assert len(plan.statements) == 2
    assert later.version == version
    with pytest.raises(ReadOnly):
        open_catalog(layout=LATER, read_only=True).upgrade()
    later.upgrade()
    assert later.upgrade().statements == ()
    assert later.publish([segment("orders/2")]).inserted == 1
    detail = later._context.store.detail()
    assert detail.properties["delta.checkpointInterval"] == "50"
    assert "owner" in later._context.store.rows(later.version).columns
    with pytest.raises(LayoutTooNew):
        open_catalog()
    assert open_catalog(layout=LATER).cache().datasources() == {"orders": 2}


def test_an_upgrade_that_was_cut_short_is_finished_by_the_next(
    open_catalog: Callable[..., Catalog],
) -> None:
    catalog = open_catalog()
    first = open_catalog(layout=LATER).upgrade(dry_run=True).statements[0]
    catalog._context.store.session.sql(first)  # the column is there, the number is not
    later = open_catalog(layout=LATER)
    assert len(later.upgrade().statements) == 1
    assert later.publish([segment("orders/1")]).inserted == 1


# --- from layout 1 to the newest ------------------------------------------------------------------


@pytest.fixture
def first(spark: SparkSession, open_catalog: Callable[..., Catalog]) -> Catalog:
    """A catalog of layout 1 with two segments and an orphan, opened for reading by this release."""
    made = open_catalog(layout=FIRST)
    write_as_layout_1(spark, str(made.location))
    return open_catalog(read_only=True)


def write_as_layout_1(spark: SparkSession, location: str) -> None:
    """What a release of layout 1 has written: taken from a catalog of now, column by column."""
    now = f"{location}-now"
    with Catalog.open(spark, now) as catalog:
        catalog.publish([segment("orders/1"), segment("orders/2", "b STRING", 5)])
        catalog.publish([segment("orders/3", "c INT")])
        catalog.drop(["orders/3"])
        names = ", ".join(column.name for column in ENTRY_COLUMNS)
        spark.sql(
            f"INSERT INTO delta.`{location}/entries` SELECT {names} FROM delta.`{now}/entries`"
        )


def test_a_catalog_of_layout_1_is_read_as_it_is(
    spark: SparkSession, first: Catalog, open_catalog: Callable[..., Catalog]
) -> None:
    assert first._context.store.rows(1).columns == [column.name for column in ENTRY_COLUMNS]
    assert first.cache().datasources() == {"orders": 2}
    assert first.cache().poll().after == 1
    assert (first.stats().rows, first.stats().orphans, first.stats().objects) == (6, 1, 0)
    for view in VIEWS:
        if view.name not in ("stable_epoch", "settings") and view not in PLATFORM_VIEWS:
            frame = getattr(first.inspect, view.name)()
            assert frame.columns == list(view.columns), view.name
            assert frame.isEmpty() == (view.name in OF_OPERATIONS | NOT_THERE), view.name
    assert first.verify().ok
    made = first.inspect.create_views("old_")
    shown = [view.name for view in (*VIEWS, CHANGES) if view.name not in OF_OPERATIONS]
    assert set(made) == {f"old_{name}" for name in shown}
    assert [row[0] for row in spark.sql("SELECT epoch FROM old_stable_epoch").collect()] == [0]
    assert sum(spark.table(name).count() for name in made) > 0
    for name in made:
        spark.catalog.dropTempView(name)
    for changed in (
        lambda catalog: catalog.publish([segment("orders/4")]),
        lambda catalog: catalog.drop(["orders/1"]),
        lambda catalog: catalog.cleanup(),
    ):
        with pytest.raises(UpgradeNeeded, match=r"layout 1.*upgrade\(\)"):
            changed(open_catalog())
    assert first.version == 1


NOT_THERE = {
    *("segments_without_schema", "retired_schemas", "named_schemas", "schema_versions"),
    *("contracts", "objects", "object_links", "retention_rules"),
}


def test_the_shell_says_how_to_upgrade_and_does_it(
    spark: SparkSession, first: Catalog, capsys: pytest.CaptureFixture[str]
) -> None:
    def strata(*argv: str) -> tuple[int, dict[str, Any]]:
        options = ["--location", str(first.location), "--output", "json"]
        code = shell.main([*argv, *options], lambda *_: nullcontext(spark))
        return code, json.loads(capsys.readouterr().out)

    code, answer = strata("drop", "orders/1", "--no-record")
    assert (code, answer["error"]["condition"]) == (2, "UPGRADE_NEEDED")
    assert "run `strata upgrade`" in answer["error"]["message"]
    code, answer = strata("upgrade", "--dry-run")
    assert (code, answer["facts"]["before"], answer["facts"]["after"]) == (0, 1, LAYOUT.number)
    assert len(answer["tables"]["statements"]) > 1
    assert strata("upgrade")[1]["tables"] == answer["tables"]
    assert strata("upgrade")[1]["facts"]["before"] == LAYOUT.number
    assert strata("drop", "orders/1")[1]["facts"]["dropped"] == 1


@pytest.mark.stress
def test_a_catalog_of_layout_1_is_upgraded_and_then_holds_operations(
    spark: SparkSession, first: Catalog, location: str, open_catalog: Callable[..., Catalog]
) -> None:
    old = open_catalog(layout=FIRST).cache()
    catalog = open_catalog()
    report = catalog.upgrade()
    assert (report.before, report.after, len(report.statements)) == (1, 3, 3)
    assert catalog.upgrade().statements == ()
    assert catalog.publish([segment("orders/4")]).inserted == 1
    assert catalog.drop(["orders/1"]).dropped == 1
    write(
        spark,
        location,
        operation("op"),
        part("op"),
        staged("op", "object", "table/x", "put"),
        stable(3),
        stored("table/x"),
    )
    assert [row["claims"] for row in catalog.inspect.operations().collect()] == [1]
    assert catalog.inspect.operations(as_of=1).isEmpty()  # before there were such columns
    assert catalog.inspect.claims(as_of=1).isEmpty()
    assert first.inspect.operations().count() == 1  # opened before the upgrade, and reads on
    made = catalog.inspect.create_views("new_")
    assert set(made) == {f"new_{view.name}" for view in (*VIEWS, CHANGES)}
    assert [row["epoch"] for row in spark.table("new_stable_epoch").collect()] == [3]
    assert spark.table("new_claims").count() == 1
    for name in made:
        spark.catalog.dropTempView(name)
    # The feed goes from one layout to the other. What was copied carries others' commit ids.
    report = catalog.verify(since=0)
    assert {violation.promise for violation in report.violations} == {"I4"}
    assert {row["version"] for row in report.violations[0].rows} == {1}
    assert catalog.verify(since=1).ok, catalog.verify(since=1)
    assert old.poll().after == catalog.version
    with pytest.raises(LayoutTooNew):
        open_catalog(layout=FIRST)


def _views(spark: SparkSession, schema_name: str) -> set[str]:
    """The persistent views of a schema: Spark lists the session's temporary ones with them."""
    rows = spark.sql(f"SHOW VIEWS IN {schema_name}").collect()
    return {row["viewName"] for row in rows if not row["isTemporary"]}


@pytest.mark.stress
def test_the_views_of_a_schema_come_with_the_upgrade(spark: SparkSession, schema_name: str) -> None:
    Catalog.open(spark, schema_name, layout=FIRST).close()
    with Catalog.open(spark, schema_name) as catalog:
        shown = _views(spark, schema_name)
        assert shown == {view.name for view in (*VIEWS, CHANGES)} - OF_OPERATIONS
        with pytest.raises(UpgradeNeeded):
            catalog.inspect.create_views()
        catalog.upgrade()
        shown = _views(spark, schema_name)
        assert shown == {view.name for view in (*VIEWS, CHANGES)}
        assert spark.table(f"{schema_name}.operations").count() == 0
