"""Operations, epochs and objects as the shell shows them, in each renderer."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from catalog.cli.command import Answer, Table
from catalog.cli.commands.objects import shown_change, shown_object
from catalog.cli.commands.operations import (
    for_people,
    shown_advance,
    shown_decision,
    shown_recovery,
    shown_status,
)
from catalog.cli.commands.tasks import only, span
from catalog.cli.output import JsonRenderer, PlainRenderer, RichRenderer
from catalog.commit.operation_rows import OperationRow, OperationState
from catalog.errors import InvalidInput, UnknownOperation
from catalog.objects.keeper import PutResult
from catalog.objects.model import StoredObject
from catalog.operations.applier import Advance
from catalog.operations.decision import Decision
from catalog.operations.operation import OperationStatus
from catalog.operations.recovery import RecoverReport

WHEN = datetime(2024, 1, 31, 12, tzinfo=UTC)
ID = "7c1e0a4be3a54d0f9d1a3a0b8f2f6c11"
OTHER = "7c1e99999999999999999999999999ff"
CLAIMS = Table(
    ("target", "key", "action", "shared", "part"),
    (("datasource", "orders", "hold", True, 0), ("segment", "orders/1", "publish", False, 0)),
)
STATUS = OperationStatus(
    id=ID,
    name="reindex orders",
    state="open",
    version=7,
    parts=3,
    staged=(0, 2),
    missing=(1,),
    epoch=None,
    floor=0,
    owner="ann",
    opened_at=WHEN,
    lease_until=WHEN + timedelta(hours=1),
    expired=False,
    claims=(),
    num_claims=2,
)


def as_json(answer: Answer) -> dict[str, Any]:
    out = io.StringIO()
    JsonRenderer("operations show", out, io.StringIO()).show(answer)
    document: dict[str, Any] = json.loads(out.getvalue())
    return document


def on_a_terminal(answer: Answer) -> str:
    out = io.StringIO()
    RichRenderer("operations show", out, io.StringIO()).show(answer)
    return " ".join(out.getvalue().split())


# --- which one is meant ---------------------------------------------------------------------------


def test_the_beginning_of_an_id_means_the_one_operation_that_has_it() -> None:
    assert only("operation", "7c1e", [ID]) == ID
    with pytest.raises(
        UnknownOperation, match="begins with 'beef'; `strata operations list --all`"
    ):
        only("operation", "beef", [])
    with pytest.raises(InvalidInput, match=f"{ID}, {OTHER}; type more") as several:
        only("operation", "7c1e", [ID, OTHER])
    assert several.value.values["candidates"] == (ID, OTHER)


def test_of_many_operations_that_are_meant_some_are_named() -> None:
    with pytest.raises(InvalidInput, match="a0, a1, a2, a3, a4 and more; type more"):
        only("operation", "a", [f"a{number}" for number in range(6)])


# --- operations -----------------------------------------------------------------------------------


def test_an_operation_is_shown_with_what_is_missing_and_what_it_claims() -> None:
    document = as_json(shown_status(STATUS, CLAIMS))
    assert document["facts"] == {
        "version": 7,
        "operation_id": ID,
        "name": "reindex orders",
        "state": "open",
        "parts": 3,
        "staged": [0, 2],
        "missing": [1],
        "complete": False,
        "epoch": None,
        "floor": 0,
        "owner": "ann",
        "opened_at": "2024-01-31T12:00:00Z",
        "lease_until": "2024-01-31T13:00:00Z",
        "expired": False,
        "claims": 2,
    }
    assert document["tables"]["claims"][1] == {
        "target": "segment",
        "key": "orders/1",
        "action": "publish",
        "shared": False,
        "part": 0,
    }


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"staged": (0, 1, 2), "missing": ()}, "All parts are staged, so it can be published."),
        ({"parts": None, "missing": ()}, "Its number of parts is not known yet."),
        ({"expired": True}, "Its lease is over: strata operations recover aborts it"),
        ({"state": "ready", "epoch": 42}, "strata operations advance 42 publishes it."),
    ],
)
def test_people_are_told_what_an_operation_waits_for(changes: dict[str, Any], said: str) -> None:
    assert said in on_a_terminal(shown_status(replace(STATUS, **changes), CLAIMS))


@pytest.mark.parametrize("changes", [{}, {"state": "published"}, {"state": "aborted"}])
def test_where_nothing_is_to_be_done_nothing_is_advised(changes: dict[str, Any]) -> None:
    assert shown_status(replace(STATUS, **changes), CLAIMS).note == ""


def listed(**changes: Any) -> dict[str, Any]:
    """A row of the list of operations."""
    return {
        "operation_id": ID,
        "name": "reindex orders",
        "state": "open",
        "parts_staged": 2,
        "parts": 3,
        "claims": 1204,
        "epoch": None,
        "floor": 0,
        "owner": "ann",
        "age_seconds": 312,
        "lease_until": WHEN + timedelta(minutes=55),
        "expired": False,
        **changes,
    }


def test_a_terminal_has_spans_of_time_and_what_an_epoch_must_be_at_least() -> None:
    rows = [
        listed(),
        listed(parts=None, floor=2, age_seconds=7200, expired=True),
        listed(state="ready", parts_staged=3, epoch=42, floor=2),
        listed(operation_id="mine", state="published", claims=0, age_seconds=-3),
    ]
    people = for_people(rows, WHEN)
    assert people.columns == (
        *("id", "name", "state", "parts", "claims", "epoch", "owner", "age", "lease"),
    )
    assert [row[0] for row in people.rows] == [f"{ID[:8]}…"] * 3 + ["mine"]
    assert [row[2:] for row in people.rows] == [
        ("open", "2/3", 1204, None, "ann", "5m", "55m"),
        ("open", "2/?", 1204, "≥2", "ann", "2h", "over"),
        ("ready", "3/3", 1204, 42, "ann", "5m", ""),
        ("published", "2/3", 0, None, "ann", "0s", ""),
    ]


def test_operations_that_are_under_way_fit_eighty_columns_with_ids_in_one_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rows = [listed(floor=2), listed(state="ready", parts_staged=3, epoch=42)]
    table = Table(
        tuple(rows[0]),
        tuple(tuple(row.values()) for row in rows),
        more=True,
        people=for_people(rows, WHEN),
    )
    drawn = on_a_terminal(Answer(tables={"operations": table}))
    assert "┃ id ┃ name ┃ state ┃ parts ┃ claims ┃ epoch ┃ owner ┃ age ┃ lease ┃" in drawn
    assert f"│ {ID[:8]}… │ reindex │ ready │ 3/3 │ 1204 │ 42 │ ann │ 5m │ │" in drawn
    assert "2 operations shown, there are more" in drawn


@pytest.mark.parametrize(
    ("time", "shown"),
    [
        (timedelta(seconds=59.9), "59s"),
        (timedelta(minutes=1), "1m"),
        (timedelta(hours=23, minutes=59), "23h"),
        (timedelta(days=400), "400d"),
        (timedelta(seconds=-1), "0s"),
    ],
)
def test_a_span_of_time_is_told_in_its_largest_unit(time: timedelta, shown: str) -> None:
    assert span(time) == shown


def test_a_decision_says_what_became_of_the_operation_and_who_makes_it_visible() -> None:
    ready = shown_decision(Decision(8, "c", ID, "ready", 42, retries=1), 3)
    assert as_json(ready)["facts"] == {
        "version": 8,
        "commit_id": "c",
        "operation_id": ID,
        "state": "ready",
        "epoch": 42,
        "repeated": False,
        "retries": 3,
    }
    assert ready.figures == {"conflicts_retried": 3}
    assert "strata operations advance 42 makes it visible." in on_a_terminal(ready)
    published = shown_decision(Decision(8, "c", ID, "published", 42, repeated=True), 0)
    assert (published.note, published.facts["repeated"]) == ("", True)


def test_plain_text_has_a_line_for_each_fact_of_an_operation() -> None:
    out = io.StringIO()
    PlainRenderer("operations show", out, io.StringIO()).show(shown_status(STATUS, CLAIMS))
    lines = out.getvalue().splitlines()
    assert "missing\t[1]" in lines
    assert lines[-2:] == [
        "datasource\torders\thold\ttrue\t0",
        "segment\torders/1\tpublish\tfalse\t0",
    ]


# --- epochs and recovery --------------------------------------------------------------------------


def test_an_advance_lists_what_it_applied_in_order() -> None:
    answer = shown_advance(Advance(9, "c", 40, 42, (OTHER, ID), 0), 1)
    document = as_json(answer)
    assert document["facts"] == {
        "version": 9,
        "commit_id": "c",
        "before": 40,
        "stable": 42,
        "applied": 2,
        "retries": 1,
    }
    assert [row["operation_id"] for row in document["tables"]["applied"]] == [OTHER, ID]
    assert answer.figures == {"stable": 42, "applied": 2, "conflicts_retried": 1}


def test_an_advance_to_where_it_is_has_no_commit() -> None:
    answer = shown_advance(Advance(9, "", 42, 42), 0)
    assert (answer.facts["commit_id"], answer.facts["applied"]) == (None, 0)
    assert "No applied." in on_a_terminal(answer)


def test_a_recovery_says_what_it_did_with_each_operation_and_what_is_left() -> None:
    left = OperationRow(
        id=ID,
        name="reindex orders",
        state=OperationState.OPEN,
        parts=3,
        owner="ann",
        lease=timedelta(hours=1),
        lease_until=WHEN,
        epoch=None,
        order=None,
        commit_id="c",
        opened_at=WHEN,
    )
    report = RecoverReport(9, (left,), (OTHER,), (ID, "old"), ("old",))
    standing = {"open": 1, "ready": 2, "expired": 0, "oldest_seconds": 60}
    answer = shown_recovery(report, standing, 4)
    document = as_json(answer)
    assert document["facts"] == {
        "version": 9,
        "aborted": 1,
        "decided": 1,
        "swept": 2,
        "forgotten": 1,
        **standing,
        "dry_run": False,
        "retries": 4,
    }
    assert document["found"] is False
    assert document["tables"]["changes"][0] == {
        "change": "aborted",
        "operation_id": ID,
        "name": "reindex orders",
        "owner": "ann",
        "lease_until": "2024-01-31T12:00:00Z",
    }
    assert [(row["change"], row["operation_id"]) for row in document["tables"]["changes"][1:]] == [
        ("decided", OTHER),
        ("swept", ID),
        ("swept", "old"),
        ("forgotten", "old"),
    ]
    assert (answer.figures["swept"], answer.figures["conflicts_retried"]) == (2, 4)


# --- objects --------------------------------------------------------------------------------------


def test_a_put_says_what_became_of_each_object_up_to_the_limit() -> None:
    result = PutResult(9, "c", {"table/a": 2, "table/b": 1}, ("table/c",), touched=("index/a",))
    document = as_json(shown_change(result, 0, 3))
    assert document["facts"] == {
        "version": 9,
        "commit_id": "c",
        "put": 2,
        "removed": 0,
        "touched": 1,
        "unchanged": 1,
        "absent": 0,
        "retries": 0,
    }
    assert document["tables"]["changes"] == [
        {"change": "put", "key": "table/a", "revision": 2},
        {"change": "put", "key": "table/b", "revision": 1},
        {"change": "touched", "key": "index/a", "revision": None},
    ]
    assert document["more"] == ["changes"]


def test_a_remove_that_found_nothing_has_no_commit() -> None:
    answer = shown_change(PutResult(9, "", {}, absent=("table/a",)), 0, 10)
    assert (answer.facts["commit_id"], answer.facts["absent"], answer.found) == (None, 1, False)
    assert [*answer.tables["changes"].rows] == [("absent", "table/a", None)]


def test_an_object_is_shown_with_its_body_and_the_revisions_of_what_it_links_to() -> None:
    found = StoredObject(
        key="index/a",
        id=ID,
        revision=3,
        json='{"on":["id"]}',
        links={"table/b": 1, "table/a": 2},
        fingerprint=None,
        datasource=None,
        digest="d",
        commit_id="c",
        published_at=WHEN,
        changed_at=WHEN,
        changed_by="ann",
    )
    document = as_json(shown_object(found, None))
    assert document["facts"]["body"] == {"on": ["id"]}
    assert (document["facts"]["revision"], document["facts"]["ddl"]) == (3, None)
    assert document["tables"]["links"] == [
        {"target": "table/a", "revision": 2},
        {"target": "table/b", "revision": 1},
    ]
    assert 'body {"on": ["id"]}' in on_a_terminal(shown_object(found, "id BIGINT"))
