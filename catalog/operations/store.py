"""SQL of operations: rows for the keys of a part, claims, and the changes that they stage."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as F

from catalog.commit.claims import Claim, some_operations
from catalog.commit.operation_rows import (
    ABSENT,
    AFTER,
    OperationRow,
    OperationState,
    PartRow,
    StagedAction,
)
from catalog.commit.rows import RowSet, as_changes, segment_bucket
from catalog.contracts.store import DATASOURCE_COLUMNS, DatasourceRow, datasource_rows
from catalog.delta.changes import RowChange
from catalog.delta.layout import bucket_of
from catalog.delta.statements import CONTRADICTS, DATASOURCE, bounds_clause, listed
from catalog.delta.store import Store
from catalog.model import Kind, micros
from catalog.operations.part import PartContent
from catalog.operations.placement import SeenSegment, StagedClaim
from catalog.schema.names import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHOWN_CLAIMS = 1_000
_STAGED_ONLY = ("operation", "part", "action", "base")
_NOT_OF_DROPS = {
    "fingerprint": "STRING",
    "digest": "STRING",
    "num_rows": "BIGINT",
    "size_bytes": "BIGINT",
    "location": "STRING",
    "starts_at": "TIMESTAMP",
    "ends_at": "TIMESTAMP",
}

_CONTENT = (
    *("fingerprint", "digest", "datasource", "num_rows", "size_bytes", "location"),
    *("starts_at", "ends_at", "state"),
)


class KnownOperations:
    """Operations at one version, read as they turn up."""

    def __init__(self, store: Store, version: int) -> None:
        self._store = store
        self.version = version
        self.undecided: dict[str, OperationRow] = {}
        self.decided: set[str] = set()

    def read(self, ids: Iterable[str | None]) -> None:
        """Reads those that are not known yet."""
        new = {each for each in ids if each is not None} - self.undecided.keys() - self.decided
        found = some_operations(self._store, self.version, new)
        self.undecided |= {key: each for key, each in found.items() if not each.decided}
        # One whose row is gone was decided long ago.
        self.decided |= new - self.undecided.keys()


# --- the keys of a part --------------------------------------------------------------------------


def found_segments(
    store: Store,
    buckets: int,
    own: str,
    content: PartContent,
    rows: DataFrame | None,
    version: int,
) -> list[SeenSegment]:
    """Every live and every staged row for the segments that a part publishes or drops.

    Parts of one operation must agree exactly: their order must not matter.
    """
    wanted = _wanted(store, buckets, content, rows)
    if wanted is None:
        return []
    keys, homes, low, high = wanted
    bounds = bounds_clause(dict.fromkeys(("segment", "staged"), (low, high)))
    there = store.session.sql(
        "SELECT t.*, t.kind = 'staged' AS is_staged FROM "
        f"{store.pinned(version)} AS t WHERE (t.kind = 'segment' OR (t.kind = 'staged' "
        f"AND t.target = 'segment')) AND t.bucket IN ({listed(homes)}) AND ({bounds})"
    ).withColumn("kind", F.lit("segment"))
    matched = there.alias("t").join(
        keys.alias("s"), F.expr("t.bucket = s.bucket AND t.key = s.key")
    )
    found: Any = (
        matched.selectExpr(
            "t.key",
            "t.commit_id",
            f"NOT s.dropped AND IF(t.is_staged AND t.operation = {literal(own)}, "
            f"t.digest <> s.digest, {CONTRADICTS}) AS contradicts",
            *(f"IF(t.is_staged, t.{name}, NULL) AS {name}" for name in _STAGED_ONLY),
        )
        .toArrow()
        .to_pylist()
    )
    return [SeenSegment(**{**row, "contradicts": bool(row["contradicts"])}) for row in found]


def _wanted(
    store: Store, segment_buckets: int, content: PartContent, rows: DataFrame | None
) -> tuple[DataFrame, set[int], str, str] | None:
    """The keys of a part with the columns to compare; their buckets, lowest and highest key."""
    frames: list[DataFrame] = []
    buckets: set[int] = set()
    ends: list[str] = []
    if rows is not None and content.segments is not None:
        segments = rows.where("kind = 'segment'")
        frames.append(segments.selectExpr("bucket", "key", *_NOT_OF_DROPS, "false AS dropped"))
        buckets |= {b for kind, b in content.segments.partitions if kind == Kind.SEGMENT}
        ends += content.segments.bounds[Kind.SEGMENT.value]
    if content.drops:
        homes = [segment_bucket(key, segment_buckets) for key in content.drops]
        table = pa.table({"bucket": pa.array(homes, pa.int32()), "key": list(content.drops)})
        nothing = [f"CAST(NULL AS {kind}) AS {name}" for name, kind in _NOT_OF_DROPS.items()]
        dropped = store.session.createDataFrame(table)
        frames.append(dropped.selectExpr("bucket", "key", *nothing, "true AS dropped"))
        buckets |= set(homes)
        ends += [min(content.drops), max(content.drops)]
    if not frames:
        return None
    keys = frames[0] if len(frames) == 1 else frames[0].union(frames[1])
    return keys, buckets, min(ends), max(ends)


class FoundDatasources(NamedTuple):
    """The claims on some datasources, and their rows by name."""

    claims: tuple[StagedClaim, ...]
    rows: dict[str, DatasourceRow]


def found_datasources(
    store: Store, buckets: int, wanted: Collection[str], version: int
) -> FoundDatasources:
    """Every live and every staged row for some datasources, in one query."""
    if not wanted:
        return FoundDatasources((), {})
    homes = listed(bucket_of(name, buckets) for name in wanted)
    found = store.session.sql(
        f"SELECT kind, operation, part, action, {DATASOURCE_COLUMNS} FROM {store.pinned(version)} "
        f"WHERE (kind = '{DATASOURCE}' OR (kind = 'staged' AND target = '{DATASOURCE}')) "
        f"AND bucket IN ({homes})"
    ).collect()
    rows = [row.asDict() for row in found if row["key"] in wanted]
    claims = (
        StagedClaim(row["key"], row["operation"], row["part"], row["action"])
        for row in rows
        if row["kind"] != DATASOURCE
    )
    live = datasource_rows(store, version, [row for row in rows if row["kind"] == DATASOURCE])
    return FoundDatasources(tuple(claims), {each.datasource: each for each in live})


# --- claims --------------------------------------------------------------------------------------


def open_operations_on(store: Store, key: str) -> list[str]:
    """The open operations that have staged changes of a segment or an object."""
    pinned = store.pinned(store.head().version)
    rows = store.session.sql(
        f"SELECT DISTINCT s.operation FROM {pinned} AS s JOIN {pinned} AS o "
        "ON o.key = s.operation WHERE s.kind = 'staged' AND o.kind = 'operation' "
        f"AND o.state = '{OperationState.OPEN}' AND s.key = {literal(key)} "
        f"AND s.action NOT IN ('{StagedAction.HOLD}', '{StagedAction.BUMP}') "
        "AND s.target IN ('segment', 'object') ORDER BY s.operation"
    ).collect()
    return [row["operation"] for row in rows]


def claims_of(store: Store, version: int, row: OperationRow) -> tuple[tuple[Claim, ...], int]:
    """Some claims of an operation, and the number of keys that it has for itself."""
    staged = f"{store.pinned(version)} WHERE kind = 'staged' AND operation = {literal(row.id)}"
    found = store.session.sql(
        f"SELECT target, key, part, action FROM {staged} ORDER BY target, key, part "
        f"LIMIT {SHOWN_CLAIMS}"
    ).collect()
    claims = tuple(Claim(r["target"], r["key"], r["part"], r["action"], row) for r in found)
    if len(claims) < SHOWN_CLAIMS:
        return claims, len({(each.target, each.key) for each in claims if not each.shared})
    total = store.session.sql(
        f"SELECT count(DISTINCT target, key) AS total FROM {staged} "
        f"AND action <> '{StagedAction.HOLD}'"
    ).collect()
    return claims, total[0]["total"]


# --- what operations make of segments -----------------------------------------------------------


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
    buckets = listed(bucket for part in parts for bucket in part.buckets)
    places = ", ".join(f"{literal(each.id)}, {n}" for n, each in enumerate(operations))
    names = listed(each.id for each in operations)
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
    buckets = listed(bucket for part in parts for bucket in part.based)
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
