"""Parts in every order, from threads and from processes: the same objects, revisions and rows."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import pytest

from catalog import Catalog, Object, Schema
from tests.concurrency.gates import assert_promises
from tests.concurrency.processes import Process
from tests.unit.builders import segment

SEED = 20261117
Start = Callable[..., Process]


def prepare(catalog: Catalog, *names: str) -> None:
    """Under each name a table with an index and a view of the index, and two segments."""
    catalog.publish([segment(f"{name}/old-{n}") for name in names for n in range(2)])
    catalog.objects.put(
        each
        for name in names
        for each in (
            Object(f"table/{name}", {"rows": 2}),
            Object(f"index/{name}", {}, links=[f"table/{name}"]),
            Object(f"view/{name}", {}, links=[f"index/{name}"]),
        )
    )


def bring(part: int, name: str) -> dict[str, Any]:
    """What a part stages. All touch the table, neighbours share a segment."""
    return {
        "publish": [segment(f"{name}/new-{part + n}", f"p{part + n} INT") for n in range(2)],
        "drop": [f"{name}/old-{part % 2}"],
        "put": [
            Object(f"table/{name}", {f"from{part}": part}),
            Object(f"copy/{name}/{part}", {"of": part}, links=[f"table/{name}"]),
        ],
    }


def outcome(catalog: Catalog, name: str) -> dict[str, Any]:
    """Everything that is there under a name, without what is random: ids, commits and times."""

    def plain(text: str) -> str:
        return text.replace(name, "*")

    segments = catalog.segments().where(f"datasource = '{name}'").collect()
    objects = [each for each in catalog.objects.list() if f"/{name}" in each.key]
    return {
        "segments": sorted(
            (plain(row["segment_id"]), row["fingerprint"], row["num_rows"], row["revision"])
            for row in segments
        ),
        "objects": [
            (
                plain(each.key),
                each.revision,
                each.body,
                {plain(target): revision for target, revision in each.links.items()},
            )
            for each in objects
        ],
    }


def run_in_threads(catalog: Catalog, name: str, order: Sequence[int]) -> None:
    operation = catalog.operation(name, parts=len(order))
    failed: list[BaseException] = []

    def stage(part: int) -> None:
        try:
            operation.stage(part, **bring(part, name))
        except BaseException as error:
            failed.append(error)

    for part in order:
        thread = threading.Thread(target=stage, args=(part,))
        thread.start()
        thread.join()
    assert failed == []
    operation.publish()


def check_orders(catalog: Catalog, orders: Sequence[Sequence[int]]) -> None:
    # None is the beginning of another.
    names = [f"run{number:02}" for number in range(len(orders))]
    prepare(catalog, *names)
    outcomes = []
    for name, order in zip(names, orders, strict=True):
        run_in_threads(catalog, name, order)
        outcomes.append(outcome(catalog, name))
    assert all(each == outcomes[0] for each in outcomes)
    # Every object that was there got one revision, however many parts touched it.
    there = {key: revision for key, revision, *_ in outcomes[0]["objects"]}
    assert [there[f"{kind}/*"] for kind in ("table", "index", "view")] == [2, 2, 2]
    assert_promises(catalog)


@pytest.mark.parametrize("parts", [2, 3])
def test_every_order_of_parts_gives_the_same(catalog: Catalog, parts: int) -> None:
    check_orders(catalog, list(permutations(range(parts))))


@pytest.mark.stress
def test_every_order_of_four_parts_gives_the_same(catalog: Catalog) -> None:
    check_orders(catalog, list(permutations(range(4))))


@pytest.mark.stress
def test_a_sample_of_the_orders_of_six_parts_gives_the_same(catalog: Catalog) -> None:
    orders = list(permutations(range(6)))
    check_orders(catalog, random.Random(SEED).sample(orders, 12))


@pytest.mark.stress
def test_parts_staged_at_once_give_the_same(
    open_catalog: Callable[..., Catalog], catalog: Catalog
) -> None:
    prepare(catalog, "alone", "crowd")
    run_in_threads(catalog, "alone", range(3))
    operation = catalog.operation("crowd", parts=3)
    catalogs = [open_catalog() for _ in range(3)]
    threads = [
        threading.Thread(
            target=lambda n=n: (
                catalogs[n].operations.get(operation.id).stage(n, **bring(n, "crowd"))
            )
        )
        for n in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    operation.publish()
    assert outcome(catalog, "crowd") == outcome(catalog, "alone")
    assert_promises(catalog)


IN_TWO = [["open:3", "2"], ["0", "1", "publish"]]
IN_THREE = [[["open:3", a], [b], [c, "publish"]] for a, b, c in permutations(("0", "1", "2"))]


@pytest.mark.parametrize(
    "processes", [IN_TWO, *(pytest.param(each, marks=pytest.mark.stress) for each in IN_THREE)]
)
def test_parts_from_processes_give_the_same(
    catalog: Catalog, location: str, start: Start, processes: list[list[str]]
) -> None:
    catalog.publish([segment(f"orders/old-{n}") for n in range(4)])
    catalog.objects.put(Object("table/orders"))
    for steps in processes:
        process = start("operating", location, "the-operation", *steps)
        assert [line.get("done") for line in process.lines()] == [None, *steps]
        assert process.wait() == 0
    table, indexes = catalog.objects.get("table/orders"), catalog.objects.list("index")
    assert (table.revision, table.body) == (2, {"part0": 0, "part1": 1, "part2": 2})
    assert [(each.revision, dict(each.links)) for each in indexes] == [(1, {"table/orders": 2})] * 3
    found = catalog.segments().select("segment_id", "fingerprint", "revision").collect()
    assert {tuple(row) for row in found} == {
        ("orders/old-3", Schema.of("a INT").fingerprint, 1),
        *(
            (f"orders/new-{part}-{n}", Schema.of(f"p{part} INT").fingerprint, 1)
            for part in range(3)
            for n in range(2)
        ),
    }
    assert_promises(catalog)
