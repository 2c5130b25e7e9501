"""A snapshot for UDFs and mapInArrow: a broadcast variable, or shipped with the closure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from catalog.cache.snapshot import Snapshot
from catalog.schema import Schema
from catalog.table.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Handle:
    """A small picklable handle on one snapshot; it answers on executors as on the driver."""

    def __init__(self, version: int, carrier: Any) -> None:
        self.version = version
        self._carrier = carrier

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot itself."""
        carrier = self._carrier
        return carrier if isinstance(carrier, Snapshot) else carrier.value

    def schema_of(self, segment_id: str) -> Schema:
        """The schema of a segment; raises `NotInSnapshot` with the version."""
        return self.snapshot.schema_of(segment_id)

    def fingerprint_of(self, segment_id: str) -> str | None:
        """The fingerprint of a segment's schema."""
        return self.snapshot.fingerprint_of(segment_id)

    def num_rows(self, segment_id: str) -> int | None:
        """The row count of a segment."""
        return self.snapshot.num_rows(segment_id)

    def lookup(self, segment_ids: Any) -> pa.Table:
        """Answers many ids at once; see `Snapshot.lookup`."""
        return self.snapshot.lookup(segment_ids)

    def lookup_keys(self, k1: Any, k2: Any) -> pa.Table:
        """Answers keys that Spark computed; see `Snapshot.lookup_keys`."""
        return self.snapshot.lookup_keys(k1, k2)

    def release(self) -> None:
        """Frees the copies on the executors; a use after that fetches them again."""
        if not isinstance(self._carrier, Snapshot):
            self._carrier.unpersist(blocking=False)


def broadcast(spark: SparkSession, snapshot: Snapshot) -> Handle:
    """Ships a snapshot. On Connect there are no broadcast variables: it travels in the closure."""
    carrier = snapshot if is_connect(spark) else spark.sparkContext.broadcast(snapshot)
    return Handle(snapshot.version, carrier)
