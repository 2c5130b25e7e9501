"""Claims on objects and datasources: alone or shared, joined, and queued behind ready ones."""

from __future__ import annotations

import pytest

from catalog.commit.operation_rows import ABSENT, AFTER
from catalog.commit.operation_rows import StagedAction as Action
from catalog.errors import ClaimConflict
from catalog.operations.placement import Lock, StagedClaim, lock
from tests.unit.operations.builders import operation

OWN = "own"
KEY = "table/orders"
READY = operation("ready", "ready", 5)
OPERATIONS = {each.id: each for each in (operation(OWN), operation("other"), READY)}
EXCLUSIVE = [Action.PUT, Action.REMOVE, Action.BUMP, Action.CLAIM]


def claims(by: str, action: Action) -> list[StagedClaim]:
    return [StagedClaim(KEY, by, 1, action.value)]


def locked(wanted: Action, staged: list[StagedClaim]) -> list[Lock]:
    return lock("object", {KEY: wanted}, staged, OWN, OPERATIONS, {KEY: "c7"})


def test_what_nobody_has_is_claimed_over_the_row_that_is_there() -> None:
    assert locked(Action.PUT, []) == [Lock("object", KEY, Action.PUT, "c7")]
    absent = lock("object", {"table/new": Action.PUT}, [], OWN, OPERATIONS, {})
    assert absent == [Lock("object", "table/new", Action.PUT, ABSENT)]


@pytest.mark.parametrize("theirs", EXCLUSIVE)
@pytest.mark.parametrize("mine", [*EXCLUSIVE, Action.HOLD])
def test_what_an_open_operation_has_alone_nobody_else_gets(theirs: Action, mine: Action) -> None:
    for wanted, there in ((mine, theirs), (theirs, mine)):
        with pytest.raises(ClaimConflict, match="work other"):
            locked(wanted, claims("other", there))


def test_holding_is_shared() -> None:
    assert locked(Action.HOLD, claims("other", Action.HOLD)) == [
        Lock("object", KEY, Action.HOLD, "c7")
    ]


@pytest.mark.parametrize("theirs", [*EXCLUSIVE, Action.HOLD])
def test_behind_a_ready_operation_a_claim_waits_for_its_outcome(theirs: Action) -> None:
    assert locked(Action.PUT, claims("ready", theirs)) == [
        Lock("object", KEY, Action.PUT, AFTER, (READY,))
    ]


def test_decided_operations_claim_nothing() -> None:
    assert locked(Action.PUT, claims("gone", Action.PUT)) == [Lock("object", KEY, Action.PUT, "c7")]


@pytest.mark.parametrize("wanted", [Action.BUMP, Action.CLAIM, Action.HOLD])
@pytest.mark.parametrize("had", EXCLUSIVE)
def test_what_the_operation_has_is_not_claimed_twice(wanted: Action, had: Action) -> None:
    assert locked(wanted, claims(OWN, had)) == []


def test_what_it_only_holds_is_claimed_when_it_is_to_change() -> None:
    assert locked(Action.BUMP, claims(OWN, Action.HOLD)) == [Lock("object", KEY, Action.BUMP, "c7")]
    with pytest.raises(ClaimConflict):
        locked(
            Action.BUMP,
            [*claims(OWN, Action.HOLD), *claims("other", Action.HOLD)],
        )


def test_a_change_of_its_own_is_staged_though_the_operation_has_the_key() -> None:
    (made,) = locked(Action.PUT, claims(OWN, Action.BUMP))
    assert made.joined
