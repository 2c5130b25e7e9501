"""A snapshot for UDFs and mapInArrow: a broadcast variable, or shipped with the closure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from catalog.cache.answers import Answers
from catalog.cache.snapshot import Snapshot
from catalog.delta.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Handle(Answers):
    """A small picklable handle on one snapshot; it answers on executors as on the driver."""

    def __init__(self, version: int, carrier: Any) -> None:
        self.version = version
        self._carrier = carrier

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot itself."""
        carrier = self._carrier
        return carrier if isinstance(carrier, Snapshot) else carrier.value

    def release(self) -> None:
        """Frees the copies on the executors; a use after that fetches them again."""
        if not isinstance(self._carrier, Snapshot):
            self._carrier.unpersist(blocking=False)


def broadcast(spark: SparkSession, snapshot: Snapshot) -> Handle:
    """Ships a snapshot. On Connect there are no broadcast variables: it travels in the closure."""
    carrier = snapshot if is_connect(spark) else spark.sparkContext.broadcast(snapshot)
    return Handle(snapshot.version, carrier)
