"""The reader's side: the announcements of all living writers, read from the files that changed."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType

import pyarrow as pa

from catalog.environment import Environment
from catalog.errors import InvalidInput, InvalidSchema
from catalog.evolution.merge import merged
from catalog.realtime.board import Announced, Announcement, Board, Stamp
from catalog.schema import Schema

log = logging.getLogger(__name__)

# The coarsest resolution of modification times in storage: two seconds on FAT, one on S3.
SETTLED = 2.0

_Segments = Mapping[str, Announced]


@dataclass(frozen=True)
class FollowerFigures:
    """Counts since a follower was created.

    Attributes:
        read: files whose content was new.
        broken: files that could not be read or are no announcements.
        expired: writers that stopped renewing.
        conflicts: segments that two writers announced with types that do not merge.
    """

    read: int = 0
    broken: int = 0
    expired: int = 0
    conflicts: int = 0


class Follower:
    """Follows all writers of a board.

    Clocks of two machines are compared in one case only. A writer that stops renewing expires
    after its ttl by this reader's monotonic clock; one that is seen for the first time is expired
    too if its last renewal is older than its ttl by the time of day.
    """

    def __init__(
        self,
        board: Board,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = Environment.clock,
    ) -> None:
        """Args:
        board: where announcements are kept.
        clock: monotonic seconds.
        now: the time in UTC.
        """
        self._watch = Watch(board, clock)
        self._clock = clock
        self._now = now
        self._guard = threading.Lock()
        self._writers: dict[str, _KnownWriter] = {}
        self._living: dict[str, _Segments] = {}
        self._announced: _Segments = MappingProxyType({})
        self._conflicts: set[str] = set()
        self._figures = FollowerFigures()

    @property
    def figures(self) -> FollowerFigures:
        """The counts so far."""
        return self._figures

    @property
    def living(self) -> int:
        """The number of living writers at the last refresh; never waits."""
        return len(self._living)

    def refresh(self) -> Mapping[str, Announced]:
        """The segments of living writers now; the same object as before if nothing changed.

        An error of the storage that concerns the whole folder is raised; see `announced`.
        """
        with self._guard:
            look = self._watch.look()
            for name in self._writers.keys() - look.names:
                del self._writers[name]
            for name, failure in look.failed.items():
                self._count(broken=1)
                log.warning("The announcements of %s cannot be read now: %s", name, failure)
            for name, content in look.changed.items():
                self._take(name, content)
            return self._combine()

    @property
    def announced(self) -> Mapping[str, Announced]:
        """The segments of the last refresh, without writers that have expired since."""
        with self._guard:
            return self._combine()

    def _count(self, **more: int) -> None:
        counted = {name: getattr(self._figures, name) + add for name, add in more.items()}
        self._figures = replace(self._figures, **counted)

    def _take(self, name: str, content: bytes) -> None:
        """Takes over the content of a writer's file, if it is a newer announcement."""
        self._count(read=1)
        try:
            found = Announcement.from_json(content)
            if found.writer != name:
                raise InvalidInput(f"The announcement is that of {found.writer!r}.")
        except InvalidInput as error:
            self._count(broken=1)
            log.warning("The announcements of %s are ignored. %s", name, error.message)
            return
        known = self._writers.get(name)
        if known is None:
            # At first sight only the writer's clock can be used.
            lives = not found.expired(self._now())
            self._count(expired=0 if lives else 1)
            self._writers[name] = _KnownWriter(found, self._clock(), lives)
            return
        last = known.last
        if last.session == found.session and last.beat >= found.beat:
            return  # an older copy, which some storage may still show
        if _same(last.segments, found.segments):
            found = replace(found, segments=last.segments)
        # Whatever its clock says, its beat has moved.
        self._writers[name] = _KnownWriter(found, self._clock(), lives=True)

    def _combine(self) -> Mapping[str, Announced]:
        moment = self._clock()
        living: dict[str, _Segments] = {}
        for name, writer in sorted(self._writers.items()):
            ttl = writer.last.ttl
            if writer.lives and moment - writer.since >= ttl:
                self._count(expired=1)
                log.warning("%s has not renewed its announcements in %g s", name, ttl)
                writer = self._writers[name] = replace(writer, lives=False)
            if writer.lives:
                living[name] = writer.last.segments
        before = self._living
        same = living.keys() == before.keys() and all(
            before[name] is segments for name, segments in living.items()
        )
        if not same:
            combined, conflicts = _combined(living)
            for segment_id in sorted(conflicts - self._conflicts):
                self._count(conflicts=1)
                log.warning("Writers announce %s with types that do not merge", segment_id)
            self._living, self._conflicts = living, conflicts
            self._announced = MappingProxyType(combined)
        return self._announced


# --- replicas -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _KnownWriter:
    """The last valid announcement of a writer, and when its beat was seen to move."""

    last: Announcement
    since: float
    lives: bool


def _same(one: _Segments, other: _Segments) -> bool:
    """Whether two mappings agree, also in comments and in the order of columns."""
    return one.keys() == other.keys() and all(
        each.num_rows == other[name].num_rows and each.schema.json == other[name].schema.json
        for name, each in one.items()
    )


def _combined(living: Mapping[str, _Segments]) -> tuple[dict[str, Announced], set[str]]:
    """The segments of all writers, and those in conflict, where the first writer decides."""
    combined: dict[str, Announced] = {}
    conflicts: set[str] = set()
    for segments in living.values():
        for segment_id, each in segments.items():
            first = combined.get(segment_id)
            if first is None:
                combined[segment_id] = each
                continue
            schema, agreed = _merge(first.schema, each.schema)
            combined[segment_id] = Announced(schema, _larger(first.num_rows, each.num_rows))
            if not agreed:
                conflicts.add(segment_id)
    return combined, conflicts


def _merge(first: Schema, second: Schema) -> tuple[Schema, bool]:
    """The merge of two replicas' schemas, and whether it has no conflict."""
    if first.json == second.json:
        return first, True
    try:
        done = merged([first, second])
    except InvalidSchema:
        return first, False  # the merge has more columns than a schema may have
    return done.schema, not done.conflicts


def _larger(first: int | None, second: int | None) -> int | None:
    return second if first is None else first if second is None else max(first, second)


# --- changed files --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Look:
    """The writers that have a file, the files that may have changed, and those not readable."""

    names: frozenset[str]
    changed: dict[str, bytes]
    failed: dict[str, OSError | pa.ArrowException]


@dataclass(frozen=True, slots=True)
class _Seen:
    stamp: Stamp
    since: float
    settled: bool
    digest: bytes


class Watch:
    """Lists a board repeatedly, and reads only files that changed."""

    def __init__(self, board: Board, clock: Callable[[], float]) -> None:
        self._board = board
        self._clock = clock
        self._seen: dict[str, _Seen] = {}

    def look(self) -> Look:
        """The changes since the last look; a file that cannot be read is tried again next time."""
        moment = self._clock()
        listing = self._board.listing()
        known = {name: seen for name, seen in self._seen.items() if name in listing}
        names, changed, failed = set(listing), {}, {}
        for name, stamp in listing.items():
            seen = known.get(name)
            same = seen if seen is not None and seen.stamp == stamp else None
            if same is not None and same.settled:
                continue
            try:
                content = self._board.read(name)
            except (OSError, pa.ArrowException) as error:
                failed[name] = error
                continue
            if content is None:
                names.discard(name)
                known.pop(name, None)
                continue
            digest = hashlib.sha256(content).digest()
            if seen is None or seen.digest != digest:
                changed[name] = content
            # Two writes in one tick of the storage's clock can leave the same stamp. Once it has
            # been the same for longer than a tick, no later write can have it.
            since = moment if same is None else same.since
            settled = stamp.mtime_ns is not None and moment - since > SETTLED
            known[name] = _Seen(stamp, since, settled, digest)
        # Only now: files that a failed look has read are new to the next one.
        self._seen = known
        return Look(frozenset(names), changed, failed)
