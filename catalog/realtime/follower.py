"""The reader's side: what all living writers announce, from the files that changed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

from catalog.environment import Environment
from catalog.errors import InvalidInput, InvalidSchema
from catalog.evolution.merge import merged
from catalog.realtime.announcement import Announced, Document, Gap, State, replay
from catalog.realtime.board import Board, Watch
from catalog.schema import Schema

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Counters:
    """What a follower met since it was made.

    Attributes:
        read: files whose content was new.
        absolutes: states taken from the base: at first sight, of a new session, or because too
            much was missed.
        gaps: deltas that did not fit what was known.
        unfit: documents whose deltas do not even fit their own base.
        broken: files that could not be read or are no announcements.
        expired: writers that ceased to renew.
        conflicts: segments that two writers came to announce with types that do not merge.
    """

    read: int = 0
    absolutes: int = 0
    gaps: int = 0
    unfit: int = 0
    broken: int = 0
    expired: int = 0
    conflicts: int = 0


class Follower:
    """Follows all writers of a board.

    Clocks of machines are not compared, but for one case: a writer that stops renewing is expired
    after its ttl by this reader's own clock, and one that is met for the first time also if its
    last renewal is that old by the time of day.
    """

    def __init__(
        self,
        board: Board,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = Environment.clock,
    ) -> None:
        """Args:
        board: where announcements are kept.
        clock: seconds that only go forward.
        now: the time in UTC.
        """
        self._watch = Watch(board, clock)
        self._clock = clock
        self._now = now
        self._guard = threading.Lock()
        self._writers: dict[str, _Writer] = {}
        self._living: dict[str, State] = {}
        self._combined = _Combined()
        self._counters = Counters()

    @property
    def counters(self) -> Counters:
        """What it met so far."""
        return self._counters

    @property
    def living(self) -> int:
        """How many writers lived when it was last asked what they announce; never waits."""
        return len(self._living)

    def refresh(self) -> Mapping[str, Announced]:
        """What living writers announce now; the same object as before if that did not change.

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
        """What the last refresh knew, without those who have expired since."""
        with self._guard:
            return self._combine()

    def _count(self, **more: int) -> None:
        counted = {name: getattr(self._counters, name) + add for name, add in more.items()}
        self._counters = replace(self._counters, **counted)

    # --- one writer -------------------------------------------------------------------------------

    def _take(self, name: str, content: bytes) -> None:
        self._count(read=1)
        try:
            document = Document.from_json(content)
            if document.writer != name:
                raise InvalidInput(f"The announcement is that of {document.writer!r}.")
        except InvalidInput as error:
            self._count(broken=1)
            log.warning("The announcements of %s are passed by. %s", name, error.message)
            return
        known = self._writers.get(name)
        if known is not None and known.session == document.session and known.beat >= document.beat:
            return  # an older copy, which some storage may still show
        state = self._followed(known, document)
        if isinstance(state, Gap):
            # Not a sign of life either: what is known of the writer must not outlive its ttl.
            self._count(unfit=1)
            log.warning("The announcements of %s contradict themselves: %s", name, state.why)
            return
        # At first sight there is only its clock to go by. Later its beat has moved before our eyes.
        lives = known is not None or not document.expired(self._now())
        self._count(expired=0 if lives else 1)
        self._writers[name] = _Writer(
            document.session, document.beat, document.ttl, self._clock(), lives, state
        )

    def _followed(self, known: _Writer | None, document: Document) -> State | Gap:
        """The state that a document leads to: by its newer deltas if they fit, or all of it."""
        if known is not None and known.leads_to(document):
            state = replay(known.state, document.deltas)
            if not isinstance(state, Gap):
                return state
            self._count(gaps=1)
            log.info("What is known of %s does not lead on: %s", document.writer, state.why)
        state = replay(document.base, document.deltas)
        if not isinstance(state, Gap):
            self._count(absolutes=1)
        return state

    # --- all of them ------------------------------------------------------------------------------

    def _combine(self) -> Mapping[str, Announced]:
        moment = self._clock()
        living: dict[str, State] = {}
        for name, writer in sorted(self._writers.items()):
            if writer.lives and moment - writer.since >= writer.ttl:
                self._count(expired=1)
                log.warning("%s has not renewed its announcements in %g s", name, writer.ttl)
                writer = self._writers[name] = replace(writer, lives=False)
            if writer.lives:
                living[name] = writer.state
        before = self._living
        same = living.keys() == before.keys() and all(
            before[name] is state for name, state in living.items()
        )
        if not same:
            combined = _combined(living)
            for segment_id in sorted(combined.conflicts - self._combined.conflicts):
                self._count(conflicts=1)
                log.warning("Writers announce %s with types that do not merge", segment_id)
            self._living, self._combined = living, combined
        return self._combined.segments


@dataclass(frozen=True)
class _Writer:
    """The last good document of a writer, and when its beat was seen to move."""

    session: str
    beat: int
    ttl: float
    since: float
    lives: bool
    state: State

    def leads_to(self, document: Document) -> bool:
        """Whether what the document has since its base is enough to go on from here."""
        same = self.session == document.session
        return same and document.base.sequence <= self.state.sequence <= document.sequence


@dataclass(frozen=True)
class _Combined:
    segments: Mapping[str, Announced] = field(default_factory=lambda: MappingProxyType({}))
    conflicts: frozenset[str] = frozenset()


def _combined(living: Mapping[str, State]) -> _Combined:
    """The segments of all writers; who sorts first decides where they contradict each other."""
    segments: dict[str, Announced] = {}
    conflicts: set[str] = set()
    for state in living.values():
        for segment_id, each in state.segments.items():
            first = segments.get(segment_id)
            if first is None:
                segments[segment_id] = each
                continue
            schema, agreed = _joined(first.schema, each.schema)
            segments[segment_id] = Announced(schema, _larger(first.num_rows, each.num_rows))
            if not agreed:
                conflicts.add(segment_id)
    return _Combined(MappingProxyType(segments), frozenset(conflicts))


def _joined(first: Schema, second: Schema) -> tuple[Schema, bool]:
    """The merge of two replicas' schemas, and whether they have one."""
    if first.json == second.json:
        return first, True
    try:
        done = merged([first, second])
    except InvalidSchema:
        return first, False  # together they have more columns than a schema may have
    return done.schema, not done.conflicts


def _larger(first: int | None, second: int | None) -> int | None:
    return second if first is None else first if second is None else max(first, second)
