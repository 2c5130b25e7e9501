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


@pytest.mark.stress
@pytest.mark.parametrize("chosen", ["known", "fresh"])
def test_writers_meet_the_limits_that_come_under_them(
    free: Open, tmp_path: Path, chosen: str
) -> None:
    setter = free()
    setter.objects.declare(TYPES)
    setter.objects.put(Object("database/s"))
    setter.publish([segment("known/0")])

    # With a row of the datasource that the limit changes, and without one.
    gate = Gate(tmp_path)
    publisher = free(gate.inside("publish"))
    publish = Side(lambda: publisher.publish([segment(f"{chosen}/1", rows=9)]))
    gate.await_reached()
    setter.objects.put(table(5, chosen))
    gate.open()
    with pytest.raises(ContractViolation, match=f"at most 5 are allowed by table/s/{chosen}"):
        _ = publish.result
    # The publisher has learned it.
    assert publisher.publish([segment(f"{chosen}/2", rows=5)]).inserted == 1

    # A part that is being staged meets them too; one that is staged keeps them as they are.
    gate = Gate(tmp_path)
    operation = free(gate.inside("stage")).operation("load", parts=1)
    stage = Side(lambda: operation.stage(0, publish=[segment(f"{chosen}/3", rows=5)]))
    gate.await_reached()
    setter.objects.put(table(4, chosen))
    gate.open()
    with pytest.raises(ContractViolation):
        _ = stage.result
    gate = Gate(tmp_path)
    slow = free(gate.inside("put"))
    change = Side(lambda: slow.objects.put(table(3, chosen)))
    gate.await_reached()
    operation.stage(0, publish=[segment(f"{chosen}/3", rows=4)])
    gate.open()
    with pytest.raises(ClaimConflict):
        _ = change.result
    operation.publish()

    # A contract and a limit that come at once are both there.
    gate = Gate(tmp_path)
    slow = free(gate.inside("put"))
    change = Side(lambda: slow.objects.put(table(3, chosen)))
    gate.await_reached()
    setter.contracts.set(chosen, Contract(max_rows=7))
    gate.open()
    assert change.result.revisions == {f"table/s/{chosen}": 3}
    row = setter.inspect.contracts().where(f"datasource = '{chosen}'").collect()[0]
    assert (row["max_rows"], row["table_max_rows"]) == (7, 3)
    assert_promises(setter)
