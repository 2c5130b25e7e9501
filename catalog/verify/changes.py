"""Rows of some kinds from version to version, as the change feed tells of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Step:
    """What one version changed: each row that it touched, as it is then, or none if it is gone."""

    version: int
    after: dict[tuple[str, str], Row | None]

    def of_kind(self, kind: str) -> Iterator[tuple[str, Row | None]]:
        """Keys and rows of a kind that the version touched."""
        return ((key, row) for (found, key), row in self.after.items() if found == kind)


def steps(rows: Iterable[Row]) -> Iterator[Step]:
    """The steps in order, from rows with `version`, `kind`, `key` and `delta` in any order."""
    for version, changed in groupby(sorted(rows, key=_place), key=lambda row: row["version"]):
        after: dict[tuple[str, str], Row | None] = {}
        for row in changed:
            after[row["kind"], row["key"]] = row if row["delta"] > 0 else None
        yield Step(version, after)


def _place(row: Row) -> tuple[int, int]:
    # The feed has no order inside a version: what went comes first.
    return row["version"], row["delta"]
