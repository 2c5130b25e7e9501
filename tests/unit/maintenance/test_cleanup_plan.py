"""What a version calls for: every combination of what a schema row can be."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from catalog.maintenance.cleanup import (
    BATCH,
    FEW,
    CleanupCandidate,
    CleanupChange,
    CleanupPlan,
    batches,
    plan_cleanup,
)

CUTOFF = 1_000_000
AGES = {"older": CUTOFF - 1, "just": CUTOFF, "younger": CUTOFF + 1}


def candidate(fingerprint: str = "f1", **given: Any) -> CleanupCandidate:
    row: dict[str, Any] = {
        "bucket": 3,
        "retired": False,
        "commit_id": f"c-{fingerprint}",
        "published_micros": 0,
        "changed_micros": 0,
        "referenced": False,
        "live": True,
    }
    return CleanupCandidate(fingerprint, **row | given)


def retired(fingerprint: str = "f1", **given: Any) -> CleanupCandidate:
    return candidate(fingerprint, **{"retired": True, "live": False} | given)


def decided(*rows: CleanupCandidate) -> dict[str, list[str]]:
    plan = plan_cleanup(rows, CUTOFF, 100)
    return {
        "restore": [change.commit_id for change in plan.restore],
        "purge": [change.commit_id for change in plan.purge],
        "retire": [change.commit_id for change in plan.retire],
    }


NOTHING: dict[str, list[str]] = {"restore": [], "purge": [], "retire": []}


@pytest.mark.parametrize(
    ("referenced", "live", "age"), list(itertools.product([True, False], [True, False], AGES))
)
def test_a_retired_row_is_restored_if_it_is_the_last_copy_that_something_needs_else_purged_when_old(
    referenced: bool, live: bool, age: str
) -> None:
    row = retired(referenced=referenced, live=live, changed_micros=AGES[age])
    if referenced and not live:
        expected = {"restore": ["c-f1"]}
    elif age != "younger":
        expected = {"purge": ["c-f1"]}
    else:
        expected = {}
    assert decided(row) == NOTHING | expected


@pytest.mark.parametrize(
    ("referenced", "age", "copy"), list(itertools.product([True, False], AGES, [True, False]))
)
def test_a_live_row_is_retired_if_it_is_old_and_nothing_needs_it_and_no_retired_copy_is_there(
    referenced: bool, age: str, copy: bool
) -> None:
    row = candidate(referenced=referenced, published_micros=AGES[age], commit_id="live")
    others = [retired(live=True, referenced=referenced, changed_micros=CUTOFF + 1)] if copy else []
    wanted = not referenced and age != "younger" and not copy
    assert decided(row, *others) == NOTHING | ({"retire": ["live"]} if wanted else {})


def test_the_grace_counts_from_publication_and_for_a_retired_row_from_retirement() -> None:
    assert decided(candidate(published_micros=CUTOFF + 1, changed_micros=0)) == NOTHING
    assert decided(candidate(published_micros=0, changed_micros=CUTOFF + 1))["retire"] == ["c-f1"]
    assert decided(retired(published_micros=0, changed_micros=CUTOFF + 1)) == NOTHING
    assert decided(retired(published_micros=CUTOFF + 1, changed_micros=0))["purge"] == ["c-f1"]


def test_restoring_does_not_wait_for_the_grace() -> None:
    row = retired(referenced=True, changed_micros=CUTOFF + 1)
    assert decided(row)["restore"] == ["c-f1"]


def test_a_copy_of_another_schema_does_not_keep_one_from_being_retired() -> None:
    assert decided(candidate("f1"), retired("f2", changed_micros=CUTOFF + 1)) == NOTHING | {
        "retire": ["c-f1"]
    }


@pytest.mark.parametrize(
    ("row", "field", "why"),
    [
        (retired(referenced=True), "restore", "something refers to it"),
        (retired(live=True), "purge", "it is live again"),
        (retired(live=True, referenced=True), "purge", "it is live again"),
        (retired(), "purge", "nothing refers to it since it was retired"),
        (candidate(), "retire", "nothing refers to it"),
    ],
)
def test_a_change_carries_the_row_as_it_was_seen_and_the_reason(
    row: CleanupCandidate, field: str, why: str
) -> None:
    plan = plan_cleanup([row], CUTOFF, 1)
    assert plan == CleanupPlan(**{field: (CleanupChange("f1", 3, "c-f1", why),)})


def test_purges_and_retirements_are_capped_each_and_restores_never() -> None:
    rows = [
        *(candidate(f"a{n}") for n in range(5)),
        *(retired(f"b{n}") for n in range(5)),
        *(retired(f"c{n}", referenced=True) for n in range(5)),
    ]
    plan = plan_cleanup(rows, CUTOFF, 2)
    assert [change.fingerprint for change in plan.retire] == ["a0", "a1"]
    assert [change.fingerprint for change in plan.purge] == ["b0", "b1"]
    assert [change.fingerprint for change in plan.restore] == ["c0", "c1", "c2", "c3", "c4"]


def test_the_plan_is_in_the_order_of_fingerprints_whatever_the_order_of_rows() -> None:
    rows = [candidate("c"), retired("b", live=True), candidate("a"), retired("d")]
    plans = {plan_cleanup(order, CUTOFF, 10) for order in itertools.permutations(rows)}
    (plan,) = plans
    assert [change.fingerprint for change in plan.retire] == ["a", "c"]
    assert [change.fingerprint for change in plan.purge] == ["b", "d"]


def test_no_candidates_call_for_nothing() -> None:
    assert plan_cleanup([], CUTOFF, 10) == CleanupPlan()


# --- what goes into one commit -------------------------------------------------------------------


def spread_out(count: int, buckets: int) -> list[CleanupChange]:
    return [CleanupChange(f"f{number}", number % buckets, "c", "why") for number in range(count)]


def test_nothing_to_do_is_no_commit() -> None:
    assert batches([]) == []


def test_a_few_changes_go_into_one_commit_wherever_they_are() -> None:
    changes = spread_out(FEW, 16)
    assert batches(changes) == [changes]


def test_many_changes_go_bucket_by_bucket_and_none_is_lost() -> None:
    changes = spread_out(3 * BATCH + 1, 2)
    made = batches(changes)
    assert [len({change.bucket for change in batch}) for batch in made] == [1, 1, 1, 1]
    assert max(map(len, made)) == BATCH
    assert sorted(c.fingerprint for b in made for c in b) == sorted(c.fingerprint for c in changes)
