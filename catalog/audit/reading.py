"""The history that users ask for: rolled and live together, each version once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from catalog.audit.commits import (
    CALLER_COLUMNS,
    GAP,
    TOLD,
    Commit,
    columns_of,
    lost_changes,
)
from catalog.audit.trail import changes_of, recent_commits
from catalog.audit.window import Window
from catalog.delta.audit_log import (
    CHANGE,
    CHANGE_COLUMNS,
    COMMIT,
    GAP_CHANGES,
    GAP_COMMITS,
    AuditLog,
)
from catalog.delta.failures import is_gone
from catalog.delta.side_table import ddl
from catalog.errors import VersionNotFound
from catalog.model import from_micros
from catalog.schema.names import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Commits that are asked for at once where those that are wanted have to be searched.
_SEARCHED = 1000

CHANGES_DDL = (
    f"version BIGINT, timestamp TIMESTAMP, verb STRING, {CALLER_COLUMNS}, commit_id STRING, "
    f"first_version BIGINT, {ddl(CHANGE_COLUMNS)}"
)


@dataclass(frozen=True)
class Question:
    """Which part of the history is wanted."""

    window: Window
    limit: int
    key: str | None = None
    kind: str | None = None
    actor: str | None = None

    @property
    def of_rows(self) -> bool:
        """Whether changes of rows are asked for, rather than commits."""
        return self.key is not None or self.kind is not None

    def wants(self, commit: Commit) -> bool:
        """Whether a commit, or a gap, belongs to the answer."""
        if not self.window.has(commit.version, commit.timestamp):
            return False
        return self.actor is None or commit.verb == GAP or self.actor in (commit.actors or ())

    def condition(self) -> str:
        """What a change must fulfil, on the columns of the audit table."""
        parts = [self.window.sql()]
        if self.key is not None:
            key = literal(self.key)
            # A datasource is what its segments are; an operation what it prepares.
            parts.append(f"(key = {key} OR datasource = {key} OR operation = {key})")
        if self.kind is not None:
            parts.append(f"kind = {literal(self.kind)}")
        if self.actor is not None:
            parts.append(self.of_actor())
        return " AND ".join(parts)

    def of_actor(self) -> str:
        """What a commit must fulfil besides lying in the window."""
        if self.actor is None:
            return "true"
        return f"exists(callers, c -> c.actor = {literal(self.actor)})"


class History:
    """Answers from the log as far as it reaches, and from the audit table before that."""

    def __init__(self, log: AuditLog, table_id: str) -> None:
        self._log = log
        self._table_id = table_id

    # --- commits ----------------------------------------------------------------------------------

    def commits(self, question: Question) -> list[tuple[object, ...]]:
        """The newest commits that are asked for, as rows of `COMMIT_DDL`."""
        # The log may be long: no more of it is read than has to be searched.
        plain = question.actor is None and question.window == Window()
        limit: int | None = question.limit if plain else max(question.limit, _SEARCHED)
        while True:
            found = recent_commits(self._log.entries, limit)
            wanted = [commit for commit in found if question.wants(commit)]
            whole = limit is None or len(found) < limit or found[-1].version == 0
            if whole or len(wanted) >= question.limit or _is_before(found[-1], question.window):
                break
            limit = None
        oldest = found[-1]
        more = len(wanted) < question.limit and not _is_before(oldest, question.window)
        if more and oldest.version > 0:
            wanted += self._rolled_commits(question, oldest)
        return [commit.row() for commit in wanted[: question.limit]]

    def _rolled_commits(self, question: Question, oldest: Commit) -> list[Commit]:
        """What the audit table has of commits before the one that the log begins with."""
        reached, before = self._log.reached(self._table_id), oldest.version
        gap = Commit(before - 1, oldest.timestamp, GAP, first_version=reached + 1)
        lost = [gap] if reached + 1 < before and question.wants(gap) else []
        if reached < 0:
            return lost
        window = question.window.sql()
        told = f"(record = '{COMMIT}' AND {window} AND {question.of_actor()})"
        condition = f"version < {before} AND ({told} OR (record = '{GAP_COMMITS}' AND {window}))"
        rolled = self._log.session.sql(self._log.rows(self._table_id, condition))
        return lost + [_commit(row) for row in _newest(rolled, question.limit)]

    # --- changes ----------------------------------------------------------------------------------

    def changes(self, question: Question) -> list[tuple[object, ...]]:
        """The newest changes that are asked for, as rows of `CHANGES_DDL`."""
        reached = self._log.reached(self._table_id)
        last = self._log.entries.head().version
        rows = self._live_changes(question, reached, last) if reached < last else []
        if len(rows) < question.limit and reached >= 0:
            gap = f"(startswith(record, '{GAP}') AND {question.window.sql()})"
            told = f"(record = '{CHANGE}' AND {question.condition()})"
            rolled = self._log.session.sql(self._log.rows(self._table_id, f"({told} OR {gap})"))
            rows += _newest(rolled, question.limit)
        return [_change(row) for row in rows[: question.limit]]

    def _live_changes(self, question: Question, reached: int, last: int) -> list[dict[str, Any]]:
        """What was changed since the last roll, with gaps for what cannot be read any more."""
        newest = self._log.entries.head().version
        found = recent_commits(self._log.entries, newest - reached)
        oldest = found[-1]
        lost = []
        if oldest.version > reached + 1 and question.window.has(
            oldest.version - 1, oldest.timestamp
        ):
            lost = [_gap(GAP_COMMITS, reached + 1, oldest.version - 1)]
        commits = [
            commit
            for commit in found
            if reached < commit.version <= last
            and question.window.has(commit.version, commit.timestamp)
        ]
        if lost_changes(commits) is None:
            return lost
        low, high = commits[-1].version, commits[0].version
        first = self._log.first_readable(low, high)
        gone = lost_changes(commit for commit in commits if commit.version < first)
        if gone is not None:
            lost = [_gap(GAP_CHANGES, *gone), *lost]
        return self._read(question, commits, first, high) + lost

    def _read(
        self, question: Question, commits: list[Commit], first: int, last: int
    ) -> list[dict[str, Any]]:
        if first > last:
            return []
        some = [commit for commit in commits if commit.version >= first]
        frame = changes_of(self._log, some, first, last, self._table_id)
        try:
            return _newest(frame.where(question.condition()), question.limit)
        except Exception as error:  # py4j, gRPC and Spark share no base
            if not is_gone(error):
                raise
            raise VersionNotFound(
                f"What versions {first} to {last} changed can no longer be read as a whole: files "
                "are gone. Call roll_audit(), which keeps what can be read and records the rest "
                "as a gap, or ask for what was since a newer version.",
                since=first,
            ) from error


_SHOWN = (
    *("version", "first_version", "record", "commit_id", "verb", "callers"),
    *(column.name for column in CHANGE_COLUMNS),
)


def _newest(rows: DataFrame, limit: int) -> list[dict[str, Any]]:
    # Moments as numbers: collected ones have no time zone.
    shown = rows.selectExpr(*_SHOWN, "unix_micros(timestamp) AS micros")
    found = shown.orderBy(F.desc("version"), "kind", "key", "operation", "part").limit(limit)
    return [row.asDict(recursive=True) for row in found.collect()]


def _gap(record: str, first: int, last: int) -> dict[str, Any]:
    return {"record": record, "first_version": first, "version": last}


def _is_before(commit: Commit, window: Window) -> bool:
    """Whether whatever is older than a commit lies before a window."""
    if window.first is not None and commit.version <= window.first:
        return True
    return window.begins is not None and commit.timestamp < window.begins


def _commit(row: dict[str, Any]) -> Commit:
    moment = from_micros(row["micros"])
    if row["record"] == GAP_COMMITS:
        return Commit(row["version"], moment, GAP, first_version=row["first_version"])
    return Commit(
        row["version"],
        moment,
        row["verb"],
        _callers(row["callers"]),
        row["commit_id"],
    )


def _callers(told: list[dict[str, Any]] | None) -> Any:
    return None if told is None else tuple(tuple(each[name] for name in TOLD) for each in told)


def _change(row: dict[str, Any]) -> tuple[object, ...]:
    moment = row.get("micros")
    return (
        row["version"],
        None if moment is None else from_micros(moment),
        row["verb"] if row["record"] == CHANGE else row["record"],
        *columns_of(_callers(row.get("callers"))),
        row.get("commit_id"),
        row["first_version"],
        *(row.get(column.name) for column in CHANGE_COLUMNS),
    )
