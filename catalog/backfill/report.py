"""What a backfill did, or would do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


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
