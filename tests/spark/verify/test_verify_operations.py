"""Verify names what is wrong with operations and objects. The damage is done by raw SQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, VerifyReport
from catalog.verify import verifier
from tests.spark.prepared import add, operation, part, stable, staged, stored, table, write
from tests.unit.builders import segment

UNKNOWN = "0" * 32


def found(report: VerifyReport, promise: str, what: str, column: str) -> set[Any]:
    """The values that the rows of a violation have in a column."""
    violations = [v for v in report.violations if (v.promise, v.what) == (promise, what)]
    rows = [row for violation in violations for row in violation.rows]
    assert sum(v.count for v in violations) == len(rows)
    return {row[column] for row in rows}


# --- one version ----------------------------------------------------------------------------------


def sound() -> list[dict[str, Any]]:
    """What may stand side by side: shared holds, two parts on a key, one behind a ready one."""
    return [
        operation("one", parts=2),
        part("one", 0),
        part("one", 1),
        staged("one", "object", "table/x", "put", 0),
        staged("one", "object", "table/x", "put", 1),
        staged("one", "object", "table/y", "hold"),
        staged("one", "segment", "orders/1", "replace"),
        staged("one", "datasource", "orders", "hold"),
        operation("two"),
        part("two"),
        staged("two", "object", "table/y", "hold"),
        staged("two", "datasource", "orders", "hold"),
        operation("first", "ready", epoch=3),
        part("first"),
        staged("first", "object", "table/z", "put"),
        operation("second"),
        part("second"),
        staged("second", "object", "table/z", "remove", base="after"),
        # Decided and not swept yet: it claims nothing.
        operation("past", "aborted"),
        staged("past", "object", "table/x", "put"),
        stable(2),
        stored("table/x"),
        stored("table/y", 4, {"table/x": 1}, body='{"a":[1,2.5,"ü"]}', datasource="orders"),
    ]


DAMAGE = {
    "a staged change without an operation": (
        [staged("nobody", "segment", "orders/lost", "publish")],
        ("I4", "a staged change or a part has no operation", "key"),
        {"orders/lost"},
    ),
    "a part without an operation": (
        [part("nobody", 3)],
        ("I4", "a staged change or a part has no operation", "key"),
        {"nobody/3"},
    ),
    "a staged change without its part": (
        [staged("one", "segment", "orders/9", "publish", 7)],
        (
            "I4",
            "a staged change of an undecided operation belongs to a part that is not there",
            "part",
        ),
        {7},
    ),
    "two exclusive holders": (
        [staged("two", "object", "table/x", "put")],
        ("I7", "several open operations hold a key, and not all of them share it", "key"),
        {"table/x"},
    ),
    "an exclusive holder of what others share": (
        [operation("third"), part("third"), staged("third", "datasource", "orders", "claim")],
        ("I7", "several open operations hold a key, and not all of them share it", "key"),
        {"orders"},
    ),
    "ready at the stable epoch": (
        [operation("late", "ready", epoch=2)],
        ("I8", "an operation is ready at no epoch above the stable one", "operation"),
        {"late"},
    ),
    "ready without an epoch": (
        [operation("none", "ready")],
        ("I8", "an operation is ready at no epoch above the stable one", "operation"),
        {"none"},
    ),
    "a fingerprint of a staged change without payload": (
        [staged("one", "segment", "orders/8", "publish", fingerprint=UNKNOWN)],
        ("I3", "a fingerprint leads to no payload", "key"),
        {"orders/8"},
    ),
    "rows in wrong buckets": (
        [
            {**staged("one", "segment", "orders/a", "drop"), "bucket": 99},
            {**staged("one", "object", "table/b", "bump"), "bucket": 99},
            {**staged("one", "datasource", "clicks", "hold"), "bucket": 99},
            staged("one", "nonsense", "who/knows", "put"),
            {**operation("c", "aborted"), "bucket": 99},
            {**part("c"), "bucket": 99},
            {**stored("table/d"), "bucket": 99},
            {**stable(1), "key": "other", "bucket": 99},
        ],
        ("I2", "a row is in a bucket where its key is not looked up", "key"),
        {"orders/a", "table/b", "clicks", "who/knows", "c", "c/0", "table/d", "other"},
    ),
    "one staged change twice": (
        [staged("one", "segment", "orders/1", "replace")],
        ("I2", "more than one row for a key of a kind", "key"),
        {"orders/1"},
    ),
    "a body that is not the object's": (
        [{**stored("table/e"), "payload": '{"id":"1","body":{"a":1},"links":{}}'}],
        ("I5", "an object's content does not have its digest", "key"),
        {"table/e"},
    ),
    "a payload that is no object's": (
        [{**stored("table/f"), "payload": "{"}],
        ("I5", "an object's content does not have its digest", "key"),
        {"table/f"},
    ),
    "a link to nowhere": (
        [stored("index/g", links={"table/none": 1})],
        ("I3", "an object links to one that is not there", "target"),
        {"table/none"},
    ),
    "a link with another revision": (
        [stored("index/h", links={"table/y": 3})],
        ("I4", "a link does not have its target's revision", "key"),
        {"index/h"},
    ),
}


@pytest.fixture(scope="module")
def damaged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> VerifyReport:
    """What is found in a catalog that was sound until all of the damage was done to it."""
    location = str(tmp_path_factory.mktemp("damaged") / "meta")
    with Catalog.open(spark, location) as catalog:
        catalog.publish([segment("orders/1")])
        write(spark, location, operation("first"), operation("past"))
        write(spark, location, *sound())
        report = catalog.verify(since=0)
        assert report.ok, report
        add(spark, location, *(row for rows, _, _ in DAMAGE.values() for row in rows))
        report = catalog.verify()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(verifier, "FEW_ROWS", 1)
            scanned = catalog.verify()
        # A catalog that is too large to be kept is judged in the same way.
        assert counted(scanned) == counted(report)
        return report


def counted(report: VerifyReport) -> set[tuple[str, str, int]]:
    """How many rows show each sort of violation."""
    return {(each.promise, each.what, each.count) for each in report.violations}


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_to_operations_and_objects_is_named_with_its_rows(
    damaged: VerifyReport, case: str
) -> None:
    _, sort, expected = DAMAGE[case]
    assert found(damaged, *sort) >= expected


def test_nothing_but_the_damage_is_named(damaged: VerifyReport) -> None:
    expected: dict[tuple[str, str, str], set[Any]] = {}
    for _, sort, values in DAMAGE.values():
        expected.setdefault(sort, set()).update(values)
    assert {sort: found(damaged, *sort) for sort in expected} == expected
    assert {(v.promise, v.what) for v in damaged.violations} == {sort[:2] for sort in expected}


# --- every version --------------------------------------------------------------------------------

OPENED = (
    *("now", "epoch", "abort", "twice", "undone", "early"),
    *("behind", "low", "again", "gone", "lost", "late"),
)


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    """Six versions in which each operation lives as it should or breaks one rule."""
    location = str(tmp_path_factory.mktemp("history") / "meta")
    with Catalog.open(spark, location) as catalog:
        write(
            spark,
            location,
            stable(1),
            *(operation(id) for id in OPENED),
            part("lost"),
            part("late"),
            staged("now", "segment", "orders/1", "publish"),
            part("now"),
            *(stored(f"table/{name}") for name in "abc"),
            *(stored(f"index/{name}", links={f"table/{name}": 1}) for name in "abc"),
        )
        write(  # version 2
            spark,
            location,
            operation("now", "published"),
            operation("epoch", "ready", epoch=2),
            operation("abort", "aborted"),
            operation("twice", "published"),
            operation("undone", "published"),
            operation("early", "ready", epoch=5),
            operation("behind", "ready", epoch=2),
            operation("low", "ready", epoch=1),
            operation("again", "ready", epoch=7),
            operation("late", "ready", epoch=9),
            operation("straight", "published"),
        )
        write(  # version 3: to epoch 2
            spark,
            location,
            stable(2),
            operation("epoch", "published", epoch=2),
            operation("low", "published", epoch=1),
            operation("early", "published", epoch=5),
            operation("twice", "aborted"),
            operation("undone", "open"),
            operation("again", "ready", epoch=8),
            part("late", 1),
            stored("table/a", 2),
            stored("index/a", 2, {"table/a": 2}),
            stored("table/b", 2),
        )
        write(spark, location, stable(1), stored("index/b", 2, {"table/b": 2}))
        add(spark, location, staged("now", "segment", "orders/1", "publish"))
        spark.sql(
            f"DELETE FROM {table(location)} WHERE key IN ('lost/0', 'gone', 'abort', 'table/c') "
            "OR kind = 'staged'"
        )
        spark.sql(f"DELETE FROM {table(location)} WHERE key = 'index/c'")
        assert catalog.version == 7
        yield catalog


LIVES = {
    ("I7", "an operation was decided twice, undone, or never open"): {
        ("twice", 3),
        ("undone", 3),
        ("again", 3),
        ("straight", 2),
        ("gone", 6),
    },
    ("I8", "the stable epoch went down"): {(None, 4)},
    ("I8", "an operation became ready at no epoch above the stable one"): {("low", 2)},
    ("I8", "an operation was published before the stable epoch reached its own"): {("early", 3)},
    ("I8", "an operation was left behind when the stable epoch reached its own"): {("behind", 3)},
    ("I7", "a part came or changed after its operation was decided"): {("late/1", 3)},
    ("I7", "a part went away before its operation was decided"): {("lost/0", 6)},
    ("I4", "a link does not have its target's revision"): {("index/b", 3)},
    ("I3", "an object links to one that is not there"): {("index/c", 6)},
    ("I2", "a key of a kind did not have one row or none"): {("now", 5)},
}


def seen(report: VerifyReport) -> dict[tuple[str, str], set[tuple[Any, int]]]:
    """What was found: for each sort of violation whom it is about, and at which version."""
    return {
        (v.promise, v.what): {
            (row.get("operation") or row.get("part") or row.get("key"), row["version"])
            for row in v.rows
        }
        for v in report.violations
    }


@pytest.mark.parametrize("few", [verifier.FEW_ROWS, 1], ids=["kept", "scanned"])
def test_a_range_names_each_operation_and_object_that_broke_a_rule_and_no_other(
    history: Catalog, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifier, "FEW_ROWS", few)
    assert seen(history.verify(since=0)) == LIVES


def test_a_range_that_begins_later_judges_only_what_came_since(history: Catalog) -> None:
    assert seen(history.verify(since=4)) == {
        # At the last version all is well again.
        ("I7", "an operation was decided twice, undone, or never open"): {("gone", 6)},
        ("I7", "a part went away before its operation was decided"): {("lost/0", 6)},
        ("I3", "an object links to one that is not there"): {("index/c", 6)},
        ("I2", "a key of a kind did not have one row or none"): {("now", 5)},
    }
