"""Objects outside of operations: put, got, listed and removed, with links that always agree."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Object
from catalog.errors import InvalidObject, ObjectInUse, UnknownObject
from tests.concurrency.gates import assert_promises
from tests.spark.operating import changed, refusal, revisions
from tests.unit.builders import segment

NOW = timedelta(0)


@pytest.mark.connect
def test_objects_are_put_read_listed_and_removed_with_a_revision_for_every_change(
    catalog: Catalog,
) -> None:
    table = Object("table/sales/orders", {"owner": "ann", "ü": [1, 2.5, None, {"deep": True}]})
    first = catalog.objects.put([table, Object("job/load")], actor="ann")
    assert first.revisions == {"table/sales/orders": 1, "job/load": 1}
    stored = catalog.objects.get("table/sales/orders")
    assert (stored.type, stored.path, stored.revision) == ("table", "sales/orders", 1)
    assert (stored.body, stored.links) == (table.body, {})
    assert (stored.fingerprint, stored.datasource) == (None, None)
    assert (stored.changed_by, stored.commit_id) == ("ann", first.commit_id)
    assert stored.changed_at == stored.published_at

    same = catalog.objects.put(Object("table/sales/orders", dict(reversed(table.body.items()))))
    assert (same.revisions, same.unchanged) == ({}, ("table/sales/orders",))
    assert (same.commit_id, same.version, catalog.version) == ("", first.version, first.version)
    wider = Object("table/sales/orders", {"owner": "bob"}, datasource="orders")
    second = catalog.objects.put([wider, Object("job/load")], actor="bob")
    assert second.revisions == {"table/sales/orders": 2}
    assert (second.unchanged, second.touched) == (("job/load",), ())
    now = catalog.objects.get("table/sales/orders")
    assert (now.id, now.published_at) == (stored.id, stored.published_at)
    assert (now.body, now.datasource, now.changed_by) == ({"owner": "bob"}, "orders", "bob")
    assert now.changed_at > stored.changed_at

    job = catalog.objects.get("job/load")
    assert [each.key for each in catalog.objects.list()] == ["job/load", "table/sales/orders"]
    assert catalog.objects.list("job") == (job,)
    assert catalog.objects.list("jo") == catalog.objects.list("load") == ()
    gone = catalog.objects.remove(["job/load", "job/none"])
    assert (gone.removed, gone.absent) == (("job/load",), ("job/none",))
    nothing = catalog.objects.remove("job/load")
    assert (nothing.removed, nothing.absent) == ((), ("job/load",))
    assert (nothing.commit_id, catalog.version) == ("", gone.version)
    error = refusal(catalog, UnknownObject, lambda: catalog.objects.get("job/load"))
    assert error.values == {"key": "job/load", "version": gone.version}

    # A key that is created again is another object; the versions before keep the first.
    assert catalog.objects.put(Object("job/load")).revisions == {"job/load": 1}
    assert catalog.objects.get("job/load").id != job.id
    assert catalog.objects.get("job/load", as_of=second.version) == job
    assert catalog.objects.get("table/sales/orders", as_of=first.version) == stored
    assert catalog.objects.list(as_of=0) == ()
    assert changed(catalog, 0) == {
        (first.version, "added", "table/sales/orders"),
        (first.version, "added", "job/load"),
        (second.version, "changed", "table/sales/orders"),
        (gone.version, "removed", "job/load"),
        (gone.version + 1, "added", "job/load"),
    }
    assert_promises(catalog)


def test_a_change_touches_everything_that_links_to_it_once_and_links_agree(
    spark: SparkSession, catalog: Catalog
) -> None:
    catalog.objects.put(
        [
            Object("job/a", links=["view/x"]),
            Object("view/x", links=["index/x", "table/x"]),  # two ways lead to the table
            Object("index/x", links=["table/x"]),
            Object("table/x"),
            Object("team/a", links=["team/b"]),  # a circle
            Object("team/b", links=["team/a"]),
        ]
    )
    assert set(revisions(catalog).values()) == {1}
    done = catalog.objects.put(Object("table/x", {"n": 2}))
    assert done.revisions == {"table/x": 2}
    assert done.touched == ("index/x", "job/a", "view/x")
    done = catalog.objects.put(
        [Object("table/x", {"n": 3}), Object("index/x", {"n": 3}, ["table/x"])]
    )
    assert done.revisions == {"index/x": 3, "table/x": 3}
    assert done.touched == ("job/a", "view/x")
    done = catalog.objects.put(Object("team/a", {"n": 2}, links=["team/b"]))
    assert (done.revisions, done.touched) == ({"team/a": 2}, ("team/b",))
    assert revisions(catalog) == {
        **dict.fromkeys(("index/x", "job/a", "table/x", "view/x"), 3),
        **dict.fromkeys(("team/a", "team/b"), 2),
    }
    links = [(row["key"], row["target"], row["target_revision"]) for row in linked(catalog)]
    assert links == [
        ("index/x", "table/x", 3),
        ("job/a", "view/x", 3),
        ("team/a", "team/b", 2),
        ("team/b", "team/a", 2),
        ("view/x", "index/x", 3),
        ("view/x", "table/x", 3),
    ]
    catalog.inspect.create_views("linked_")
    row = spark.table("linked_objects").where("key = 'view/x'").first()
    assert row is not None
    assert (row["type"], row["path"], row["revision"]) == ("view", "x", 3)
    assert (row["body"], row["links"]) == ("{}", {"index/x": 3, "table/x": 3})
    assert row["object_id"] == catalog.objects.get("view/x").id
    for name in catalog.inspect.create_views("linked_"):
        spark.catalog.dropTempView(name)
    assert_promises(catalog)


def linked(catalog: Catalog) -> list:  # type: ignore[type-arg]
    return catalog.inspect.object_links().orderBy("key", "target").collect()


@pytest.mark.stress
def test_links_lead_somewhere_and_what_is_linked_to_stays(catalog: Catalog) -> None:
    catalog.objects.put([Object("table/x"), Object("index/x", links=["table/x"])])
    cases: dict[str, tuple[type[Exception], Callable[[], object], dict[str, object]]] = {
        "a link to nowhere": (
            UnknownObject,
            lambda: catalog.objects.put([Object("job/a"), Object("job/b", links=["table/none"])]),
            {"key": "table/none", "holder": "job/b"},
        ),
        "removed in use": (
            ObjectInUse,
            lambda: catalog.objects.remove(["table/x", "job/none"]),
            {"key": "table/x", "holders": ("index/x",)},
        ),
        "put twice": (
            InvalidObject,
            lambda: catalog.objects.put([Object("job/a"), Object("job/a", {"n": 1})]),
            {"key": "job/a"},
        ),
        "no key": (InvalidObject, lambda: catalog.objects.remove("job"), {"key": "job"}),
        "no key to get": (InvalidObject, lambda: catalog.objects.get("job"), {"key": "job"}),
        "no type": (InvalidObject, lambda: catalog.objects.list("Table"), {"type": "Table"}),
    }
    for what, (kind, attempt, values) in cases.items():
        assert refusal(catalog, kind, attempt, what).values == values, what  # type: ignore[arg-type]
    version = catalog.version
    assert (catalog.objects.put([]).version, catalog.objects.remove([]).version) == (
        version,
        version,
    )
    # Without the link, or together with what holds it, it can go.
    catalog.objects.put(Object("index/x"))
    assert catalog.objects.remove("table/x").removed == ("table/x",)
    catalog.objects.put([Object("team/a", links=["index/x"]), Object("index/x", links=["team/a"])])
    assert catalog.objects.remove(["team/a", "index/x"]).removed == ("index/x", "team/a")
    assert catalog.objects.list() == ()
    assert_promises(catalog)


@pytest.mark.stress
def test_the_schema_of_an_object_is_carried_and_kept_as_long_as_it_is_referred_to(
    catalog: Catalog,
) -> None:
    catalog.publish([segment("orders/1", "z INT")])
    catalog.objects.put(Object("table/x", schema="a INT, b STRING COMMENT 'first'"))
    fingerprint = catalog.objects.get("table/x").fingerprint or ""
    assert catalog.schema(fingerprint).ddl == "a INT, b STRING COMMENT 'first'"
    assert catalog.inspect.orphan_schemas().count() == 0
    assert catalog.cleanup(grace=NOW).retired == ()
    again = catalog.objects.put(
        Object("table/x", schema="b STRING, a INT")
    )  # the same, spelled otherwise
    assert again.unchanged == ("table/x",)
    assert catalog.objects.put(Object("table/x")).revisions == {"table/x": 2}
    assert catalog.objects.get("table/x").fingerprint is None
    assert [each.fingerprint for each in catalog.cleanup(grace=NOW).retired] == [fingerprint]
    # It comes back with the next object that has it.
    catalog.objects.put(Object("table/y", schema="a INT, b STRING"))
    assert catalog.objects.get("table/y").fingerprint == fingerprint
    report = catalog.cleanup(grace=NOW)
    assert ([each.why for each in report.purged], report.retired) == (["it is live again"], ())
    assert catalog.schemas().count() == 2
    assert catalog.cache().datasources() == {"orders": 1}
    assert_promises(catalog)
