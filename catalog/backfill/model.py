"""Values of a backfill: segments that wait for their schemas, what is stored for them, reports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from catalog.environment import growing_pause
from catalog.files.footer import Footer
from catalog.model import Segment, from_micros, micros

FIRST_PAUSE = timedelta(minutes=5)
LONGEST_PAUSE = timedelta(days=1)
_LONGEST_REASON = 1000


@dataclass(frozen=True)
class Trouble:
    """Why the schema of a segment could not be found, and when to try again.

    Attributes:
        reason: the last failure.
        attempts: the number of attempts.
        since: the time of the first.
        retry_at: not tried again before.
    """

    reason: str
    attempts: int
    since: datetime
    retry_at: datetime

    def payload(self) -> str:
        """The JSON document in the segment's row."""
        return json.dumps(
            {
                "reason": self.reason,
                "attempts": self.attempts,
                "since_micros": micros(self.since),
                "retry_micros": micros(self.retry_at),
            },
            ensure_ascii=False,
        )

    @classmethod
    def of_payload(cls, text: str | None) -> Trouble | None:
        """The trouble in the row of a segment, if there is any."""
        document = json.loads(text or "{}")
        if not {"reason", "attempts", "since_micros", "retry_micros"} <= document.keys():
            return None
        return cls(
            document["reason"],
            document["attempts"],
            from_micros(document["since_micros"]),
            from_micros(document["retry_micros"]),
        )


@dataclass(frozen=True)
class Waiting:
    """A segment without a schema, as its row was read.

    Attributes:
        segment: the segment of the row.
        seen: the commit id of the row: a schema is stored only if it is still the same.
        trouble: the last failure.
    """

    segment: Segment
    seen: str
    trouble: Trouble | None = None

    @property
    def id(self) -> str:
        return self.segment.id

    @property
    def location(self) -> str:
        """The location, which a segment without a schema always has."""
        assert self.segment.location is not None
        return self.segment.location


@dataclass(frozen=True)
class Completion:
    """What is stored for a segment: the whole segment, or why its schema could not be found."""

    segment: Segment
    before: Waiting
    trouble: Trouble | None = None

    @property
    def seen(self) -> str:
        """The commit id of the row that it completes."""
        return self.before.seen


def waiting_of(row: Mapping[str, Any]) -> Waiting:
    """The waiting segment of a row of the table."""
    starts, ends = (row[f"{name}_micros"] for name in ("starts_at", "ends_at"))
    segment = Segment(
        row["key"],
        num_rows=row["num_rows"],
        size_bytes=row["size_bytes"],
        location=row["location"],
        starts_at=None if starts is None else from_micros(starts),
        ends_at=None if ends is None else from_micros(ends),
    )
    return Waiting(segment, row["commit_id"], Trouble.of_payload(row["payload"]))


def completed(waiting: Waiting, footer: Footer, now: datetime) -> Completion:
    """The segment with the footer of its data, unless the two contradict each other."""
    rows = waiting.segment.num_rows
    if rows is not None and footer.num_rows not in (None, rows):
        reason = f"published with {rows} rows, and the data has {footer.num_rows}"
        return troubled(waiting, reason, now)
    size = waiting.segment.size_bytes
    segment = replace(
        waiting.segment,
        schema=footer.schema,
        num_rows=footer.num_rows if rows is None else rows,
        size_bytes=footer.size_bytes if size is None else size,
        inferred=footer.inferred,
    )
    return Completion(segment, waiting)


def troubled(waiting: Waiting, reason: str, now: datetime) -> Completion:
    """The segment in quarantine; the pause before the next attempt doubles each time."""
    before = waiting.trouble
    attempts = 1 if before is None else before.attempts + 1
    since = now if before is None else before.since
    pause = growing_pause(attempts, FIRST_PAUSE, LONGEST_PAUSE)
    trouble = Trouble(reason[:_LONGEST_REASON], attempts, since, now + pause)
    return Completion(waiting.segment, waiting, trouble)


@dataclass(frozen=True)
class Quarantined:
    """A segment whose schema could not be found, and when it is tried again."""

    segment_id: str
    location: str
    reason: str
    attempts: int
    retry_at: datetime


@dataclass(frozen=True)
class BackfillReport:
    """The outcome of a backfill, or of a dry run; numbers are of segments.

    Attributes:
        version: the version that it reached.
        waiting: without a schema, and due.
        completed: whose schema it stored.
        overtaken: dropped, replaced or completed by others meanwhile.
        claimed: claimed by an operation; they wait until it is over, and count towards no limit.
        quarantined: those whose schema it could not find, with the reasons.
        resting: in quarantine and not due yet.
        left: due and not read, because of a limit or a dry run.
        seconds: its duration.
        dry_run: whether it only counted.
        retries: commits that were retried because another came first.
    """

    version: int
    waiting: int
    completed: int = 0
    overtaken: int = 0
    claimed: int = 0
    quarantined: tuple[Quarantined, ...] = ()
    resting: int = 0
    left: int = 0
    seconds: float = 0.0
    dry_run: bool = False
    retries: int = 0

    @property
    def per_second(self) -> float:
        """Segments completed in a second."""
        return self.completed / self.seconds if self.seconds else 0.0

    def facts(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "waiting": self.waiting,
            **self.counts(),
            "per_second": round(self.per_second, 2),
            "seconds": round(self.seconds, 2),
            "dry_run": self.dry_run,
            "retries": self.retries,
        }

    def figures(self) -> dict[str, float]:
        return {
            **self.counts(),
            "per_second": self.per_second,
            "seconds": self.seconds,
            "conflicts_retried": self.retries,
        }

    def counts(self) -> dict[str, int]:
        """What became of the segments."""
        return {
            "completed": self.completed,
            "overtaken": self.overtaken,
            "claimed": self.claimed,
            "quarantined": len(self.quarantined),
            "resting": self.resting,
            "left": self.left,
        }
