"""Forced races of objects whose types are declared: one outcome each, and every rule kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from catalog import Catalog, Object
from catalog.errors import RuleViolation
from catalog.objects.platform import PLATFORM
from tests.concurrency.gates import Gate, Side, assert_promises
from tests.unit.objects.platform import GROUND, node, replica

Open = Callable[..., Catalog]


def platform(catalog: Catalog) -> Catalog:
    catalog.objects.declare(PLATFORM)
    catalog.objects.put(GROUND)
    return catalog


def stop(gate: Gate, where: str, point: str) -> Catalog | object:
    return gate.between(f"{point}.planned") if where == "between" else gate.inside(point)


# What is raced for; stress has them all, and stops the statement itself too.
RACES = ("one_of_siblings", "reference", "names", "meets")


@pytest.mark.parametrize(
    ("where", "rules"),
    [
        ("between", RACES[:2]),
        pytest.param("between", RACES[2:], marks=pytest.mark.stress),
        pytest.param("inside", RACES, marks=pytest.mark.stress),
    ],
)
def test_of_two_that_break_a_rule_together_the_second_is_refused(
    free: Open, tmp_path: Path, where: str, rules: tuple[str, ...]
) -> None:
    other = platform(free())
    link = "datastore_link/sales"
    races: dict[str, tuple[list[Object], Callable[[], object]]] = {
        # Two writers on one parent: each makes its own datastore the primary one.
        "one_of_siblings": (
            [
                Object("datastore/hot"),
                Object(f"{link}/main", {"role": "cache"}),
                Object(f"{link}/hot", {"role": "primary"}),
            ],
            lambda: other.objects.put(
                [
                    Object(f"{link}/main", {"role": "cache"}),
                    Object(f"{link}/cold", {"role": "primary"}),
                ]
            ),
        ),
        # One name, in two spellings.
        "names": ([Object("database/HR")], lambda: other.objects.put(Object("database/hr"))),
        # A reference that is removed meanwhile.
        "reference": ([replica("b", "one", "n3")], lambda: other.objects.remove("node/n3")),
        # A requirement that comes meanwhile.
        "meets": (
            [replica("c", "one", "n1")],
            lambda: other.objects.ensure(Object("shard/main/c", {"requirements": ["eu"]})),
        ),
    }
    for rule in rules:
        objects, quicker = races[rule]
        gate = Gate(tmp_path)
        late = free(stop(gate, where, "put"))
        put = Side(lambda late=late, objects=objects: late.objects.put(objects))  # type: ignore[misc]
        gate.await_reached()
        quicker()
        version = other.version
        gate.open()
        with pytest.raises(RuleViolation) as refusal:
            _ = put.result
        assert refusal.value.values["rule"] == rule
        assert other.version == version
    assert_promises(other)


@pytest.mark.parametrize("where", ["between", pytest.param("inside", marks=pytest.mark.stress)])
def test_of_two_on_one_name_the_second_goes_on_from_what_the_first_left(
    free: Open, gate: Gate, where: str
) -> None:
    other = platform(free())
    late = free(stop(gate, where, "ensure"))
    ensure = Side(lambda: late.objects.ensure(node("n4", labels=["late"])))
    gate.await_reached()
    other.objects.put(node("n4", config={"user": "quick"}))
    other.objects.rename("node/n3", "n5")
    gate.open()
    assert ensure.result.revisions == {"node/n4": 2}
    assert other.objects.get("node/n4").body["labels"] == ["late"]
    assert_promises(other)


@pytest.mark.stress
def test_what_becomes_ready_and_what_would_break_it_see_each_other(
    free: Open, tmp_path: Path
) -> None:
    owner = platform(free())
    taken = [replica("b", "one", "n1")]

    # The plain change is quicker: what is to become ready is refused.
    gate = Gate(tmp_path)
    late = free(gate.between("ready.planned"))
    operation = late.operation("take", parts=1)
    operation.stage(0, put=taken)
    publish = Side(lambda: operation.publish(epoch=5))
    gate.await_reached()
    owner.objects.put(replica("b", "two", "n2"))
    gate.open()
    with pytest.raises(RuleViolation) as refusal:
        _ = publish.result
    assert refusal.value.values["rule"] == "at_most"
    owner.objects.remove("replica/main/b/two")

    # What becomes ready is quicker: the plain change is refused, and names it.
    gate = Gate(tmp_path)
    late = free(gate.between("put.planned"))
    put = Side(lambda: late.objects.put(replica("b", "two", "n2")))
    gate.await_reached()
    assert operation.publish(epoch=5).state == "ready"
    gate.open()
    with pytest.raises(RuleViolation) as refusal:
        _ = put.result
    assert refusal.value.values["operation"] == operation.id
    assert owner.operations.advance(5).applied == (operation.id,)
    assert [each.key for each in owner.objects.list("replica", parent="shard/main/b")] == [
        taken[0].key
    ]
    assert_promises(owner)
