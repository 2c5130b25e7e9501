"""The cache: a reference to the newest snapshot, replaced by polls. And all caches of a catalog."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from catalog.cache.answers import Handle, PolledAnswers, broadcast, check_timeout, check_version
from catalog.cache.loader import Loader
from catalog.cache.metrics import CacheMetrics, gauges_of
from catalog.cache.snapshot import Snapshot
from catalog.environment import Deadline
from catalog.errors import CacheBehind, CatalogError, InvalidInput, NotLoaded
from catalog.exposition import write_gauges
from catalog.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Poll:
    """The versions before and after a poll, and its changes.

    `reloaded` means that the change feed between the versions could not be read, so that the whole
    table was; the counts are then those of the whole table.
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
    """The segments whose schemas a stopped cache found and did not store."""

    left: tuple[str, ...] = ()


class Cache(PolledAnswers):
    """Schemas of segments from memory, at the version of the last poll."""

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
        """The published state; it is immutable, and a poll replaces it."""
        snapshot = self._snapshot
        if snapshot is None:
            raise NotLoaded("The cache has not been loaded yet; call reload() or poll() first.")
        return snapshot

    @property
    def version(self) -> int:
        """The table version of the snapshot."""
        return self.snapshot.version

    def holds(self, fingerprint: str) -> bool:
        """Whether the snapshot has the schema with this whole fingerprint."""
        snapshot = self._snapshot
        return snapshot is not None and snapshot.holds(fingerprint)

    def find_schema(self, fingerprint: str) -> Schema | None:
        """The schema with this whole fingerprint; none if no snapshot has it."""
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
        """Polls in the background, every `every` seconds, until `stop`."""
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
        """Ends the background polls; waits for a running one."""
        poller, self._poller = self._poller, None
        if poller is not None:
            self._stop.set()
            poller.join()
        return Stopped()

    def metrics(self) -> CacheMetrics:
        """The figures of the cache so far."""
        return CacheMetrics(**self._figures())

    def _figures(self) -> dict[str, Any]:
        snapshot = self._snapshot
        if snapshot is None:
            return dict(self._counters.read())
        return {
            **self._counters.read(),
            "version": snapshot.version,
            "published": len(snapshot),
            "without_schema": sum(counts.get(None, 0) for counts in snapshot.counts.values()),
        }

    def write_metrics(self, file: str | os.PathLike[str], **labels: str) -> None:
        """Replaces a file with the figures in Prometheus' text format."""
        write_gauges(file, gauges_of(self.metrics()), labels)

    def _keep_polling(self, every: float) -> None:
        while True:
            try:
                self.poll()
                self.last_error = None
            except Exception as error:
                # Lookups continue on the last snapshot; the next poll may succeed.
                self.last_error = error
                log.warning("A poll failed and will be tried again in %g s: %s", every, error)
            if self._stop.wait(every):
                return

    def __enter__(self) -> Cache:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def broadcast(self) -> Handle:
        """A handle for UDFs and mapInArrow; a new version replaces it and frees its copies."""
        with self._shipping:
            snapshot = self.snapshot
            if self._handle is None or self._shipped is not snapshot:
                old, self._handle = self._handle, broadcast(self._spark, snapshot)
                self._shipped = snapshot
                if old is not None:
                    old.release()
            return self._handle


class Caches:
    """The caches of a catalog (weak references): stopped, waited for and searched together."""

    def __init__(self) -> None:
        self._caches: WeakSet[Cache] = WeakSet()
        self._guard = threading.Lock()

    def add(self, cache: Cache) -> None:
        with self._guard:
            self._caches.add(cache)

    def stop(self) -> None:
        """Stops all caches; schemas that they found are stored before."""
        for cache in self._all():
            cache.stop()

    def wait_for(self, version: int, timeout: float = 60.0) -> None:
        """Returns when all loaded caches have reached a version of the table.

        They poll one after the other, in this thread, and share the timeout. The first that does
        not reach the version raises `GaveUp`; a failed poll raises its own error.
        """
        wanted, deadline = check_version(version), Deadline(check_timeout(timeout))
        for cache in self._all():
            if cache.loaded:
                cache.reach(wanted, deadline)

    def follow(self, version: int, result: Any, timeout: float = 60.0) -> None:
        """Like `wait_for`, for the version of a finished commit, whose caller gets `result`.

        Raises:
            CacheBehind: A cache does not reach it, for any reason; the error has the result.
        """
        try:
            self.wait_for(version, timeout)
        except Exception as error:  # of Spark too: the commit is done
            reason = error.message if isinstance(error, CatalogError) else str(error)
            raise CacheBehind(
                f"It is done, at version {version}, but a cache of this catalog has not reached "
                f"that: {reason} Wait for it with cache.wait_for({version}); the result is in "
                "the values of this error.",
                version=version,
                result=result,
            ) from error

    def holds(self, fingerprint: str) -> bool:
        """Whether a snapshot has the schema."""
        return any(cache.holds(fingerprint) for cache in self._all())

    def held(self, fingerprint: str) -> Schema | None:
        """The schema, if a snapshot has it."""
        found = (cache.find_schema(fingerprint) for cache in self._all())
        return next((schema for schema in found if schema is not None), None)

    def _all(self) -> list[Cache]:
        with self._guard:
            return list(self._caches)
