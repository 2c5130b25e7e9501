"""A catalog in a few figures, all of one version."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from catalog.delta.store import Store
from catalog.model import from_micros
from catalog.sql import views


@dataclass(frozen=True)
class Stats:
    """What stands in the catalog at a version.

    `segments_quarantined` are those without a schema whose data did not say it.
    `last_published_at` is when a segment that is visible now was last published or replaced.
    `operations_open` and `operations_ready` are those that are not decided yet.
    """

    version: int
    segments: int
    segments_without_schema: int
    segments_quarantined: int
    rows: int
    size_bytes: int
    datasources: int
    schemas: int
    orphans: int
    retired: int
    last_published_at: datetime | None
    objects: int = 0
    operations_open: int = 0
    operations_ready: int = 0


def stats_of(store: Store, version: int) -> Stats:
    """Counts what a version holds."""
    pinned = store.pinned(version)
    # Sums as decimals: a count may be as large as a long, and the sum of two is not. Of segments
    # only: what operations have staged has rows and bytes too.
    (row,) = store.session.sql(
        "SELECT count_if(kind = 'segment') AS segments, "
        "count_if(kind = 'segment' AND fingerprint IS NULL) AS unknown, "
        "count_if(kind = 'segment' AND state = 'quarantined') AS quarantined, "
        f"coalesce({_total('num_rows')}, 0) AS rows, "
        f"coalesce({_total('size_bytes')}, 0) AS size_bytes, "
        "count(DISTINCT IF(kind = 'segment', datasource, NULL)) AS datasources, "
        "count_if(kind = 'schema') AS schemas, "
        f"(SELECT count(*) FROM ({views.query('orphan_schemas', pinned)})) AS orphans, "
        "count_if(kind = 'retired') AS retired, "
        "unix_micros(max(IF(kind = 'segment', changed_at, NULL))) AS last_micros, "
        "count_if(kind = 'object') AS objects, "
        "count_if(kind = 'operation' AND state = 'open') AS operations_open, "
        "count_if(kind = 'operation' AND state = 'ready') AS operations_ready "
        f"FROM {pinned}"
    ).collect()
    last = row["last_micros"]
    return Stats(
        version=version,
        segments=row["segments"],
        segments_without_schema=row["unknown"],
        segments_quarantined=row["quarantined"],
        rows=int(row["rows"]),
        size_bytes=int(row["size_bytes"]),
        datasources=row["datasources"],
        schemas=row["schemas"],
        orphans=row["orphans"],
        retired=row["retired"],
        last_published_at=None if last is None else from_micros(last),
        objects=row["objects"],
        operations_open=row["operations_open"],
        operations_ready=row["operations_ready"],
    )


def _total(column: str) -> str:
    return f"sum(CAST(IF(kind = 'segment', {column}, NULL) AS DECIMAL(38, 0)))"
