"""What waits for its epoch: after each operation in order all rules hold, or it is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from catalog.commit.operation_rows import OperationRow
from catalog.commit.operation_rows import StagedAction as Action
from catalog.errors import RuleViolation, UnknownObject
from catalog.objects.changes import StagedObject, changes_of
from catalog.objects.model import Object
from catalog.objects.plan import after, check_in_order, in_order
from tests.unit.objects.platform import ground, replica
from tests.unit.operations.builders import operation

STATE = ground()


def waiting(id: str, epoch: int) -> OperationRow:
    return operation(id, "ready", epoch)


def staged(id: str, *objects: Object) -> list[StagedObject]:
    return [
        StagedObject(each.key, id, part, Action.PUT, changes_of(each))
        for part, each in enumerate(objects)
    ]


def test_operations_are_completed_by_the_types_and_the_state_when_they_are_applied() -> None:
    rows = [
        *staged("a", Object("node/n3", {"host": "h", "port": 1, "node_type": "pg",
            "config": {"user": "u"}, "state": "provision"})),
        *staged("b", replica("b", "one", "n3"), Object("replica/main/b/one", {"role": "leader"})),
        *staged("c", Object("node/n3", {"host": "i", "port": 1, "node_type": "pg",
            "config": {"user": "u"}})),
    ]  # fmt: skip
    nodes = after(STATE, rows, [waiting("a", 1), waiting("b", 2), waiting("c", 3)])
    assert nodes["node/n3"].body["state"] == "provision"
    made = nodes["replica/main/b/one"]
    assert made.body == {"node": "n3", "role": "leader", "state": "config"}
    assert set(made.links) == {"node/n3", "shard/main/b"}
    assert made.revision == 2


def test_an_operation_whose_id_was_used_before_makes_other_objects() -> None:
    rows = staged("a", replica("b", "one", "n1"))
    first = waiting("a", 1)
    later = replace(first, opened_at=first.opened_at + timedelta(microseconds=1))
    ids = [after(STATE, rows, [each])["replica/main/b/one"].id for each in (first, first, later)]
    assert ids[0] == ids[1] != ids[2]
    assert len(ids[2]) == 32


def test_what_is_ready_stays_applicable_in_the_order_of_epochs() -> None:
    rows = [*staged("a", replica("b", "one", "n1")), *staged("b", replica("b", "two", "n2"))]
    first, second = waiting("a", 1), waiting("b", 2)
    check_in_order(STATE, rows, [first])
    check_in_order(STATE, rows, [second])
    with pytest.raises(RuleViolation) as refusal:
        check_in_order(STATE, rows, in_order([second, first]))
    assert refusal.value.values == {
        "rule": "at_most",
        "key": "replica/main/b/two",
        "operation": "b",
    }
    with pytest.raises(RuleViolation) as refusal:
        check_in_order(STATE, rows, in_order([second, first]), own="b")
    assert "operation" not in refusal.value.values


def test_an_operation_that_could_not_be_applied_for_another_reason_is_named_too() -> None:
    rows = staged("a", Object("note/x", links=["node/none"]))
    with pytest.raises(RuleViolation) as refusal:
        check_in_order(STATE, rows, [waiting("a", 1)])
    assert refusal.value.values["operation"] == "a"
    with pytest.raises(UnknownObject):
        check_in_order(STATE, rows, [waiting("a", 1)], own="a")
