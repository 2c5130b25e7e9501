"""The view of changed keys: what was rolled into the audit table, and what is still in the feed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog.delta.audit_log import CHANGE, CHANGE_COLUMNS, AuditLog, feed, folded
from catalog.delta.layout import View
from catalog.schema.names import identifier, literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROLLED_ONLY = "; null until it is rolled"
CHANGES = View(
    "changes",
    "Changed keys, one row for each key and version: those that were rolled into the audit table "
    "and those that came since, as far as they can be read. Made anew by each roll",
    "",
    {
        "version": "Version of the catalog",
        "changed_at": "When it was committed",
        "rolled": "Whether it is kept in the audit table, or is in the change feed alone",
        "verb": f"What was done, such as publish, drop, retire{_ROLLED_ONLY}",
        "actors": f"Who it may have been done by{_ROLLED_ONLY}",
        "commit_id": f"Id of the commit; of a delete null{_ROLLED_ONLY.removeprefix('; null')}",
        **{column.name: column.comment for column in CHANGE_COLUMNS},
    },
)
_NAMES = ", ".join(column.name for column in CHANGE_COLUMNS)


def create_changes(
    session: SparkSession, log: AuditLog, prefix: str = "", replace: bool = True
) -> str:
    """Makes the view for a catalog, temporary at a path and persistent in a schema."""
    location = log.entries.location
    name = identifier(prefix + CHANGES.name)
    temporary = location.path is not None
    if not temporary:
        name = ".".join([*map(identifier, location.schema), name])
    columns = ", ".join(f"{c} COMMENT {literal(t)}" for c, t in CHANGES.columns.items())
    how = "OR REPLACE " if replace else ""
    unless = "" if replace else "IF NOT EXISTS "
    session.sql(
        f"CREATE {how}{'TEMPORARY ' if temporary else ''}VIEW {unless}{name} ({columns}) "
        f"COMMENT {literal(CHANGES.comment)} AS {_query(session, log)}"
    )
    return prefix + CHANGES.name


def _query(session: SparkSession, log: AuditLog) -> str:
    table_id = log.entries.detail().table_id
    reached, newest = log.reached(table_id), log.entries.head().version
    # Delta refuses a feed from a version that is past the retention, or not there yet.
    first = min(log.first_readable(reached + 1, newest), newest)
    live = (
        f"SELECT version, timestamp, false AS rolled, CAST(NULL AS STRING) AS verb, "
        f"CAST(NULL AS ARRAY<STRING>) AS actors, commit_id, {_NAMES} "
        f"FROM ({folded(session, feed(log.entries.location, first))})"
    )
    if reached < 0:
        return live
    rolled = f"FROM {log.store.relation} WHERE table_id = {literal(table_id)}"
    return (
        f"SELECT version, timestamp, true, verb, callers.actor, commit_id, {_NAMES} {rolled} "
        f"AND record = '{CHANGE}' UNION ALL {live} "
        # Asked each time: what was rolled after the view was made is not to be there twice.
        f"WHERE version > (SELECT max(version) {rolled})"
    )
