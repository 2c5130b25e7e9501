"""Epochs: when operations become visible. W2 to W22 are the rules that each test is about."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Epoch, Object
from catalog.errors import (
    ClaimConflict,
    EpochNotNewer,
    EpochOrder,
    EpochRegression,
    InvalidEpoch,
    NothingPending,
    OperationDecided,
    PartsMissing,
    VersionNotFound,
)
from tests.concurrency.gates import assert_promises
from tests.spark.operating import (
    changed,
    ids,
    ready,
    refusal,
    revisions,
    rows,
    staged,
    verbs,
)
from tests.unit.builders import segment

Open = Callable[..., Catalog]


def test_the_stable_epoch_only_rises_and_what_waits_above_it_is_final(catalog: Catalog) -> None:
    # W2: unset at first; forward, equal, backward. W22: it may advance without an operation.
    assert catalog.operations.stable_epoch == 0
    operation = staged(catalog, "first", publish=[segment("orders/1")])
    unfinished = catalog.operation("unfinished", parts=2)
    # W18: what is only staged is not dropped, nor forgotten by who drops all of it.
    error = refusal(catalog, ClaimConflict, lambda: catalog.drop(datasource="orders"))
    assert (error.values["keys"], error.values["operation"]) == (("orders/1",), operation.id)
    start = catalog.version
    step = catalog.operations.advance(3, reason="nothing waits")
    assert (step.before, step.stable, step.applied, step.version) == (0, 3, (), start + 1)
    again = catalog.operations.advance(3)
    assert (again.before, again.stable, again.commit_id, again.version) == (3, 3, "", start + 1)
    error = refusal(catalog, EpochRegression, lambda: catalog.operations.advance(2))
    assert (error.values["epoch"], error.values["stable"]) == (2, 3)
    assert (catalog.operations.stable_epoch, catalog.operations.metrics().advances) == (3, 1)

    # W4: what was visible at a stable epoch never changes.
    for epoch in (1, 2, 3):
        error = refusal(catalog, EpochNotNewer, lambda e=epoch: operation.publish(epoch=e))
        assert (error.values["epoch"], error.values["stable"]) == (epoch, 3)
    refusal(catalog, PartsMissing, lambda: unfinished.publish(epoch=4))
    decision = operation.publish(epoch=4)
    assert (decision.state, decision.epoch, decision.repeated) == ("ready", 4, False)
    again = operation.publish(epoch=4)
    assert (again.state, again.version, again.repeated) == ("ready", decision.version, True)
    for what, attempt in {
        "another epoch": lambda: operation.publish(epoch=5),
        "no epoch": lambda: operation.publish(),
        "abort": lambda: operation.abort(),
        "renew": lambda: operation.renew(),
        "seal": lambda: operation.seal(1),
        "stage": lambda: operation.stage(1, drop=["orders/2"]),
    }.items():
        error = refusal(catalog, OperationDecided, attempt, what)
        assert error.values["state"] == "ready", what

    # W14: whatever is unrelated goes on. W8: without an epoch it is visible at once, and belongs to
    # the stable epoch of that moment.
    plain = catalog.publish([segment("orders/2")]).version
    now = staged(catalog, "now", publish=[segment("clicks/1")]).publish().version
    assert ids(catalog) == {"orders/2", "clicks/1"}
    refusal(catalog, ClaimConflict, lambda: catalog.publish([segment("orders/1")]))
    step = catalog.operations.advance(10)
    assert (step.before, step.applied) == (3, (operation.id,))
    assert ids(catalog) == {"orders/1", "orders/2", "clicks/1"}
    status = operation.status()
    assert (status.state, status.epoch, status.num_claims) == ("published", 4, 0)
    assert operation.publish(epoch=4).repeated
    refusal(catalog, OperationDecided, operation.publish, "to publish it at once as well")
    epochs = [catalog.operations.stable_epoch_at(at) for at in (start, plain, now, step.version)]
    assert epochs == [0, 3, 3, 10]
    assert_promises(catalog)


@pytest.mark.stress
def test_what_is_pending_on_a_key_is_published_whole_and_never_out_of_order(
    catalog: Catalog,
) -> None:
    catalog.objects.put([Object("table/x"), Object("index/x", links=["table/x"])])
    first = staged(
        catalog,
        "first",
        publish=[segment("orders/1"), segment("orders/2")],
        put=Object("table/x", {"n": 1}),
    )
    # W7: nothing pending is an error; to be held or bumped by an operation is not to be changed.
    for key in ("orders/9", "orders", "index/x"):
        error = refusal(
            catalog,
            NothingPending,
            lambda key=key: catalog.operations.publish_pending(key, epoch=5),
            key,
        )
        assert error.values["key"] == key
    refusal(catalog, InvalidEpoch, lambda: catalog.operations.publish_pending("orders/1", epoch=0))
    # W5: all that is pending gets the epoch, and what has one keeps it.
    (decision,) = catalog.operations.publish_pending("orders/2", epoch=5)
    assert (decision.operation, decision.state, decision.epoch) == (first.id, "ready", 5)
    second = staged(catalog, "second", publish=[segment("orders/1", rows=2)], on_existing="replace")
    assert second.status().floor == 5
    # W6: along the queue of a key epochs never decrease.
    for what, attempt in {
        "below the first": lambda: second.publish(epoch=4),
        "by its key": lambda: catalog.operations.publish_pending("orders/1", epoch=4),
        "at once": second.publish,
    }.items():
        error = refusal(catalog, EpochOrder, attempt, what)
        assert error.values["floor"] == 5, what
    assert [each.operation for each in catalog.operations.publish_pending("orders/1", epoch=7)] == [
        second.id
    ]
    assert (first.status().epoch, second.status().epoch) == (5, 7)
    refusal(
        catalog, NothingPending, lambda: catalog.operations.publish_pending("orders/1", epoch=9)
    )

    assert catalog.operations.advance(6).applied == (first.id,)
    assert rows(catalog) == {"orders/1": (1, 1), "orders/2": (1, 1)}
    third = staged(catalog, "third", put=Object("table/x", {"n": 2}))
    error = refusal(
        catalog, EpochNotNewer, lambda: catalog.operations.publish_pending("table/x", epoch=6)
    )
    assert error.values["operation"] == third.id
    (decision,) = catalog.operations.publish_pending("table/x", wait=True)
    assert (decision.state, decision.epoch) == ("published", None)
    assert revisions(catalog) == {"index/x": 3, "table/x": 3}
    assert catalog.operations.advance(7).applied == (second.id,)
    assert rows(catalog)["orders/1"] == (2, 2)
    assert_promises(catalog)


@pytest.mark.stress
def test_steps_lead_where_one_jump_leads_and_only_they_show_what_comes_and_goes(
    spark: SparkSession, open_catalog: Open, location: str, tmp_path: Path
) -> None:
    steps = open_catalog(actor="ann")
    steps.publish([segment("orders/gone"), segment("orders/back"), segment("orders/kept")])
    steps.objects.put(
        [
            *(Object("table/gone"), Object("table/back"), Object("table/base")),
            Object("index/base", links=["table/base"]),
        ]
    )
    ready(
        steps,
        1,
        id="a",
        publish=[segment("orders/new", rows=1), segment("orders/gone", "b INT", rows=2)],
        drop=["orders/back"],
        put=[Object("table/new", {"n": 1}), Object("table/gone", {"n": 1}), Object("table/base")],
        remove="table/back",
        on_existing="replace",
    )
    ready(
        steps,
        2,
        id="b",
        publish=[segment("orders/back", "c INT", rows=3)],
        drop=["orders/new", "orders/gone"],
        put=[Object("table/back", schema="c INT"), Object("index/base", {"n": 2}, ["table/base"])],
        remove=["table/new", "table/gone"],
    )
    # C comes after B on keys of both, D after C at the same epoch.
    ready(
        steps,
        3,
        id="c",
        publish=[segment("orders/new", rows=4), segment("orders/kept")],
        put=[Object("table/new", {"n": 3}, links=["table/base"]), Object("table/base", {"n": 3})],
    )
    ready(
        steps,
        3,
        id="d",
        publish=[segment("orders/new", rows=5), segment("orders/kept", rows=6)],
        put=Object("table/base", {"n": 4}),
        on_existing="replace",
    )
    start = steps.version
    before = {each.key: each for each in steps.objects.list()}
    copied = str(tmp_path / "copy")
    shutil.copytree(location, copied)

    # W12: between its creation and its removal a key is there. W11, W15: gone, and there again.
    assert steps.operations.advance(1).applied == ("a",)
    first = {each.key: each for each in steps.objects.list()}
    assert rows(steps) == {"orders/new": (1, 1), "orders/gone": (2, 2), "orders/kept": (1, 1)}
    assert revisions(steps) == {
        "index/base": 2,
        "table/base": 2,
        "table/gone": 2,
        "table/new": 1,
    }
    assert steps.operations.advance(2).applied == ("b",)
    assert rows(steps) == {"orders/back": (3, 1), "orders/kept": (1, 1)}
    assert revisions(steps) == {"index/base": 3, "table/back": 1, "table/base": 2}
    assert steps.operations.advance(3).applied == ("c", "d")
    assert rows(steps) == {"orders/back": (3, 1), "orders/new": (5, 2), "orders/kept": (6, 2)}
    last = {each.key: each for each in steps.objects.list()}
    assert revisions(steps) == {"index/base": 5, "table/back": 1, "table/base": 4, "table/new": 2}
    # W17: a key that was removed and created again is another object.
    assert last["table/new"].id != first["table/new"].id
    assert last["table/back"].id != before["table/back"].id
    assert last["table/base"].id == before["table/base"].id
    assert verbs(steps, start) == ["advance"] * 3

    with Catalog.open(spark, copied, actor="ann") as jump:
        done = jump.operations.advance(3)
        assert (done.before, done.applied) == (0, ("a", "b", "c", "d"))
        assert verbs(jump, start) == ["advance"]
        assert contents(spark, copied) == contents(spark, location)
        # W11: what came and went within the step leaves no trace; what came back is changed.
        assert changed(jump, start) == {
            *((done.version, "removed", key) for key in ("orders/gone", "table/gone")),
            *((done.version, "added", key) for key in ("orders/new", "table/new")),
            *((done.version, "changed", key) for key in ("orders/back", "table/back")),
            *((done.version, "changed", key) for key in ("orders/kept", "table/base")),
            (done.version, "changed", "index/base"),
        }
        # W16: later steps bring nothing back, with the staged rows or after they are swept.
        jump.operations.advance(4)
        assert jump.operations.recover().swept == ("a", "b", "c", "d")
        jump.operations.advance(5)
        assert contents(spark, copied) == contents(spark, location)
        assert_promises(jump)
    assert_promises(steps)


def contents(spark: SparkSession, location: str) -> list[str]:
    """Every row that readers see, but for commit ids, times and who changed it."""
    frame = spark.sql(
        f"SELECT * EXCEPT (commit_id, published_at, changed_at, changed_by) FROM "
        f"delta.`{location}/entries` WHERE kind IN ('segment', 'object', 'schema', 'retired')"
    )
    return sorted(map(str, frame.collect()))


@pytest.mark.stress
def test_what_is_created_and_dropped_within_a_step_leaves_no_trace(catalog: Catalog) -> None:
    catalog.publish([segment("orders/1", rows=1)])
    catalog.objects.put([Object("table/x", {"n": 1}), Object("index/x", links=["table/x"])])
    start = catalog.version
    mistake = ready(
        catalog,
        5,
        "mistake",
        publish=[segment("orders/1", rows=9), segment("orders/wrong")],
        put=[Object("table/x", {"n": 9}), Object("table/wrong", datasource="wrong")],
        on_existing="replace",
    )
    # A ready operation is undone by another one at the same epoch.
    undo = ready(
        catalog,
        5,
        "undo",
        publish=[segment("orders/1", rows=1)],
        drop=["orders/wrong"],
        put=Object("table/x", {"n": 1}),
        remove="table/wrong",
        on_existing="replace",
    )
    step = catalog.operations.advance(5)
    assert step.applied == (mistake.id, undo.id)
    assert changed(catalog, start) == {
        (step.version, "changed", "orders/1"),
        (step.version, "changed", "table/x"),
        (step.version, "changed", "index/x"),
    }
    feed = catalog._context.store.changes(1, catalog.version).where("kind IN ('segment', 'object')")
    assert feed.where("key IN ('orders/wrong', 'table/wrong')").count() == 0
    assert rows(catalog) == {"orders/1": (1, 3)}
    assert revisions(catalog) == {"index/x": 3, "table/x": 3}
    assert catalog.objects.get("table/x").body == {"n": 1}
    # The names are free for others.
    assert catalog.publish([segment("orders/wrong"), segment("wrong/1")]).inserted == 2
    assert catalog.objects.put(Object("table/wrong")).revisions == {"table/wrong": 1}
    assert_promises(catalog)


@pytest.mark.stress
def test_a_datasource_takes_no_data_while_its_table_is_staged_and_keeps_it_while_data_is(
    catalog: Catalog,
) -> None:
    table = Object("table/orders", datasource="orders")
    create = staged(catalog, "create", put=table)
    load = catalog.operation("load", parts=1)
    data = [segment("orders/1")]
    # W13: no segments for a table that is only staged, from whomever.
    for what, attempt in {
        "publish": lambda: catalog.publish(data),
        "stage": lambda: load.stage(0, publish=data),
    }.items():
        error = refusal(catalog, ClaimConflict, attempt, what)
        assert (error.values["keys"], error.values["operation"]) == (("orders",), create.id), what
    assert catalog.publish([segment("clicks/1")]).inserted == 1
    create.publish()
    load.stage(0, publish=data)
    # W18: a table is not removed while data for it is only staged; that leaves nothing behind.
    remove = catalog.operation("remove", parts=1)
    for what, attempt in {
        "remove": lambda: catalog.objects.remove("table/orders"),
        "stand for another": lambda: catalog.objects.put(
            Object("table/orders", datasource="other")
        ),
        "stage": lambda: remove.stage(0, remove="table/orders"),
    }.items():
        error = refusal(catalog, ClaimConflict, attempt, what)
        assert (error.values["keys"], error.values["operation"]) == (("orders",), load.id), what
    assert catalog.objects.put(Object("table/orders", {"a": 1}, datasource="orders")).revisions
    load.publish()
    remove.stage(0, remove="table/orders", drop=["orders/1"])
    # W13 once more: the datasource has data by now, and its table is about to go.
    for mode in ("refuse", "replace"):
        error = refusal(
            catalog,
            ClaimConflict,
            lambda mode=mode: catalog.publish([segment("orders/2")], on_existing=mode),
            mode,
        )
        assert (error.values["keys"], error.values["operation"]) == (("orders",), remove.id), mode
    assert (remove.publish().state, ids(catalog)) == ("published", {"clicks/1"})
    assert catalog.objects.put(table).revisions == {"table/orders": 1}
    assert_promises(catalog)


@pytest.mark.stress
def test_data_waits_behind_the_table_that_it_is_for(catalog: Catalog) -> None:
    create = ready(catalog, 2, "create", put=Object("table/orders", datasource="orders"))
    refusal(catalog, ClaimConflict, lambda: catalog.publish([segment("orders/1")]))
    load = staged(catalog, "load", publish=[segment("orders/1")])
    assert load.status().floor == 2
    assert refusal(catalog, EpochOrder, load.publish).values["floor"] == 2
    load.publish(epoch=3)
    assert catalog.operations.advance(2).applied == (create.id,)
    assert (ids(catalog), revisions(catalog)) == (set(), {"table/orders": 1})
    assert catalog.operations.advance(3).applied == (load.id,)
    assert rows(catalog) == {"orders/1": (1, 1)}
    assert_promises(catalog)


@pytest.mark.stress
def test_what_an_operation_keeps_stays_as_it_was_in_steps_and_in_a_jump(
    spark: SparkSession, open_catalog: Open, location: str, tmp_path: Path
) -> None:
    catalog = open_catalog()
    whole = segment("orders/1", "a INT", rows=5, location="/data/1")
    # Without a schema it says nothing that contradicts the other.
    bare = segment("orders/1", None, None, location="/data/1")
    ready(catalog, 1, id="whole", publish=[whole])
    ready(catalog, 2, id="bare", publish=[bare])
    copied = str(tmp_path / "copy")
    shutil.copytree(location, copied)
    catalog.operations.advance(1)
    catalog.operations.advance(2)
    with Catalog.open(spark, copied) as jump:
        jump.operations.advance(2)
        assert rows(catalog) == rows(jump) == {"orders/1": (5, 1)}
        assert contents(spark, copied) == contents(spark, location)


@pytest.mark.stress
def test_pending_work_survives_that_the_catalog_is_closed_and_opened_again(
    open_catalog: Open,
) -> None:
    with open_catalog(actor="ann") as first:
        one = ready(first, 2, "one", publish=[segment("orders/1")])
        two = staged(first, "two", publish=[segment("orders/1", rows=2)], on_existing="replace")
    # W19: queue and order are in the table, and a recovery does not touch what waits.
    with open_catalog(actor="bob") as second:
        assert second.operations.recover().swept == ()
        assert second.operations.get(one.id).status().state == "ready"
        assert second.operations.get(two.id).status().floor == 2
        refusal(second, EpochOrder, lambda: second.operations.publish_pending("orders/1", epoch=1))
        second.operations.publish_pending("orders/1", epoch=2)
    third = open_catalog(actor="eve")
    assert (third.operations.stable_epoch, ids(third)) == (0, set())
    assert third.operations.advance(2).applied == (one.id, two.id)
    assert rows(third) == {"orders/1": (2, 2)}
    assert_promises(third)


@pytest.mark.stress
def test_each_epoch_can_be_read_as_it_was_in_the_end(catalog: Catalog) -> None:
    ready(catalog, 2, publish=[segment("orders/1")], put=Object("table/x"))
    ready(catalog, 4, publish=[segment("orders/2")])
    catalog.operations.advance(2)
    catalog.publish([segment("orders/plain")])
    catalog.operations.advance(4)

    def seen(epoch: int) -> set[str]:
        found = catalog.segments(as_of=Epoch(epoch)).select("segment_id").collect()
        return {row["segment_id"] for row in found}

    assert seen(1) == set()
    assert seen(2) == seen(3) == {"orders/1", "orders/plain"}
    assert seen(4) == {"orders/1", "orders/2", "orders/plain"}
    assert catalog.objects.get("table/x", as_of=Epoch(3)).revision == 1
    assert catalog.objects.types(as_of=Epoch(1)) == ()
    assert catalog.operations.stable_epoch_at(catalog.operations.version_at_epoch(3)) == 2
    error = refusal(catalog, VersionNotFound, lambda: seen(5))
    assert (error.values["epoch"], error.values["stable"]) == (5, 4)
    refusal(catalog, InvalidEpoch, lambda: seen(0))
