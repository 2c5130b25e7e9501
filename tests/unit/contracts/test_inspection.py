"""What is remembered is believed as long as nothing is refused by it."""

from __future__ import annotations

from collections.abc import Collection

from catalog import Contract, Schema
from catalog.contracts.enforcement import Inspection, KnownTerms
from catalog.contracts.model import Terms
from tests.unit.builders import segment

STRICT = Terms("strict", Contract(schema=Schema.of("a INT"), enforcement="strict"))


class Remembered(KnownTerms):
    """Terms that are remembered, and those that the table has by now."""

    def __init__(self, terms: dict[str, Terms], now: dict[str, Terms]) -> None:
        self._terms = terms
        self._now = now
        self.asked: list[set[str]] = []

    def learn(self, datasources: Collection[str]) -> dict[str, Terms]:
        self.asked.append(set(datasources))
        return {name: each for name, each in self._now.items() if name in datasources}


GOOD, BAD = [segment("orders/1", "a INT")], [segment("orders/2", "b INT"), segment("x/1", "b INT")]


NAMED = {"orders", "x"}


def test_without_contracts_nothing_is_looked_at() -> None:
    known = Remembered({}, {"orders": STRICT})
    inspection = Inspection(known)
    assert not inspection
    assert inspection.offences([GOOD, BAD], NAMED) == [(), ()]
    assert (inspection.digests({"orders"}), known.asked) == ({}, [])


def test_what_keeps_the_remembered_terms_carries_their_digest() -> None:
    known = Remembered({"orders": STRICT, "other": STRICT}, {})
    inspection = Inspection(known)
    assert inspection.offences([GOOD], NAMED) == [()]
    assert inspection.digests({"orders", "x"}) == {"orders": "strict"}
    assert known.asked == []


def test_nothing_is_refused_by_terms_that_are_only_remembered() -> None:
    known = Remembered({"orders": STRICT}, {})
    inspection = Inspection(known)
    assert inspection.offences([GOOD, BAD], NAMED) == [(), ()]
    assert known.asked == [{"orders", "x"}]
    assert inspection.digests({"orders"}) == {}
    assert inspection.offences([BAD], NAMED) == [()]
    assert len(known.asked) == 1


def test_what_was_learned_counts_from_then_on() -> None:
    known = Remembered({}, {"orders": STRICT, "x": Terms("left over")})
    inspection = Inspection(known)
    inspection.learn(NAMED)
    first, second = inspection.offences([GOOD, BAD], NAMED)
    assert (first, [each.segment_ids for each in second]) == ((), [("orders/2",)])
    # A digest without a contract is carried too, or the statement would refuse itself for ever.
    assert inspection.digests({"orders", "x"}) == {"orders": "strict", "x": "left over"}
