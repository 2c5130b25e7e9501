"""The writer's side: announces the schemas of a job's open segments, with a heartbeat."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, overload

from catalog.environment import Environment
from catalog.errors import InvalidInput, SchemaConflict
from catalog.evolution.merge import conflict_error, merged
from catalog.model import PublishResult, Segment, check_segment_id
from catalog.realtime.board import LONGEST_TTL, Announced, Announcement, Board, check_name
from catalog.schema import Schema
from catalog.schema.names import shown

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    Definition: TypeAlias = Schema | str | StructType | pa.Schema

log = logging.getLogger(__name__)


class Announcer:
    """Announces open segments under a writer's name, until it is closed or its job is gone.

    The schema of a segment only grows: it is the merge of all schemas given for it. If storage
    fails, the error is raised, the change is kept, and the next write includes it.
    """

    def __init__(
        self,
        board: Board,
        writer: str,
        ttl: timedelta = timedelta(minutes=2),
        clock: Callable[[], datetime] = Environment.clock,
        new_id: Callable[[], str] = Environment.new_id,
        takeover: bool = False,
    ) -> None:
        """Args:
        board: where announcements are kept.
        writer: a name that no other job uses at the same time.
        ttl: how long readers trust announcements that are not renewed.
        clock: the time in UTC.
        new_id: gives random ids.
        takeover: replace another session of this name that seems to be alive, such as that of the
            same job before it was restarted.
        """
        if not isinstance(ttl, timedelta):
            raise InvalidInput(
                f"ttl must be a timedelta, not {ttl!r}; such as timedelta(minutes=2).", ttl=ttl
            )
        if not timedelta() < ttl <= timedelta(seconds=LONGEST_TTL):
            raise InvalidInput(
                f"ttl must be above zero and at most {timedelta(seconds=LONGEST_TTL)}, not {ttl}.",
                ttl=ttl,
            )
        self._board = board
        self._writer = check_name(writer)
        self._ttl = ttl.total_seconds()
        self._clock = clock
        self._session = new_id()
        self._takeover = takeover
        # Replaced, never changed.
        self._segments: dict[str, Announced] = {}
        self._beat = 0
        self._closed = False
        # Held while the file is written, so that beats arrive in order.
        self._guard = threading.Lock()
        self._stop = threading.Event()
        self._renewer: threading.Thread | None = None
        self.last_error: Exception | None = None

    @property
    def announced(self) -> Mapping[str, Announced]:
        """The announced segments, as they are now."""
        return MappingProxyType(self._segments)

    # --- announcements ----------------------------------------------------------------------------

    @overload
    def announce(self, segments: str, schema: Definition, num_rows: int | None = None) -> None: ...

    @overload
    def announce(self, segments: Mapping[str, tuple[Definition, int | None]]) -> None: ...

    def announce(self, segments: Any, schema: Any = None, num_rows: int | None = None) -> None:
        """Announces an open segment, or several in one write: `{id: (schema, num_rows)}`.

        Args:
            segments: the id of a segment, or a mapping of ids.
            schema: anything that `Schema.of` takes.
            num_rows: rows so far; without it an earlier count is kept.

        Raises:
            SchemaConflict: A schema does not merge with the announced one; nothing is announced.
            InvalidInput: Another session has the writer's name; nothing is announced.
        """
        many = _many(segments, schema, num_rows)
        given = {segment_id: _given(segment_id, each) for segment_id, each in many.items()}
        with self._guard:
            known = self._segments
            grown = {name: _grown(name, known.get(name), each) for name, each in given.items()}
            self._write({**known, **grown})

    def forget(self, segment_ids: str | Iterable[str]) -> None:
        """Withdraws segments, because they are published or abandoned."""
        ids = _ids(segment_ids)
        with self._guard:
            self._write({name: each for name, each in self._segments.items() if name not in ids})

    def renew(self) -> None:
        """Writes the file again, as a heartbeat."""
        with self._guard:
            self._write(self._segments)

    def _write(self, segments: dict[str, Announced]) -> None:
        self._check_open()
        before, self._segments = self._segments, segments
        try:
            self._check_owner()
        except InvalidInput:
            self._segments = before
            raise
        self._beat += 1
        written = Announcement(
            self._writer, self._session, self._beat, self._clock(), self._ttl, segments
        )
        self._board.write(self._writer, written.to_json().encode())
        self._takeover = False

    # --- ownership of the name --------------------------------------------------------------------

    def _check_owner(self) -> None:
        """Raises if another session has the name: since before the first write, or by takeover."""
        if self._takeover:
            return
        other = self._other()
        if other is None or other.expired(self._clock()):
            return
        raise InvalidInput(
            f"The writer {self._writer!r} on {self._board} is announced by session "
            f"{other.session}, renewed at {other.renewed_at.isoformat()} for {other.ttl:g} s; "
            "nothing was announced. Give each job a name of its own. If that session is gone, wait "
            "until it expires, or replace it with takeover=True.",
            writer=self._writer,
            session=other.session,
            renewed_at=other.renewed_at,
        )

    def _other(self) -> Announcement | None:
        """The announcement under the name, if another session wrote it."""
        content = self._board.read(self._writer)
        if content is None:
            return None
        try:
            found = Announcement.from_json(content)
        except InvalidInput as error:
            if self._beat:
                # Our own, partly written: not every storage replaces files atomically.
                return None
            raise InvalidInput(
                f"The file of writer {self._writer!r} on {self._board} cannot be read; nothing was "
                f"announced. {error.message} Remove it, or replace it with takeover=True.",
                writer=self._writer,
            ) from error
        return None if found.session == self._session else found

    # --- heartbeat --------------------------------------------------------------------------------

    def start(self) -> Self:
        """Renews in the background, three times in each ttl, until `close`."""
        with self._guard:
            self._check_open()
            if self._renewer is None:
                self._renewer = threading.Thread(
                    target=self._keep_renewing, name="strata-announce", daemon=True
                )
                self._renewer.start()
        return self

    def _keep_renewing(self) -> None:
        every = self._ttl / 3
        while not self._stop.wait(every):
            try:
                self.renew()
                self.last_error = None
            except Exception as error:
                self.last_error = error
                log.warning(
                    "Renewing the announcements of %s failed and will be tried again in %g s: %s",
                    self._writer,
                    every,
                    error,
                )

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidInput(
                f"The announcer {self._writer!r} is closed; make another one.", writer=self._writer
            )

    def close(self) -> None:
        """Deletes the announcements; after an error it may be called again."""
        self._stop.set()
        if self._renewer is not None:
            self._renewer.join()
        with self._guard:
            self._closed = True
            if self._beat and self._other() is None:
                self._board.remove(self._writer)
            self._beat = 0
            self._segments = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class StreamAnnouncer(Announcer):
    """The announcer of a streaming job, which also publishes the segments that it closes."""

    def __init__(
        self,
        board: Board,
        writer: str,
        *,
        ttl: timedelta,
        takeover: bool,
        publish: Callable[[Sequence[Segment]], PublishResult],
    ) -> None:
        super().__init__(board, writer, ttl=ttl, takeover=takeover)
        self._publish = publish

    def publish(self, segments: Sequence[Segment]) -> PublishResult:
        """Publishes closed segments, then withdraws their announcements.

        In this order: a reader that no longer finds the announcement finds the segment.
        """
        given = list(segments)
        self._check_open()
        result = self._publish(given)
        closed = [segment.id for segment in given if segment.id in self.announced]
        if closed:
            self.forget(closed)
        return result


def _many(segments: Any, schema: Any, num_rows: Any) -> Mapping[Any, Any]:
    """The segments of one call, by id."""
    if isinstance(segments, str):
        return {segments: (schema, num_rows)}
    if not isinstance(segments, Mapping):
        raise InvalidInput(
            "announce takes an id or a mapping {id: (schema, num_rows)}, not "
            f"{shown(repr(segments))}.",
            segments=segments,
        )
    if schema is not None or num_rows is not None:
        raise InvalidInput(
            "schema and num_rows go only with a single id; several segments are given as "
            "{id: (schema, num_rows)}, each with its own.",
            schema=schema,
            num_rows=num_rows,
        )
    return segments


def _ids(segment_ids: Any) -> set[str]:
    """The ids that `forget` was given."""
    several = [segment_ids] if isinstance(segment_ids, str) else segment_ids
    ids = list(several) if isinstance(several, Iterable) else [several]
    if not all(isinstance(each, str) for each in ids):
        raise InvalidInput(
            f"forget takes an id or several ids, not {shown(repr(segment_ids))}.",
            segment_ids=segment_ids,
        )
    return set(ids)


def _given(segment_id: Any, each: Any) -> Announced:
    check_segment_id(segment_id)
    if not isinstance(each, tuple) or len(each) != 2:
        raise InvalidInput(
            f"Segment {segment_id} must be given as (schema, num_rows), not {shown(repr(each))}.",
            segment_id=segment_id,
        )
    return Announced(*each)


def _grown(segment_id: str, before: Announced | None, given: Announced) -> Announced:
    """A segment with the merge of its announced and its given schema."""
    if before is None:
        return given
    num_rows = before.num_rows if given.num_rows is None else given.num_rows
    if given.schema.json == before.schema.json:
        return Announced(before.schema, num_rows)
    done = merged([before.schema, given.schema])
    if done.conflicts:
        error = conflict_error(done.conflicts)
        raise SchemaConflict(
            f"Segment {segment_id} is open and announced with another schema; nothing was "
            f"announced. {error.message} Or forget the segment, if it starts over.",
            segment_id=segment_id,
            **error.values,
        )
    return Announced(done.schema, num_rows)
