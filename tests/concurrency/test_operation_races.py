"""Forced races of operations: one side stopped at a named point, the other run, one outcome."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from catalog import Catalog, Object
from catalog.environment import Environment
from catalog.errors import (
    ClaimConflict,
    EpochNotNewer,
    EpochRegression,
    OperationDecided,
    PartConflict,
)
from catalog.operations.operation import Operation
from tests.concurrency.gates import Gate, Side, assert_promises
from tests.unit.builders import segment

Open = Callable[..., Catalog]
# Where one side is stopped: after its plan, or inside its statement. CI runs one of them each.
BETWEEN_IN_CI = ["between", pytest.param("inside", marks=pytest.mark.stress)]
INSIDE_IN_CI = [pytest.param("between", marks=pytest.mark.stress), "inside"]


def staged(catalog: Catalog, *names: str, parts: int | None = 1) -> Operation:
    """An open operation with one part that publishes these segments."""
    operation = catalog.operation("work", parts=parts)
    operation.stage(0, publish=[segment(f"orders/{name}") for name in names])
    return operation


def ids(catalog: Catalog) -> set[str]:
    return {row["segment_id"] for row in catalog.segments().select("segment_id").collect()}


# --- epochs ---------------------------------------------------------------------------------------


def test_an_advance_that_was_quicker_refuses_the_epoch(free: Open, gate: Gate) -> None:
    other = free()
    owner = free(gate.between("ready.planned"))
    operation = staged(owner, "1")
    publish = Side(lambda: operation.publish(epoch=5))
    gate.await_reached()
    assert other.operations.advance(5).applied == ()
    gate.open()
    with pytest.raises(EpochNotNewer):
        _ = publish.result
    assert operation.publish(epoch=6).state == "ready"
    assert other.operations.advance(6).applied == (operation.id,)
    assert ids(other) == {"orders/1"}
    assert_promises(other)


@pytest.mark.parametrize("where", BETWEEN_IN_CI)
def test_an_advance_leaves_nobody_behind_who_was_quicker(
    free: Open, gate: Gate, where: str
) -> None:
    owner = free()
    operation = staged(owner, "1")
    stop = gate.between("advance.planned") if where == "between" else gate.inside("advance")
    other = free(stop)
    advance = Side(lambda: other.operations.advance(5))
    gate.await_reached()
    assert operation.publish(epoch=5).state == "ready"
    gate.open()
    assert advance.result.applied == (operation.id,)
    assert ids(owner) == {"orders/1"}
    assert_promises(owner)


@pytest.mark.stress
def test_of_two_advances_the_lower_that_comes_late_is_refused(free: Open, gate: Gate) -> None:
    other = free()
    staged(other, "1").publish(epoch=4)
    late = free(gate.between("advance.planned"))
    advance = Side(lambda: late.operations.advance(5))
    gate.await_reached()
    assert len(other.operations.advance(7).applied) == 1
    gate.open()
    with pytest.raises(EpochRegression):
        _ = advance.result
    assert other.operations.stable_epoch == 7
    assert_promises(other)


def test_of_two_advances_the_higher_that_comes_late_applies_the_rest(
    free: Open, gate: Gate
) -> None:
    other = free()
    first, second = staged(other, "1"), staged(other, "2")
    first.publish(epoch=4)
    second.publish(epoch=6)
    late = free(gate.inside("advance"))
    advance = Side(lambda: late.operations.advance(7))
    gate.await_reached()
    assert other.operations.advance(5).applied == (first.id,)
    gate.open()
    assert advance.result.applied == (second.id,)
    assert advance.result.before == 5
    assert ids(other) == {"orders/1", "orders/2"}
    assert_promises(other)


# --- parts and decisions --------------------------------------------------------------------------


@pytest.mark.parametrize("where", INSIDE_IN_CI)
def test_a_part_is_not_acknowledged_after_the_decision(free: Open, gate: Gate, where: str) -> None:
    other = free()
    operation = staged(other, "1", parts=None)
    stop = gate.between("stage.planned") if where == "between" else gate.inside("stage")
    late = free(stop).operations.get(operation.id)
    stage = Side(lambda: late.stage(1, publish=[segment("orders/2")]))
    gate.await_reached()
    operation.seal(1)
    operation.publish()
    gate.open()
    with pytest.raises(OperationDecided):
        _ = stage.result
    assert ids(other) == {"orders/1"}
    assert_promises(other)


@pytest.mark.stress
def test_one_part_from_two_processes_is_staged_once(free: Open, gate: Gate) -> None:
    other = free()
    operation = other.operation("work", parts=1)
    late = free(gate.inside("stage")).operations.get(operation.id)
    same = [segment("orders/1")]
    stage = Side(lambda: late.stage(0, publish=same))
    gate.await_reached()
    assert not operation.stage(0, publish=same).repeated
    gate.open()
    assert stage.result.repeated
    with pytest.raises(PartConflict):
        late.stage(0, publish=[segment("orders/2")])
    operation.publish()
    assert ids(other) == {"orders/1"}
    assert_promises(other)


@pytest.mark.parametrize("where", BETWEEN_IN_CI)
def test_of_two_operations_one_has_the_key(
    free: Open, gate: Gate, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "catalog")
    other = free()
    stop = gate.between("stage.planned") if where == "between" else gate.inside("stage")
    late = free(stop).operation("late", parts=1)
    stage = Side(lambda: late.stage(0, publish=[segment("orders/1", "b INT")]))
    gate.await_reached()
    first = staged(other, "1")
    gate.open()
    with pytest.raises(ClaimConflict) as refusal:
        _ = stage.result
    assert refusal.value.values["operation"] == first.id
    version = first.publish().version
    told = [record.getMessage() for record in caplog.records]
    assert f"operation {first.id}: part 0 claimed segment orders/1" in told
    assert f"operation {first.id}: part 0 claimed datasource orders" in told
    assert f"operation {late.id}: stage refused: orders/1, claimed by operation {first.id}" in told
    assert f"operation {first.id}: published at version {version}" in told
    assert_promises(other)


@pytest.mark.parametrize("where", INSIDE_IN_CI)
def test_a_recovery_and_the_owner_see_one_outcome(free: Open, gate: Gate, where: str) -> None:
    far = datetime.now(UTC) + timedelta(days=1)
    stop = gate.between("apply.planned") if where == "between" else gate.inside("apply")
    operation = staged(free(stop), "1")
    publish = Side(operation.publish)
    gate.await_reached()
    later = free(Environment(clock=lambda: far))
    assert [each.id for each in later.operations.recover().aborted] == [operation.id]
    gate.open()
    with pytest.raises(OperationDecided) as refusal:
        _ = publish.result
    assert refusal.value.values["state"] == "aborted"
    assert ids(later) == set()
    assert_promises(later)


@pytest.mark.stress
def test_a_recovery_that_comes_late_leaves_alone_what_was_renewed(free: Open, gate: Gate) -> None:
    far = datetime.now(UTC) + timedelta(days=1)
    operation = staged(free(), "1")
    late = free(replace(gate.between("abort.planned"), clock=lambda: far))
    recovery = Side(late.operations.recover)
    gate.await_reached()
    operation.renew(timedelta(days=2))
    gate.open()
    assert (recovery.result.aborted, recovery.result.decided) == ((), ())
    assert operation.publish().state == "published"
    assert_promises(late)


@pytest.mark.stress
def test_a_recovery_that_comes_late_says_that_the_owner_was_quicker(free: Open, gate: Gate) -> None:
    far = datetime.now(UTC) + timedelta(days=1)
    owner = free()
    operation = staged(owner, "1")
    late = free(replace(gate.between("abort.planned"), clock=lambda: far))
    recovery = Side(late.operations.recover)
    gate.await_reached()
    operation.publish()
    gate.open()
    report = recovery.result
    assert (report.aborted, report.decided) == ((), (operation.id,))
    assert operation.status().state == "published"
    assert ids(owner) == {"orders/1"}
    assert_promises(owner)


@pytest.mark.parametrize("stop", [pytest.param("sweep", marks=pytest.mark.stress), "forget"])
def test_a_recovery_that_comes_late_leaves_alone_who_has_the_id_by_then(
    free: Open, gate: Gate, stop: str
) -> None:
    other = free()
    other.operation("first", parts=1, id="again").stage(0, publish=[segment("orders/1")])
    other.operations.get("again").abort()
    late = free(gate.between(f"{stop}.begins"))
    recovery = Side(lambda: late.operations.recover(keep=timedelta(0)))
    gate.await_reached()
    assert other.operations.recover(keep=timedelta(0)).forgotten == ("again",)
    operation = other.operation("second", parts=1, id="again")
    operation.stage(0, publish=[segment("orders/2")])
    gate.open()
    assert recovery.result.swept == ("again",)
    assert operation.publish().state == "published"
    assert ids(other) == {"orders/2"}
    assert_promises(other)


# --- beside others --------------------------------------------------------------------------------


def test_a_publish_under_way_meets_a_claim_that_was_quicker(free: Open, gate: Gate) -> None:
    other = free()
    late = free(gate.inside("publish"))
    publish = Side(lambda: late.publish([segment("orders/1")]))
    gate.await_reached()
    operation = staged(other, "1")
    gate.open()
    with pytest.raises(ClaimConflict):
        _ = publish.result
    operation.publish()
    assert late.publish([segment("orders/1")]).existing == 1
    assert_promises(other)


def test_a_publish_meets_a_claim_on_its_datasource_that_was_quicker(free: Open, gate: Gate) -> None:
    other = free()
    other.publish([segment("orders/1")])
    late = free(gate.inside("publish"))
    publish = Side(lambda: late.publish([segment("orders/2")]))
    gate.await_reached()
    operation = other.operation("table", parts=1)
    operation.stage(0, put=Object("table/orders", datasource="orders"))
    gate.open()
    with pytest.raises(ClaimConflict) as refused:
        _ = publish.result
    assert refused.value.values["keys"] == ("orders",)
    operation.publish()
    assert late.publish([segment("orders/2")]).inserted == 1
    assert_promises(other)


def test_the_first_object_of_all_meets_a_claim_that_was_quicker(free: Open, gate: Gate) -> None:
    other = free()
    late = free(gate.between("put.planned"))
    put = Side(lambda: late.objects.put(Object("table/orders", datasource="orders")))
    gate.await_reached()
    operation = staged(other, "1")
    gate.open()
    with pytest.raises(ClaimConflict):
        _ = put.result
    operation.publish()
    assert late.objects.put(Object("table/orders", datasource="orders")).revisions == {
        "table/orders": 1
    }
    assert_promises(other)


@pytest.mark.stress
def test_a_claim_is_not_made_over_a_row_that_is_gone(free: Open, gate: Gate) -> None:
    other = free()
    other.publish([segment("orders/1")])
    late = free(gate.between("stage.planned"))
    operation = late.operation("work", parts=1)
    stage = Side(lambda: operation.stage(0, drop=["orders/1"]))
    gate.await_reached()
    other.drop(["orders/1"])
    other.publish([segment("orders/1", "b INT")])
    gate.open()
    assert stage.result.claimed == 1
    operation.publish()
    assert ids(other) == set()
    assert_promises(other)


def test_a_link_made_meanwhile_is_not_missed(free: Open, gate: Gate) -> None:
    other = free()
    other.objects.put(Object("table/orders"))
    late = free(gate.between("stage.planned"))
    operation = late.operation("work", parts=1)
    stage = Side(lambda: operation.stage(0, put=[Object("table/orders", {"a": 1})]))
    gate.await_reached()
    other.objects.put(Object("index/orders", links=["table/orders"]))
    gate.open()
    _ = stage.result
    with pytest.raises(ClaimConflict):
        other.objects.put(Object("index/orders", {"b": 2}, links=["table/orders"]))
    operation.publish()
    index = other.objects.get("index/orders")
    assert (index.revision, dict(index.links)) == (2, {"table/orders": 2})
    assert_promises(other)
