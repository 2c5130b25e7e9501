"""The conflicts that `STRATA_TEST_CONFLICTS` brings about, and that they change no result."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog
from catalog.delta.failures import Failure, classify
from catalog.environment import Environment
from tests.concurrency.conflicts import Chance, conflict
from tests.concurrency.gates import assert_promises
from tests.unit.builders import segment


def test_what_is_raised_is_taken_for_a_conflict() -> None:
    assert classify(conflict("publish")) is Failure.CONFLICT


@pytest.mark.stress
@pytest.mark.exact
def test_commits_that_meet_conflicts_and_lose_answers_end_as_they_should(
    spark: SparkSession, location: str
) -> None:
    points: list[str] = []
    chance = Chance("often", one_in=2, seed="3")
    opening = chance.into(Catalog.open)
    with opening(spark, location, environment=Environment(at=points.append)) as catalog:
        made = [catalog.publish([segment(f"orders/{n}", f"c{n} INT")]) for n in range(8)]
        assert [(r.version, r.inserted) for r in made] == [(n + 1, 1) for n in range(8)]
        assert (chance.conflicts >= 5, chance.losses >= 1) == (True, True)
        # Only after a conflict was it tried again: what has lost its answer is in the history.
        assert points.count("publish.begins") == 8 + chance.conflicts
        assert sum(r.retries for r in made) == chance.conflicts

        assert catalog.publish([segment("orders/1", "c1 INT")]).existing == 1
        dropped = catalog.drop(["orders/0", "orders/9"])
        assert (dropped.version, dropped.dropped, dropped.absent) == (9, 1, 1)
        assert catalog.drop(datasource="orders").dropped == 7
        assert catalog.version == 10
        assert_promises(catalog)
