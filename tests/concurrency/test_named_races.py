"""Forced races of registrations: whoever comes second merges, is judged again, or is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from catalog import Catalog, Object, Schema, superior
from catalog.environment import Environment
from catalog.errors import IncompatibleSchema
from tests.concurrency.gates import Gate, Side, assert_promises

Open = Callable[..., Catalog]


def stop(gate: Gate, where: str) -> Environment:
    """Stops a registration after its plan, or inside its statement."""
    return gate.between("register.planned") if where == "between" else gate.inside("register")


@pytest.mark.parametrize("where", ["inside", pytest.param("between", marks=pytest.mark.stress)])
def test_two_registrations_from_one_base_end_in_a_version_superior_to_both(
    free: Open, gate: Gate, where: str
) -> None:
    quick = free()
    quick.names.register("orders", "id INT")
    late = free(stop(gate, where))
    theirs, ours = "id INT, a INT", "id BIGINT, b INT"
    register = Side(lambda: late.names.register("orders", ours, base=1))
    gate.await_reached()
    first = quick.names.register("orders", theirs, base=1)
    gate.open()
    second = register.result
    assert (first.version, first.merged) == (2, False)
    assert (second.version, second.merged, second.breaking) == (3, True, False)
    assert second.version_of_table > first.version_of_table
    found = quick.names.get("orders").schema
    assert found == Schema.of("id BIGINT, a INT, b INT")
    assert superior(found, theirs)
    assert superior(found, ours)
    assert_promises(quick)


@pytest.mark.stress
def test_two_first_registrations_take_the_numbers_1_and_2(free: Open, gate: Gate) -> None:
    quick = free()
    late = free(stop(gate, "inside"))
    register = Side(lambda: late.names.register("orders", "b INT", base=0))
    gate.await_reached()
    assert quick.names.register("orders", "a INT", base=0).version == 1
    gate.open()
    assert (register.result.version, register.result.merged) == (2, True)
    assert quick.names.get("orders").schema == Schema.of("a INT, b INT")
    assert_promises(quick)


@pytest.mark.stress
def test_who_comes_second_is_judged_by_what_is_there_then(free: Open, gate: Gate) -> None:
    quick = free()
    quick.names.register("orders", "a INT")
    late = free(stop(gate, "between"))
    register = Side(lambda: late.names.register("orders", "a INT, b INT"))
    gate.await_reached()
    quick.names.register("orders", "a BIGINT")
    gate.open()
    with pytest.raises(IncompatibleSchema) as refused:
        _ = register.result
    assert refused.value.values["version"] == 3
    assert quick.names.get("orders").current == 2
    assert_promises(quick)


@pytest.mark.stress
def test_a_clean_up_that_runs_beside_a_registration_does_not_take_its_schema(
    free: Open, gate: Gate
) -> None:
    cleaner = free()
    cleaner.names.register("clicks", "a INT")
    # Nothing refers to this one: it came with an object that is gone.
    cleaner.objects.put(Object("table/x", schema="a INT, b INT"))
    cleaner.objects.remove("table/x")
    late = free(stop(gate, "inside"))
    register = Side(lambda: late.names.register("clicks", "a INT, b INT"))
    gate.await_reached()
    assert len(cleaner.cleanup(grace=timedelta(0)).retired) == 1
    gate.open()
    assert register.result.version == 2
    assert cleaner.names.get("clicks").schema == Schema.of("a INT, b INT")
    assert_promises(cleaner)


@pytest.mark.exact
def test_a_registration_whose_answer_is_lost_is_one_version(
    free: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = free()
    other.names.register("orders", "a INT")
    lost = []

    def lose(point: str) -> None:
        if point == "register.answered" and len(lost) < 1:
            lost.append(point)
            other.names.register("orders", "a INT, c INT", base=1)
            raise ConnectionError("the answer is lost")

    catalog = free(replace(Environment(), at=lose, pause=lambda attempt: 0.0))
    # The history does not show the commit at once, as if it came late: the next plan meets it.
    find, blind = catalog._context.store.find_commit, [True]
    monkeypatch.setattr(
        catalog._context.store,
        "find_commit",
        lambda *args: None if blind and blind.pop() else find(*args),
    )
    done = catalog.names.register("orders", "a INT, b INT", base=1)
    assert (done.version, done.merged, done.repeated, lost) == (2, False, False, lost[:1])
    assert done.version_of_table == catalog.version - 1
    now = catalog.names.get("orders")
    assert (now.current, now.schema) == (3, Schema.of("a INT, b INT, c INT"))
    assert now.commit_id != catalog.names.get("orders", 2).commit_id == done.commit_id
    assert_promises(catalog)
