"""The notebooks, run cell by cell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog
from tests.notebooks.notebook import Notebook, cells_of
from tests.sessions import ROOT
from tests.unit.builders import segment

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_is_in_source_format_with_words_and_widgets(file: Path) -> None:
    cells = cells_of(file)
    assert cells[0].language == "md"
    code = "\n".join(cell.text for cell in cells if cell.language == "python")
    assert 'dbutils.widgets.text("location"' in code
    assert "sys.path" not in code


def test_the_quickstart_and_the_sql_notebook_run_on_one_catalog(
    spark: SparkSession, location: str
) -> None:
    spark = spark.newSession()  # with temporary views of its own
    quickstart = Notebook(spark, ROOT / "notebooks" / "01_quickstart.py", location=location).run()
    names = quickstart.names
    assert (names["result"].inserted, names["dropped"].dropped) == (5, 3)
    assert len(names["report"].retired) == 1
    assert names["checked"].ok, names["checked"]
    segments, schemas, answered, orphans, retired, history = quickstart.shown
    shown = (segments, schemas, answered, orphans, retired)
    assert [len(rows) for rows in shown] == [5, 2, 5, 1, 1]
    assert [row["verb"] for row in history][:2] == ["retire", "drop"]

    sql = Notebook(spark, ROOT / "notebooks" / "02_sql.py", location=location).run()
    datasources, by_schema, ddls, with_it, columns, differing, before, growth = sql.shown
    assert [(row["datasource"], row["num_segments"]) for row in datasources] == [("orders", 2)]
    assert [row["segments"] for row in by_schema] == [2]
    assert ddls[0]["ddl"].endswith("currency STRING")
    assert len(with_it) == 2
    assert {row["path"] for row in columns} == {"order_id", "amount", "currency"}
    assert len(differing) == 3
    assert before == [{"datasource": "orders", "count": 5}]  # version 1, before the drop
    assert [(row["added"], row["removed"]) for row in growth] == [(0, 3), (0, 0)]


def test_the_sql_notebook_uses_the_views_of_a_metastore(
    spark: SparkSession, schema_name: str
) -> None:
    spark = spark.newSession()  # with a current schema of its own
    with Catalog.open(spark, schema_name) as catalog:
        catalog.publish([segment("visits/1"), segment("visits/2", "b STRING")])
    fingerprint = segment("visits/2", "b STRING").schema.fingerprint
    file = ROOT / "notebooks" / "02_sql.py"
    sql = Notebook(spark, file, location=schema_name, schema=fingerprint[:6]).run()
    assert sql.shown[0][0]["datasource"] == "visits"
    assert [row["segment_id"] for row in sql.shown[3]] == ["visits/2"]


def test_the_notebook_on_schema_evolution_reads_the_files_that_it_wrote(
    spark: SparkSession, location: str, tmp_path: Path
) -> None:
    file = ROOT / "notebooks" / "03_schema_evolution.py"
    notebook = Notebook(spark, file, location=location, files=str(tmp_path / "files")).run()
    segments, changes, columns, in_sql, read, narrower, upgraded, judged = notebook.shown
    assert [len(rows) for rows in (segments, read, narrower)] == [3, 9, 9]
    assert [(row["path"], row["change"], row["forward"]) for row in changes] == [
        ("amount", "widened", False),
        ("currency", "added nullable", True),
    ]
    paths = ["order_id", "amount", "currency", "lines", "lines.element.sku", "lines.element.qty"]
    assert [row["path"] for row in columns] == paths
    assert (columns[1]["type"], columns[1]["types"]) == ("bigint", {"int": 1, "bigint": 2})
    assert {row["path"]: row["num_segments"] for row in in_sql} == {
        row["path"]: row["segments"] for row in columns
    }
    assert [row["segment_id"] for row in read[::3]] == [
        f"evolving/2024-01-0{day}" for day in (1, 2, 3)
    ]
    assert [row["amount"] for row in read] == [0, 10, 20] * 3
    assert [row["currency"] for row in read] == [None] * 3 + ["EUR"] * 3 + [None] * 3
    assert [row["lines"] is None for row in read] == [True] * 6 + [False] * 3
    assert notebook.names["refused"].condition == "WOULD_LOSE"
    assert set(narrower[0]) == {"order_id", "amount", "currency"}
    assert upgraded == [{"order_id": 7, "amount": 70, "currency": None, "lines": None}]
    assert {row["mode"]: row["allowed"] for row in judged} == {
        "none": True,
        "backward": True,
        "backward_transitive": True,
        "forward": True,
        "forward_transitive": False,
        "full": True,
        "full_transitive": False,
    }


def test_the_notebook_on_backfill_shows_each_way_to_a_schema(
    spark: SparkSession, location: str, tmp_path: Path
) -> None:
    file = ROOT / "notebooks" / "04_backfill.py"
    notebook = Notebook(spark, file, location=location, files=str(tmp_path / "files")).run()
    broken, published, waiting, places, steps, quarantine, seen, counters, read = notebook.shown
    old, new = "sensor STRING, value DOUBLE", "sensor STRING, value DOUBLE, unit STRING"
    assert [row["path"].rpartition("/")[2] for row in broken] == ["3.parquet"]
    assert [(row["segment_id"], row["ddl"], row["num_rows"]) for row in published] == [
        ("readings/1.parquet", old, 2),
        ("readings/2.parquet", old, 2),
    ]
    assert [(row["segment_id"], row["quarantined"]) for row in waiting] == [
        (f"readings/{day}.parquet", False) for day in (4, 5, 6)
    ]
    # The background may have stored the answer before the notebook could look.
    assert places[0]["place"] in ("pending", "backfilled")
    assert [row["place"] for row in places[1:]] == ["backfilled", "published"]
    assert [(row["done"], row["total"]) for row in steps] == [(0, 2), (1, 2), (2, 2)]
    (put_aside,) = quarantine
    assert (put_aside["segment_id"], put_aside["attempts"]) == ("readings/6.parquet", 1)
    assert "6.parquet cannot be read as parquet" in put_aside["reason"]
    mended = notebook.names["mended"]
    assert (mended.completed, mended.quarantined) == (1, ())
    assert [(row["place"], row["columns"], row["num_rows"]) for row in seen] == [
        ("realtime", old, 1),
        ("realtime", new, 2),
        ("published", new, 2),
    ]
    figures = {row["name"].removeprefix("strata_cache_"): row["value"] for row in counters}
    assert (figures["published"], figures["without_schema"]) == (6, 0)
    assert (figures["resolved"], figures["stored"], figures["pending"]) == (1, 1, 0)
    assert notebook.names["stopped"].left == ()
    assert notebook.names["checked"].ok, notebook.names["checked"]
    assert [row["unit"] for row in read].count("C") == 5
    assert len(read) == 12


def test_the_notebook_on_operations_begins_anew_and_shows_each_change_at_one_moment(
    spark: SparkSession, location: str
) -> None:
    with Catalog.open(spark, location, actor="operations") as catalog:
        left = catalog.operation("open from the last time", parts=1)
        left.stage(0, publish=[segment("shop/1")])
        waiting = catalog.operation("ready from the last time", parts=1)
        waiting.stage(0, publish=[segment("shop/2")])
        waiting.publish(epoch=7)
    file = ROOT / "notebooks" / "05_operations.py"
    notebook = Notebook(spark, file, location=location).run()
    names = notebook.names
    described, claims, after, changed, ready, step, lives, history = notebook.shown
    assert [(row["key"], row["revision"]) for row in described] == [
        ("index/shop", 1),
        ("table/shop", 1),
    ]
    assert {(row["target"], row["key"], row["action"], row["shared"]) for row in claims} == {
        ("datasource", "shop", "hold", True),
        ("object", "index/shop", "bump", False),
        ("object", "table/shop", "put", False),
        *(("segment", f"shop/{day}", "replace", False) for day in (1, 2, 3)),
    }
    assert names["status"].staged == (0, 1, 2)
    assert (names["refused"].condition, names["final"].condition) == (
        "CLAIM_CONFLICT",
        "OPERATION_DECIDED",
    )
    assert [(row["key"], row["revision"]) for row in after] == [
        ("index/shop", 2),
        ("table/shop", 2),
    ]
    assert after[0]["links"] == {"table/shop": 2}
    assert json.loads(after[1]["body"]) == {"owner": "ann", "amounts": "decimal"}
    assert {row["version"] for row in changed} == {names["published"].version}
    assert [(row["kind"], row["key"], row["change"]) for row in changed] == [
        ("object", "index/shop", "changed"),
        ("object", "table/shop", "changed"),
        *(("segment", f"shop/{day}", "changed") for day in (1, 2, 3)),
    ]
    assert [row["name"] for row in ready] == [
        "the fourth day",
        "a mistake",
        "undo the mistake",
    ]
    assert [(row["key"], row["change"]) for row in step] == [("shop/4", "added")]
    assert len(names["step"].applied) == 3
    assert [each.name for each in names["report"].aborted] == ["left alone"]
    from_before = [(left.name, "aborted"), (waiting.name, "published")]
    assert [(row["name"], row["state"]) for row in lives[:2]] == from_before
    assert [row["state"] for row in lives[2:]] == ["published"] * 4 + ["aborted"]
    assert history[0]["verb"] == "sweep operations"
    assert names["checked"].ok, names["checked"]


@pytest.mark.stress
def test_the_notebook_on_the_platform_shows_rules_versions_contracts_and_ways_back(
    spark: SparkSession, location: str, tmp_path: Path
) -> None:
    spark = spark.newSession()  # with temporary views of its own
    file = ROOT / "notebooks" / "06_platform.py"
    notebook = Notebook(spark, file, location=location, backup=str(tmp_path / "backup")).run()
    names = notebook.names
    links, history, tasks, segments = notebook.shown
    assert names["broken"].values["rule"] == "one_of_siblings"
    assert [(row["datastore"], row["role"]) for row in links] == [
        ("cold", "archive"),
        ("hot", "primary"),
    ]
    assert (names["joined"].version, names["joined"].merged) == (3, True)
    assert names["order"].ddl == "id BIGINT NOT NULL, amount BIGINT, note STRING"
    assert [each["path"] for each in names["refused"].values["reasons"]] == ["id"]
    (offence,) = names["violated"].values["breaches"]
    assert [each["rule"] for each in offence["breaches"]] == ["nullable", "type", "unknown"]
    assert [(row["change"], row["sessions"]) for row in history] == [("insert", ["notebook 06"])]
    assert [(row["name"], row["state"]) for row in tasks] == [("cleanup", "done")]
    assert [each.segments for each in names["would"].datasources] == [2]
    assert (names["done"].dropped, names["back"].rows, len(segments)) == (2, 2, 4)
    assert names["saved"].rows > 0
