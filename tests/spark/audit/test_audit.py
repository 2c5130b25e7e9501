"""Who changed what: every caller of a commit, every key with its caller, also past the log."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Object, Settings
from catalog.audit import roller
from catalog.audit.roller import Gap
from catalog.environment import Environment
from catalog.errors import InvalidInput, ReadOnly, VersionNotFound
from tests.concurrency.gates import Gate, Side, assert_promises
from tests.spark.together import Together
from tests.unit.builders import segment

Open = Callable[..., Catalog]
NOW = timedelta(0)


def life(catalog: Catalog, key: str, **asked: Any) -> list[tuple[Any, ...]]:
    """What happened to a key, from the first change on: verb, kind, change, actors."""
    rows = catalog.audit.history(1000, key=key, **asked).collect()
    return [(r["verb"], r["kind"], r["change"], r["actors"]) for r in reversed(rows)]


def fill(catalog: Catalog) -> str:
    """A life of a segment, an object and a schema; returns the fingerprint of the schema."""
    made = segment("orders/1", "a INT")
    catalog.publish([made], actor="ann", reason="new")
    catalog.publish([segment("orders/1", "a INT", rows=7)], on_existing="replace", actor="bob")
    catalog.drop(["orders/1"], actor="cem", reason="bad")
    catalog.objects.put(Object("table/o", {"a": 1}), actor="ann")
    catalog.objects.put(Object("table/o", {"a": 2}), actor="bob")
    catalog.objects.remove("table/o", actor="cem")
    catalog.cleanup(grace=NOW, actor="dee")
    catalog.publish([segment("orders/2", "a INT")], actor="ann")
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
]


@pytest.mark.stress
def test_the_lives_of_a_segment_an_object_and_a_schema_outlast_the_log(
    open_catalog: Open, spark: SparkSession
) -> None:
    catalog = open_catalog(actor="tester", session="notebook 7")
    fingerprint = fill(catalog)
    live = [life(catalog, key) for key in ("orders/1", "table/o", fingerprint)]
    assert live[0] == SEGMENT
    assert live[1] == OBJECT
    assert live[2] == SCHEMA
    (change,) = catalog.audit.history(1, key="orders/1", actor="bob").collect()
    assert (change["num_rows_before"], change["num_rows"], change["revision"]) == (1, 7, 2)
    assert (change["sessions"], change["reasons"], change["runs"]) == (["notebook 7"], [""], [])
    commits = [tuple(row) for row in catalog.audit.history(1000).collect()]
    before = catalog.version
    report = catalog.maintain(retain=NOW, cut_off_pollers=True)
    assert report.audit is not None
    assert (report.audit.gaps, report.audit.reached >= before) == ((), True)
    with pytest.raises(VersionNotFound):
        catalog.audit.changes(1).collect()
    assert [life(catalog, key) for key in ("orders/1", "table/o", fingerprint)] == live
    # Rolled and live together, each version once.
    catalog.publish([segment("orders/1", "a INT")], actor="eve")
    assert life(catalog, "orders/1") == [*SEGMENT, ("publish", "segment", "insert", ["eve"])]
    assert [tuple(row) for row in catalog.audit.history(1000, until=before).collect()] == commits
    rolled = catalog.audit.roll()
    assert rolled.rolled > 0
    assert catalog.audit.roll().rolled == 0
    again = spark.sql(f"SELECT * FROM delta.`{catalog.location}/audit`")
    assert again.where("record = 'commit'").count() == rolled.reached + 1
    assert again.count() == again.select("version", "record", "kind", "key").distinct().count()
    assert life(catalog, "orders/1") == [*SEGMENT, ("publish", "segment", "insert", ["eve"])]
    # A datasource stands for its segments.
    assert {row["key"] for row in catalog.audit.history(99, key="orders").collect()} == {
        "orders",
        "orders/1",
        "orders/2",
    }
    assert catalog.verify().ok


def rolled(spark: SparkSession, catalog: Catalog) -> list[tuple[Any, ...]]:
    """What the audit table has: version, record, kind, key, actors."""
    rows = spark.sql(
        "SELECT version, record, kind, key, callers.actor AS actors FROM "
        f"{catalog.location.table('audit')} ORDER BY ALL"
    )
    return [tuple(row) for row in rows.collect()]


@pytest.mark.connect
def test_a_group_commit_shows_every_caller_and_each_key_its_own(
    spark: SparkSession, catalog: Catalog
) -> None:
    catalog.publish([segment("orders/0")])
    Together(catalog).publish(
        [[segment(f"orders/{n}"), segment(f"other/{n}", f"c{n} INT")] for n in range(1, 4)]
    )
    (commit,) = catalog.audit.history(1).collect()
    callers = [f"caller {n}" for n in range(3)]
    assert (commit["actors"], commit["verb"]) == (callers, "publish")
    assert [caller["actor"] for caller in commit["callers"]] == callers
    assert catalog.audit.history(9, actor="caller 1").count() == 1
    assert catalog.audit.history(9, actor="nobody").count() == 0
    expected = {
        f"{name}/{n}": [f"caller {n - 1}"] for n in (1, 2, 3) for name in ("orders", "other")
    }

    def told() -> dict[str, Any]:
        rows = catalog.audit.history(99, kind="segment", since=2).collect()
        return {row["key"]: row["actors"] for row in rows}

    assert told() == expected
    catalog.audit.roll()
    assert told() == expected
    assert catalog.audit.history(9, kind="segment", actor="caller 2").count() == 2
    catalog.inspect.create_views()
    found = spark.sql(
        "SELECT key, actors, rolled FROM changes WHERE kind = 'segment' AND version = 2"
    )
    assert {row["key"]: row["actors"] for row in found.collect()} == expected
    with pytest.raises(InvalidInput, match="segmnt"):
        catalog.audit.history(kind="segmnt")
    with pytest.raises(InvalidInput, match="limit"):
        catalog.audit.history(0)


class Crash(BaseException):
    """Ends a process at a point, as far as the table can tell."""


@pytest.mark.stress
@pytest.mark.exact
def test_a_roll_that_is_stopped_anywhere_is_simply_run_again(
    spark: SparkSession, open_catalog: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roller, "BATCH", 2)
    catalog = open_catalog()
    for number in range(4):
        catalog.publish([segment(f"orders/{number}")], actor=f"a{number}")
    assert catalog.audit.roll(dry_run=True).rolled == 5
    seen: list[str] = []

    def crash(point: str) -> None:
        if point in ("roll.begins", "roll.batch", "maintain.rolled") and point not in seen:
            seen.append(point)
            raise Crash(point)

    # Before the first batch, after it, and between the roll and the vacuum.
    for _ in range(3):
        fragile = open_catalog(environment=Environment(at=crash))
        with pytest.raises(Crash):
            fragile.maintain(retain=NOW, cut_off_pollers=True)
    assert seen == ["roll.begins", "roll.batch", "maintain.rolled"]
    report = catalog.maintain(retain=NOW, cut_off_pollers=True)
    assert report.audit is not None
    assert report.audit.gaps == ()
    rows = rolled(spark, catalog)
    assert len(rows) == len({row[:4] for row in rows})
    assert [row[0] for row in rows if row[1] == "commit"] == list(range(report.audit.reached + 1))
    keys = {(row[3], *row[4]) for row in rows if row[2] == "segment"}
    assert keys == {(f"orders/{n}", f"a{n}") for n in range(4)}
    assert [c["version"] for c in catalog.audit.history(99, until=4).collect()] == [4, 3, 2, 1, 0]


@pytest.mark.stress
def test_two_that_roll_at_once_keep_each_version_once(
    spark: SparkSession, open_catalog: Open, tmp_path: Path
) -> None:
    free = Settings(file_lock=False)
    catalog = open_catalog(settings=free)
    catalog.publish([segment("orders/1")])
    catalog.audit.roll()
    catalog.publish([segment("orders/2")])
    gate = Gate(tmp_path)
    slow = open_catalog(settings=free, environment=gate.inside("roll"))
    side = Side(slow.audit.roll)
    gate.await_reached()
    catalog.publish([segment("orders/3")])
    assert catalog.audit.roll().reached == 3
    gate.open()
    assert side.result.reached == 3
    rows = rolled(spark, catalog)
    assert len(rows) == len({row[:4] for row in rows})
    assert [row[0] for row in rows if row[1] == "commit"] == [0, 1, 2, 3]
    assert_promises(catalog)


@pytest.mark.stress
def test_what_is_rolled_too_late_is_told_as_a_gap(spark: SparkSession, open_catalog: Open) -> None:
    catalog = open_catalog()
    log = Path(f"{catalog.location}/entries/_delta_log")
    spark.sql(
        f"ALTER TABLE {catalog.location.table('entries')} "
        "SET TBLPROPERTIES (delta.checkpointInterval = 1)"
    )
    for number in range(6):
        catalog.publish([segment(f"orders/{number}", f"c{number} INT")])
    # As a log that is kept for less time, and a VACUUM that somebody else ran.
    for version in range(3):
        for file in log.glob(f"{version:020}.*"):
            file.unlink()
    added = (json.loads(line) for line in (log / f"{5:020}.json").read_text().splitlines())
    for action in added:
        if "add" in action:
            Path(f"{catalog.location}/entries/{action['add']['path']}").unlink()
    with pytest.raises(VersionNotFound, match=r"audit\.roll"):
        catalog.audit.history(99, key="orders/4").collect()
    report = catalog.audit.roll()
    assert report.gaps == (Gap(0, 2, "commits"), Gap(5, 5, "changes"))
    assert (report.reached, report.rolled) == (7, 8)
    rows = catalog.audit.history(99, key="orders/4").collect()
    assert [(r["verb"], r["first_version"], r["version"]) for r in rows] == [
        ("publish", 6, 6),
        ("gap: changes", 5, 5),
        ("gap: commits", 0, 2),
    ]
    rows = catalog.audit.history(99).collect()
    assert [(r["verb"], r["first_version"]) for r in rows if r["version"] in (2, 5)] == [
        ("publish", 5),
        ("gap", 0),
    ]
    assert [r["verb"] for r in catalog.audit.history(99, key="orders/5", since=6).collect()] == [
        "publish"
    ]
    assert catalog.audit.roll().gaps == ()


def test_a_catalog_that_is_only_read_tells_its_history_and_does_not_roll(
    open_catalog: Open,
) -> None:
    open_catalog(actor="ann").publish([segment("orders/1")])
    reader = open_catalog(read_only=True)
    assert life(reader, "orders/1") == [("publish", "segment", "insert", ["ann"])]
    assert reader.audit.roll(dry_run=True).rolled == 2
    with pytest.raises(ReadOnly):
        reader.audit.roll()


def test_in_a_metastore_the_view_of_changes_goes_on_where_the_audit_ends(
    spark: SparkSession, schema_name: str
) -> None:
    query = f"SELECT version, key, rolled FROM {schema_name}.changes WHERE kind = 'segment'"
    with Catalog.open(spark, schema_name, actor="ann") as catalog:
        catalog.publish([segment("orders/1")])
        assert [tuple(row) for row in spark.sql(query).collect()] == [(1, "orders/1", False)]
        catalog.audit.roll()
        assert [tuple(row) for row in spark.sql(query).collect()] == [(1, "orders/1", True)]
        catalog.publish([segment("orders/2")])
        found = sorted(tuple(row) for row in spark.sql(query).collect())
        assert found == [(1, "orders/1", True), (2, "orders/2", False)]
        described = spark.sql(f"DESCRIBE TABLE {schema_name}.changes").collect()
        assert all(row["comment"] for row in described)
