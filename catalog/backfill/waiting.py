"""Segments that wait for their schema, and what becomes of each: values, no session."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from catalog.environment import growing_pause
from catalog.files.footers import Footer
from catalog.model import Segment, from_micros, micros

FIRST_PAUSE = timedelta(minutes=5)
LONGEST_PAUSE = timedelta(days=1)
_LONGEST_REASON = 1000


@dataclass(frozen=True)
class Trouble:
    """Why the schema of a segment could not be found, and when to try again.

    Attributes:
        reason: what was wrong the last time.
        attempts: how often it was tried.
        since: when it was tried first.
        retry_at: it is left alone until then.
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
        """The trouble that a row tells of, if it does."""
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
    """A segment without a schema, as its row was seen.

    Attributes:
        segment: what the row says.
        seen: the commit id of the row: what is found is stored only if it is still the same.
        trouble: what was wrong the last time.
    """

    segment: Segment
    seen: str
    trouble: Trouble | None = None

    @property
    def id(self) -> str:
        return self.segment.id

    @property
    def location(self) -> str:
        """Where the data is; a segment without a schema always says that."""
        assert self.segment.location is not None
        return self.segment.location


@dataclass(frozen=True)
class Completion:
    """What is to be stored for a segment: all of it, or why its schema could not be found."""

    segment: Segment
    before: Waiting
    trouble: Trouble | None = None

    @property
    def seen(self) -> str:
        """The commit id of the row that is to be completed."""
        return self.before.seen


def waiting_of(row: Mapping[str, Any]) -> Waiting:
    """A row of the table as a segment that waits."""
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
    """The segment with what its data says of itself, unless the two contradict each other."""
    told = waiting.segment.num_rows
    if told is not None and footer.num_rows not in (None, told):
        reason = f"published with {told} rows, and the data has {footer.num_rows}"
        return troubled(waiting, reason, now)
    size = waiting.segment.size_bytes
    segment = replace(
        waiting.segment,
        schema=footer.schema,
        num_rows=footer.num_rows if told is None else told,
        size_bytes=footer.size_bytes if size is None else size,
        inferred=footer.inferred,
    )
    return Completion(segment, waiting)


def troubled(waiting: Waiting, reason: str, now: datetime) -> Completion:
    """The segment put aside; the pause before the next try doubles each time."""
    before = waiting.trouble
    attempts = 1 if before is None else before.attempts + 1
    since = now if before is None else before.since
    pause = growing_pause(attempts, FIRST_PAUSE, LONGEST_PAUSE)
    trouble = Trouble(reason[:_LONGEST_REASON], attempts, since, now + pause)
    return Completion(waiting.segment, waiting, trouble)
