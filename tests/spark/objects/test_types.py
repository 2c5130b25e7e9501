"""Declared types: every change of objects keeps their rules, by whichever verb it is made."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Object, ObjectType
from catalog.errors import InvalidObject, InvalidType, ObjectInUse, RuleViolation, UnknownObject
from catalog.objects.fields import text, whole
from catalog.objects.platform import PLATFORM
from tests.concurrency.gates import assert_promises
from tests.spark.operating import ready, refusal, revisions, staged, verbs
from tests.unit.objects.platform import BREAKS, GROUND, SECRET, any_call, node, replica

# One change for each rule; stress has them all.
ONE_EACH = {rule: what for what, (_, rule, _) in reversed(BREAKS.items())}.values()


@pytest.mark.parametrize("cases", [[*ONE_EACH], pytest.param([*BREAKS], marks=pytest.mark.stress)])
def test_every_change_that_breaks_a_rule_is_refused_by_its_name_and_writes_nothing(
    spark: SparkSession, catalog: Catalog, cases: list[str]
) -> None:
    assert len(catalog.objects.declare(PLATFORM).revisions) == len(PLATFORM)
    catalog.objects.put(GROUND)
    version = catalog.version
    for what in cases:
        changes, rule, key = BREAKS[what]
        verb, given = (
            (catalog.objects.put, changes.puts.values())
            if changes.puts
            else (catalog.objects.remove, changes.removes)
        )
        with pytest.raises(RuleViolation) as refused:
            verb(given)  # type: ignore[operator]
        assert (refused.value.values["rule"], refused.value.values["key"]) == (rule, key), what
        assert SECRET not in f"{refused.value} {refused.value.values}"
    # The same again is no change.
    assert (
        catalog.objects.declare(PLATFORM).commit_id == catalog.objects.put(GROUND).commit_id == ""
    )
    assert catalog.version == version
    kept = spark.read.format("delta").load(f"{catalog.location}/entries")
    assert kept.where(f"contains(payload, '{SECRET}')").count() == 0
    assert_promises(catalog)


@pytest.mark.parametrize("accepted", [6, pytest.param(60, marks=pytest.mark.stress)])
def test_random_changes_keep_all_rules_and_one_that_is_broken_by_hand_is_found(
    spark: SparkSession, catalog: Catalog, accepted: int
) -> None:
    chance = random.Random(accepted)
    catalog.objects.declare(PLATFORM)
    catalog.objects.put(GROUND)
    begun, refused = catalog.version, 0
    while catalog.version < begun + accepted:
        verb, given, options = any_call(chance)
        try:
            getattr(catalog.objects, verb)(*given, **options)
        except (RuleViolation, ObjectInUse, UnknownObject):
            refused += 1
    assert refused >= accepted // 3

    # Somebody goes past the catalog and takes it back. Nothing else is wrong at any version.
    table, broken = f"delta.`{catalog.location}/entries`", catalog.version + 1
    for was, now in ((10, 0), (0, 10)):
        spark.sql(
            f"UPDATE {table} SET payload = replace(payload, '\"max_rows\":{was}', "
            f"'\"max_rows\":{now}') WHERE kind = 'object' AND key = 'table/sales/orders'"
        )
    report = catalog.verify(since=0)
    assert [(each.promise, each.count) for each in report.violations] == [("rules", 1), ("I4", 2)]
    (row,) = report.violations[0].rows
    assert (row["version"], row["key"]) == (broken, "table/sales/orders")


@pytest.mark.stress
def test_objects_are_ensured_renamed_listed_below_their_parents_and_removed_with_all_below(
    spark: SparkSession, catalog: Catalog
) -> None:
    catalog.objects.put([Object("team/a", {"size": 2}), Object("note/x", links=["team/a"])])
    team = ObjectType("team", fields={"size": whole(0, default=1), "room": text()})
    refused = refusal(catalog, RuleViolation, lambda: catalog.objects.declare(ObjectType("team")))
    assert refused.values["violations"] == (("fields", "team/a"),)
    catalog.objects.declare([*PLATFORM, team])
    assert {declared.name for declared in catalog.objects.types()} == {
        e.name for e in (*PLATFORM, team)
    }
    assert team in catalog.objects.types()
    catalog.objects.put(
        [*GROUND, Object("note/n", {"about": "n1"}, links=["node/n1"], schema="a INT")]
    )
    created = catalog.objects.get("note/n")

    ensured = catalog.objects.ensure(
        [node("n3"), Object("team/a", {"room": "1"}), Object("team/b")]
    )
    assert ensured.revisions == {"team/a": 2, "team/b": 1}
    assert (ensured.unchanged, ensured.touched) == (("node/n3",), ("note/x",))
    assert catalog.objects.get("team/a").body == {"size": 2, "room": "1"}
    assert catalog.objects.ensure(Object("team/a", {"room": "1"})).commit_id == ""

    shards = [each.key for each in catalog.objects.list("shard", parent="datastore/main")]
    assert shards == ["shard/main/a", "shard/main/b", "shard/main/c"]
    assert catalog.objects.list("shard", parent="datastore/cold") == ()
    assert catalog.objects.list("shard", parent="node/main") == ()
    (kept,) = catalog.objects.list("retention", parent="database/sales")
    assert kept.key == "retention/database/sales"
    for attempt in (
        lambda: catalog.objects.list("note", parent="node/n1"),
        lambda: catalog.objects.list(parent="node/n1"),
    ):
        refusal(catalog, InvalidObject, attempt)
    refusal(catalog, InvalidType, lambda: catalog.objects.declare("team"))  # type: ignore[arg-type]

    # A rename: the same objects under other keys, in one commit.
    before = catalog.objects.get("datastore/main"), catalog.objects.get("replica/main/a/one")
    done = catalog.objects.rename("datastore/main", "hot", reason="hotter")
    assert done.renamed["replica/main/a/one"] == "replica/hot/a/one"
    assert len(done.renamed) == 7
    assert (done.removed, done.revisions["datastore/hot"]) == ((), 2)
    after = catalog.objects.get("datastore/hot"), catalog.objects.get("replica/hot/a/one")
    for old, new in zip(before, after, strict=True):
        assert (new.id, new.revision) == (old.id, old.revision + 1)
        assert (new.published_at, new.changed_at > old.changed_at) == (old.published_at, True)
    renamed = catalog.objects.rename("node/n1", "first")
    assert renamed.touched == ("note/n", "replica/hot/a/one")
    assert catalog.objects.get("replica/hot/a/one").body["node"] == "first"
    note = catalog.objects.get("note/n")
    assert (note.fingerprint, dict(note.links)) == (created.fingerprint, {"node/first": 2})
    assert catalog.schema(note.fingerprint or "").ddl == "a INT"
    assert catalog.objects.rename("node/first", "first").commit_id == ""
    refusal(catalog, RuleViolation, lambda: catalog.objects.rename("node/first", "n2"))
    assert verbs(catalog, renamed.version - 2) == ["rename", "rename"]

    version = catalog.version
    refusal(catalog, ObjectInUse, lambda: catalog.objects.remove("table/sales/orders"))
    dry = catalog.objects.remove("table/sales/orders", cascade=True, dry_run=True)
    assert dry.removed == (
        *("index/sales/orders/day", "index/sales/orders/pk", "table/sales/orders"),
    )
    assert (dry.dry_run, dry.commit_id, catalog.version) == (True, "", version)
    gone = catalog.objects.remove("table/sales/orders", cascade=True)
    assert (gone.removed, gone.dry_run) == (dry.removed, False)
    refusal(catalog, RuleViolation, lambda: catalog.objects.remove("datastore/hot", cascade=True))
    assert_promises(catalog)
    shown_in_views(spark, catalog)

    # Somebody deletes a row by hand: verify names the rules that no longer hold.
    spark.sql(
        f"DELETE FROM delta.`{catalog.location}/entries` WHERE kind = 'object' AND key = 'node/n2'"
    )
    report = catalog.verify()
    assert {each.promise for each in report.violations} == {"rules", "I3"}
    rules = {each.what: each for each in report.violations if each.promise == "rules"}
    (found,) = rules["the rule reference does not hold"].rows
    assert found["key"] == "replica/hot/a/two"


def shown_in_views(spark: SparkSession, catalog: Catalog) -> None:
    names = catalog.inspect.create_views("typed_")
    replicas = spark.table("typed_replicas").orderBy("key")
    assert [tuple(row)[:7] for row in replicas.collect()] == [
        ("replica/hot/a/one", "hot", "a", "one", "first", "follower", "config"),
        ("replica/hot/a/two", "hot", "a", "two", "n2", "follower", "config"),
    ]
    found = spark.table("typed_nodes").where("array_contains(labels, 'eu')").collect()
    assert [(row["name"], row["port"], row["config"]) for row in found] == [
        ("n2", 1, '{"user":"u"}')
    ]
    kept = spark.table("typed_retention_rules").orderBy("key")
    assert [(row["scope"], row["name"], row["action"]) for row in kept.collect()] == [
        ("database", "sales", "archive"),
        ("datasource", "orders", "drop"),
    ]
    links = spark.table("typed_datastore_links").where("role = 'primary'").collect()
    assert [(row["database"], row["datastore"]) for row in links] == [("sales", "hot")]
    declared = spark.table("typed_object_types").where("name = 'replica'").collect()
    assert [(row["parent"], row["references"], row["open"]) for row in declared] == [
        ("shard", {"node": "node"}, False)
    ]
    for name in names:
        spark.catalog.dropTempView(name)


@pytest.mark.stress
def test_operations_are_judged_when_they_are_decided_and_stay_applicable_until_then(
    catalog: Catalog,
) -> None:
    catalog.objects.declare(PLATFORM)
    catalog.objects.put(GROUND)
    # Parts are asked for what no other part can mend, and completed by their types together.
    operation = catalog.operation("grow", parts=2)
    refusal(
        catalog,
        RuleViolation,
        lambda: operation.stage(0, put=[node("n4", config={"user": "u", "password": SECRET})]),
    )
    refusal(catalog, InvalidObject, lambda: operation.stage(0, put=[PLATFORM[0].object()]))
    operation.stage(0, put=[Object("replica/main/b/one", {"role": "leader"})])
    operation.stage(1, put=[replica("b", "one", "n4"), node("n4")])
    operation.publish()
    grown = catalog.objects.get("replica/main/b/one")
    assert grown.body == {"node": "n4", "role": "leader", "state": "config"}
    assert set(grown.links) == {"node/n4", "shard/main/b"}

    # Ready is final: others may not break what waits, whether alone or in an operation.
    waiting = ready(catalog, 9, "wait", put=[replica("c", "one", "n1")])
    more = replica("c", "two", "n2")
    error = refusal(catalog, RuleViolation, lambda: catalog.objects.put(more))
    assert (error.values["rule"], error.values["operation"]) == ("at_most", waiting.id)
    assert waiting.id in error.message
    clash = staged(catalog, "clash", put=[replica("c", "three", "n3")])
    # In the order of their epochs: whoever comes later would break the rule.
    for epoch, breaks in ((None, waiting.id), (5, waiting.id), (10, None)):
        error = refusal(catalog, RuleViolation, lambda e=epoch: clash.publish(epoch=e))
        assert error.values.get("operation") == breaks
    assert catalog.operations.advance(9).applied == (waiting.id,)
    assert revisions(catalog)["replica/main/c/one"] == 1
    error = refusal(catalog, RuleViolation, clash.publish)
    assert (error.values["rule"], "operation" in error.values) == ("at_most", False)
    assert_promises(catalog)
