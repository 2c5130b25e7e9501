"""Named schemas: their whole life through public calls."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Schema, Segment
from catalog.errors import (
    IncompatibleSchema,
    InvalidInput,
    InvalidName,
    SchemaConflict,
    UnknownName,
)
from tests.concurrency.gates import assert_promises
from tests.spark.operating import refusal

NOW = timedelta(0)


def test_a_name_lives_through_versions_merges_refusals_and_force(catalog: Catalog) -> None:
    first = catalog.names.register("orders", "id BIGINT, amount INT", actor="ann", note="first")
    assert (first.version, first.compatible, first.repeated) == (1, True, False)
    assert first.version_of_table == catalog.version
    second = catalog.names.register("orders", "id BIGINT, amount BIGINT, note STRING", actor="bob")
    assert (second.version, second.compatible, second.breaking) == (2, True, False)
    again = catalog.names.register("orders", "note STRING, id BIGINT, amount BIGINT")
    assert (again.version, again.repeated, again.commit_id) == (2, True, "")
    assert catalog.version == again.version_of_table == second.version_of_table

    # Made from version 1: merged with what bob did; tried without writing first.
    given = "id BIGINT, amount INT, city STRING"
    tried = catalog.names.register("orders", given, base=1, dry_run=True)
    assert (tried.version, tried.merged, tried.dry_run, tried.commit_id) == (3, True, True, "")
    assert catalog.version == second.version_of_table
    third = catalog.names.register("orders", given, base=1)
    assert (third.version, third.merged, third.fingerprint) == (3, True, tried.fingerprint)
    whole = "id BIGINT, amount BIGINT, note STRING, city STRING"
    assert catalog.names.get("orders").schema == Schema.of(whole)
    assert catalog.names.register("orders", given, base=1).repeated  # as after a lost answer

    wrong = "id BIGINT, amount STRING, note STRING, city STRING"
    error = refusal(catalog, IncompatibleSchema, lambda: catalog.names.register("orders", wrong))
    assert (error.values["version"], error.values["mode"]) == (4, "backward")
    assert [each["path"] for each in error.values["reasons"]] == ["amount"]
    fourth = catalog.names.register("orders", wrong, force=True, note="cents as text")
    assert (fourth.version, fourth.forced, fourth.breaking) == (4, True, True)

    found = catalog.names.get("orders")
    assert (found.version, found.current, found.last_breaking) == (4, 4, 4)
    assert (found.mode, found.note, found.forced) == ("backward", "cents as text", True)
    assert found.reasons == fourth.reasons
    assert (found.registered_by, found.commit_id) == ("tester", fourth.commit_id)
    old = catalog.names.get("orders", 1)
    assert (old.schema, old.registered_by) == (Schema.of("id BIGINT, amount INT"), "ann")
    past = catalog.names.get("orders", as_of=second.version_of_table)
    assert (past.version, past.last_breaking) == (2, 1)
    answers = [catalog.names.still_works("orders", number) for number in (1, 3, 4)]
    assert [bool(answer) for answer in answers] == [False, False, True]
    assert answers[0].breaking == {4: fourth.reasons}
    assert catalog.names.still_works("orders", 1, as_of=third.version_of_table)
    assert not catalog.names.still_works("orders", 1, third.version_of_table).compatibility.forward

    # An older schema again is a new version; what is gone is remembered.
    fifth = catalog.names.register("orders", "id BIGINT, amount STRING")
    assert (fifth.version, fifth.breaking) == (5, False)
    gone = catalog.names.get("orders").dropped
    assert {path: (each.type, each.since) for path, each in gone.items()} == {
        "city": ("string", 5),
        "note": ("string", 5),
    }
    wrong = "id BIGINT, amount STRING, city INT"
    refusal(catalog, IncompatibleSchema, lambda: catalog.names.register("orders", wrong))
    done = catalog.names.set_mode("orders", "none", actor="ann")
    assert (done.before, done.mode, done.version_of_table) == ("backward", "none", catalog.version)
    assert catalog.names.set_mode("orders", "none").commit_id == ""
    sixth = catalog.names.register("orders", wrong)
    # Not against version 5, which does not have it, but against version 4.
    assert (sixth.version, sixth.forced, sixth.breaking) == (6, False, True)
    assert [(each.path, each.against) for each in sixth.reasons] == [("city", 4)]

    names = [row.asDict() for row in catalog.inspect.named_schemas().collect()]
    assert [(row["name"], row["mode"], row["current_version"]) for row in names] == [
        ("orders", "none", 6)
    ]
    assert names[0]["fingerprint"] == sixth.fingerprint
    assert set(names[0]["dropped"]) == {"note"}
    rows = catalog.inspect.schema_versions("orders").orderBy("version").collect()
    assert [row["version"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [row["breaking"] for row in rows] == [False, False, False, True, False, True]
    assert [row["merged"] for row in rows] == [False, False, True, False, False, False]
    assert (rows[0]["ddl"], rows[0]["note"]) == ("id BIGINT, amount INT", "first")
    assert rows[3]["reasons"] == [str(each) for each in fourth.reasons]
    assert catalog.inspect.schema_versions("other").count() == 0
    verbs = [row["verb"] for row in catalog.audit.history(3).collect()]
    assert verbs == ["register", "set-mode", "register"]

    # Nothing but versions refers to these schemas, and a clean-up lets them be.
    assert catalog.inspect.orphan_schemas().count() == 0
    report = catalog.cleanup(grace=NOW)
    assert (report.retired, report.purged) == ((), ())
    assert catalog.names.get("orders", 2).schema.ddl == "id BIGINT, amount BIGINT, note STRING"
    assert_promises(catalog)
    assert catalog.verify(since=third.version_of_table).ok


@pytest.mark.stress
def test_what_cannot_be_registered_or_found_is_told_and_changes_nothing(catalog: Catalog) -> None:
    catalog.names.register("orders", "a INT")
    catalog.names.register("orders", "a INT, b INT")
    cases: dict[str, tuple[type[Exception], Callable[[], object], dict[str, Any]]] = {
        "no name": (UnknownName, lambda: catalog.names.get("other"), {"name": "other"}),
        "no version": (
            UnknownName,
            lambda: catalog.names.get("orders", 3),
            {"name": "orders", "version": 3, "current": 2},
        ),
        "no mode to set": (
            UnknownName,
            lambda: catalog.names.set_mode("no", "full"),
            {"name": "no"},
        ),
        "no base": (
            UnknownName,
            lambda: catalog.names.register("orders", "c INT", base=7),
            {"name": "orders", "version": 7, "current": 2},
        ),
        "no answer": (
            UnknownName,
            lambda: catalog.names.still_works("orders", 9),
            {"name": "orders", "version": 9, "current": 2},
        ),
        "a slash": (InvalidName, lambda: catalog.names.register("a/b", "a INT"), {"name": "a/b"}),
        "another mode": (
            InvalidInput,
            lambda: catalog.names.register("orders", "a INT", mode="full"),
            {"name": "orders", "mode": "full"},
        ),
        "no such mode": (
            InvalidInput,
            lambda: catalog.names.register("new", "a INT", mode="strict"),
            {"mode": "strict"},
        ),
        "a negative base": (
            InvalidInput,
            lambda: catalog.names.register("orders", "a INT", base=-1),
            {"base": -1},
        ),
        "no merge": (
            SchemaConflict,
            lambda: catalog.names.register("orders", "a INT, b STRING", base=1),
            {
                "conflicts": [{"path": "b", "seen": ["int", "string"], "kept": "int"}],
                "name": "orders",
                "base": 1,
                "current": 2,
            },
        ),
    }
    for what, (kind, attempt, values) in cases.items():
        assert refusal(catalog, kind, attempt, what).values == values, what  # type: ignore[arg-type]


@pytest.mark.stress
def test_data_is_read_in_a_version_of_a_named_schema(
    spark: SparkSession, catalog: Catalog, tmp_path: Any
) -> None:
    path = f"{tmp_path}/1.parquet"
    spark.range(2).selectExpr("id", "CAST(id AS INT) AS amount").write.parquet(path)
    catalog.publish([Segment("orders/1", "id BIGINT, amount INT", num_rows=2, location=path)])
    catalog.names.register("the orders@home", "id BIGINT")
    catalog.names.register("the orders@home", "id BIGINT, amount BIGINT")
    frame = catalog.read("orders", schema="the orders@home@1")
    assert frame.columns == ["id"]
    current = catalog.read("orders", schema="the orders@home@current")
    assert current.dtypes == [("id", "bigint"), ("amount", "bigint")]
    assert sorted(map(tuple, current.collect())) == [(0, 0), (1, 1)]
    with pytest.raises(UnknownName):
        catalog.read("orders", schema="the orders@home@3")
    # Version 1 stays though nothing else refers to its schema, and goes on to be found.
    catalog.drop(datasource="orders")
    assert len(catalog.cleanup(grace=NOW).retired) == 1
    assert catalog.names.get("the orders@home", 1).schema == Schema.of("id BIGINT")
    assert_promises(catalog)


@pytest.mark.stress
def test_verify_finds_versions_that_are_missing_changed_or_contradicted(
    spark: SparkSession, catalog: Catalog, location: str
) -> None:
    catalog.names.register("orders", "a INT")
    catalog.names.register("orders", "a STRING", force=True)
    catalog.names.register("clicks", "a INT")
    assert_promises(catalog)
    good, table = catalog.version, f"delta.`{location}/entries`"
    later = "replace(payload, 'breaking\":1', 'breaking\":2')"
    spark.sql(f"DELETE FROM {table} WHERE kind = 'version' AND key = 'orders/1'")
    spark.sql(f"UPDATE {table} SET payload = {later} WHERE kind = 'named' AND key = 'clicks'")
    for report in (catalog.verify(), catalog.verify(since=good)):
        found = {(each.promise, each.what) for each in report.violations}
        assert (
            "I3",
            "the versions of a named schema do not run from 1 to the current one",
        ) in found
        assert any(promise == "I4" and "last breaking" in what for promise, what in found)
    assert ("I5", "a version of a named schema was changed or removed") in found
