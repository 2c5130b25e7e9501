"""What is still in the log: its commits, and from the change feed the keys that they changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from catalog.audit.commits import Commit, commit_of
from catalog.delta import audit_log as audit
from catalog.delta.audit_log import CALLERS, AuditLog, feed, folded
from catalog.delta.store import Store
from catalog.schema.names import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COMMITS_DDL = f"version BIGINT, moment TIMESTAMP, id STRING, verb STRING, all {CALLERS}"
# A row that came names whoever brought it; of one that went nobody is named.
_MINE = "filter(all, c -> change <> 'delete' AND c.actor <=> changed_by)"
_VALUES = {
    "first_version": "version",
    "record": f"'{audit.CHANGE}'",
    "timestamp": "moment",
    "commit_id": "id",
    "callers": f"IF(size({_MINE}) > 0, {_MINE}, all)",
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
    """What some versions changed, as rows of the audit table."""
    session = log.session
    rows = [(c.version, c.timestamp, c.commit_id, c.verb, c.caller_rows) for c in commits]
    known = session.createDataFrame(rows, _COMMITS_DDL)
    changed = session.sql(folded(session, feed(log.entries.location, first, last)))
    joined = changed.drop("timestamp", "commit_id").join(F.broadcast(known), "version")
    values = {**_VALUES, "table_id": literal(table_id)}
    return joined.selectExpr(
        *(f"{values.get(column.name, column.name)} AS {column.name}" for column in audit.COLUMNS)
    )
