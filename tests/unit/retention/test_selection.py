"""Which segments go: cases that were reckoned by hand, and laws."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.objects.retention_rules import RetentionRule, Scope
from catalog.retention.selection import may_go
from tests.unit.retention.specification import Fact, Going, Why, plan

DAY = 86_400_000_000
NOW = 1_000 * DAY


def rule(**fields: Any) -> RetentionRule:
    return RetentionRule("retention/datasource/d", Scope.DATASOURCE, "d", **fields)


def days_ago(**ages: float) -> list[Fact]:
    """Segments whose intervals ended so many days ago; they were all published now."""
    return [Fact(id, NOW, NOW - round(age * DAY)) for id, age in ages.items()]


FACTS = days_ago(a=40, b=30, c=20, d=10, e=0)


@pytest.mark.parametrize(
    ("fields", "goes"),
    [
        ({"max_age_days": 25}, ["a age", "b age"]),
        ({"max_age_days": 30}, ["a age"]),  # as old as that is not older
        ({"max_age_days": 29.9999}, ["a age", "b age"]),
        ({"max_age_days": 100}, []),
        ({"max_age_days": 0.5}, ["a age", "b age", "c age", "d age"]),
        ({"max_segments": 3}, ["a count", "b count"]),
        ({"max_segments": 5}, []),
        ({"max_segments": 2, "max_age_days": 35}, ["a age", "b count", "c count"]),
        ({"max_segments": 4, "max_age_days": 15}, ["a age", "b age", "c age"]),
        ({"max_age_days": 5, "keep_at_least": 3}, ["a age", "b age"]),
        ({"max_age_days": 5, "keep_at_least": 5}, []),
        ({"max_age_days": 5, "keep_at_least": 9}, []),
    ],
)
def test_age_and_count_take_the_oldest_and_the_guard_keeps_the_newest(
    fields: dict[str, Any], goes: list[str]
) -> None:
    assert [f"{each.id} {each.why}" for each in plan(rule(**fields), FACTS, NOW)] == goes


def test_age_counts_from_the_end_of_the_interval_else_from_the_publication() -> None:
    facts = [
        Fact("old data, published now", NOW, NOW - 9 * DAY),
        Fact("published long ago, no interval", NOW - 9 * DAY),
        Fact("published long ago, ends in the future", NOW - 9 * DAY, NOW + DAY),
        Fact("published now, no interval", NOW),
    ]
    going = plan(rule(max_age_days=5), facts, NOW)
    assert {each.id for each in going} == {facts[0].id, facts[1].id}


def test_ties_are_decided_by_id() -> None:
    facts = [Fact(id, NOW) for id in ("b", "a", "ä", "c")]
    assert plan(rule(max_segments=2), facts, NOW) == (
        Going("a", Why.COUNT),
        Going("b", Why.COUNT),
    )


ANY_FACTS = st.lists(
    st.builds(
        Fact,
        st.text("ab/ä𝄞", min_size=1, max_size=3),
        st.integers(NOW - 5 * DAY, NOW),
        st.none() | st.integers(-5, 2).map(lambda days: NOW + days * DAY),
    ),
    max_size=12,
    unique_by=lambda fact: fact.id,
)
ANY_RULE = st.builds(
    rule,
    max_age_days=st.none() | st.sampled_from([0.5, 1.0, 2.0, 3.5]),
    max_segments=st.none() | st.integers(1, 8),
    keep_at_least=st.integers(0, 8),
).filter(lambda each: each.max_age_days is not None or each.max_segments is not None)


@given(ANY_RULE, ANY_FACTS, st.randoms())
def test_what_is_kept_is_newer_and_never_fewer_than_the_rule_says(
    any_rule: RetentionRule, facts: list[Fact], random: Any
) -> None:
    going = plan(any_rule, facts, NOW)
    gone = {each.id for each in going}
    kept = [fact for fact in facts if fact.id not in gone]
    assert len(kept) >= min(any_rule.keep_at_least, len(facts))
    by_id = {fact.id: fact for fact in facts}
    order = [(by_id[each.id].at, each.id) for each in going]
    assert order == sorted(order)
    assert all(last < (fact.at, fact.id) for fact in kept for last in order[-1:])
    if len(kept) > any_rule.keep_at_least:
        # Nothing is kept that should go.
        assert any_rule.max_segments is None or len(kept) <= any_rule.max_segments
        limit = any_rule.oldest_kept(NOW)
        assert limit is None or all(fact.at >= limit for fact in kept)
    shuffled = list(facts)
    random.shuffle(shuffled)
    assert plan(any_rule, shuffled, NOW) == going
    assert plan(any_rule, kept, NOW) == ()


@given(ANY_RULE, ANY_FACTS)
def test_count_and_oldest_tell_whether_anything_goes(
    any_rule: RetentionRule, facts: list[Fact]
) -> None:
    oldest = min((fact.at for fact in facts), default=NOW)
    assert may_go(any_rule, len(facts), oldest, NOW) == bool(plan(any_rule, facts, NOW))
