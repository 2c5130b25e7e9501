"""Rollbacks beside others: one side stopped at a named point, the other run, one outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from catalog import Catalog, Contract, Object
from catalog.environment import Environment
from catalog.errors import ClaimConflict
from tests.concurrency.conflicts import conflict
from tests.concurrency.gates import Gate, Side, assert_promises
from tests.unit.builders import segment

Open = Callable[..., Catalog]


def ids(catalog: Catalog) -> set[str]:
    return {row["segment_id"] for row in catalog.segments().select("segment_id").collect()}


def ground(catalog: Catalog) -> int:
    """A version to go back to, and changes of segments, schemas and objects since."""
    catalog.publish([segment("orders/1", "a INT"), segment("orders/2", "b INT")])
    then = catalog.objects.put(
        [Object("db/x", {"n": 1}), Object("table/y", {}, links=["db/x"])]
    ).version
    catalog.drop(["orders/2"])
    catalog.publish([segment("orders/3", "c INT")])
    catalog.objects.put(Object("db/x", {"n": 2}))
    return then


WHERE = [pytest.param("between", marks=pytest.mark.stress), "inside"]


@pytest.mark.parametrize("where", WHERE)
def test_what_others_write_meanwhile_is_seen_or_stays(free: Open, gate: Gate, where: str) -> None:
    other = free()
    then = ground(other)
    stop = gate.between("rollback.planned") if where == "between" else gate.inside("rollback")
    rollback = Side(lambda: free(stop).backups.rollback(then))
    gate.await_reached()
    # One that it would delete, one that it would insert, an object; and what it does not touch.
    other.drop(["orders/3"])
    other.publish([segment("orders/2", "b INT")])
    other.objects.put([Object("table/y", {"since": True}, links=["db/x"]), Object("node/new", {})])
    other.publish([segment("visits/1", "v INT")])
    gate.open()
    report = rollback.result
    assert report.retries > 0 or where == "between"
    assert ids(other) == {"orders/1", "orders/2"} | ({"visits/1"} if report.beside else set())
    assert [(o.key, o.body) for o in other.objects.list()] == [("db/x", {"n": 1}), ("table/y", {})]
    assert_promises(other)


@pytest.mark.stress
def test_what_comes_meanwhile_under_what_it_refers_to_is_seen(free: Open, gate: Gate) -> None:
    other = free()
    then = ground(other)
    rollback = Side(lambda: free(gate.between("rollback.planned")).backups.rollback(then))
    gate.await_reached()
    # `b INT` of the segment that comes back is live when it is planned, and unused.
    assert other.cleanup(grace=timedelta(0)).retired
    # Nobody has checked by this what comes back; no other row that the rollback reads changes.
    contract = other.contracts.set("orders", Contract(schema="c INT", enforcement="strict"))
    gate.open()
    report = rollback.result
    # Planned again, so that it takes the contract back as well.
    assert (report.planned_at, report.beside) == (contract.version, 0)
    assert other.contracts.get("orders") is None
    assert ids(other) == {"orders/1", "orders/2"}
    assert other.cache().schema_of("orders/2").ddl == "b INT"
    assert_promises(other)


@pytest.mark.stress
def test_a_claim_that_comes_meanwhile_refuses_it(free: Open, gate: Gate) -> None:
    other = free()
    then = ground(other)
    rollback = Side(lambda: free(gate.between("rollback.planned")).backups.rollback(then))
    gate.await_reached()
    operation = other.operation("work", parts=1)
    operation.stage(0, drop=["orders/3"])
    gate.open()
    with pytest.raises(ClaimConflict, match=operation.id):
        _ = rollback.result
    assert ids(other) == {"orders/1", "orders/3"}
    operation.publish()
    assert_promises(other)


@pytest.mark.stress
@pytest.mark.exact
def test_a_rollback_settles_conflicts_and_a_lost_answer(free: Open) -> None:
    met: list[str] = []

    def at(point: str) -> None:
        if point == "rollback.begins" and len(met) < 2:
            met.append(point)
            raise conflict("rollback")
        if point == "rollback.answered" and point not in met:
            met.append(point)
            raise ConnectionResetError("lost")

    catalog = free(replace(Environment(), at=at, pause=lambda attempt: 0.0))
    then = ground(catalog)
    head = catalog.version
    report = catalog.backups.rollback(then)
    assert (report.version, report.retries, len(met)) == (head + 1, 2, 3)
    assert {each.kind: each.rows for each in report.changes} == {"segment": 2, "object": 2}
    assert ids(catalog) == {"orders/1", "orders/2"}
    assert_promises(catalog)
