"""Commits that fail now and then, as beside other writers: `STRATA_TEST_CONFLICTS=10`.

One statement in so many is refused by a conflict before it runs, and one in five times as many
loses its answer after it has run. The catalog has to settle both, so results must not change.
What happens is drawn from `STRATA_TEST_SEED` and the name of the test: a test that fails does so
alone as well.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from catalog import Catalog
from catalog.environment import Environment

ONE_IN = int(os.environ.get("STRATA_TEST_CONFLICTS", "0"))
SEED = os.environ.get("STRATA_TEST_SEED", "1")
RARER = 5


class Chance:
    """What befalls the commits of one test; `conflicts` and `losses` are how many did so far."""

    def __init__(self, test: str, one_in: int = ONE_IN, seed: str = SEED) -> None:
        self._random = random.Random(f"{seed} {test}")
        self._one_in = one_in
        self._losing = False
        self.conflicts = 0
        self.losses = 0

    def into(self, opening: Callable[..., Catalog]) -> Callable[..., Catalog]:
        """The same way to open a catalog, whose commits fail now and then."""

        def open_one(*where: Any, environment: Environment | None = None, **more: Any) -> Catalog:
            given = environment or Environment()

            def at(point: str) -> None:
                given.at(point)
                self._befall(point)

            return opening(*where, environment=replace(given, at=at), **more)

        return open_one

    def _befall(self, point: str) -> None:
        statement, _, step = point.rpartition(".")
        if step == "begins" and self._random.random() * self._one_in < 1:
            self.conflicts += 1
            raise conflict(statement)
        if step == "answered":
            # Never twice in a row: the catalog gives up after the third answer that it lost.
            self._losing = not self._losing and self._random.random() * self._one_in * RARER < 1
            if self._losing:
                self.losses += 1
                raise ConnectionResetError(f"the answer to {statement} was lost, by the tests")


def conflict(statement: str) -> Exception:
    """What Delta raises when another commit came first."""
    from pyspark.errors.exceptions.connect import SparkException

    # The classic client has another class with the same getters, which needs a JVM to be made.
    return SparkException(
        message=f"[DELTA_CONCURRENT_APPEND] {statement} met another commit, by the tests",
        errorClass="DELTA_CONCURRENT_APPEND.WITHOUT_HINT",
        sql_state="2D521",
    )
