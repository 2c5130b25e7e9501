"""A cache with more than is published: announced segments, and schemas read from the data."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute

from catalog.backfill.model import Trouble
from catalog.cache.answers import CurrentSchema, current_in
from catalog.cache.cache import Cache, Poll, Stopped
from catalog.cache.keys import keys_of, texts_of
from catalog.cache.loader import Loader
from catalog.cache.overlay import Overlay, PlaceName
from catalog.cache.resolver import BackgroundWriter, Resolver, unreadable
from catalog.cache.snapshot import OverlayEntry, overlaid
from catalog.errors import NotInSnapshot
from catalog.evolution.merge import Policy
from catalog.read.datasource import DatasourceSchema
from catalog.realtime.follower import Follower
from catalog.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

# The most segments of one lookup whose data is read.
MOST_RESOLVED = 1_000
# Up to this many ids are searched in the overlay one by one.
_FEW = 1_000

pc: Any = pyarrow.compute


class LiveCache(Cache):
    """A cache with an overlay over its snapshot; broadcast handles have the snapshot alone."""

    def __init__(
        self,
        spark: SparkSession,
        loader: Loader,
        overlay: Overlay,
        *,
        follower: Follower | None = None,
        resolver: Resolver | None = None,
        writer: BackgroundWriter | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Args:
        spark: the session.
        loader: reads the table.
        overlay: entries that are not published yet.
        follower: reads announcements, with `realtime`.
        resolver: finds schemas in the data, with `resolve`.
        writer: stores them.
        pause: waits for a number of seconds.
        """
        super().__init__(spark, loader, pause)
        self._overlay = overlay
        self._follower = follower
        self._resolver = resolver
        self._writer = writer
        self._settling = threading.Lock()

    # --- freshness --------------------------------------------------------------------------------

    def reload(self) -> Poll:
        return self._settled(super().reload)

    def poll(self) -> Poll:
        return self._settled(super().poll)

    def _settled(self, follow: Callable[[], Poll]) -> Poll:
        # Announcements first, then the table: a writer publishes before it withdraws one.
        with self._settling:
            announced = self._announced()
            poll = follow()
            self._overlay.polled(self.snapshot, announced)
        if poll.after != poll.before:
            if self._resolver is not None:
                self._resolver.polled(self.snapshot)
            if self._writer is not None:
                self._writer.polled()
        return poll

    def _announced(self) -> dict[str, OverlayEntry]:
        if self._follower is None:
            return {}
        try:
            announced = self._follower.refresh()
        except (OSError, pa.ArrowException) as error:
            # The table is followed all the same, and announcements are valid for their ttl.
            self._counters.add(announcements_broken=1)
            log.warning("Announcements cannot be read now: %s", error)
            announced = self._follower.announced
        wanted = self._loader.datasources
        return {
            name: OverlayEntry(each.schema, each.num_rows)
            for name, each in announced.items()
            if wanted is None or name.partition("/")[0] in wanted
        }

    def start(self, every: float = 60.0) -> Cache:
        if self._writer is not None:
            self._writer.start()
        return super().start(every)

    def stop(self, flush: float = 60.0) -> Stopped:
        """Ends the background work; stores found schemas for at most `flush` seconds.

        Segments that are left are returned. The catalog loses nothing: the next miss or a backfill
        finds their schemas again.
        """
        super().stop()
        if self._writer is not None and self._writer.stop(flush):
            left = tuple(sorted(each.segment.id for each in self._overlay.next_pending(1 << 62)))
            log.warning("%d found schemas are not stored: %s …", len(left), left[:3])
            return Stopped(left)
        return Stopped()

    def flush(self, seconds: float = 60.0) -> int:
        """Stores found schemas; returns how many are left when the time is up."""
        return 0 if self._writer is None else self._writer.flush(seconds)

    # --- one segment ------------------------------------------------------------------------------

    def place(self, segment_id: str) -> PlaceName | None:
        """The origin of the answer about a segment now; none if its schema is not known."""
        placed = self._overlay.find(segment_id)
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
        # Read after the overlay: an entry that has left it is in the snapshot.
        return self.snapshot.schema_of(segment_id) if found is None else found.schema

    def fingerprint_of(self, segment_id: str, *, expect: Schema | str | None = None) -> str | None:
        if expect is not None:
            return super().fingerprint_of(segment_id, expect=expect)
        found = self._found(segment_id)
        if isinstance(found, OverlayEntry):
            return found.schema.fingerprint
        return self.snapshot.fingerprint_of(segment_id)

    def num_rows(self, segment_id: str) -> int | None:
        found = self._found(segment_id)
        if isinstance(found, OverlayEntry):
            return found.num_rows
        return self.snapshot.num_rows(segment_id)

    def _current(self, segment_id: str) -> CurrentSchema:
        try:
            found = self._found(segment_id)
        except NotInSnapshot:
            found = None  # the snapshot, perhaps a newer one by now, decides below
        snapshot = self.snapshot
        if isinstance(found, Trouble):
            return CurrentSchema(snapshot.version, None, unreadable(segment_id, found))
        if isinstance(found, OverlayEntry):
            return CurrentSchema(snapshot.version, found.schema)
        return current_in(snapshot, segment_id)

    def _found(self, segment_id: str) -> OverlayEntry | Trouble | None:
        """The entry of a segment, from the overlay or its data; none if the snapshot answers."""
        placed = self._overlay.find(segment_id)
        if placed is not None:
            return placed[1]
        if self.snapshot.fingerprint_of(segment_id) is not None:
            return None
        self._counters.add(misses=1)
        if self._resolver is None:
            return None
        outcome = self._resolver.resolve([segment_id])[segment_id]
        if outcome is None:
            self.poll()  # it was completed or dropped meanwhile
        return outcome

    # --- many -------------------------------------------------------------------------------------

    def lookup(self, segment_ids: Any) -> pa.Table:
        """Looks up many ids; see `Snapshot.lookup`.

        With a resolver, the data of the first thousand segments without a known schema is read;
        run a backfill for more.
        """
        if isinstance(segment_ids, str):
            return self.snapshot.lookup(segment_ids)  # which refuses it
        ids = texts_of(segment_ids)
        keys = keys_of(ids)
        answers = self._look(ids, keys)
        unknown = ids.filter(_unknown(answers))
        if not len(unknown):
            return answers
        self._counters.add(misses=len(unknown))
        if self._resolver is None:
            return answers
        resting = self._resolver.resting
        names = [name for name in dict.fromkeys(unknown.to_pylist()) if name not in resting]
        outcomes = self._resolver.resolve(names[:MOST_RESOLVED])
        if None in outcomes.values():
            self.poll()  # some were completed or dropped meanwhile
            answers = self._look(ids, keys)
            unknown = ids.filter(_unknown(answers))
        # Also schemas for which pending had no room.
        still = set(unknown.to_pylist())
        found = {
            name: each
            for name, each in outcomes.items()
            if name in still and isinstance(each, OverlayEntry)
        }
        return overlaid(answers, *keys, found)

    def _look(self, ids: Any, keys: tuple[Any, Any]) -> pa.Table:
        few = len(ids) <= _FEW
        overlay = self._overlay
        return self._answers(keys, overlay.some(ids.to_pylist()) if few else overlay.everything())

    def lookup_keys(self, k1: Any, k2: Any) -> pa.Table:
        return self._answers((k1, k2), self._overlay.everything())

    def _answers(self, keys: tuple[Any, Any], entries: Mapping[str, OverlayEntry]) -> pa.Table:
        # Read after the overlay: an entry that has left it is in the snapshot.
        return overlaid(self.snapshot.lookup_keys(*keys), *keys, entries)

    # --- schemas and datasources ------------------------------------------------------------------

    def schema(self, beginning: str) -> Schema:
        """The schema with this fingerprint, or of a published one with any unique beginning."""
        found = self._overlay.schema(beginning)
        return super().schema(beginning) if found is None else found

    def datasources(self) -> dict[str, int]:
        # The overlay first, as everywhere.
        entries = self._overlay.everything()
        return self.snapshot.datasources(entries)

    def datasource_schema(self, datasource: str, policy: str = Policy.STRICT) -> DatasourceSchema:
        """The merge of the schemas of a datasource's segments, with those of the overlay last."""
        begins = f"{datasource}/"
        entries = self._overlay.everything()
        mine = {name: entry for name, entry in entries.items() if name.startswith(begins)}
        return self.snapshot.datasource_schema(datasource, policy, mine)

    # --- figures ----------------------------------------------------------------------------------

    def _figures(self) -> dict[str, Any]:
        oldest = self._overlay.oldest_pending()
        figures = super()._figures() | {
            **{place.value: size for place, size in self._overlay.sizes().items()},
            "oldest_pending_seconds": 0.0 if oldest is None else time.monotonic() - oldest,
        }
        if self._resolver is not None:
            figures |= self._resolver.counters.read()
            figures["quarantined"] = len(self._resolver.resting)
        if self._writer is not None:
            figures |= self._writer.counters.read()
        if self._follower is not None:
            figures["announcers"] = self._follower.living
            unreachable = figures.get("announcements_broken", 0)
            figures["announcements_broken"] = unreachable + self._follower.figures.broken
        return figures


def _unknown(answers: pa.Table) -> Any:
    """A mask of published segments whose schema is not known."""
    unknown = pc.and_(answers.column("found"), pc.is_null(answers.column("fingerprint")))
    return unknown.combine_chunks()
