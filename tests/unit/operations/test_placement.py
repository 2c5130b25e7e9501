"""Who gets a segment's key, and over what it is staged."""

from __future__ import annotations

import pytest

from catalog.commit.operation_rows import ABSENT, AFTER
from catalog.commit.operation_rows import StagedAction as Action
from catalog.errors import ClaimConflict, PartConflict, SegmentConflict
from catalog.model import OnExisting
from catalog.operations.placement import Placement, SeenSegment, place
from tests.unit.operations.builders import LEASE, NOW, operation

OWN = "own"
KEY = "orders/1"


def live(contradicts: bool = False) -> SeenSegment:
    return SeenSegment(KEY, "c7", contradicts)


def staged(by: str, action: Action, contradicts: bool = False, base: str = ABSENT) -> SeenSegment:
    return SeenSegment(KEY, "c8", contradicts, by, 0, action.value, base)


OPERATIONS = {
    each.id: each
    for each in (
        operation(OWN),
        operation("other"),
        operation("first", "ready", 5),
        operation("second", "ready", 7),
    )
}
REFUSE, REPLACE = OnExisting.REFUSE, OnExisting.REPLACE
PUBLISH_FIRST = staged("first", Action.PUBLISH)
CASES = {
    "there with this content": ([live()], False, REFUSE, Placement(Action.KEEP, "c7")),
    "there with other content, to be replaced": (
        [live(contradicts=True)],
        False,
        REPLACE,
        Placement(Action.REPLACE, "c7"),
    ),
    "there and dropped": ([live()], True, REFUSE, Placement(Action.DROP, "c7")),
    "created by one that is ready": (
        [PUBLISH_FIRST],
        False,
        REFUSE,
        Placement(Action.KEEP, AFTER),
    ),
    "created with other content by one that is ready": (
        [staged("first", Action.PUBLISH, contradicts=True)],
        False,
        REPLACE,
        Placement(Action.REPLACE, AFTER),
    ),
    "dropped by one that is ready": (
        [live(contradicts=True), staged("first", Action.DROP, base="c7")],
        False,
        REFUSE,
        Placement(Action.PUBLISH, AFTER),
    ),
    "created and dropped by two that are ready, whatever their rows' order": (
        [staged("second", Action.DROP, base=AFTER), PUBLISH_FIRST],
        False,
        REFUSE,
        Placement(Action.PUBLISH, AFTER),
    ),
    "dropped after one that is ready": (
        [PUBLISH_FIRST],
        True,
        REFUSE,
        Placement(Action.DROP, AFTER),
    ),
    "published by a sibling too": (
        [live(), staged(OWN, Action.KEEP, base="c7")],
        False,
        REFUSE,
        Placement(Action.KEEP, "c7", joined=True),
    ),
    "dropped by a sibling too": (
        [live(), staged(OWN, Action.DROP, base="c7")],
        True,
        REFUSE,
        Placement(Action.DROP, "c7", joined=True),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_key_is_staged_over_what_will_be_there(case: str) -> None:
    found, drop, mode, expected = CASES[case]
    dropped = frozenset([KEY] if drop else [])
    assert place(found, dropped, mode, OWN, OPERATIONS).placements == {KEY: expected}


def test_an_open_operation_keeps_others_out_and_is_named_with_its_lease() -> None:
    with pytest.raises(ClaimConflict) as refusal:
        place([live(), staged("other", Action.DROP)], frozenset(), REPLACE, OWN, OPERATIONS)
    assert refusal.value.values["operation"] == "other"
    assert refusal.value.values["lease_until"] == NOW + LEASE
    assert "work other" in str(refusal.value)
    assert KEY in str(refusal.value)


def test_what_is_there_with_other_content_is_refused_by_its_names() -> None:
    with pytest.raises(SegmentConflict) as refusal:
        place([live(contradicts=True)], frozenset(), REFUSE, OWN, OPERATIONS)
    assert refusal.value.values["segment_ids"] == (KEY,)


@pytest.mark.parametrize(
    ("sibling", "drop"),
    [
        (staged(OWN, Action.DROP), False),
        (staged(OWN, Action.PUBLISH), True),
        (staged(OWN, Action.PUBLISH, contradicts=True), False),
    ],
)
def test_parts_that_contradict_each_other_are_refused(sibling: SeenSegment, drop: bool) -> None:
    with pytest.raises(PartConflict) as refusal:
        place([sibling], frozenset([KEY] if drop else []), REPLACE, OWN, OPERATIONS)
    assert refusal.value.values == {"key": KEY, "part": 0}


def test_all_who_wait_before_it_are_ahead() -> None:
    second = staged("second", Action.REPLACE, base=AFTER)
    placed = place([PUBLISH_FIRST, second], frozenset(), REFUSE, OWN, OPERATIONS)
    assert {each.id for each in placed.ahead} == {"first", "second"}
    assert place([live()], frozenset(), REFUSE, OWN, OPERATIONS).ahead == ()
