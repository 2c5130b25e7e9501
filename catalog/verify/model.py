"""The values of a verification: what a version changed, and the violations that checks found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# So many rows of a violation are reported.
SHOWN = 10

Row = Mapping[str, Any]

# --- what versions changed ------------------------------------------------------------------------


@dataclass(frozen=True)
class VersionStep:
    """What one version changed: each row that it touched, as it is then, or none if it is gone."""

    version: int
    after: dict[tuple[str, str], Row | None]

    def of_kind(self, kind: str) -> Iterator[tuple[str, Row | None]]:
        """Keys and rows of a kind that the version touched."""
        return ((key, row) for (found, key), row in self.after.items() if found == kind)


def steps(rows: Iterable[Row]) -> Iterator[VersionStep]:
    """The steps in order, from rows with `version`, `kind`, `key` and `delta` in any order."""
    # The feed has no order inside a version: rows that went come first.
    ordered = sorted(rows, key=lambda row: (row["version"], row["delta"]))
    for version, changed in groupby(ordered, key=lambda row: row["version"]):
        after = {(row["kind"], row["key"]): row if row["delta"] > 0 else None for row in changed}
        yield VersionStep(version, after)


# --- what checks found ----------------------------------------------------------------------------


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
class Counterexample:
    """One row that shows that a promise does not hold."""

    promise: str
    what: str
    row: dict[str, Any]


class Violations:
    """Collects violations, from queries that should find nothing and from counterexamples."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self._found: list[Violation] = []

    def all(self) -> tuple[Violation, ...]:
        """Those found so far."""
        return tuple(self._found)

    def expect_none(self, promise: str, what: str, rows: str | DataFrame) -> None:
        """Adds a violation if a query finds any row."""
        frame = self.session.sql(rows) if isinstance(rows, str) else rows
        # One query for rows and count: a second would run the replay again.
        found = frame.selectExpr("*", "count(*) OVER () AS total_found").limit(SHOWN).collect()
        if found:
            count = found[0]["total_found"]
            shown = ({n: v for n, v in row.asDict().items() if n != "total_found"} for row in found)
            self._found.append(Violation(promise, what, count, tuple(shown)))

    def expect_no_flags(self, rows: DataFrame, flags: Mapping[str, tuple[str, str]]) -> None:
        """Adds a violation for each flag that any row has; one query if no row has one.

        Flags are boolean columns, each with the promise and what is wrong with its rows.
        """
        if not rows.where(" OR ".join(flags)).limit(1).collect():
            return
        for flag, (promise, what) in flags.items():
            self.expect_none(promise, what, rows.where(flag).drop(*flags))

    def add(self, examples: Iterable[Counterexample]) -> None:
        """Adds a violation for all counterexamples of the same kind."""
        kinds: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for each in examples:
            kinds.setdefault((each.promise, each.what), []).append(each.row)
        for (promise, what), rows in kinds.items():
            self._found.append(Violation(promise, what, len(rows), tuple(rows[:SHOWN])))
