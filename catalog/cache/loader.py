"""Reads the table for the cache: a whole version, or the changes since one."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from catalog.cache.fold import Folded, build, fold
from catalog.cache.index import Index
from catalog.cache.keys import KEY_COLUMNS
from catalog.cache.snapshot import Position, Snapshot
from catalog.delta.layout import BUCKETS_PROPERTY, bucket_of
from catalog.delta.store import Store, TableHead
from catalog.delta.tables import check_restored
from catalog.errors import GaveUp
from catalog.schema.names import literal

log = logging.getLogger(__name__)

_SCHEMA_COLUMNS = "kind, key, payload, unix_micros(published_at) AS published_micros"


@dataclass(frozen=True)
class Loader:
    """Loads snapshots of the whole catalog, or of some datasources."""

    store: Store
    datasources: tuple[str, ...] | None = None

    def load(self) -> Snapshot:
        """The snapshot of the newest version."""
        for _ in range(3):
            detail = self.store.detail()
            # A poller that outlives the table keeps its snapshot until the new one is complete.
            check_restored(self.store.location, detail)
            head = self.store.head()
            buckets = int(detail.properties[BUCKETS_PROPERTY])
            position = Position(detail.table_id, head.version, head.stamp, buckets)
            snapshot = self.load_at(position)
            if self.store.detail().table_id == detail.table_id:
                return snapshot
        raise GaveUp("The table was re-created repeatedly while it was being read.")

    def load_at(self, position: Position) -> Snapshot:
        """The snapshot of one version, from a full read pinned there."""
        pinned = self.store.pinned(position.version)
        session = self.store.session
        segments = session.sql(
            f"SELECT {', '.join(KEY_COLUMNS)}, fingerprint, num_rows, datasource FROM {pinned} "
            f"WHERE kind = 'segment'{self._only(position)}"
        ).toArrow()
        schemas = session.sql(
            f"SELECT {_SCHEMA_COLUMNS} FROM {pinned} WHERE kind IN ('schema', 'retired')"
        ).toArrow()
        return build(position, segments, schemas)

    def nothing(self, position: Position) -> Snapshot:
        """The snapshot of an empty table."""
        return Snapshot(position, Index.empty(), (), {}, {}, {})

    def follow(self, before: Snapshot, head: TableHead) -> Folded | None:
        """The snapshot at `head`, from the changes since another; none if the feed has a gap."""
        position = before.position
        try:
            folded = self.replay(before, replace(position, version=head.version, stamp=head.stamp))
        except Exception as error:
            # Vacuumed, expired, not enabled in between: the conditions differ by release and
            # engine, and a full load is correct after all of them.
            log.info("The change feed after version %d has a gap: %s", position.version, error)
            return None
        # Delta also returns the feed of a re-created table, without an error.
        return folded if self.store.detail().table_id == position.table_id else None

    def replay(self, before: Snapshot, after: Position) -> Folded:
        """Folds the change feed between two positions of one table."""
        feed = self.store.changes(before.version + 1, after.version)
        changes = (
            feed.where(f"kind IN ('schema', 'retired') OR (kind = 'segment'{self._only(after)})")
            .selectExpr(
                "kind",
                "IF(kind = 'segment', NULL, key) AS key",
                *KEY_COLUMNS,
                "fingerprint",
                "num_rows",
                "datasource",
                "payload",
                "unix_micros(published_at) AS published_micros",
                "_change_type AS change",
                "_commit_version AS version",
            )
            .toArrow()
        )
        return fold(before, after, changes)

    def _only(self, position: Position) -> str:
        if self.datasources is None:
            return ""
        if not self.datasources:
            return " AND false"
        names = ", ".join(map(literal, self.datasources))
        buckets = sorted({bucket_of(name, position.buckets) for name in self.datasources})
        return f" AND bucket IN ({', '.join(map(str, buckets))}) AND datasource IN ({names})"
