"""Commits of the table's history, and which of them a query selects (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from catalog.delta.audit_log import CALLERS
from catalog.delta.store import commit_metadata
from catalog.errors import InvalidInput
from catalog.model import from_micros, micros
from catalog.schema.names import literal

Moment = int | datetime | timedelta | None
CallerRow = tuple[str | None, str | None, str | None, str | None]
_CALLER_FIELDS = ("actor", "reason", "run", "session")

# In place of a verb, for versions whose commits are no longer known.
GAP = "gap"
COMMIT_DDL = (
    "version BIGINT, timestamp TIMESTAMP, verb STRING, actors ARRAY<STRING>, "
    "reasons ARRAY<STRING>, runs ARRAY<STRING>, sessions ARRAY<STRING>, "
    f"callers {CALLERS}, commit_id STRING, first_version BIGINT"
)
# Delta's operations that change no row: their change feed is empty, even if it cannot be read.
_NO_ROWS = {
    *("CREATE TABLE", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "ADD COLUMNS", "CHANGE COLUMN"),
    *("OPTIMIZE", "VACUUM START", "VACUUM END", "UPGRADE PROTOCOL"),
}


# --- commits --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Commit:
    """One commit, or a gap: the versions from `first_version` on whose commits are not known.

    The timestamp of a gap is that of the first commit after it.
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
    def caller_rows(self) -> list[CallerRow] | None:
        """The callers for a frame: Spark Connect takes lists only."""
        return None if self.callers is None else list(self.callers)

    def row(self) -> tuple[object, ...]:
        """The values in the order of `COMMIT_DDL`."""
        return (
            *(self.version, self.timestamp, self.verb),
            *columns_of(self.callers),
            *(self.commit_id, self.first_version),
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
    metadata = commit_metadata(row["userMetadata"])
    verb, commit_id = metadata.get("verb"), metadata.get("commit")
    return Commit(
        version=int(row["version"]),
        timestamp=from_micros(int(row["micros"])),
        verb=verb if isinstance(verb, str) else str(row["operation"] or "unknown").lower(),
        callers=callers_of(metadata.get("callers")),
        commit_id=commit_id if isinstance(commit_id, str) else None,
        changes_rows=row["operation"] not in _NO_ROWS,
    )


def callers_of(documents: Any) -> tuple[CallerRow, ...] | None:
    """The callers in a commit's metadata or in a row of the audit table; None if not recorded."""
    if not isinstance(documents, list):
        return None
    return tuple(_caller(each) for each in documents if isinstance(each, dict))


def _caller(document: Mapping[str, Any]) -> CallerRow:
    actor, reason, run, session = (
        None if document.get(name) is None else str(document[name]) for name in _CALLER_FIELDS
    )
    return actor, reason, run, session


def lost_changes(commits: Iterable[Commit]) -> tuple[int, int] | None:
    """The first and last of the commits that changed rows; None if none did."""
    versions = [commit.version for commit in commits if commit.changes_rows]
    return (min(versions), max(versions)) if versions else None


# --- queries --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Window:
    """A range of versions and times, both ends included; None where it is open."""

    first: int | None = None
    last: int | None = None
    begins: datetime | None = None
    ends: datetime | None = None

    def has(self, version: int, moment: datetime) -> bool:
        """Whether a commit is inside."""
        return (
            (self.first is None or version >= self.first)
            and (self.last is None or version <= self.last)
            and (self.begins is None or moment >= self.begins)
            and (self.ends is None or moment <= self.ends)
        )

    def begins_after(self, commit: Commit) -> bool:
        """Whether everything older than a commit is outside."""
        if self.first is not None and commit.version <= self.first:
            return True
        return self.begins is not None and commit.timestamp < self.begins

    def sql(self) -> str:
        """The same as a condition on the columns version and timestamp."""
        time = "timestamp {} timestamp_micros({})".format
        parts = [
            "" if self.first is None else f"version >= {self.first}",
            "" if self.last is None else f"version <= {self.last}",
            "" if self.begins is None else time(">=", micros(self.begins)),
            "" if self.ends is None else time("<=", micros(self.ends)),
        ]
        return " AND ".join(part for part in parts if part) or "true"


def window(since: Moment, until: Moment, now: datetime) -> Window:
    """The window between two ends, each a version, a time, a duration before now, or None."""
    first, begins = _end("since", since, now)
    last, ends = _end("until", until, now)
    return Window(first, last, begins, ends)


def _end(name: str, given: Any, now: datetime) -> tuple[int | None, datetime | None]:
    if given is None:
        return None, None
    if isinstance(given, timedelta):
        return None, now - given
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise InvalidInput(
                f"{name} {given!r} has no time zone; give one, such as datetime.timezone.utc.",
                **{name: given},
            )
        return None, given
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return given, None
    raise InvalidInput(
        f"{name} must be a version from 0 on, a datetime or a timedelta, not {given!r}.",
        **{name: given},
    )


@dataclass(frozen=True)
class HistoryQuery:
    """Which commits or changes are selected, and how many at most."""

    window: Window
    limit: int
    key: str | None = None
    kind: str | None = None
    actor: str | None = None

    @property
    def of_rows(self) -> bool:
        """Whether it selects changes of rows, rather than commits."""
        return self.key is not None or self.kind is not None

    def wants(self, commit: Commit) -> bool:
        """Whether it selects a commit or a gap."""
        if not self.window.has(commit.version, commit.timestamp):
            return False
        if self.actor is None or commit.verb == GAP:
            return True
        return any(caller[0] == self.actor for caller in commit.callers or ())

    def condition(self) -> str:
        """The condition on changes, over the columns of the audit table."""
        parts = [self.window.sql()]
        if self.key is not None:
            key = literal(self.key)
            # A datasource selects its segments, and an operation its rows.
            parts.append(f"(key = {key} OR datasource = {key} OR operation = {key})")
        if self.kind is not None:
            parts.append(f"kind = {literal(self.kind)}")
        if self.actor is not None:
            parts.append(self.of_actor())
        return " AND ".join(parts)

    def of_actor(self) -> str:
        """The condition that a row has the actor among its callers."""
        if self.actor is None:
            return "true"
        return f"exists(callers, c -> c.actor = {literal(self.actor)})"
