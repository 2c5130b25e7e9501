"""What operations make of the segments together: one change for each key, in one query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from catalog.commit.operation_rows import ABSENT, AFTER, OperationRow, PartRow, StagedAction
from catalog.commit.rowset import RowSet, as_changes
from catalog.delta.changes import RowChange
from catalog.delta.store import Store
from catalog.model import micros
from catalog.schema.names import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CONTENT = (
    *("fingerprint", "digest", "datasource", "num_rows", "size_bytes", "location"),
    *("starts_at", "ends_at", "state"),
)


def net_segments(
    store: Store,
    version: int,
    operations: Sequence[OperationRow],
    parts: Sequence[PartRow],
    rows: RowSet,
) -> DataFrame | None:
    """The rows that operations make of their staged segments, if there are any.

    The operations are given in the order in which they are applied; all staged rows are read at one
    version, where every part of theirs is complete, so they no longer change. A key that was absent
    is written without being read: nobody else can have written it (rule Z).
    """
    if not any(part.segments or part.drops for part in parts):
        return None
    based = [part for part in parts if part.based]
    for part in based:
        assert part.low is not None
        assert part.high is not None
        rows.reads("segment", part.based, part.low, part.high)
    staged = _staged(store, version, operations, parts)
    queued = based and any(part.floor for part in parts)
    source = _resolved(store, version, staged, parts) if queued else _as_claimed(staged)
    return _rows(source, rows)


def _staged(
    store: Store, version: int, operations: Sequence[OperationRow], parts: Sequence[PartRow]
) -> DataFrame:
    """Each key once: its base before the first operation, its content after the last."""
    buckets = ", ".join(map(str, sorted({bucket for part in parts for bucket in part.buckets})))
    places = ", ".join(f"{literal(each.id)}, {n}" for n, each in enumerate(operations))
    names = ", ".join(literal(each.id) for each in operations)
    drops = f"filter(steps, x -> x.action = '{StagedAction.DROP}')"
    writes = f"'{StagedAction.PUBLISH}', '{StagedAction.REPLACE}'"
    # One that only keeps a segment may know less of it than the one that brings it.
    content = f"struct(action, {', '.join(_CONTENT)})"
    return store.session.sql(
        "SELECT bucket, key, base, last, dropped, "
        f"size(filter(steps, x -> x.action IN ({writes}) AND x.n > coalesce(dropped, -1))) "
        f"AS writes FROM (SELECT *, array_max(transform({drops}, x -> x.n)) AS dropped FROM ("
        "SELECT bucket, key, min_by(base, n) AS base, "
        f"coalesce(max_by({content}, n) FILTER (WHERE action <> '{StagedAction.KEEP}'), "
        f"max_by({content}, n)) AS last, "
        "collect_set(struct(n, action)) AS steps FROM ("
        f"SELECT *, element_at(map({places}), operation) AS n FROM {store.pinned(version)} "
        f"WHERE kind = 'staged' AND bucket IN ({buckets}) AND target = 'segment' "
        f"AND operation IN ({names})) GROUP BY bucket, key))"
    )


def _as_claimed(staged: DataFrame) -> DataFrame:
    return staged.selectExpr("*", f"nullif(base, '{ABSENT}') AS seen")


def _resolved(store: Store, version: int, staged: DataFrame, parts: Sequence[PartRow]) -> DataFrame:
    """With the commit id of what operations that came before have left under a key."""
    buckets = ", ".join(map(str, sorted({bucket for part in parts for bucket in part.based})))
    live = store.session.sql(
        f"SELECT bucket, key, commit_id FROM {store.pinned(version)} "
        f"WHERE kind = 'segment' AND bucket IN ({buckets})"
    )
    return staged.join(live, ["bucket", "key"], "left").selectExpr(
        *("bucket", "key", "base", "last", "dropped", "writes"),
        f"CASE base WHEN '{ABSENT}' THEN NULL WHEN '{AFTER}' THEN commit_id ELSE base END AS seen",
    )


def _rows(source: DataFrame, rows: RowSet) -> DataFrame:
    """The source rows of the general commit."""
    now = f"timestamp_micros({micros(rows.now)})"
    change = (
        f"CASE WHEN last.action = '{StagedAction.DROP}' "
        f"THEN IF(seen IS NULL, NULL, '{RowChange.DELETE}') "
        f"WHEN seen IS NULL THEN '{RowChange.INSERT}' "
        f"WHEN writes = 0 THEN '{RowChange.EXPECT}' ELSE '{RowChange.UPDATE}' END"
    )
    given = {
        "kind": "'segment'",
        "bucket": "bucket",
        "key": "key",
        "commit_id": literal(rows.commit_id),
        "revision": "CAST(greatest(writes, 1) AS BIGINT)",
        **{name: f"last.{name}" for name in _CONTENT},
        **dict.fromkeys(("published_at", "changed_at"), now),
        "changed_by": literal(rows.actor),
        "change": change,
        "seen": "seen",
        "fresh": "dropped IS NOT NULL",
        "shared": "false",
    }
    return as_changes(source, given).where("change IS NOT NULL")
