"""RuleReplay of declared types from version to version: each violation is told where it appears."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from catalog.objects.model import Object, ObjectNode
from catalog.verify.model import VersionStep
from catalog.verify.replay import RuleReplay, declares_types
from catalog.verify.rows import CONTENT
from tests.unit.objects.platform import ground, node

STATE = ground()


def row(each: ObjectNode) -> dict[str, Any]:
    columns = {name: getattr(each, name) for name in CONTENT if name != "payload"}
    return {"kind": "object", "key": each.key, "payload": each.payload(), **columns}


def objects(version: int, after: Mapping[str, ObjectNode | None]) -> VersionStep:
    return VersionStep(
        version,
        {("object", key): None if each is None else row(each) for key, each in after.items()},
    )


def but(key: str, **body: Any) -> ObjectNode:
    """An object of the ground of which somebody changed the body by hand."""
    return replace(STATE[key], json=Object(key, {**STATE[key].body, **body}).json)


def told(rules: RuleReplay, version: int, **after: ObjectNode | None) -> set[tuple[str, str, int]]:
    keys = {key.replace("__", "/"): each for key, each in after.items()}
    return {
        (found.what, found.row["key"], found.row["version"])
        for found in rules.follow(objects(version, keys))
    }


def test_a_rule_that_is_broken_and_mended_is_told_once_where_it_broke() -> None:
    rules = RuleReplay()
    assert list(rules.follow(objects(1, STATE))) == []
    two = but("index/sales/orders/day", primary=True)
    key = {"index__sales__orders__day": two}
    what = "the rule one_of_siblings does not hold"
    assert told(rules, 2, **key) == {(what, "index/sales/orders/pk", 2)}
    assert told(rules, 3, database__hr=replace(STATE["database/sales"], key="database/hr")) == set()
    assert told(rules, 4, index__sales__orders__day=STATE["index/sales/orders/day"]) == set()
    assert told(rules, 5, **key) == {(what, "index/sales/orders/pk", 5)}


def test_what_is_gone_and_what_cannot_be_read_breaks_the_rules_of_those_that_need_it() -> None:
    rules = RuleReplay()
    rules.start(objects(7, STATE))
    reference = "the rule reference does not hold"
    found = {
        (each.what, each.row["key"])
        for each in rules.follow(
            VersionStep(8, {("object", "node/n2"): {**row(STATE["node/n2"]), "payload": "{"}})
        )
    }
    assert (reference, "replica/main/a/two") in found
    assert told(rules, 9, node__n2=STATE["node/n2"]) == set()
    assert (reference, "replica/main/a/two", 10) in told(rules, 10, node__n2=None)


def test_what_was_broken_at_the_beginning_is_not_told_again() -> None:
    rules = RuleReplay()
    rules.start(objects(3, {**STATE, "node/n1": but("node/n1", port=0)}))
    assert told(rules, 4, node__n3=but("node/n3", labels=["eu"])) == set()
    assert {key for _, key, _ in told(rules, 5, node__n3=but("node/n3", port=0))} == {"node/n3"}


def test_a_table_names_a_schema_that_is_there_at_that_version() -> None:
    rules = RuleReplay()
    rules.start(objects(1, STATE))
    table = "table/sales/orders"
    named = but(table, schema="orders", schema_version=2)
    what = "the rule reference does not hold"
    assert told(rules, 2, table__sales__orders=named) == {(what, table, 2)}
    version = {"kind": "version", "fingerprint": "f"}
    steps = {("version", f"orders/{n}"): {**version, "key": f"orders/{n}"} for n in (1, 2)}
    assert list(rules.follow(VersionStep(3, dict(steps)))) == []
    assert told(rules, 4, table__sales__orders=but(table, schema="orders")) == set()
    assert told(rules, 5, table__sales__orders=named) == set()


def test_nothing_is_judged_where_no_type_is_declared() -> None:
    free = {key: each for key, each in STATE.items() if each.type != "type"}
    rows = [row(each) for each in free.values()]
    assert not declares_types(rows)
    assert declares_types([*rows, row(STATE["type/node"])])
    rules = RuleReplay()
    rules.start(objects(1, free))
    assert told(rules, 2, node__n1=but("node/n1", port=0)) == set()
    # A declaration judges what is there.
    types = {key: each for key, each in STATE.items() if each.type == "type"}
    found = {each.row["key"] for each in rules.follow(objects(3, types))}
    assert found == {node("n1").key}
