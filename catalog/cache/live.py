"""A cache that knows more than is published: what streams announce, and what the data says."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute

from catalog.backfill.waiting import Trouble
from catalog.cache.cache import Cache, Poll, Stopped
from catalog.cache.courier import Courier
from catalog.cache.datasource import DatasourceSchema
from catalog.cache.keys import keys_of
from catalog.cache.loader import Loader
from catalog.cache.metrics import CacheMetrics
from catalog.cache.overlay import laid_over
from catalog.cache.places import Found, PlaceName, Places
from catalog.cache.resolver import Resolver
from catalog.errors import Unreadable
from catalog.evolution.merge import Policy
from catalog.realtime.follower import Follower
from catalog.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

# Of many segments that are asked for at once, so many are looked up in their data.
MOST_RESOLVED = 1_000

pc: Any = pyarrow.compute


@dataclass(frozen=True)
class Beside:
    """What a live cache has beside its snapshot; a part that is not there was not asked for."""

    places: Places
    follower: Follower | None = None
    resolver: Resolver | None = None
    courier: Courier | None = None


class LiveCache(Cache):
    """A cache with places beside its snapshot: realtime, pending, backfilled.

    A broadcast handle ships the snapshot alone.
    """

    def __init__(self, spark: SparkSession, loader: Loader, beside: Beside) -> None:
        super().__init__(spark, loader)
        self._places = beside.places
        self._follower = beside.follower
        self._resolver = beside.resolver
        self._courier = beside.courier
        self._settling = threading.Lock()
        self._counting = threading.Lock()
        self._misses = 0

    # --- freshness --------------------------------------------------------------------------------

    def reload(self) -> Poll:
        with self._settling:
            announced = self._announced()
            poll = super().reload()
            self._places.polled(self.snapshot, announced)
            return poll

    def poll(self) -> Poll:
        # Announcements first, the table second: a writer publishes before it takes one back.
        with self._settling:
            announced = self._announced()
            poll = super().poll()
            self._places.polled(self.snapshot, announced)
            return poll

    def _announced(self) -> dict[str, Found]:
        if self._follower is None:
            return {}
        announced = self._follower.refresh()
        wanted = self._loader.datasources
        return {
            name: Found(each.schema, each.num_rows)
            for name, each in announced.items()
            if wanted is None or name.partition("/")[0] in wanted
        }

    def stop(self, flush: float = 60.0) -> Stopped:
        """Ends the background work; stores what was found for at most so many seconds.

        What is left then is named; it is lost to this cache, not to the catalog: the next one to
        ask, or a backfill, finds it again.
        """
        super().stop()
        if self._courier is not None and self._courier.stop(flush):
            left = tuple(sorted(each.segment.id for each in self._places.next_pending(1 << 62)))
            log.warning("%d schemas that were found are not stored: %s …", len(left), left[:3])
            return Stopped(left)
        return Stopped()

    def flush(self, seconds: float = 60.0) -> int:
        """Stores what was found; returns how much is left when the time is up."""
        return 0 if self._courier is None else self._courier.flush(seconds)

    # --- one segment ------------------------------------------------------------------------------

    def place(self, segment_id: str) -> PlaceName | None:
        """Where the answer about a segment comes from now; none if nobody knows its schema."""
        placed = self._places.find(segment_id)
        if placed is not None:
            return placed[0]
        known = self.snapshot.knows(segment_id)
        return PlaceName.PUBLISHED if known else None

    def schema_of(self, segment_id: str) -> Schema:
        found = self._found(segment_id)
        # Read after the places: what has left them is in it.
        return self.snapshot.schema_of(segment_id) if found is None else found.schema

    def fingerprint_of(self, segment_id: str) -> str | None:
        found = self._found(segment_id)
        if found is None:
            return self.snapshot.fingerprint_of(segment_id)
        return found.schema.fingerprint

    def num_rows(self, segment_id: str) -> int | None:
        found = self._found(segment_id)
        return self.snapshot.num_rows(segment_id) if found is None else found.num_rows

    def _found(self, segment_id: str) -> Found | None:
        """What is known of a segment beside the snapshot; nothing if the snapshot is to answer."""
        placed = self._places.find(segment_id)
        if placed is not None:
            return placed[1]
        if self.snapshot.fingerprint_of(segment_id) is not None:
            return None
        with self._counting:
            self._misses += 1
        if self._resolver is None:
            return None
        outcome = self._resolver.resolve([segment_id])[segment_id]
        if isinstance(outcome, Trouble):
            raise Unreadable(
                f"Segment {segment_id} is published without a schema, and its data does not say "
                f"it: {outcome.reason}. It is asked again after {outcome.retry_at:%H:%M:%S}.",
                segment_id=segment_id,
                reason=outcome.reason,
            )
        if outcome is None:
            self.poll()  # somebody has completed or dropped it meanwhile
        return outcome

    # --- many -------------------------------------------------------------------------------------

    def lookup(self, segment_ids: Any) -> pa.Table:
        """Answers many ids at once; see `Snapshot.lookup`.

        With a resolver, the data of the first thousand whose schemas are not known is asked; a
        backfill is for more.
        """
        beside = self._places.everything()
        answers = self.snapshot.lookup(segment_ids)
        k1, k2 = keys_of(segment_ids)
        answers = laid_over(answers, k1, k2, beside)
        unknown = pc.and_(answers.column("found"), pc.is_null(answers.column("fingerprint")))
        count = pc.sum(unknown).as_py() or 0
        if not count:
            return answers
        with self._counting:
            self._misses += count
        if self._resolver is None:
            return answers
        places = pc.indices_nonzero(unknown)[:MOST_RESOLVED].to_pylist()
        asked: Any = segment_ids
        names = [str(asked[place]) for place in places]
        outcomes = self._resolver.resolve(names)
        more = {name: each for name, each in outcomes.items() if isinstance(each, Found)}
        return laid_over(answers, k1, k2, more)

    def lookup_keys(self, k1: Any, k2: Any) -> pa.Table:
        beside = self._places.everything()
        return laid_over(self.snapshot.lookup_keys(k1, k2), k1, k2, beside)

    # --- schemas and datasources ------------------------------------------------------------------

    def schema(self, beginning: str) -> Schema:
        found = self.find_schema(beginning)
        return super().schema(beginning) if found is None else found

    def holds(self, fingerprint: str) -> bool:
        return self.find_schema(fingerprint) is not None

    def find_schema(self, fingerprint: str) -> Schema | None:
        for found in self._places.everything().values():
            if found.schema.fingerprint == fingerprint:
                return found.schema
        return super().find_schema(fingerprint)

    def datasources(self) -> dict[str, int]:
        beside = self._places.everything()
        return self.snapshot.datasources(beside)

    def datasource_schema(self, datasource: str, policy: str = Policy.STRICT) -> DatasourceSchema:
        """The merge of the schemas of a datasource's segments, also of those that are not published
        yet; their schemas come last in its order."""
        beside = _of_datasource(datasource, self._places.everything())
        return self.snapshot.datasource_schema(datasource, policy, beside)

    # --- figures ----------------------------------------------------------------------------------

    def metrics(self) -> CacheMetrics:
        sizes = self._places.sizes()
        oldest = self._places.oldest_pending()
        figures: dict[str, Any] = {
            **vars(super().metrics()),
            **{place.value: size for place, size in sizes.items()},
            "oldest_pending_seconds": 0.0 if oldest is None else time.monotonic() - oldest,
            "misses": self._misses,
        }
        if self._resolver is not None:
            done = self._resolver.figures
            figures |= {
                "resolved": done.resolved,
                "resolver_failures": done.failed,
                "resolver_seconds": done.seconds,
                "resolver_refused": done.refused,
                "quarantined": done.resting,
            }
        if self._courier is not None:
            figures |= {
                "stored": self._courier.stored,
                "store_failures": self._courier.failures,
                "quarantined": figures.get("quarantined", 0) + self._courier.quarantined,
            }
        if self._follower is not None:
            counters = self._follower.counters
            figures |= {
                "announcers": self._follower.living,
                "announcement_gaps": counters.gaps + counters.unfit,
                "announcements_broken": counters.broken,
            }
        return CacheMetrics(**figures)


def _of_datasource(datasource: str, beside: Mapping[str, Found]) -> dict[str, Found]:
    begins = f"{datasource}/"
    return {name: found for name, found in beside.items() if name.startswith(begins)}
