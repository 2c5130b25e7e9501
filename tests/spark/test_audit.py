"""Who changed what: every caller of a commit, every key with its caller, also past the log."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Object, Settings
from catalog.audit.roller import Gap
from catalog.errors import InvalidInput, ReadOnly, VersionNotFound
from catalog.waiting import Surroundings
from tests.concurrency.gates import Gate, Side, assert_promises

from tests.unit.builders import segment

Open = Callable[..., Catalog]
NOW = timedelta(0)


def life(catalog: Catalog, key: str, **asked: Any) -> list[tuple[Any, ...]]:
    """What happened to a key, from the first change on: verb, kind, change, actors."""
    rows = catalog.history(1000, key=key, **asked).collect()
    return [(r["verb"], r["kind"], r["change"], r["actors"]) for r in reversed(rows)]


def fill(catalog: Catalog) -> str:
    """A life of a segment, an object and a schema; returns the fingerprint of the schema."""
    made = segment("orders/1", "a INT")
    catalog.publish([made], actor="ann", reason="new")
    catalog.publish([segment("orders/1", "a INT", rows=7)], on_existing="replace", actor="bob")
    catalog.drop(["orders/1"], actor="cem", reason="bad")
    catalog.put(Object("table/o", {"a": 1}), actor="ann")
    catalog.put(Object("table/o", {"a": 2}), actor="bob")
    catalog.remove("table/o", actor="cem")
    catalog.cleanup(grace=NOW, actor="dee")
    catalog.publish([segment("orders/2", "a INT")], actor="ann")
    catalog.drop(["orders/2"], actor="cem")
    catalog.cleanup(grace=NOW, actor="dee")
    catalog.cleanup(grace=NOW, actor="dee")
    catalog.cleanup(grace=NOW, actor="dee")
    return made.fingerprint or ""


SEGMENT = [
    ("publish", "segment", "insert", ["ann"]),
    ("publish", "segment", "update", ["bob"]),
    ("drop", "segment", "delete", ["cem"]),
]
OBJECT = [
    ("put", "object", "insert", ["ann"]),
    ("put", "object", "update", ["bob"]),
    ("remove", "object", "delete", ["cem"]),
]
SCHEMA = [
    ("publish", "schema", "insert", ["ann"]),
    ("retire", "schema", "delete", ["dee"]),
    ("retire", "retired", "insert", ["dee"]),
    # Its publish brings it back, and the next clean-up takes away what was put aside.
    ("publish", "schema", "insert", ["ann"]),
    ("purge", "retired", "delete", ["dee"]),
    ("retire", "schema", "delete", ["dee"]),
    ("retire", "retired", "insert", ["dee"]),
    ("purge", "retired", "delete", ["dee"]),
]


def lives(catalog: Catalog, fingerprint: str) -> list[list[tuple[Any, ...]]]:
    found = [life(catalog, key) for key in ("orders/1", "table/o", fingerprint)]
    # A drop and its segment carry the fingerprint, but are not the schema's.
    return [*found[:2], sorted(found[2], key=found[2].index)]


@pytest.mark.connect
def test_the_lives_of_a_segment_an_object_and_a_schema_outlast_the_log(
    open_catalog: Open, spark: SparkSession
) -> None:
    catalog = open_catalog(actor="tester", session="notebook 7")
    fingerprint = fill(catalog)
    live = [life(catalog, key) for key in ("orders/1", "table/o", fingerprint)]
    assert live[0] == SEGMENT
    assert live[1] == OBJECT
    assert live[2] == SCHEMA
    (change,) = catalog.history(1, key="orders/1", actor="bob").collect()
    assert (change["num_rows_before"], change["num_rows"], change["revision"]) == (1, 7, 2)
    assert (change["sessions"], change["reasons"], change["runs"]) == (["notebook 7"], [""], [])
    commits = [tuple(row) for row in catalog.history(1000).collect()]
    before = catalog.version
    report = catalog.maintain(retain=NOW, cut_off_pollers=True)
    assert report.audit is not None
    assert (report.audit.gaps, report.audit.reached >= before) == ((), True)
    with pytest.raises(VersionNotFound):
        catalog.changes(1).collect()
    assert [life(catalog, key) for key in ("orders/1", "table/o", fingerprint)] == live
    # Rolled and live together, each version once.
    catalog.publish([segment("orders/1", "a INT")], actor="eve")
    assert life(catalog, "orders/1") == [*SEGMENT, ("publish", "segment", "insert", ["eve"])]
    assert [tuple(row) for row in catalog.history(1000, until=before).collect()] == commits
    rolled = catalog.roll_audit()
    assert rolled.rolled > 0
    assert catalog.roll_audit().rolled == 0
    again = spark.sql(f"SELECT * FROM delta.`{catalog.location}/audit`")
    assert again.where("record = 'commit'").count() == rolled.reached + 1
    assert again.count() == again.select("version", "record", "kind", "key").distinct().count()
    assert life(catalog, "orders/1") == [*SEGMENT, ("publish", "segment", "insert", ["eve"])]
    # A datasource stands for its segments.
    assert {row["key"] for row in catalog.history(99, key="orders").collect()} == {
        "orders",
        "orders/1",
        "orders/2",
    }
    assert catalog.verify().ok
