"""The cache that users hold: one reference to a snapshot, replaced by polls."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING

from catalog.cache.broadcast import Handle, broadcast
from catalog.cache.following import Following
from catalog.cache.loader import Loader
from catalog.cache.metrics import CacheMetrics, gauges_of
from catalog.cache.snapshot import Snapshot
from catalog.errors import InvalidInput, NotLoaded
from catalog.exposition import write_gauges
from catalog.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Poll:
    """What a poll found.

    `reloaded` says that the change feed did not lead from one version to the other, so that
    everything was read; the counts are then those of the whole.
    """

    before: int | None
    after: int
    added: int = 0
    removed: int = 0
    changed: int = 0
    schemas: tuple[str, ...] = ()
    reloaded: bool = False


@dataclass(frozen=True)
class Stopped:
    """What a cache that was stopped left undone: segments whose schemas it found, not stored."""

    left: tuple[str, ...] = ()


class Cache(Following):
    """Answers which schema a segment has, from memory, at the version of the last poll."""

    def __init__(
        self, spark: SparkSession, loader: Loader, pause: Callable[[float], None] = time.sleep
    ) -> None:
        super().__init__(pause)
        self._spark = spark
        self._loader = loader
        self._handle: Handle | None = None
        self._shipped: Snapshot | None = None
        self._polling = threading.Lock()
        self._shipping = threading.Lock()
        self._stop = threading.Event()
        self._poller: threading.Thread | None = None
        self.last_error: Exception | None = None

    # --- freshness --------------------------------------------------------------------------------

    @property
    def snapshot(self) -> Snapshot:
        """The published state; it never changes, a poll puts another in its place."""
        snapshot = self._snapshot
        if snapshot is None:
            raise NotLoaded("The cache has not been loaded yet; call reload() or poll() first.")
        return snapshot

    @property
    def version(self) -> int:
        """The table version that lookups answer from."""
        return self.snapshot.version

    def holds(self, fingerprint: str) -> bool:
        """Whether the snapshot has the schema with this whole fingerprint."""
        snapshot = self._snapshot
        return snapshot is not None and snapshot.holds(fingerprint)

    def find_schema(self, fingerprint: str) -> Schema | None:
        """The schema if the snapshot holds it; none if not, or if nothing is loaded yet."""
        snapshot = self._snapshot
        return None if snapshot is None else snapshot.find_schema(fingerprint)

    def reload(self) -> Poll:
        """Reads everything at the newest version."""
        with self._polling:
            return self._reload()

    def poll(self) -> Poll:
        """Brings the cache to the newest version, at a cost that follows the changes."""
        with self._polling:
            before = self._snapshot
            if before is None:
                return self._reload()
            head = self._loader.store.head()
            if head.version == before.version and head.stamp == before.position.stamp:
                return Poll(before.version, before.version)
            if head.version <= before.version:
                return self._reload()
            folded = self._loader.follow(before, head)
            if folded is None:
                return self._reload()
            self._snapshot = folded.snapshot
            return Poll(
                before.version,
                folded.snapshot.version,
                folded.added,
                folded.removed,
                folded.changed,
                folded.schemas,
            )

    def _reload(self) -> Poll:
        before = self._snapshot
        snapshot = self._loader.load()
        if (
            before is not None
            and before.position.table_id == snapshot.position.table_id
            and snapshot.version < before.version
        ):
            # I5: within one table a cache never goes back.
            return Poll(before.version, before.version, reloaded=True)
        self._snapshot = snapshot
        return Poll(
            None if before is None else before.version,
            snapshot.version,
            added=len(snapshot),
            schemas=tuple(sorted(snapshot.live)),
            reloaded=True,
        )

    def start(self, every: float = 60.0) -> Cache:
        """Polls in the background every so many seconds, until `stop`."""
        if not every > 0:
            raise InvalidInput(f"every must be above zero seconds, not {every!r}.", every=every)
        if self._poller is None:
            self._stop.clear()
            self._poller = threading.Thread(
                target=self._keep_polling, args=(every,), name="strata-poll", daemon=True
            )
            self._poller.start()
        return self

    def stop(self, flush: float = 60.0) -> Stopped:
        """Ends the background polls; waits for one that is running."""
        poller, self._poller = self._poller, None
        if poller is not None:
            self._stop.set()
            poller.join()
        return Stopped()

    def metrics(self) -> CacheMetrics:
        """What the cache holds and has done so far, in figures."""
        snapshot = self._snapshot
        done = self._mismatches.figures
        figures = CacheMetrics(
            mismatches=done.met,
            mismatch_retries=done.retries,
            mismatches_remained=done.remained,
        )
        if snapshot is None:
            return figures
        return replace(
            figures,
            version=snapshot.version,
            published=len(snapshot),
            without_schema=sum(counts.get(None, 0) for counts in snapshot.counts.values()),
        )

    def write_metrics(self, file: str | os.PathLike[str], **labels: str) -> None:
        """Writes the figures to a file as Prometheus takes them, in place of the old ones."""
        write_gauges(file, gauges_of(self.metrics()), labels)

    def _keep_polling(self, every: float) -> None:
        while True:
            try:
                self.poll()
                self.last_error = None
            except Exception as error:
                # Lookups go on from the last snapshot; the next poll may work again.
                self.last_error = error
                log.warning("A poll failed and will be tried again in %g s: %s", every, error)
            if self._stop.wait(every):
                return

    def __enter__(self) -> Cache:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def broadcast(self) -> Handle:
        """A handle for UDFs and mapInArrow; a new version replaces it and frees the old copies."""
        with self._shipping:
            snapshot = self.snapshot
            if self._handle is None or self._shipped is not snapshot:
                old, self._handle = self._handle, broadcast(self._spark, snapshot)
                self._shipped = snapshot
                if old is not None:
                    old.release()
            return self._handle
