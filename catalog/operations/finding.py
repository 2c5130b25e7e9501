"""What the table has for the keys that a part of an operation wants."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from catalog.commit.claims import some_operations
from catalog.commit.operation_rows import OperationRow
from catalog.commit.rows import segment_bucket
from catalog.contracts.store import DATASOURCE_COLUMNS, DatasourceRow, datasource_rows
from catalog.delta.layout import bucket_of
from catalog.delta.statements import CONTRADICTS, DATASOURCE, bounds_clause
from catalog.delta.store import Store
from catalog.model import Kind
from catalog.operations.content import Content
from catalog.operations.locking import StagedClaim
from catalog.operations.placing import Seen
from catalog.schema.names import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
_COMPARED = ("bucket", "key", *_NOT_OF_DROPS)


def found_segments(
    store: Store,
    buckets: int,
    own: str,
    content: Content,
    rows: DataFrame | None,
    version: int,
) -> list[Seen]:
    """Every live and every staged row for the segments that a part publishes or drops.

    Parts of one operation must say the same: their order must not matter.
    """
    wanted = _wanted(store, buckets, content, rows)
    if wanted is None:
        return []
    keys, homes, low, high = wanted
    chosen = ", ".join(map(str, sorted(homes)))
    bounds = bounds_clause(dict.fromkeys(("segment", "staged"), (low, high)))
    there = store.session.sql(
        "SELECT t.*, t.kind = 'staged' AS is_staged FROM "
        f"{store.pinned(version)} AS t WHERE (t.kind = 'segment' OR (t.kind = 'staged' "
        f"AND t.target = 'segment')) AND t.bucket IN ({chosen}) AND ({bounds})"
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
    return [Seen(**{**row, "contradicts": bool(row["contradicts"])}) for row in found]


def _wanted(
    store: Store, segment_buckets: int, content: Content, rows: DataFrame | None
) -> tuple[DataFrame, set[int], str, str] | None:
    """The keys of a part with what contradictions are found by, and where to look for them."""
    frames: list[DataFrame] = []
    buckets: set[int] = set()
    ends: list[str] = []
    if rows is not None and content.segments is not None:
        segments = rows.where("kind = 'segment'")
        frames.append(segments.selectExpr(*_COMPARED, "false AS dropped"))
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


@dataclass(frozen=True)
class FoundDatasources:
    """What the table says of some datasources: claims on them, and their rows by name."""

    claims: tuple[StagedClaim, ...]
    rows: dict[str, DatasourceRow]


def found_datasources(
    store: Store, buckets: int, wanted: Collection[str], version: int
) -> FoundDatasources:
    """Every live and every staged row for some datasources, in one query."""
    if not wanted:
        return FoundDatasources((), {})
    homes = sorted({bucket_of(name, buckets) for name in wanted})
    found = store.session.sql(
        f"SELECT kind, operation, part, action, {DATASOURCE_COLUMNS} FROM {store.pinned(version)} "
        f"WHERE (kind = '{DATASOURCE}' OR (kind = 'staged' AND target = '{DATASOURCE}')) "
        f"AND bucket IN ({', '.join(map(str, homes))})"
    ).collect()
    rows = [row.asDict() for row in found if row["key"] in wanted]
    claims = (
        StagedClaim(row["key"], row["operation"], row["part"], row["action"])
        for row in rows
        if row["kind"] != DATASOURCE
    )
    live = datasource_rows(store, version, [row for row in rows if row["kind"] == DATASOURCE])
    return FoundDatasources(tuple(claims), {each.datasource: each for each in live})


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
