"""Which segments go by a rule, in memory: what the search in the table must find."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from catalog.objects.retention_rules import RetentionRule


class Why(StrEnum):
    """Why a segment goes."""

    AGE = "age"
    COUNT = "count"


@dataclass(frozen=True, slots=True)
class Fact:
    """What a rule looks at in a segment; times are microseconds since 1970."""

    id: str
    published_at: int
    ends_at: int | None = None

    @property
    def at(self) -> int:
        """When its age begins: at the end of its interval, else at its publication."""
        return self.published_at if self.ends_at is None else self.ends_at


@dataclass(frozen=True, slots=True)
class Going:
    """A segment that goes."""

    id: str
    why: Why


def plan(rule: RetentionRule, facts: Iterable[Fact], now: int) -> tuple[Going, ...]:
    """The segments that go, oldest first.

    Segments are ordered by time and id. Age and count both take from the old end of that order, so
    every segment that stays is newer than every segment that goes.
    """
    newest_first = sorted(facts, key=lambda fact: (fact.at, fact.id), reverse=True)
    limit = rule.oldest_kept(now)
    young = sum(limit is None or fact.at >= limit for fact in newest_first)
    kept = young if rule.max_segments is None else min(young, rule.max_segments)
    going = newest_first[max(kept, rule.keep_at_least) :]
    return tuple(
        Going(fact.id, Why.AGE if limit is not None and fact.at < limit else Why.COUNT)
        for fact in reversed(going)
    )
