"""A cache that knows more than is published: what streams announce, and what the data says."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute

from catalog.backfill.model import Trouble
from catalog.cache.cache import Cache, Poll, Stopped
from catalog.cache.courier import Courier
from catalog.cache.expectation import Told, told_by
from catalog.cache.keys import keys_of, texts_of
from catalog.cache.loader import Loader
from catalog.cache.metrics import CacheMetrics
from catalog.cache.overlay import laid_over
from catalog.cache.places import Found, PlaceName, Places
from catalog.cache.resolver import Resolver, unreadable
from catalog.errors import NotInSnapshot
from catalog.evolution.merge import Policy
from catalog.read.datasource import DatasourceSchema
from catalog.realtime.follower import Follower
from catalog.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

# Of many segments that are asked for at once, so many are looked up in their data.
MOST_RESOLVED = 1_000
# So few ids are looked for in the places one by one.
_FEW = 1_000

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

    def __init__(
        self,
        spark: SparkSession,
        loader: Loader,
        beside: Beside,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(spark, loader, pause)
        self._places = beside.places
        self._follower = beside.follower
        self._resolver = beside.resolver
        self._courier = beside.courier
        self._settling = threading.Lock()
        self._counting = threading.Lock()
        self._misses = 0
        self._unreachable = 0

    # --- freshness --------------------------------------------------------------------------------

    def reload(self) -> Poll:
        return self._settled(super().reload)

    def poll(self) -> Poll:
        return self._settled(super().poll)

    def _settled(self, follow: Callable[[], Poll]) -> Poll:
        # Announcements first, the table second: a writer publishes before it takes one back.
        with self._settling:
            announced = self._announced()
            poll = follow()
            self._places.polled(self.snapshot, announced)
        if poll.after != poll.before:
            if self._resolver is not None:
                self._resolver.polled(self.snapshot)
            if self._courier is not None:
                self._courier.polled()
        return poll

    def _announced(self) -> dict[str, Found]:
        if self._follower is None:
            return {}
        try:
            announced = self._follower.refresh()
        except (OSError, pa.ArrowException) as error:
            # The table is followed all the same, and what was announced is believed for its ttl.
            self._unreachable += 1
            log.warning("Announcements cannot be read now: %s", error)
            announced = self._follower.announced
        wanted = self._loader.datasources
        return {
            name: Found(each.schema, each.num_rows)
            for name, each in announced.items()
            if wanted is None or name.partition("/")[0] in wanted
        }

    def start(self, every: float = 60.0) -> Cache:
        if self._courier is not None:
            self._courier.start()
        return super().start(every)

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

    def schema_of(self, segment_id: str, *, expect: Schema | str | None = None) -> Schema:
        if expect is not None:
            return super().schema_of(segment_id, expect=expect)
        found = self._found(segment_id)
        if isinstance(found, Trouble):
            raise unreadable(segment_id, found)
        # Read after the places: what has left them is in it.
        return self.snapshot.schema_of(segment_id) if found is None else found.schema

    def fingerprint_of(self, segment_id: str, *, expect: Schema | str | None = None) -> str | None:
        if expect is not None:
            return super().fingerprint_of(segment_id, expect=expect)
        found = self._found(segment_id)
        if isinstance(found, Found):
            return found.schema.fingerprint
        return self.snapshot.fingerprint_of(segment_id)

    def num_rows(self, segment_id: str) -> int | None:
        found = self._found(segment_id)
        if isinstance(found, Found):
            return found.num_rows
        return self.snapshot.num_rows(segment_id)

    def _told(self, segment_id: str) -> Told:
        try:
            found = self._found(segment_id)
        except NotInSnapshot:
            found = None  # the snapshot says so below, or one that a poll brought since
        snapshot = self.snapshot
        if isinstance(found, Trouble):
            return Told(snapshot.version, None, unreadable(segment_id, found))
        if isinstance(found, Found):
            return Told(snapshot.version, found.schema)
        return told_by(snapshot, segment_id)

    def _found(self, segment_id: str) -> Found | Trouble | None:
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
        if outcome is None:
            self.poll()  # somebody has completed or dropped it meanwhile
        return outcome

    # --- many -------------------------------------------------------------------------------------

    def lookup(self, segment_ids: Any) -> pa.Table:
        """Answers many ids at once; see `Snapshot.lookup`.

        With a resolver, the data of the first thousand whose schemas are not known is asked; a
        backfill is for more.
        """
        if isinstance(segment_ids, str):
            return self.snapshot.lookup(segment_ids)  # which refuses it
        ids = texts_of(segment_ids)
        keys = keys_of(ids)
        answers = self._look(ids, keys)
        unknown = ids.filter(_unknown(answers))
        if not len(unknown):
            return answers
        with self._counting:
            self._misses += len(unknown)
        if self._resolver is None:
            return answers
        resting = self._resolver.resting
        names = [name for name in dict.fromkeys(unknown.to_pylist()) if name not in resting]
        outcomes = self._resolver.resolve(names[:MOST_RESOLVED])
        if None in outcomes.values():
            self.poll()  # somebody has completed or dropped some meanwhile
            answers = self._look(ids, keys)
            unknown = ids.filter(_unknown(answers))
        # Also what there was no room for in pending.
        still = set(unknown.to_pylist())
        more = {n: each for n, each in outcomes.items() if isinstance(each, Found) and n in still}
        return laid_over(answers, *keys, more)

    def _look(self, ids: Any, keys: tuple[Any, Any]) -> pa.Table:
        few = len(ids) <= _FEW
        beside = self._places.some(ids.to_pylist()) if few else self._places.everything()
        return self._answers(keys, beside)

    def lookup_keys(self, k1: Any, k2: Any) -> pa.Table:
        return self._answers((k1, k2), self._places.everything())

    def _answers(self, keys: tuple[Any, Any], beside: Mapping[str, Found]) -> pa.Table:
        # Read after the places: what has left them is in it.
        return laid_over(self.snapshot.lookup_keys(*keys), *keys, beside)

    # --- schemas and datasources ------------------------------------------------------------------

    def schema(self, beginning: str) -> Schema:
        """The schema with this fingerprint, or of a published one with any unique beginning."""
        found = self._places.schema(beginning)
        return super().schema(beginning) if found is None else found

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
                "quarantined": len(self._resolver.resting),
            }
        if self._courier is not None:
            figures |= {
                "stored": self._courier.stored,
                "store_failures": self._courier.failures,
            }
        if self._follower is not None:
            counters = self._follower.counters
            figures |= {
                "announcers": self._follower.living,
                "announcement_gaps": counters.gaps + counters.unfit,
                "announcements_broken": counters.broken + self._unreachable,
            }
        return CacheMetrics(**figures)


def _unknown(answers: pa.Table) -> Any:
    """Where a segment is there and its schema is not known."""
    unknown = pc.and_(answers.column("found"), pc.is_null(answers.column("fingerprint")))
    return unknown.combine_chunks()


def _of_datasource(datasource: str, beside: Mapping[str, Found]) -> dict[str, Found]:
    begins = f"{datasource}/"
    return {name: found for name, found in beside.items() if name.startswith(begins)}
