"""The history of commits and changes, from the Delta log and the audit table together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from catalog.audit.model import (
    COMMIT_DDL,
    GAP,
    Commit,
    HistoryQuery,
    Window,
    callers_of,
    columns_of,
    commit_of,
    lost_changes,
)
from catalog.delta.audit_log import (
    CALLERS,
    CHANGE,
    CHANGE_COLUMNS,
    COLUMNS,
    COMMIT,
    GAP_CHANGES,
    GAP_COMMITS,
    AuditLog,
    feed,
    folded,
)
from catalog.delta.failures import is_gone
from catalog.delta.layout import ddl
from catalog.delta.store import Store
from catalog.errors import VersionNotFound
from catalog.model import from_micros
from catalog.schema.names import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHANGES_DDL = f"{COMMIT_DDL}, {ddl(CHANGE_COLUMNS)}"
# How many commits are read first if those selected have to be searched for.
_SEARCHED = 1000

# --- the Delta log --------------------------------------------------------------------------------

_COMMITS_DDL = f"version BIGINT, moment TIMESTAMP, id STRING, verb STRING, all {CALLERS}"
# A written row names its writer, a deleted row nobody: then all callers of the commit apply.
_WRITERS = "filter(all, c -> change <> 'delete' AND c.actor <=> changed_by)"
_VALUES = {
    "first_version": "version",
    "record": f"'{CHANGE}'",
    "timestamp": "moment",
    "commit_id": "id",
    "callers": f"IF(size({_WRITERS}) > 0, {_WRITERS}, all)",
}


def recent_commits(store: Store, limit: int | None) -> list[Commit]:
    """The newest commits that the log still has, newest first."""
    rows = store.history(limit).selectExpr(
        "version", "unix_micros(timestamp) AS micros", "operation", "userMetadata"
    )
    return [commit_of(row.asDict()) for row in rows.collect()]


def changes_of(
    log: AuditLog, commits: Iterable[Commit], first: int, last: int, table_id: str
) -> DataFrame:
    """The rows that versions from `first` to `last` changed, as rows of the audit table."""
    session = log.session
    rows = [(c.version, c.timestamp, c.commit_id, c.verb, c.caller_rows) for c in commits]
    known = session.createDataFrame(rows, _COMMITS_DDL)
    changed = session.sql(folded(session, feed(log.entries.location, first, last)))
    joined = changed.drop("timestamp", "commit_id").join(F.broadcast(known), "version")
    values = {**_VALUES, "table_id": literal(table_id)}
    return joined.selectExpr(
        *(f"{values.get(column.name, column.name)} AS {column.name}" for column in COLUMNS)
    )


# --- log and audit table --------------------------------------------------------------------------


class AuditHistory:
    """Reads from the log what it still has, and from the audit table what is older."""

    def __init__(self, log: AuditLog, table_id: str) -> None:
        self._log = log
        self._table_id = table_id

    def commits(self, query: HistoryQuery) -> list[tuple[object, ...]]:
        """The newest commits that a query selects, as rows of `COMMIT_DDL`."""
        # The log may be long: it is read whole only if the newest commits are not enough.
        plain = query.actor is None and query.window == Window()
        limit: int | None = query.limit if plain else max(query.limit, _SEARCHED)
        while True:
            found = recent_commits(self._log.entries, limit)
            selected = [commit for commit in found if query.wants(commit)]
            oldest = found[-1]
            complete = len(selected) >= query.limit or query.window.begins_after(oldest)
            if complete or limit is None or len(found) < limit or oldest.version == 0:
                break
            limit = None
        if not complete and oldest.version > 0:
            selected += self._rolled_commits(query, oldest)
        return [commit.row() for commit in selected[: query.limit]]

    def _rolled_commits(self, query: HistoryQuery, oldest: Commit) -> list[Commit]:
        """Commits of the audit table that are older than the oldest of the log."""
        reached, before = self._log.reached(self._table_id), oldest.version
        gap = Commit(before - 1, oldest.timestamp, GAP, first_version=reached + 1)
        lost = [gap] if reached + 1 < before and query.wants(gap) else []
        if reached < 0:
            return lost
        window = query.window.sql()
        commits = f"(record = '{COMMIT}' AND {window} AND {query.of_actor()})"
        condition = f"version < {before} AND ({commits} OR (record = '{GAP_COMMITS}' AND {window}))"
        return lost + [_commit(row) for row in self._rolled(condition, query.limit)]

    def changes(self, query: HistoryQuery) -> list[tuple[object, ...]]:
        """The newest changes that a query selects, as rows of `CHANGES_DDL`."""
        reached = self._log.reached(self._table_id)
        last = self._log.entries.head().version
        rows = self._live_changes(query, reached, last) if reached < last else []
        if len(rows) < query.limit and reached >= 0:
            gaps = f"(startswith(record, '{GAP}') AND {query.window.sql()})"
            changes = f"(record = '{CHANGE}' AND {query.condition()})"
            rows += self._rolled(f"({changes} OR {gaps})", query.limit)
        return [_change(row) for row in rows[: query.limit]]

    def _rolled(self, condition: str, limit: int) -> list[dict[str, Any]]:
        rows = self._log.session.sql(self._log.rows(self._table_id, condition))
        return _newest(rows, limit)

    def _live_changes(self, query: HistoryQuery, reached: int, last: int) -> list[dict[str, Any]]:
        """Changes since the last roll, with gaps for versions that can no longer be read."""
        newest = self._log.entries.head().version
        found = recent_commits(self._log.entries, newest - reached)
        oldest, window = found[-1], query.window
        lost = []
        if oldest.version > reached + 1 and window.has(oldest.version - 1, oldest.timestamp):
            lost = [_gap(GAP_COMMITS, reached + 1, oldest.version - 1)]
        commits = [
            commit
            for commit in found
            if reached < commit.version <= last and window.has(commit.version, commit.timestamp)
        ]
        if lost_changes(commits) is None:
            return lost
        low, high = commits[-1].version, commits[0].version
        first = self._log.first_readable(low, high)
        gone = lost_changes(commit for commit in commits if commit.version < first)
        if gone is not None:
            lost = [_gap(GAP_CHANGES, *gone), *lost]
        if first > high:
            return lost
        readable = [commit for commit in commits if commit.version >= first]
        frame = changes_of(self._log, readable, first, high, self._table_id)
        try:
            return _newest(frame.where(query.condition()), query.limit) + lost
        except Exception as error:  # py4j, gRPC and Spark share no base
            if not is_gone(error):
                raise
            raise VersionNotFound(
                f"The changes of versions {first} to {high} can no longer be read as a whole: "
                "files are gone. Call audit.roll(), which keeps what can be read and records the "
                "rest as a gap, or ask for changes since a newer version.",
                since=first,
            ) from error


_SHOWN = (
    *("version", "first_version", "record", "commit_id", "verb", "callers"),
    *(column.name for column in CHANGE_COLUMNS),
)


def _newest(rows: DataFrame, limit: int) -> list[dict[str, Any]]:
    # Times as numbers: collected timestamps have no time zone.
    shown = rows.selectExpr(*_SHOWN, "unix_micros(timestamp) AS micros")
    found = shown.orderBy(F.desc("version"), "kind", "key", "operation", "part").limit(limit)
    return [row.asDict(recursive=True) for row in found.collect()]


def _gap(record: str, first: int, last: int) -> dict[str, Any]:
    return {"record": record, "first_version": first, "version": last}


def _commit(row: dict[str, Any]) -> Commit:
    moment = from_micros(row["micros"])
    if row["record"] == GAP_COMMITS:
        return Commit(row["version"], moment, GAP, first_version=row["first_version"])
    return Commit(row["version"], moment, row["verb"], callers_of(row["callers"]), row["commit_id"])


def _change(row: dict[str, Any]) -> tuple[object, ...]:
    moment = row.get("micros")
    return (
        row["version"],
        None if moment is None else from_micros(moment),
        row["verb"] if row["record"] == CHANGE else row["record"],
        *columns_of(callers_of(row.get("callers"))),
        *(row.get("commit_id"), row["first_version"]),
        *(row.get(column.name) for column in CHANGE_COLUMNS),
    )
