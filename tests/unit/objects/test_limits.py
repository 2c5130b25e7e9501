"""What all tables together give to their datasources, and who has to be asked when it changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.contracts.model import TableLimit
from catalog.objects import plan
from catalog.objects.changes import changes_of, locks
from catalog.objects.model import Object, ObjectNode
from catalog.objects.plan import Planner
from catalog.objects.platform import PLATFORM, changed_limits, limits_of
from tests.unit.objects.strategies import ids

TYPES = [each for each in PLATFORM if each.name in ("database", "table")]
DATABASE = Object("database/s")
ORDERS, MORE = "table/s/o", "table/s/p"


def table(
    key: str = ORDERS, rows: Any = None, datasource: str | None = "orders", **more: Any
) -> Object:
    body = {**more, **({} if rows is None else {"limits": {"max_rows": rows}})}
    return Object(key, body, datasource=datasource)


def done(state: Mapping[str, ObjectNode], *works: Planner) -> dict[str, ObjectNode]:
    for number, work in enumerate(works):
        state = work(state, ids(f"w{number}")).nodes
    return dict(state)


def put(*objects: Object) -> Planner:
    return plan.put(changes_of(put=objects))


DECLARED = done({}, plan.declare(TYPES), put(DATABASE))


def test_tables_of_a_declared_type_limit_their_datasource() -> None:
    tables = (table(ORDERS, 5), table(MORE, 3), table("table/s/q", 1, None), table("table/s/r"))
    assert limits_of(done(DECLARED, put(*tables))) == {"orders": {"max_rows": TableLimit(3, MORE)}}
    # Free in form, they say nothing.
    assert limits_of(done({}, put(DATABASE, *tables))) == {}
    other = Object("tables/s/o", {"limits": {"max_rows": 1}}, datasource="orders")
    assert limits_of(done(DECLARED, put(other))) == {}


def test_only_datasources_with_other_limits_than_before_are_told() -> None:
    one = done(DECLARED, put(table(ORDERS, 5), table("table/s/x", 5, "x")))
    two = done(one, put(table(ORDERS, 5, acl=["ann"]), table(MORE, 9), table("table/s/x", 4, "x")))
    assert changed_limits(one, one) == {}
    assert changed_limits(one, two) == {"x": {"max_rows": TableLimit(4, "table/s/x")}}
    assert changed_limits(two, DECLARED) == {"orders": {}, "x": {}}


def test_every_way_to_change_limits_asks_for_the_datasource() -> None:
    state = done(DECLARED, put(table(ORDERS, 5), table(MORE, 9)))
    free = done({}, put(DATABASE, table(ORDERS, 5)))
    cases: list[tuple[str, Mapping[str, ObjectNode], Planner, set[str]]] = [
        ("less", state, put(table(ORDERS, 4)), {"orders"}),
        ("to another datasource", state, put(table(ORDERS, 5, "x")), {"orders", "x"}),
        ("the last", state, plan.remove(changes_of(remove=[ORDERS, MORE]), False), {"orders"}),
        (
            "with its database",
            state,
            plan.remove(changes_of(remove=["database/s"]), True),
            {"orders"},
        ),
        ("another name", state, plan.rename("database/s", "t"), {"orders"}),
        ("declared", free, plan.declare(TYPES), {"orders"}),
        ("no longer", state, plan.remove(changes_of(remove=["type/table"]), False), {"orders"}),
    ]
    for what, before, work, expected in cases:
        outcome = work(before, ids("w"))
        assert set(outcome.limits) == expected, what
        assert outcome.locks.datasources == expected, what
    # What is not the least changes no terms, but does once an operation takes the least away.
    beside = put(table(MORE, 8))(state, ids("w"))
    assert (beside.limits, beside.locks.datasources) == ({}, {"orders"})
    same = put(table(ORDERS, 5, acl=["ann"]))(state, ids("w"))
    assert (same.limits, same.locks.datasources) == ({}, frozenset())


def test_an_operation_claims_the_datasource_whether_or_not_the_type_is_declared() -> None:
    for state in (done({}, put(DATABASE, table())), done(DECLARED, put(table()))):
        assert locks(state, changes_of(put=[table(ORDERS, 5)])).datasources == {"orders"}
        assert locks(state, changes_of(put=[table(ORDERS, acl=1)])).datasources == set()
