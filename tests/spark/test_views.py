"""The views: comments on every column, and the past; the README and the demo."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession

from catalog import Catalog
from catalog.errors import InvalidInput, VersionNotFound
from catalog.table.views import VIEWS
from tests.sessions import ROOT
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
    names = catalog.create_views("meta_")
    assert names == [f"meta_{view.name}" for view in VIEWS]
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
    Catalog.open(spark, schema_name)
    for view in VIEWS:
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
    moment = catalog.history().where("version = 1").collect()[0]["timestamp"].astimezone(UTC)
    assert catalog.segments(as_of=moment).count() == 3
    assert catalog.segments(as_of=datetime.now(UTC) + timedelta(days=1)).count() == 2
    with pytest.raises(VersionNotFound, match="reach back"):
        catalog.segments(as_of=datetime(2001, 1, 1, tzinfo=UTC))
    with pytest.raises(InvalidInput, match="time zone"):
        catalog.segments(as_of=datetime(2001, 1, 1))
    frame = catalog.segments()
    catalog.drop(datasource="orders")
    assert frame.count() == 2  # pinned to the version it was made at


def test_the_readme_example_runs(spark: SparkSession, tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    snippets = re.findall(r"<!-- tested -->\n```python\n(.+?)```", readme, re.DOTALL)
    assert snippets
    names = {"spark": spark, "location": str(tmp_path / "meta")}
    for number, snippet in enumerate(snippets):
        exec(compile(snippet, f"README.md snippet {number + 1}", "exec"), names)


def test_the_page_on_schemas_runs(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "schemas.md").read_text()
    names = {"spark": spark, "catalog": catalog, "folder": str(tmp_path / "files")}
    blocks = re.findall(r"^```python\n(.+?)^```$", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 8
    for number, code in enumerate(blocks):
        exec(compile(code, f"schemas.md block {number + 1}", "exec"), names)


def test_the_demo_runs(spark: SparkSession, tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    from catalog.cli.tour import tour

    tour(spark, tmp_path)
    shown = capsys.readouterr().out
    assert "7 segments inserted, 3 schemas" in shown
    assert "2 files, 1 published" in shown
    assert "2 segments wait for their schemas" in shown
    assert "1 completed, 1 in quarantine" in shown
    assert "All promises hold at versions 0 to" in shown
