"""What a backfill did, or would do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


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
    """What a backfill did, or would do.

    Attributes:
        version: the version that it reached.
        waiting: segments without a schema that it found due.
        completed: segments whose schema it stored.
        overtaken: segments that somebody dropped, replaced or completed meanwhile.
        claimed: segments that an operation claims; they wait until it is over, and count towards
            no limit.
        quarantined: segments whose schema it could not find, with the reasons.
        resting: segments that are in quarantine and not due yet.
        left: segments that are due and were not looked at, because of a limit or a dry run.
        seconds: how long it worked.
        dry_run: whether it only looked; nothing was read but the catalog then.
        retries: commits that were tried again because another came first.
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
