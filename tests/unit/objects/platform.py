"""A small platform that keeps all rules, changes that break each of them, and steps over it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from catalog.objects import plan
from catalog.objects.changes import Changes, changes_of
from catalog.objects.model import Object, ObjectNode
from catalog.objects.plan import ObjectPlan, Planner
from catalog.objects.platform import PLATFORM
from tests.unit.objects.strategies import ids

CONFIG = {
    "user": {"type": "text", "required": True},
    "password": {"type": "secret"},
    "memory": {"type": "whole", "low": 1, "high": 64},
    "engine": {"type": "one_of", "words": ["row", "column"]},
}
SECRET = "hunter2 in the clear"


def node(name: str, **body: Any) -> Object:
    """A storage node; what is given of its body replaces what it has otherwise."""
    return Object(
        f"node/{name}",
        {"host": name, "port": 1, "node_type": "pg", "config": {"user": "u"}, **body},
    )


def replica(shard: str, name: str, on: str) -> Object:
    return Object(f"replica/main/{shard}/{name}", {"node": on})


GROUND: tuple[Object, ...] = (
    Object("database/sales"),
    Object("datastore/main"),
    Object("datastore/cold"),
    Object("datastore_link/sales/main", {"role": "primary"}),
    Object("datastore_link/sales/cold", {"role": "archive"}),
    Object("node_type/pg", {"schema": CONFIG}),
    node("n1", labels=["ssd"], config={"user": "u", "password": "secret://pg/n1"}),
    node("n2", labels=["ssd", "eu"]),
    node("n3"),
    Object("shard/main/a", {"high": 10, "requirements": ["ssd"], "replicas": 2}),
    Object("shard/main/b", {"low": 10, "high": 20}),
    Object("shard/main/c", {"low": 20}),
    replica("a", "one", "n1"),
    replica("a", "two", "n2"),
    Object("table/sales/orders", {"limits": {"max_rows": 10}}, datasource="orders"),
    Object("index/sales/orders/pk", {"columns": ["id"], "primary": True}),
    Object("index/sales/orders/day", {"columns": ["day"]}),
    Object("retention/database/sales", {"max_age_days": 30, "action": "archive"}),
    Object("retention/datasource/orders", {"max_segments": 5, "action": "drop"}),
)

# What breaks a rule of the ground, with the rule's name and the key that shows it.
BREAKS: dict[str, tuple[Changes, str, str]] = {
    "two primary datastores": (
        changes_of(Object("datastore_link/sales/cold", {"role": "primary"})),
        *("one_of_siblings", "datastore_link/sales/main"),
    ),
    "no primary datastore": (
        changes_of(remove="datastore_link/sales/main"),
        *("one_of_siblings", "datastore_link/sales/cold"),
    ),
    "a second primary index": (
        changes_of(Object("index/sales/orders/day", {"columns": ["day"], "primary": True})),
        *("one_of_siblings", "index/sales/orders/pk"),
    ),
    "no primary index": (
        changes_of(Object("index/sales/orders/pk", {"columns": ["id"]})),
        *("one_of_siblings", "index/sales/orders/day"),
    ),
    "two replicas on one node": (
        changes_of(replica("a", "two", "n1")),
        *("distinct_siblings", "replica/main/a/two"),
    ),
    "more replicas than declared": (
        changes_of([replica("b", "one", "n1"), replica("b", "two", "n2")]),
        *("at_most", "replica/main/b/two"),
    ),
    "fewer replicas declared than there are": (
        changes_of(Object("shard/main/a", {"high": 10, "requirements": ["ssd"], "replicas": 1})),
        *("at_most", "replica/main/a/two"),
    ),
    "a node without what its shard requires": (
        changes_of(replica("a", "two", "n3")),
        *("meets", "replica/main/a/two"),
    ),
    "a label taken from a node that needs it": (
        changes_of(node("n2", labels=["eu"])),
        *("meets", "replica/main/a/two"),
    ),
    "a gap between ranges": (
        changes_of(Object("shard/main/b", {"low": 10, "high": 19})),
        *("ranges", "shard/main/c"),
    ),
    "ranges that overlap": (
        changes_of(Object("shard/main/b", {"low": 10, "high": 21})),
        *("ranges", "shard/main/c"),
    ),
    "two open beginnings": (
        changes_of(Object("shard/main/d")),
        *("ranges", "shard/main/d"),
    ),
    "an empty range": (
        changes_of(Object("shard/main/b", {"low": 10, "high": 10})),
        *("ranges", "shard/main/b"),
    ),
    "ranges of texts and of numbers": (
        changes_of(Object("shard/main/b", {"low": 10, "high": "20"})),
        *("ranges", "shard/main/a"),
    ),
    "a name in another case": (
        changes_of(Object("database/Sales")),
        *("names", "database/sales"),
    ),
    "two nodes at one address": (
        changes_of(node("n4", host="n1")),
        *("unique", "node/n4"),
    ),
    "a parent that is not there": (
        changes_of(Object("table/none/orders")),
        *("parent", "table/none/orders"),
    ),
    "an owner that is not there": (
        changes_of(Object("retention/database/none", {"action": "drop"})),
        *("parent", "retention/database/none"),
    ),
    "a key without its parent": (
        changes_of(Object("table/orders")),
        *("parent", "table/orders"),
    ),
    "a key of no owner": (
        changes_of(Object("retention/node/n1", {"action": "drop"})),
        *("parent", "retention/node/n1"),
    ),
    "a reference to nothing": (
        changes_of(replica("b", "one", "n9")),
        *("reference", "replica/main/b/one"),
    ),
    "a link named by nothing": (
        changes_of(Object("datastore_link/sales/none", {"role": "cache"})),
        *("reference", "datastore_link/sales/none"),
    ),
    "a beginning in the middle": (
        changes_of(node("n4", state="active")),
        *("states", "node/n4"),
    ),
    "a step that is left out": (
        changes_of(node("n3", state="active")),
        *("states", "node/n3"),
    ),
    "a state that there is not": (
        changes_of(node("n3", state="asleep")),
        *("fields", "node/n3"),
    ),
    "a config that its type does not know": (
        changes_of(node("n3", config={"user": "u", "speed": 1})),
        *("conforms", "node/n3"),
    ),
    "a config without what is required": (
        changes_of(node("n3", config={})),
        *("conforms", "node/n3"),
    ),
    "a config out of bounds": (
        changes_of(node("n3", config={"user": "u", "memory": 65})),
        *("conforms", "node/n3"),
    ),
    "a config with another word": (
        changes_of(node("n3", config={"user": "u", "engine": "graph"})),
        *("conforms", "node/n3"),
    ),
    "a config that is no JSON object": (
        changes_of(node("n3", config=[1])),
        *("conforms", "node/n3"),
    ),
    "a storage type that asks for more": (
        changes_of(Object("node_type/pg", {"schema": {**CONFIG, "zone": CONFIG["user"]}})),
        *("conforms", "node/n1"),
    ),
    "a version of no schema": (
        changes_of(Object("table/sales/orders", {"schema_version": 2})),
        *("requires", "table/sales/orders"),
    ),
    "a rule of retention by which nothing goes": (
        changes_of(Object("retention/database/sales", {"action": "drop"})),
        *("retention", "retention/database/sales"),
    ),
    "a rule of retention by which all goes at once": (
        changes_of(Object("retention/datasource/new", {"max_age_days": 0, "action": "drop"})),
        *("retention", "retention/datasource/new"),
    ),
    "a rule of retention that keeps more than stays": (
        changes_of(
            Object(
                "retention/datasource/new",
                {"max_segments": 2, "keep_at_least": 3, "action": "archive"},
            )
        ),
        *("retention", "retention/datasource/new"),
    ),
    "a secret in the clear": (
        changes_of(node("n3", config={"user": "u", "password": SECRET})),
        *("secret", "node/n3"),
    ),
    "a field that is not declared": (
        changes_of(Object("database/hr", {"owner": "ann"})),
        *("fields", "database/hr"),
    ),
    "a required field left out": (
        changes_of(Object("retention/database/sales")),
        *("fields", "retention/database/sales"),
    ),
    "a field of another type": (
        changes_of(node("n3", port="1")),
        *("fields", "node/n3"),
    ),
    "a limit of another type": (
        changes_of(Object("table/sales/orders", {"limits": {"max_rows": 0}})),
        *("fields", "table/sales/orders"),
    ),
    "a declaration that cannot be read": (
        changes_of(Object("type/node", {"fields": {"port": {"type": "integer"}}})),
        *("declaration", "type/node"),
    ),
    "a declaration whose parent is not declared": (
        changes_of(Object("type/view", {"parent": "schema"})),
        *("declaration", "type/view"),
    ),
}


def step(state: Mapping[str, ObjectNode], work: Planner, name: str = "step") -> ObjectPlan:
    """One call on all objects."""
    return work(state, ids(name))


def ground(*more: Object) -> dict[str, ObjectNode]:
    """The small platform, with more objects if they are given."""
    declared = step({}, plan.declare(PLATFORM), "declare").nodes
    return dict(step(declared, plan.put(changes_of([*GROUND, *more])), "ground").nodes)


Call = tuple[str, tuple[Any, ...], dict[str, Any]]


def any_call(chance: random.Random) -> Call:
    """A verb that changes objects of a platform, with arguments; some of them break a rule."""
    name = chance.choice(["n1", "n2", "n3", "n4"])
    state = chance.choice([{}, {}, {}, {"state": "provision"}, {"state": "active"}])
    body = {"low": 20, "high": chance.choice([None, None, 30]), "replicas": chance.randint(0, 3)}
    some = [
        node(name, labels=chance.sample(["ssd", "eu"], chance.randint(0, 2)), **state),
        replica(chance.choice("abc"), chance.choice(["one", "two"]), name),
        Object(f"shard/main/{chance.choice('ccd')}", body),
        Object(
            f"datastore_link/sales/{chance.choice(['main', 'cold', 'cold'])}",
            {"role": chance.choice(["cache", "archive", "archive", "primary"])},
        ),
        Object(
            f"index/sales/orders/{chance.choice(['day', 'DAY', 'week'])}",
            {"columns": chance.sample(["a", "b", "c"], 2), "primary": chance.random() < 0.2},
        ),
    ]
    verb = chance.choice(["put", "put", "put", "ensure", "ensure", "remove", "rename"])
    key = chance.choice(some).key
    if verb == "remove":
        return verb, (key,), {"cascade": chance.random() < 0.5}
    if verb == "rename":
        return verb, (f"node/{name}", chance.choice(["x", "n2", "n3", "n4"])), {}
    return verb, (chance.sample(some, chance.choice([1, 1, 2])),), {}
