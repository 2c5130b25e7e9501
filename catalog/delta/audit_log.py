"""The `audit` table: commits and changed keys, also past the retention of the Delta log."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from pyspark.errors import PySparkException

from catalog.delta.failures import is_gone
from catalog.delta.layout import ColumnSpec, ddl, nulls
from catalog.delta.location import ENTRIES, Location
from catalog.delta.side_table import SideTable
from catalog.delta.statements import Statement
from catalog.delta.store import Store
from catalog.schema.names import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AUDIT = "audit"
CALLERS = "ARRAY<STRUCT<actor: STRING, reason: STRING, run: STRING, session: STRING>>"

# --- rows -----------------------------------------------------------------------------------------

# What is kept of a row before and after a change; never the payload, which may be large.
SIDES = {
    "revision": "BIGINT",
    "fingerprint": "STRING",
    "digest": "STRING",
    "num_rows": "BIGINT",
    "state": "STRING",
}
_SAYS = {
    "revision": "How often the row had been written, from 1",
    "fingerprint": "The schema that it is or refers to",
    "digest": "SHA-256 of its content",
    "num_rows": "Rows of the segment",
    "state": "Its state, of a segment or an operation",
}
CHANGE_COLUMNS = (
    ColumnSpec("kind", "STRING", "Of a change: what the row is, such as schema, segment, object"),
    ColumnSpec("key", "STRING", "Fingerprint of a schema, id of a segment, key of an object, …"),
    ColumnSpec("change", "STRING", "insert, update or delete"),
    ColumnSpec("changed_by", "STRING", "Who the row names; null of a delete"),
    ColumnSpec("datasource", "STRING", "The datasource that the row belongs to or represents"),
    ColumnSpec("operation", "STRING", "The operation that a prepared row belongs to"),
    ColumnSpec("part", "INT", "The part of that operation, from 0"),
    ColumnSpec("target", "STRING", "Of a staged row: the kind of the row that it is for"),
    *(
        ColumnSpec(f"{name}{end}", type, f"{_SAYS[name]}, {when} the change")
        for end, when in (("_before", "before"), ("", "after"))
        for name, type in SIDES.items()
    ),
)
COLUMNS = (
    ColumnSpec("version", "BIGINT", "Version of the catalog; of a gap its last one"),
    ColumnSpec("first_version", "BIGINT", "Of a gap its first version, otherwise the version"),
    ColumnSpec(
        "record",
        "STRING",
        "commit, change (of one key), or gap: commits (nothing is known) or gap: changes (the "
        "commits are known, what they changed is not)",
    ),
    ColumnSpec(
        "timestamp", "TIMESTAMP", "When the version was committed; of a gap the latest that it was"
    ),
    ColumnSpec("commit_id", "STRING", "Id of the commit; rows of the catalog repeat it"),
    ColumnSpec("verb", "STRING", "What was done, such as publish, drop, retire"),
    ColumnSpec(
        "callers",
        CALLERS,
        "Who it was done for, why, in which run and session; of a change those that it can be from",
    ),
    *CHANGE_COLUMNS,
    ColumnSpec("table_id", "STRING", "Delta's id of the table that the versions are of"),
)
COMMIT, CHANGE = "commit", "change"
GAP_COMMITS, GAP_CHANGES = "gap: commits", "gap: changes"
_NAMES = [column.name for column in COLUMNS]

# --- the change feed as rows ----------------------------------------------------------------------

_IDENTITY = "kind, key, target, operation, part"
_SIDE = f"struct(changed_by, datasource, commit_id, {', '.join(SIDES)})"
_WENT = "_change_type IN ('delete', 'update_preimage')"


def feed(location: Location, first: int, last: int | None = None) -> str:
    """The change feed from a version on, for a FROM clause."""
    if location.path is not None:
        name, table = "table_changes_by_path", f"{location.path}/{ENTRIES}"
    else:
        name, table = "table_changes", location.table(ENTRIES)
    until = "" if last is None else f", {int(last)}"
    return f"{name}({literal(table)}, {int(first)}{until})"


def folded(session: SparkSession, relation: str) -> str:
    """The query for one row for each key and version of the feed, with the row before and after.

    A row that changes its kind, as a retired schema does, is a delete and an insert.
    """
    lacking = nulls(session.sql(f"SELECT * FROM {relation} LIMIT 0").columns)
    rows = f"(SELECT *, {', '.join(lacking)} FROM {relation})" if lacking else relation
    values = {
        "change": "CASE WHEN b IS NULL THEN 'insert' WHEN a IS NULL THEN 'delete' "
        "ELSE 'update' END",
        "changed_by": "a.changed_by",
        "datasource": "coalesce(a.datasource, b.datasource)",
        **{f"{name}_before": f"b.{name}" for name in SIDES},
        **{name: f"a.{name}" for name in SIDES},
    }
    shown = ", ".join(
        f"{values[c.name]} AS {c.name}" if c.name in values else c.name for c in CHANGE_COLUMNS
    )
    return (
        f"SELECT version, timestamp, a.commit_id AS commit_id, {shown} FROM (SELECT "
        f"_commit_version AS version, _commit_timestamp AS timestamp, {_IDENTITY}, "
        f"max(IF({_WENT}, {_SIDE}, NULL)) AS b, max(IF({_WENT}, NULL, {_SIDE})) AS a "
        f"FROM {rows} GROUP BY _commit_version, _commit_timestamp, {_IDENTITY})"
    )


# --- the table ------------------------------------------------------------------------------------


class AuditLog(SideTable):
    """What was copied from the Delta log, each version once; created by the first roll."""

    name = AUDIT
    comment = "Commits and changed keys of the Strata catalog, also past the log's retention"
    columns = COLUMNS
    properties: ClassVar = {
        # Concurrent rolls must conflict, so that no version is added twice.
        "delta.isolationLevel": "Serializable",
        "delta.checkpointInterval": "100",
        "delta.dataSkippingStatsColumns": "version,key",
    }

    @cached_property
    def entries(self) -> Store:
        """The catalog's own table, in the session of this one."""
        return Store(self._session, self._location)

    @property
    def session(self) -> SparkSession:
        """The session in which both tables are read."""
        return self._session

    def reached(self, table_id: str) -> int:
        """The last version in the table; -1 if there is none."""
        if not self.exists():
            return -1
        version = self.store.head().version
        rows = self._session.sql(
            f"SELECT max(version) AS last FROM {self.store.pinned(version)} "
            f"WHERE table_id = {literal(table_id)}"
        ).collect()
        return -1 if rows[0]["last"] is None else int(rows[0]["last"])

    def first_readable(self, first: int, last: int) -> int:
        """The first version from which Delta allows to read the feed; `last + 1` if from none.

        Files of later versions may be missing; that shows only when they are read.
        """
        low, high = first, last + 1
        # Usually all can be read.
        middle = first
        while low < high:
            if self._allows(middle, last):
                high = middle
            else:
                low = middle + 1
            middle = (low + high) // 2
        return low

    def _allows(self, first: int, last: int) -> bool:
        try:
            _ = self.entries.changes(first, last).schema
        except PySparkException as error:
            if is_gone(error):
                return False
            raise
        return True

    def rows(self, table_id: str, condition: str) -> str:
        """The query for rows of the table that fulfil a condition."""
        version = self.store.head().version
        return (
            f"SELECT * FROM {self.store.pinned(version)} WHERE table_id = {literal(table_id)} "
            f"AND {condition}"
        )

    def append(self, source: DataFrame, table_id: str, first: int, bulk: bool) -> Statement:
        """The statement that adds rows of versions from `first` on, unless they are there."""
        # All rows of the source are matched, or none: the second of two rolls adds nothing.
        on = (
            f"t.table_id = s.table_id AND t.table_id = {literal(table_id)} AND t.version >= {first}"
        )
        values = ", ".join(f"s.{name}" for name in _NAMES)
        return Statement(
            "roll",
            lambda view: (
                f"MERGE INTO {self.store.relation} AS t USING {view} AS s ON {on} "
                f"WHEN NOT MATCHED THEN INSERT ({', '.join(_NAMES)}) VALUES ({values})"
            ),
            source,
            bulk=bulk,
        )


def frame_of(session: SparkSession, rows: Iterable[dict[str, object]]) -> DataFrame:
    """A frame with all columns of the table, from rows with some of them."""
    made = [tuple(row.get(name) for name in _NAMES) for row in rows]
    return session.createDataFrame(made, ddl(COLUMNS))
