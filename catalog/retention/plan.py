"""Which segments of a datasource go by its rule, and why (pure).

`search.py` has the same in SQL, for datasources of any size; a test holds the two together.
"""

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
    """What a rule asks of a segment; times are microseconds since 1970."""

    id: str
    published_at: int
    ends_at: int | None = None

    @property
    def at(self) -> int:
        """The moment from which its age counts: the end of its interval, else its publication."""
        return self.published_at if self.ends_at is None else self.ends_at


@dataclass(frozen=True, slots=True)
class Going:
    """A segment that goes."""

    id: str
    why: Why


def plan(rule: RetentionRule, facts: Iterable[Fact], now: int) -> tuple[Going, ...]:
    """What goes, the oldest first.

    Segments are in one order, by moment and then by id. Age and count both take from the old end
    of it, so all that is kept is newer than all that goes.
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


def may_go(rule: RetentionRule, count: int, oldest: int, now: int) -> bool:
    """Whether anything of a datasource goes, by how many segments it has and the oldest alone."""
    limit = rule.oldest_kept(now)
    too_old = limit is not None and oldest < limit
    too_many = rule.max_segments is not None and count > rule.max_segments
    return count > rule.keep_at_least and (too_old or too_many)
