"""Recovery: what owners leave behind is aborted, swept and in the end forgotten."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from catalog import Catalog, Object, Step
from catalog.environment import Environment
from catalog.errors import ClaimConflict, OperationDecided, UnknownOperation
from tests.concurrency.gates import assert_promises
from tests.spark.operating import ids, ready, refusal, revisions, staged
from tests.unit.builders import segment

Open = Callable[..., Catalog]
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def prepared(catalog: Catalog) -> dict[str, int]:
    """How many rows each operation still has prepared in the table."""
    found = (
        catalog._context.store.rows(catalog.version).where("kind = 'staged'").groupBy("operation")
    )
    return {row["operation"]: row["count"] for row in found.count().collect()}


@pytest.mark.stress
def test_what_was_left_is_aborted_what_is_decided_is_swept_and_later_forgotten(
    open_catalog: Open,
) -> None:
    time = [datetime(2024, 1, 1, tzinfo=UTC)]
    environment = Environment(clock=lambda: time[0])
    ann = open_catalog(actor="ann", environment=environment)
    ann.publish([segment("orders/1")])
    left = ann.operation("left", parts=2, lease=HOUR, id="1-left")
    left.stage(0, drop=["orders/1"], put=Object("table/x"))
    held = ann.operation("held", parts=1, lease=3 * HOUR, id="2-held")
    held.stage(0, publish=[segment("visits/1")])
    waits = ready(ann, 5, "waits", id="3-waits", publish=[segment("clicks/1")])
    staged(ann, "done", id="4-done", publish=[segment("orders/2")]).publish()
    staged(ann, "undone", id="5-undone", publish=[segment("orders/3")]).abort()
    before = ann.version
    assert ann.operations.recover(dry_run=True).aborted == ()
    time[0] += 2 * HOUR

    bob = open_catalog(actor="bob", environment=environment)
    dry = bob.operations.recover(dry_run=True)
    assert ([each.id for each in dry.aborted], dry.decided) == (["1-left"], ())
    assert (dry.swept, dry.forgotten) == (("4-done", "5-undone"), ())
    assert (dry.dry_run, dry.version, bob.version) == (True, before, before)
    steps: list[Step] = []
    report = bob.operations.recover(progress=steps.append, reason="nightly")
    (aborted,) = report.aborted
    assert (aborted.id, aborted.name, aborted.owner) == ("1-left", "left", "ann")
    assert aborted.lease_until == time[0] - HOUR
    assert (report.decided, report.forgotten) == ((), ())
    assert report.swept == ("1-left", "4-done", "5-undone")
    assert (report.version, bob.version, report.dry_run) == (before + 2, before + 2, False)
    assert [(step.what, step.done, step.total) for step in steps] == [
        ("recover: abort", 0, 1),
        ("recover: sweep", 0, 3),
    ]
    assert prepared(ann) == {"2-held": 2, "3-waits": 2}

    # Its owner is told; what waits, and whose lease is not over, is left alone.
    assert left.status().state == "aborted"
    for what, attempt in {
        "stage": lambda: left.stage(1, drop=["orders/9"]),
        "publish": left.publish,
        "renew": left.renew,
    }.items():
        refusal(ann, OperationDecided, attempt, what)
    assert (held.status().state, waits.status().state) == ("open", "ready")
    for key in ("visits/1", "clicks/1"):
        refusal(ann, ClaimConflict, lambda key=key: ann.publish([segment(key)]), key)
    assert ann.drop(["orders/1"]).dropped == 1
    assert ann.objects.put(Object("table/x")).revisions == {"table/x": 1}
    before = ann.version
    again = bob.operations.recover()
    assert (again.aborted, again.swept, again.forgotten) == ((), (), ())
    assert (again.version, bob.version) == (before, before)

    # It stays known for a while what became of an operation.
    time[0] += 29 * DAY
    assert bob.operations.recover(dry_run=True).forgotten == ()
    time[0] += 2 * DAY
    dry = bob.operations.recover(dry_run=True)
    assert [each.id for each in dry.aborted] == ["2-held"]
    assert dry.forgotten == ("1-left", "4-done", "5-undone")
    report = bob.operations.recover()
    assert ([each.id for each in report.aborted], report.swept) == (["2-held"], ("2-held",))
    assert report.forgotten == dry.forgotten
    for operation in dry.forgotten:
        refusal(ann, UnknownOperation, lambda o=operation: ann.operations.get(o), operation)
    refusal(ann, UnknownOperation, left.publish, "left")
    assert held.status().state == "aborted"
    assert bob.operations.recover(keep=timedelta(0)).forgotten == ("2-held",)
    assert [row["operation_id"] for row in ann.inspect.operations().collect()] == ["3-waits"]
    assert ann.operations.advance(5).applied == ("3-waits",)
    assert (ids(ann), revisions(ann)) == ({"orders/2", "clicks/1"}, {"table/x": 1})
    assert_promises(ann)


@pytest.mark.stress
def test_a_schema_that_is_only_staged_is_kept_until_its_operation_is_aborted_and_swept(
    catalog: Catalog,
) -> None:
    now = timedelta(0)
    part = {"publish": [segment("orders/1", "s INT")], "put": Object("table/x", schema="o INT")}
    given_up = staged(catalog, "given up", **part)
    assert (catalog.schemas().count(), catalog.inspect.orphan_schemas().count()) == (2, 0)
    assert catalog.cleanup(grace=now).retired == ()
    given_up.abort()
    assert catalog.cleanup(grace=now).retired == ()  # its rows are still there
    assert catalog.operations.recover().swept == (given_up.id,)
    assert catalog.inspect.orphan_schemas().count() == 2
    assert len(catalog.cleanup(grace=now).retired) == 2

    # What is staged while they are on their way out brings them back.
    again = staged(catalog, "again", **part)
    report = catalog.cleanup(grace=now)
    assert [each.why for each in report.purged] == ["it is live again"] * 2
    assert report.retired == ()
    again.publish()
    assert catalog.cache().schema_of("orders/1").ddl == "s INT"
    assert catalog.schema(catalog.objects.get("table/x").fingerprint or "").ddl == "o INT"
    catalog.operations.recover(keep=now)
    assert catalog.cleanup(grace=now).retired == ()
    assert_promises(catalog)
