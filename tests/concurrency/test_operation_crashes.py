"""Operations whose process dies at a commit boundary: before or after, never in between."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from catalog import Catalog, Object
from tests.concurrency.gates import assert_promises
from tests.concurrency.operating import stage
from tests.concurrency.processes import Process
from tests.unit.builders import segment

Start = Callable[..., Process]
ID = "the-operation"
OLD = {"orders/old-0", "orders/old-1"}
NEW = {f"orders/new-{part}-{n}" for part in range(2) for n in range(2)}

# Where the process dies, what it was doing, and whether the new state is there afterwards.
NOW = ["open:2", "0", "1", "publish"]
LATER = ["open:2", "0", "1", "at:5", "advance:5"]
SEALED = ["open", "1", "0", "seal:2", "publish"]
RENEWED = ["open:2", "0", "renew", "1", "publish"]
GIVEN_UP = ["open:2", "0", "1", "abort"]
STOPS = [
    ("open.planned", NOW, False),
    ("open.answered", NOW, False),
    ("stage.planned", NOW, False),
    ("stage.answered", NOW, False),
    ("stage.planned:2", NOW, False),
    ("stage.answered:2", NOW, False),
    ("seal.planned", SEALED, False),
    ("seal.answered", SEALED, False),
    ("renew.planned", RENEWED, False),
    ("renew.answered", RENEWED, False),
    ("apply.planned", NOW, False),
    ("apply.answered", NOW, True),
    ("ready.planned", LATER, False),
    ("ready.answered", LATER, False),
    ("advance.planned", LATER, False),
    ("advance.answered", LATER, True),
    ("abort.planned", GIVEN_UP, False),
    ("abort.answered", GIVEN_UP, False),
    ("sweep.begins", [*NOW, "recover"], True),
    ("sweep.answered", [*NOW, "recover"], True),
    ("forget.begins", [*NOW, "forget"], True),
    ("forget.answered", [*NOW, "forget"], True),
]
IN_CI = ("apply.answered",)


def prepare(catalog: Catalog) -> None:
    catalog.publish([segment(each) for each in sorted(OLD)])
    catalog.objects.put(Object("table/orders"))


def visible(catalog: Catalog) -> set[str]:
    return {row["segment_id"] for row in catalog.segments().select("segment_id").collect()}


def check_whole(catalog: Catalog, applied: bool) -> None:
    """Everything of the operation is there, or nothing of it."""
    assert visible(catalog) == (NEW if applied else OLD)
    table = catalog.objects.get("table/orders")
    assert (table.revision, table.body) == ((2, {"part0": 0, "part1": 1}) if applied else (1, {}))
    assert len(catalog.objects.list("index")) == (2 if applied else 0)


def go_on(catalog: Catalog) -> None:
    """What the next process does: the same again, under the same id if it can still be used."""
    states = {row["operation_id"]: row["state"] for row in catalog.inspect.operations().collect()}
    state = states.get(ID)
    if state == "ready":
        catalog.operations.advance(5)
    elif state == "open" or visible(catalog) == OLD:
        id = "another" if state == "aborted" else ID
        operation = (
            catalog.operations.get(ID)
            if state == "open"
            else catalog.operation("reindex", parts=2, id=id)
        )
        for part in range(2):
            stage(operation, part)
        operation.seal(2)
        operation.publish()


@pytest.mark.parametrize(
    ("stop", "steps", "applied"),
    [
        pytest.param(*each, marks=[] if each[0] in IN_CI else [pytest.mark.stress], id=each[0])
        for each in STOPS
    ],
)
def test_a_process_that_dies_leaves_all_or_nothing(
    catalog: Catalog, location: str, start: Start, stop: str, steps: list[str], applied: bool
) -> None:
    prepare(catalog)
    process = start("operating", location, ID, *steps, "--stop", stop)
    said = list(process.lines())
    assert process.wait() == -9
    assert said[0] == {"ready": True}
    check_whole(catalog, applied)
    go_on(catalog)
    check_whole(catalog, True)
    assert_promises(catalog)


@pytest.mark.stress
def test_what_a_dead_owner_left_is_recovered_and_the_keys_are_free(
    catalog: Catalog, location: str, start: Start
) -> None:
    prepare(catalog)
    process = start("operating", location, ID, "open:2", "0", "--stop", "stage.answered")
    list(process.lines())
    assert process.wait() == -9
    time.sleep(1.5)  # its lease is one second
    report = catalog.operations.recover()
    assert [each.id for each in report.aborted] == [ID]
    assert report.swept == (ID,)
    check_whole(catalog, False)
    catalog.publish([segment("orders/new-0-0")])
    catalog.objects.put(Object("table/orders", {"free": True}))
    assert_promises(catalog)
