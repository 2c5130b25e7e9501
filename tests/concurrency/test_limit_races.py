"""Limits of tables that change while others write: what commits after them was checked by them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from catalog import Catalog, Contract, Object
from catalog.errors import ClaimConflict, ContractViolation
from catalog.objects.platform import PLATFORM
from tests.concurrency.gates import Gate, Side, assert_promises
from tests.unit.builders import segment

Open = Callable[..., Catalog]
TYPES = [each for each in PLATFORM if each.name in ("database", "table")]


def table(rows: int, datasource: str) -> Object:
    return Object(f"table/s/{datasource}", {"limits": {"max_rows": rows}}, datasource=datasource)


def test_writers_meet_the_limits_that_come_under_them(free: Open, tmp_path: Path) -> None:
    setter = free()
    setter.declare(TYPES)
    setter.put(Object("database/s"))
    setter.publish([segment("known/0")])

    # With a row of the datasource that the limit changes, and without one.
    for datasource in ("known", "fresh"):
        gate = Gate(tmp_path)
        publisher = free(gate.inside("publish"))
        given = [segment(f"{datasource}/1", rows=9)]
        publish = Side(lambda to=publisher, what=given: to.publish(what))  # type: ignore[misc]
        gate.await_reached()
        setter.put(table(5, datasource))
        gate.open()
        with pytest.raises(
            ContractViolation, match=f"at most 5 are allowed by table/s/{datasource}"
        ):
            _ = publish.result
        # The publisher has learned it.
        assert publisher.publish([segment(f"{datasource}/2", rows=5)]).inserted == 1

    # A part that is being staged meets them too; one that is staged keeps them as they are.
    gate = Gate(tmp_path)
    operation = free(gate.inside("stage")).operation("load", parts=1)
    stage = Side(lambda: operation.stage(0, publish=[segment("known/3", rows=5)]))
    gate.await_reached()
    setter.put(table(4, "known"))
    gate.open()
    with pytest.raises(ContractViolation):
        _ = stage.result
    gate = Gate(tmp_path)
    slow = free(gate.inside("put"))
    change = Side(lambda: slow.put(table(3, "known")))
    gate.await_reached()
    operation.stage(0, publish=[segment("known/3", rows=4)])
    gate.open()
    with pytest.raises(ClaimConflict):
        _ = change.result
    operation.publish()

    # A contract and a limit that come at once are both there.
    gate = Gate(tmp_path)
    slow = free(gate.inside("put"))
    change = Side(lambda: slow.put(table(3, "known")))
    gate.await_reached()
    setter.set_contract("known", Contract(max_rows=7))
    gate.open()
    assert change.result.revisions == {"table/s/known": 3}
    row = setter.contracts().where("datasource = 'known'").collect()[0]
    assert (row["max_rows"], row["table_max_rows"]) == (7, 3)
    assert_promises(setter)
