"""What a verification found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHOWN = 10


@dataclass(frozen=True)
class Violation:
    """A promise that does not hold, with some of the rows that show it."""

    promise: str
    what: str
    count: int
    rows: tuple[dict[str, Any], ...]

    def __str__(self) -> str:
        return f"{self.promise}: {self.what} ({self.count} found, such as {self.rows[0]})"


@dataclass(frozen=True)
class VerifyReport:
    """What was checked and what was found; `since` is none if one version was checked."""

    version: int
    since: int | None
    violations: tuple[Violation, ...]

    @property
    def ok(self) -> bool:
        return not self.violations

    def __str__(self) -> str:
        reach = f"version {self.version}"
        if self.since is not None:
            reach = f"versions {self.since} to {self.version}"
        if self.ok:
            return f"All promises hold at {reach}."
        return "\n".join([f"At {reach}:", *(f"  {v}" for v in self.violations)])

    def facts(self) -> dict[str, Any]:
        return {"version": self.version, "since": self.since, "holds": self.ok}

    def figures(self) -> dict[str, float]:
        return {"violations": len(self.violations)}


@dataclass(frozen=True)
class Problem:
    """One row that shows that a promise does not hold."""

    promise: str
    what: str
    row: dict[str, Any]


@dataclass(frozen=True)
class Sort:
    """A sort of violation, and the column that says which rows show it."""

    promise: str
    what: str
    flag: str


class Findings:
    """Collects violations, from queries that should find nothing and from single problems."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self._violations: list[Violation] = []

    @property
    def violations(self) -> tuple[Violation, ...]:
        return tuple(self._violations)

    def expect_none(self, promise: str, what: str, rows: str | DataFrame) -> None:
        """Notes what a query finds, if it finds anything."""
        frame = self.session.sql(rows) if isinstance(rows, str) else rows
        # One query for both: a second would run the replay again.
        found = frame.selectExpr("*", "count(*) OVER () AS total_found").limit(SHOWN).collect()
        if found:
            shown = tuple(_without_total(row.asDict()) for row in found)
            self._violations.append(Violation(promise, what, found[0]["total_found"], shown))

    def expect_no_flags(self, rows: DataFrame, sorts: Sequence[Sort]) -> None:
        """Notes rows by the sorts of violation whose flags they have, at the price of one query if
        there are none."""
        if not rows.where(" OR ".join(sort.flag for sort in sorts)).limit(1).collect():
            return
        for sort in sorts:
            flagged = rows.where(sort.flag).drop(*(each.flag for each in sorts))
            self.expect_none(sort.promise, sort.what, flagged)

    def note(self, problems: Iterable[Problem]) -> None:
        """Notes problems, those of one sort together."""
        sorts: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for problem in problems:
            sorts.setdefault((problem.promise, problem.what), []).append(problem.row)
        for (promise, what), rows in sorts.items():
            self._violations.append(Violation(promise, what, len(rows), tuple(rows[:SHOWN])))


def _without_total(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "total_found"}
