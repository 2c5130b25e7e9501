"""A catalog in a few figures, all of one version."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from catalog.model import from_micros
from catalog.table import views
from catalog.table.store import Store


@dataclass(frozen=True)
class Stats:
    """What stands in the catalog at a version.

    `segments_quarantined` are those without a schema whose data did not say it.
    `last_published_at` is when a segment that is visible now was last published or replaced.
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


def stats_of(store: Store, version: int) -> Stats:
    """Counts what a version holds."""
    pinned = store.pinned(version)
    # Sums as decimals: a count may be as large as a long, and the sum of two is not.
    (row,) = store.session.sql(
        "SELECT count_if(kind = 'segment') AS segments, "
        "count_if(kind = 'segment' AND fingerprint IS NULL) AS unknown, "
        "count_if(kind = 'segment' AND state = 'quarantined') AS quarantined, "
        "coalesce(sum(CAST(num_rows AS DECIMAL(38, 0))), 0) AS rows, "
        "coalesce(sum(CAST(size_bytes AS DECIMAL(38, 0))), 0) AS size_bytes, "
        "count(DISTINCT IF(kind = 'segment', datasource, NULL)) AS datasources, "
        "count_if(kind = 'schema') AS schemas, "
        f"(SELECT count(*) FROM ({views.query('orphan_schemas', pinned)})) AS orphans, "
        "count_if(kind = 'retired') AS retired, "
        "unix_micros(max(IF(kind = 'segment', changed_at, NULL))) AS last_micros "
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
    )
