"""Lookups that a cache and a broadcast handle share, and schemas that readers expect."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from catalog.cache.metrics import CacheCounters
from catalog.cache.snapshot import Snapshot
from catalog.delta.session import is_connect
from catalog.environment import Deadline, growing_pause
from catalog.errors import CatalogError, GaveUp, InvalidInput, NotInSnapshot, SchemaVersionMismatch
from catalog.evolution.merge import Policy
from catalog.read.datasource import DatasourceSchema
from catalog.schema import Schema
from catalog.schema.canonical import MAX_DIGITS, is_prefix

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Polls of a reader that expects another schema, and the seconds between them.
TRIES = 3
APART = 0.1
# Seconds between the polls of a reader that waits for a version.
_SHORTEST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0
# The version of a cache without a snapshot.
_NOTHING = -1


class Answers(ABC):
    """Lookups in one snapshot."""

    @property
    @abstractmethod
    def snapshot(self) -> Snapshot:
        """The snapshot that answers."""

    def schema_of(self, segment_id: str, *, expect: Schema | str | None = None) -> Schema:
        """The schema of a segment; raises `NotInSnapshot` with the version.

        With `expect`, a whole fingerprint or a schema, the answer has that fingerprint. Otherwise a
        cache polls and looks again, three times 100 ms apart, which a broadcast handle cannot, and
        then `SchemaVersionMismatch` has the expected and the found fingerprint and the version.
        """
        if expect is not None:
            return self._as_expected(segment_id, check_expect(expect))
        return self.snapshot.schema_of(segment_id)

    def fingerprint_of(self, segment_id: str, *, expect: Schema | str | None = None) -> str | None:
        """The fingerprint of a segment's schema; none if its schema is not known.

        With `expect` it is that of `expect`, or an error; see `schema_of`.
        """
        if expect is not None:
            return self._as_expected(segment_id, check_expect(expect)).fingerprint
        return self.snapshot.fingerprint_of(segment_id)

    def num_rows(self, segment_id: str) -> int | None:
        """The row count of a segment."""
        return self.snapshot.num_rows(segment_id)

    def schema(self, beginning: str) -> Schema:
        """The schema with this fingerprint, or with any unique beginning of it."""
        return self.snapshot.schema(beginning)

    def lookup(self, segment_ids: Any) -> pa.Table:
        """Looks up many ids; see `Snapshot.lookup`."""
        return self.snapshot.lookup(segment_ids)

    def lookup_keys(self, k1: Any, k2: Any) -> pa.Table:
        """Looks up keys that Spark computed; see `Snapshot.lookup_keys`."""
        return self.snapshot.lookup_keys(k1, k2)

    def datasources(self) -> dict[str, int]:
        """The number of segments of each datasource."""
        return self.snapshot.datasources()

    def datasource_schema(self, datasource: str, policy: str = Policy.STRICT) -> DatasourceSchema:
        """The schema of a datasource; see `Snapshot.datasource_schema`."""
        return self.snapshot.datasource_schema(datasource, policy)

    def _current(self, segment_id: str) -> CurrentSchema:
        """The schema of a segment now, and the version."""
        return current_in(self.snapshot, segment_id)

    def _as_expected(self, segment_id: str, expected: str) -> Schema:
        """The schema of a segment, if it has this fingerprint."""
        current = self._current(segment_id)
        schema = current.matching(expected)
        if schema is None:
            advice = (
                "a broadcast handle stays at its version. Poll the cache and make a new handle."
            )
            raise _mismatch(segment_id, expected, current, advice) from current.reason
        return schema


# --- broadcast ------------------------------------------------------------------------------------


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
        """Frees the copies on the executors; a later use fetches them again."""
        if not isinstance(self._carrier, Snapshot):
            self._carrier.unpersist(blocking=False)


def broadcast(spark: SparkSession, snapshot: Snapshot) -> Handle:
    """Ships a snapshot. Connect has no broadcast variables: there it is part of the closure."""
    carrier = snapshot if is_connect(spark) else spark.sparkContext.broadcast(snapshot)
    return Handle(snapshot.version, carrier)


# --- polls ----------------------------------------------------------------------------------------


class PolledAnswers(Answers):
    """Lookups in the newest snapshot, which polls replace. Readers can wait for a version."""

    def __init__(self, pause: Callable[[float], None]) -> None:
        """`pause` waits for a number of seconds."""
        self._snapshot: Snapshot | None = None
        self._pause = pause
        # Of several waiting readers one polls at a time, and the others use its snapshot.
        self._turn = threading.Lock()
        self._counters = CacheCounters()

    @abstractmethod
    def poll(self) -> object:
        """Brings the newest snapshot."""

    @property
    def loaded(self) -> bool:
        """Whether there is a snapshot to answer from."""
        return self._snapshot is not None

    @property
    def _reached(self) -> int:
        snapshot = self._snapshot
        return _NOTHING if snapshot is None else snapshot.version

    def wait_for(self, version: int, timeout: float = 60.0) -> int:
        """Polls until this version of the table is reached; returns the version reached.

        A version that is reached already costs nothing. It works with and without a background
        poller.

        Args:
            version: as `publish` returned it, here or elsewhere.
            timeout: seconds until `GaveUp` is raised; a running poll is not cut short.
        """
        return self.reach(check_version(version), Deadline(check_timeout(timeout)))

    def reach(self, version: int, deadline: Deadline) -> int:
        """Like `wait_for`, with a budget that several caches may share."""
        polls = 0
        while (reached := self._reached) < version:
            polled = self._poll_after(reached, deadline.left)
            polls += 1
            reached = self._reached
            if reached >= version:
                break
            if deadline.left <= 0:
                raise _gave_up(version, reached, polled, deadline.waited)
            self._pause(min(growing_pause(polls, _SHORTEST_PAUSE, _LONGEST_PAUSE), deadline.left))
        return reached

    def _poll_after(self, seen: int, seconds: float = -1) -> bool:
        """Polls, unless another waiting reader has brought another version than this one saw.

        False if this reader did not get its turn in time.
        """
        if not self._turn.acquire(timeout=min(seconds, threading.TIMEOUT_MAX)):
            return False
        try:
            if self._reached == seen:
                self.poll()
        finally:
            self._turn.release()
        return True

    def _as_expected(self, segment_id: str, expected: str) -> Schema:
        """The schema of a segment, if it has this fingerprint now or after a few polls."""
        current = self._current(segment_id)
        polls = 0
        while (schema := current.matching(expected)) is None:
            if polls == TRIES:
                self._counters.add(mismatches_remained=1)
                advice = (
                    f"{TRIES} polls did not bring it. Ask again when it is published, or expect "
                    "the schema that is there."
                )
                raise _mismatch(segment_id, expected, current, advice) from current.reason
            if polls:
                self._pause(APART)
            self._counters.add(mismatches=0 if polls else 1, mismatch_retries=1)
            self._poll_after(current.version)
            polls += 1
            current = self._current(segment_id)
        return schema


def check_version(version: Any) -> int:
    """A version of the table, as Delta counts them."""
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise InvalidInput(
            f"A version of the table is a whole number from zero on, not {version!r:.80}; take "
            "that of a PublishResult.",
            version=version,
        )
    return version


def check_timeout(timeout: Any) -> float:
    """Seconds to wait, above zero."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        raise InvalidInput(
            f"timeout must be a number of seconds above zero, not {timeout!r:.80}.", timeout=timeout
        )
    return float(timeout)


def _gave_up(version: int, reached: int, polled: bool, waited: float) -> GaveUp:
    if polled:
        why = f"the newest version of the table is {reached}"
    else:
        why = "another reader's poll has not ended"
    return GaveUp(
        f"Waited {waited:.1f} s for version {version}: {why}. Wait longer, or check whether that "
        "version belongs to this table.",
        version=version,
        reached=None if reached == _NOTHING else reached,
        waited=waited,
    )


# --- expectations ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class CurrentSchema:
    """The schema of a segment at a version, or the reason why it is not known."""

    version: int
    schema: Schema | None
    reason: CatalogError | None = None

    def matching(self, expected: str) -> Schema | None:
        """The schema, if it has this fingerprint."""
        schema = self.schema
        return schema if schema is not None and schema.fingerprint == expected else None


def current_in(snapshot: Snapshot, segment_id: str) -> CurrentSchema:
    """The schema of a segment in a snapshot."""
    try:
        return CurrentSchema(snapshot.version, snapshot.schema_of(segment_id))
    except NotInSnapshot as error:
        return CurrentSchema(snapshot.version, None, error)


def check_expect(expect: Any) -> str:
    """The expected fingerprint, given as a whole fingerprint or as a schema."""
    if isinstance(expect, Schema):
        return expect.fingerprint
    # A beginning is refused: it could match another schema one day.
    if isinstance(expect, str) and len(expect) == MAX_DIGITS and is_prefix(expect):
        return expect.lower()
    raise InvalidInput(
        f"expect takes a whole fingerprint of {MAX_DIGITS} hexadecimal digits, or a Schema, not "
        f"{expect!r:.80}.",
        expect=expect,
    )


def _mismatch(
    segment_id: str, expected: str, current: CurrentSchema, advice: str
) -> SchemaVersionMismatch:
    """The error with the expected fingerprint, the found one, and the version."""
    found = None if current.schema is None else current.schema.fingerprint
    if current.reason is None:
        what = f"Segment {segment_id} has schema {found} at version {current.version}."
    else:
        what = current.reason.message
    return SchemaVersionMismatch(
        f"{what} Schema {expected} was expected; {advice}",
        segment_id=segment_id,
        expected=expected,
        found=found,
        version=current.version,
    )
