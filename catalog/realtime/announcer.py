"""The writer's side: says which schemas a job's open segments have, and that the job lives."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, overload

from catalog.environment import Environment
from catalog.errors import InvalidInput, SchemaConflict
from catalog.evolution.merge import conflict_error, merged
from catalog.model import check_segment_id
from catalog.realtime.announcement import LONGEST_TTL, Announced, Delta, Document, State, change
from catalog.realtime.board import Board, check_name
from catalog.schema import Schema
from catalog.schema.names import shown

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    Definition: TypeAlias = Schema | str | StructType | pa.Schema

log = logging.getLogger(__name__)


class Announcer:
    """Announces open segments under a writer's name, until it is closed or its job is gone.

    The schema of a segment only grows: announced is the merge of all that was given for it. If
    storage fails, the error is raised, what was said stands, and the next write carries it.
    """

    def __init__(
        self,
        board: Board,
        writer: str,
        ttl: timedelta = timedelta(minutes=2),
        clock: Callable[[], datetime] = Environment.clock,
        new_id: Callable[[], str] = Environment.new_id,
        most_deltas: int = 100,
        takeover: bool = False,
    ) -> None:
        """Args:
        board: where announcements are kept.
        writer: a name that no other job uses at the same time.
        ttl: for how long readers believe what is not renewed.
        clock: the time in UTC.
        new_id: gives random ids.
        most_deltas: after so many deltas the file begins with a new base.
        takeover: take the name from another session that seems to live, such as that of the same
            job before it was restarted.
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
        if type(most_deltas) is not int or most_deltas < 1:
            raise InvalidInput(
                f"most_deltas must be at least 1, not {most_deltas!r}.", most_deltas=most_deltas
            )
        self._board = board
        self._writer = check_name(writer)
        self._ttl = ttl.total_seconds()
        self._clock = clock
        self._session = new_id()
        self._most_deltas = most_deltas
        self._takeover = takeover
        self._told = _Told()
        self._beat = 0
        self._closed = False
        # Held while the file is written, so that beats and sequence numbers arrive in order.
        self._guard = threading.Lock()
        self._stop = threading.Event()
        self._renewer: threading.Thread | None = None
        self.last_error: Exception | None = None

    @property
    def announced(self) -> Mapping[str, Announced]:
        """The segments that it announces; it does not change when they do."""
        return MappingProxyType(self._told.state.segments)

    # --- what is said -----------------------------------------------------------------------------

    @overload
    def announce(self, segments: str, schema: Definition, num_rows: int | None = None) -> None: ...

    @overload
    def announce(self, segments: Mapping[str, tuple[Definition, int | None]]) -> None: ...

    def announce(self, segments: Any, schema: Any = None, num_rows: int | None = None) -> None:
        """Announces an open segment, or several in one write: `{id: (schema, num_rows)}`.

        Args:
            segments: the id of a segment, or a mapping of ids.
            schema: anything that `Schema.of` takes.
            num_rows: rows so far; without it an earlier count stands.

        Raises:
            SchemaConflict: A schema does not merge with what was announced; nothing is announced.
            InvalidInput: Another session has the writer's name; nothing is announced.
        """
        many = _many(segments, schema, num_rows)
        given = {segment_id: _given(segment_id, each) for segment_id, each in many.items()}
        with self._guard:
            known = self._told.state.segments
            grown = {name: _grown(name, known.get(name), each) for name, each in given.items()}
            self._write(self._told.then(grown, (), self._most_deltas))

    def forget(self, segment_ids: str | Iterable[str]) -> None:
        """Announces these no longer, because they are published or given up."""
        ids = _ids(segment_ids)
        with self._guard:
            gone = tuple(each for each in ids if each in self._told.state.segments)
            self._write(self._told.then({}, gone, self._most_deltas))

    def renew(self) -> None:
        """Says that all of it still holds."""
        with self._guard:
            self._write(self._told)

    def _write(self, told: _Told) -> None:
        self._check_open()
        before, self._told = self._told, told
        try:
            self._check_place()
        except InvalidInput:
            self._told = before
            raise
        document = Document(
            self._writer,
            self._session,
            self._beat + 1,
            self._clock(),
            self._ttl,
            told.base,
            told.deltas,
        )
        self._beat += 1
        self._board.write(self._writer, document.to_json().encode())
        self._takeover = False

    # --- whose name it is -------------------------------------------------------------------------

    def _check_place(self) -> None:
        """Raises if another session has the name: before the first write, or since it took it."""
        if self._takeover:
            return
        other = self._other()
        if other is None or other.expired(self._clock()):
            return
        raise InvalidInput(
            f"The writer {self._writer!r} on {self._board} is announced by session "
            f"{other.session}, renewed at {other.renewed_at.isoformat()} for {other.ttl:g} s; "
            "nothing was announced. Give each job a name of its own. If that session is gone, wait "
            "until it expires, or take its place with takeover=True.",
            writer=self._writer,
            session=other.session,
            renewed_at=other.renewed_at,
        )

    def _other(self) -> Document | None:
        """What stands under the name, if another session wrote it."""
        content = self._board.read(self._writer)
        if content is None:
            return None
        try:
            found = Document.from_json(content)
        except InvalidInput as error:
            if self._beat:
                # Our own, half written: not every storage replaces files whole.
                return None
            raise InvalidInput(
                f"What is on {self._board} for writer {self._writer!r} cannot be read; nothing was "
                f"announced. {error.message} Remove it, or take its place with takeover=True.",
                writer=self._writer,
            ) from error
        return None if found.session == self._session else found

    # --- from the first to the last beat ----------------------------------------------------------

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
        """Takes the announcements away; after an error it may be called again."""
        self._stop.set()
        if self._renewer is not None:
            self._renewer.join()
        with self._guard:
            self._closed = True
            if self._beat and self._other() is None:
                self._board.remove(self._writer)
            self._beat = 0
            self._told = _Told()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@dataclass(frozen=True)
class _Told:
    """What was said so far: a base, the deltas since, and the state that they lead to."""

    base: State = field(default_factory=State)
    deltas: tuple[Delta, ...] = ()
    state: State = field(default_factory=State)

    def then(self, given: Mapping[str, Announced], gone: tuple[str, ...], most: int) -> _Told:
        """What is said after some segments changed and some are gone."""
        known = self.state.segments
        changes = {name: change(known.get(name), each) for name, each in given.items()}
        changed = {name: each for name, each in changes.items() if each is not None}
        if not changed and not gone:
            return self
        segments = {**known, **given}
        for name in gone:
            del segments[name]
        state = State(self.state.sequence + 1, segments)
        if not self.base.sequence:
            return _Told(state, (), state)
        said = sum(len(delta.segments) + len(delta.gone) for delta in self.deltas)
        # The whole file is written each time: deltas must not outgrow the base by much.
        full = len(self.deltas) >= most or said > most + len(known)
        base, deltas = (self.state, ()) if full else (self.base, self.deltas)
        return _Told(base, (*deltas, Delta(state.sequence, changed, gone)), state)


def _many(segments: Any, schema: Any, num_rows: Any) -> Mapping[Any, Any]:
    """What is announced in one call, by ids."""
    if isinstance(segments, str):
        return {segments: (schema, num_rows)}
    if not isinstance(segments, Mapping):
        raise InvalidInput(
            "What is announced must be given as an id or a mapping {id: (schema, num_rows)}, not "
            f"{shown(repr(segments))}.",
            segments=segments,
        )
    if schema is not None or num_rows is not None:
        raise InvalidInput(
            "schema and num_rows are given only beside one id; several segments are given as "
            "{id: (schema, num_rows)}, each with its own.",
            schema=schema,
            num_rows=num_rows,
        )
    return segments


def _ids(segment_ids: Any) -> list[str]:
    """The ids that are to be forgotten, each once."""
    several = [segment_ids] if isinstance(segment_ids, str) else segment_ids
    ids = list(several) if isinstance(several, Iterable) else [several]
    if not all(isinstance(each, str) for each in ids):
        raise InvalidInput(
            f"What is forgotten must be given as an id or several, not {shown(repr(segment_ids))}.",
            segment_ids=segment_ids,
        )
    return list(dict.fromkeys(ids))


def _given(segment_id: Any, each: Any) -> Announced:
    check_segment_id(segment_id)
    if not isinstance(each, tuple) or len(each) != 2:
        raise InvalidInput(
            f"Segment {segment_id} must be given as (schema, num_rows), not {shown(repr(each))}.",
            segment_id=segment_id,
        )
    return Announced(*each)


def _grown(segment_id: str, before: Announced | None, given: Announced) -> Announced:
    """What is announced of a segment after all that was given for it."""
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
            f"announced. {error.message} Or forget the segment, if it begins anew.",
            segment_id=segment_id,
            **error.values,
        )
    return Announced(done.schema, num_rows)
