"""What goes into the catalog and what comes back: plain values, checked when they are made."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

from catalog.errors import InvalidInput, InvalidSegment
from catalog.schema import Schema
from catalog.schema.names import shown

LONGEST_ID = 1024
LONGEST_DATASOURCE = 255
LONGEST_LOCATION = 4096
LARGEST_COUNT = (1 << 63) - 1
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOTHING = (None, None, None, None)
_INFERRED = "inferred"


class Kind(StrEnum):
    """The kinds of rows that stand in the table."""

    SCHEMA = "schema"
    RETIRED = "retired"
    SEGMENT = "segment"
    DATASOURCE = "datasource"
    OBJECT = "object"
    # A name for schemas, and one numbered version of it.
    NAMED = "named"
    VERSION = "version"
    OPERATION = "operation"
    PART = "part"
    STAGED = "staged"
    EPOCH = "epoch"
    # One row that every change of objects touches, so that nobody misses a link.
    GUARD = "guard"
    SETTING = "setting"


class State(StrEnum):
    """What there is to say of a segment's schema besides the schema itself."""

    # Guessed from a sample of the data, which says nothing of its schema.
    INFERRED = _INFERRED
    # Not known, and it could not be found: a backfill says why.
    QUARANTINED = "quarantined"


class OnExisting(StrEnum):
    """What a publish does with a segment id that is there with other content."""

    REFUSE = "refuse"
    SKIP = "skip"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class Segment:
    """An immutable piece of a datasource with one schema and a row count.

    Args:
        id: `datasource/name`; the part before the first slash is the datasource.
        schema: anything that `Schema.of` takes; none if it is not known yet, for a backfill to find
            in the data. The location must be given then.
        num_rows: rows in the piece; none if the schema is not known either, or only inferred.
        size_bytes: its size, if known.
        location: where its data is, if that is not known from elsewhere.
        starts_at: start of the interval that it covers, inclusive, with a time zone.
        ends_at: end of it, exclusive.
        inferred: the schema was guessed from a sample of the data.
    """

    id: str
    schema: Schema | None = None
    num_rows: int | None = None
    size_bytes: int | None = None
    location: str | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    inferred: bool = False

    def __post_init__(self) -> None:
        check_segment_id(self.id)
        if self.schema is not None:
            object.__setattr__(self, "schema", Schema.of(self.schema))
        elif self.location is None or self.inferred:
            raise InvalidSegment(
                f"Segment {self.id} comes without a schema and must have a location, where a "
                "backfill finds it; give one of the two.",
                segment_id=self.id,
            )
        if self.num_rows is not None or not (self.schema is None or self.inferred):
            _check_count("num_rows", self.num_rows, self.id)
        if self.size_bytes is not None:
            _check_count("size_bytes", self.size_bytes, self.id)
        if self.location is not None:
            _check_location(self.location, self.id)
        _check_interval(self.starts_at, self.ends_at, self.id)

    @property
    def datasource(self) -> str:
        """The part of the id before the first slash."""
        return self.id.partition("/")[0]

    @property
    def name(self) -> str:
        """The part of the id after the first slash."""
        return self.id.partition("/")[2]

    @property
    def fingerprint(self) -> str | None:
        """The id of its schema; none if it is not known."""
        return None if self.schema is None else self.schema.fingerprint

    @property
    def state(self) -> str | None:
        """The state of its row."""
        return State.INFERRED.value if self.inferred else None

    @property
    def digest(self) -> str:
        """SHA-256 over everything but the id; `rows.DIGEST_SQL` is the same in SQL."""
        known = "-" if self.schema is None else self.schema.fingerprint
        rows = "-" if self.num_rows is None else str(self.num_rows)
        if (self.size_bytes, self.starts_at, self.ends_at, self.location) == _NOTHING:
            text = f"{known}|{rows}|-|-|-|-"
        else:
            text = "|".join(
                (
                    known,
                    rows,
                    "-" if self.size_bytes is None else str(self.size_bytes),
                    "-" if self.starts_at is None else str(micros(self.starts_at)),
                    "-" if self.ends_at is None else str(micros(self.ends_at)),
                    "-" if self.location is None else f"={self.location}",
                )
            )
        # In front, where a location cannot stand.
        return hashlib.sha256((f"~{text}" if self.inferred else text).encode()).hexdigest()


def micros(moment: datetime) -> int:
    """Microseconds since 1970, exactly."""
    delta = moment - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def from_micros(micros_since: int) -> datetime:
    """The moment so many microseconds after 1970, in UTC."""
    return _EPOCH + timedelta(microseconds=micros_since)


def check_segment_id(segment_id: Any) -> None:
    """Raises `InvalidSegment` unless the id is `datasource/name` within the limits."""
    if not isinstance(segment_id, str):
        raise InvalidSegment(
            f"A segment id must be a string, not {segment_id!r}.", segment_id=segment_id
        )
    datasource, slash, name = segment_id.partition("/")
    if not datasource or not slash or not name:
        raise InvalidSegment(
            f"The segment id {segment_id!r} must be datasource/name with both parts filled, "
            "such as orders/2024-01-01.",
            segment_id=segment_id,
        )
    if len(segment_id) > LONGEST_ID or len(datasource) > LONGEST_DATASOURCE:
        raise InvalidSegment(
            f"The segment id {segment_id[:80]!r}… has {len(segment_id)} characters (datasource "
            f"{len(datasource)}); at most {LONGEST_ID} ({LONGEST_DATASOURCE}) are kept.",
            segment_id=segment_id,
        )
    _check_text("segment id", segment_id, segment_id)


def check_datasource(datasource: Any) -> str:
    """The name of a datasource, which is not empty and has no slash."""
    if not isinstance(datasource, str) or not datasource or "/" in datasource:
        raise InvalidInput(
            f"{datasource!r} is not the name of a datasource: it is empty or has a slash.",
            datasource=datasource,
        )
    return datasource


def check_datasources(datasources: Sequence[str] | None) -> tuple[str, ...] | None:
    """The datasources that some work is restricted to, each once and in order."""
    if datasources is None:
        return None
    if isinstance(datasources, str):
        raise InvalidInput(
            f"datasources takes a list; for one write [{datasources!r}].", datasources=datasources
        )
    return tuple(sorted(set(map(check_datasource, datasources))))


def check_positive(name: str, count: Any) -> int:
    """A number of things, at least one."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InvalidInput(
            f"{name} must be a whole number above zero, not {count!r}.", **{name: count}
        )
    return count


def check_actor(name: str, text: Any) -> str:
    """An actor or a reason as it will stand in the commit's metadata."""
    if not isinstance(text, str) or len(text) > 1000 or CONTROL.search(text):
        raise InvalidInput(
            f"{name} must be a string of at most 1000 characters without control characters, "
            f"not {text!r:.80}.",
            **{name: text},
        )
    return text


def text_problem(text: str) -> str | None:
    """Why a text is no name, location or key that the table can hold; none if it is one."""
    if CONTROL.search(text):
        return "has control characters; remove them"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "has a lone surrogate, which UTF-8 cannot hold; remove it"
    return None


def _check_text(what: str, text: str, segment_id: str) -> None:
    if problem := text_problem(text):
        raise InvalidSegment(f"The {what} {text!r} {problem}.", segment_id=segment_id)


def _check_count(name: str, count: Any, segment_id: str) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= LARGEST_COUNT:
        raise InvalidSegment(
            f"{name} of segment {segment_id} must be a whole number from 0 to 2^63-1, "
            f"not {count!r}.",
            segment_id=segment_id,
            **{name: count},
        )


def _check_location(location: Any, segment_id: str) -> None:
    if not isinstance(location, str) or not location or len(location) > LONGEST_LOCATION:
        raise InvalidSegment(
            f"location of segment {segment_id} must be a string of 1 to {LONGEST_LOCATION} "
            f"characters, not {location!r:.80}; leave it out if there is none.",
            segment_id=segment_id,
            location=location,
        )
    _check_text("location", location, segment_id)


def _check_interval(starts_at: Any, ends_at: Any, segment_id: str) -> None:
    for name, moment in (("starts_at", starts_at), ("ends_at", ends_at)):
        if moment is not None and (not isinstance(moment, datetime) or moment.utcoffset() is None):
            raise InvalidSegment(
                f"{name} of segment {segment_id} must be a datetime with a time zone, "
                f"not {moment!r}.",
                segment_id=segment_id,
                **{name: moment},
            )
    # Compared as instants: datetimes of one zone compare by the clock on the wall.
    if starts_at is not None and ends_at is not None and micros(starts_at) >= micros(ends_at):
        raise InvalidSegment(
            f"Segment {segment_id} starts at {starts_at.isoformat()}, which is not before its end "
            f"{ends_at.isoformat()}.",
            segment_id=segment_id,
            starts_at=starts_at,
            ends_at=ends_at,
        )


@dataclass(frozen=True)
class Caller:
    """Who asked for a change, why, in which run and session, as the commit's user metadata says."""

    actor: str
    reason: str = ""
    run_id: str = ""
    session: str = ""
    figures: Mapping[str, int | str] = field(default_factory=dict)

    def counting(self, **figures: int | str) -> Caller:
        """The same caller with figures of what it asked for, or the name of it."""
        return replace(self, figures=figures)

    def told(self) -> dict[str, Any]:
        """What the metadata says of the caller; run and session only where there is one."""
        given = {"run": self.run_id, "session": self.session}
        known = {name: text for name, text in given.items() if text}
        return {"actor": self.actor, "reason": self.reason, **known, **self.figures}


class Reported(Protocol):
    """What a verb did: a report or a result, from which shell, JSON, tasks, runs and metrics
    derive what they show."""

    def facts(self) -> dict[str, Any]:
        """Single values by name, in order: what the shell answers, as text and as JSON."""
        ...

    def figures(self) -> dict[str, float]:
        """Counts by name: what the record of a run or of a task's step and the metrics have."""
        ...


@dataclass(frozen=True)
class Breach:
    """One way in which a segment breaks a contract.

    Attributes:
        path: the column, by its names from the top; empty if it is about the segment as a whole.
        rule: "unknown", "missing", "type", "nullable" or "spelling" of a column, a compatibility
            mode, or the name of a limit.
        words: what is wrong.
        table: key of the table that sets the limit, if it is not the contract's own.
    """

    path: str
    rule: str
    words: str
    table: str | None = None

    def __str__(self) -> str:
        return f"{shown(self.path)} {self.words}" if self.path else self.words


@dataclass(frozen=True)
class Offence:
    """Segments with one schema that break the contract of their datasource.

    Attributes:
        fingerprint: of their schema; none if it is not known yet.
        breaches: what is wrong with them; for sizes, what is wrong with the largest.
        segments: how many there are.
        segment_ids: their ids; of a frame, or of segments that are stored already, only some.
        refused: whether they are refused; a contract may only warn.
    """

    datasource: str
    fingerprint: str | None
    breaches: tuple[Breach, ...]
    segments: int
    segment_ids: tuple[str, ...] = ()
    refused: bool = True

    def __str__(self) -> str:
        schema = "without a schema" if self.fingerprint is None else f"with {self.fingerprint[:8]}"
        named = ", ".join(self.segment_ids[:3]) + (", …" if self.segments > 3 else "")
        words = "; ".join(map(str, self.breaches))
        return f"{self.datasource}, {self.segments} {schema} ({named}): {words}"

    def facts(self) -> dict[str, Any]:
        """The JSON form, as in the values of an error and the output of the shell."""
        return {
            "datasource": self.datasource,
            "fingerprint": self.fingerprint,
            "segments": self.segments,
            "segment_ids": list(self.segment_ids),
            "breaches": [
                {
                    "column": each.path or None,
                    "rule": each.rule,
                    "words": each.words,
                    "table": each.table,
                }
                for each in self.breaches
            ],
        }


@dataclass(frozen=True)
class PublishResult:
    """What a publish did.

    `version` is the table version at which all of it is visible; for a publish that changed
    nothing, one at which it was found to be there already (`commit_id` is then empty). `warnings`
    are breaches of contracts that only warn.
    """

    version: int
    commit_id: str
    fingerprints: tuple[str, ...]
    inserted: int
    existing: int
    replaced: int = 0
    retries: int = 0
    warnings: tuple[Offence, ...] = ()

    def facts(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "commit_id": self.commit_id or None,
            **self._counts(),
            "schemas": len(self.fingerprints),
            "retries": self.retries,
        }

    def figures(self) -> dict[str, float]:
        return {**self._counts(), "conflicts_retried": self.retries}

    def _counts(self) -> dict[str, int]:
        return {
            "inserted": self.inserted,
            "existing": self.existing,
            "replaced": self.replaced,
        }


@dataclass(frozen=True)
class DropResult:
    """What a drop did, or would do; `absent` counts ids that were not there."""

    version: int
    commit_id: str
    dropped: int
    absent: int = 0
    dry_run: bool = False
    retries: int = 0

    def facts(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "commit_id": self.commit_id or None,
            "dropped": self.dropped,
            "absent": self.absent,
            "dry_run": self.dry_run,
            "retries": self.retries,
        }

    def figures(self) -> dict[str, float]:
        return {"dropped": self.dropped, "conflicts_retried": self.retries}


@dataclass(frozen=True)
class UpgradeReport:
    """What an upgrade of the layout did, or would do."""

    before: int
    after: int
    statements: tuple[str, ...]
    dry_run: bool = False

    def facts(self) -> dict[str, Any]:
        return {
            "before": self.before,
            "after": self.after,
            "statements": list(self.statements),
            "dry_run": self.dry_run,
        }

    def figures(self) -> dict[str, float]:
        return {"statements": len(self.statements)}
