"""Commits as the table's history tells of them: when, what, and for whom (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from catalog.delta.audit_log import CALLERS
from catalog.delta.store import metadata_of
from catalog.model import from_micros

TOLD = ("actor", "reason", "run", "session")
# What stands in place of a verb where commits are not known any more.
GAP = "gap"

# Delta's operations that change no row: their feed is empty, also when it cannot be read.
_NO_ROWS = {
    *("CREATE TABLE", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "ADD COLUMNS", "CHANGE COLUMN"),
    *("OPTIMIZE", "VACUUM START", "VACUUM END", "UPGRADE PROTOCOL"),
}

CallerRow = tuple[str | None, str | None, str | None, str | None]


@dataclass(frozen=True)
class Commit:
    """One commit, or a gap: the versions from `first_version` on of which nothing is known.

    The moment of a gap is that of the first commit after it.
    """

    version: int
    timestamp: datetime
    verb: str
    callers: tuple[CallerRow, ...] | None = None
    commit_id: str | None = None
    first_version: int = -1
    changes_rows: bool = True

    def __post_init__(self) -> None:
        if self.first_version < 0:
            object.__setattr__(self, "first_version", self.version)

    @property
    def actors(self) -> list[str | None] | None:
        """Who it was for; none if that is not said."""
        return None if self.callers is None else [caller[0] for caller in self.callers]

    @property
    def caller_rows(self) -> list[CallerRow] | None:
        """The callers for a frame: Spark Connect takes lists only."""
        return None if self.callers is None else list(self.callers)

    def row(self) -> tuple[object, ...]:
        """The values in the order of `COMMIT_DDL`."""
        return (
            self.version,
            self.timestamp,
            self.verb,
            *columns_of(self.callers),
            self.commit_id,
            self.first_version,
        )


CALLER_COLUMNS = (
    "actors ARRAY<STRING>, reasons ARRAY<STRING>, runs ARRAY<STRING>, sessions ARRAY<STRING>, "
    f"callers {CALLERS}"
)
COMMIT_DDL = (
    f"version BIGINT, timestamp TIMESTAMP, verb STRING, {CALLER_COLUMNS}, commit_id STRING, "
    "first_version BIGINT"
)


def columns_of(callers: Iterable[CallerRow] | None) -> tuple[object, ...]:
    """Actors and reasons of all callers, their runs and sessions, and the callers themselves."""
    if callers is None:
        return (None,) * 5
    listed = list(callers)
    return (
        [caller[0] for caller in listed],
        [caller[1] for caller in listed],
        _distinct(caller[2] for caller in listed),
        _distinct(caller[3] for caller in listed),
        listed,
    )


def _distinct(names: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(name for name in names if name is not None))


def commit_of(row: Mapping[str, Any]) -> Commit:
    """A commit from a row of Delta's history: version, micros, operation and userMetadata."""
    told = metadata_of(row["userMetadata"])
    verb, commit_id = told.get("verb"), told.get("commit")
    return Commit(
        version=int(row["version"]),
        timestamp=from_micros(int(row["micros"])),
        verb=verb if isinstance(verb, str) else str(row["operation"] or "unknown").lower(),
        callers=_callers(told.get("callers")),
        commit_id=commit_id if isinstance(commit_id, str) else None,
        changes_rows=row["operation"] not in _NO_ROWS,
    )


def lost_changes(commits: Iterable[Commit]) -> tuple[int, int] | None:
    """The first and last of commits whose changes are lost; none if they changed nothing."""
    versions = [commit.version for commit in commits if commit.changes_rows]
    return (min(versions), max(versions)) if versions else None


def _callers(told: Any) -> tuple[CallerRow, ...] | None:
    if not isinstance(told, list):
        return None
    return tuple(_caller(each) for each in told if isinstance(each, dict))


def _caller(told: Mapping[str, Any]) -> CallerRow:
    actor, reason, run, session = (
        None if told.get(name) is None else str(told[name]) for name in TOLD
    )
    return actor, reason, run, session
