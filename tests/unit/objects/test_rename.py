"""Renames: ids stay, revisions go on, what is below moves along and what refers follows."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.errors import CatalogError, InvalidObject, RuleViolation, UnknownObject
from catalog.objects import plan
from catalog.objects.changes import changes_of
from catalog.objects.model import Object, digest_of
from tests.unit.objects.platform import ground, node, replica, step
from tests.unit.objects.strategies import links_agree

STATE = ground(Object("note/a", {"about": "node/n1"}, links=["node/n1", "database/sales"]))


def test_everything_below_moves_along_and_links_follow() -> None:
    done = step(STATE, plan.rename("database/sales", "shop"))
    assert done.moves == {
        "database/sales": "database/shop",
        "datastore_link/sales/main": "datastore_link/shop/main",
        "datastore_link/sales/cold": "datastore_link/shop/cold",
        "table/sales/orders": "table/shop/orders",
        "index/sales/orders/pk": "index/shop/orders/pk",
        "index/sales/orders/day": "index/shop/orders/day",
        "retention/database/sales": "retention/database/shop",
    }
    for old, new in done.moves.items():
        was, now = STATE[old], done.nodes[new]
        assert (now.key, now.id, now.revision) == (new, was.id, was.revision + 1)
        assert (now.json, now.datasource) == (was.json, was.datasource)
        assert now.digest == digest_of(now.json, now.links, now.fingerprint, now.datasource)
    assert not done.moves.keys() & done.nodes.keys()
    # What is free in form is touched by its link, and its body is its own affair.
    note = done.nodes["note/a"]
    assert (note.revision, note.body) == (2, {"about": "node/n1"})
    assert note.links == {"node/n1": 1, "database/shop": 2}
    assert links_agree(done.nodes)
    untouched = {key: each for key, each in done.nodes.items() if STATE.get(key) == each}
    assert {"datastore/main", "node/n1", "shard/main/a", "type/table"} <= untouched.keys()
    assert done.locks.exclusive == {*done.moves, *done.moves.values(), "note/a"}
    assert done.locks.held == {"datastore/main", "datastore/cold", "node/n1"}


def test_references_in_bodies_and_names_taken_from_others_follow() -> None:
    done = step(STATE, plan.rename("node/n1", "first"))
    assert done.moves == {"node/n1": "node/first"}
    assert done.nodes["replica/main/a/one"].body["node"] == "first"
    assert set(done.nodes["replica/main/a/one"].links) == {"shard/main/a", "node/first"}
    done = step(done.nodes, plan.rename("datastore/main", "hot"))
    assert done.moves["datastore_link/sales/main"] == "datastore_link/sales/hot"
    assert done.moves["replica/main/a/one"] == "replica/hot/a/one"
    assert set(done.nodes["datastore_link/sales/hot"].links) == {"database/sales", "datastore/hot"}
    assert links_agree(done.nodes)
    # There and back again: the same content, and revisions that went on.
    back = step(done.nodes, plan.rename("datastore/hot", "main")).nodes
    assert back["shard/main/a"].digest == STATE["shard/main/a"].digest
    assert back["shard/main/a"].revision == 3


def test_a_name_that_was_left_is_another_object_when_it_is_created_again() -> None:
    moved = step(STATE, plan.rename("node/n3", "n4")).nodes
    again = step(moved, plan.put(changes_of(node("n3", host="other"))), "again").nodes
    assert again["node/n3"].id == "again:node/n3"
    assert again["node/n4"].id == STATE["node/n3"].id


def test_the_name_that_it_has_changes_nothing_and_case_may_change() -> None:
    done = step(STATE, plan.rename("database/sales", "sales"))
    assert (done.nodes, done.moves) == (STATE, {})
    assert "table/Sales/orders" in step(STATE, plan.rename("database/sales", "Sales")).nodes


@pytest.mark.parametrize(
    ("key", "name", "error"),
    [
        ("node/n1", "n2", RuleViolation),
        ("node/n1", "N2", RuleViolation),
        ("note/a", "a/b", InvalidObject),
        ("note/a", "_a", InvalidObject),
        ("note/a", "", InvalidObject),
        ("note/a", 7, InvalidObject),
        ("note/none", "b", UnknownObject),
        ("type/node", "server", InvalidObject),
        ("datastore_link/sales/main", "cold", InvalidObject),
        ("retention/database/sales", "shop", InvalidObject),
    ],
)
def test_a_rename_that_cannot_be_is_refused(key: str, name: Any, error: type[CatalogError]) -> None:
    with pytest.raises(error):
        step(STATE, plan.rename(key, name))


def test_a_cascade_removes_what_is_below_and_what_refers() -> None:
    def removed(key: str) -> set[str]:
        nodes = step(STATE, plan.remove(changes_of(remove=key), cascade=True)).nodes
        assert links_agree(nodes)
        return STATE.keys() - nodes.keys()

    assert removed("shard/main/c") == {"shard/main/c"}
    assert removed("node/n1") == {"node/n1", "replica/main/a/one", "note/a"}
    assert removed("table/sales/orders") == {
        *("table/sales/orders", "index/sales/orders/pk", "index/sales/orders/day")
    }
    assert removed("table/sales/none") == set()
    # The rules hold for a cascade too: the database would be left without its primary datastore.
    with pytest.raises(RuleViolation):
        removed("datastore/main")
    assert removed("replica/main/a/one") == {replica("a", "one", "n1").key}
