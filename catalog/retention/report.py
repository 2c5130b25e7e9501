"""The report of a run of retention."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class RetentionFailure:
    """A segment that exceeds its rule and could not be dropped."""

    segment_id: str
    reason: str


@dataclass(frozen=True)
class Retained:
    """The result for one datasource.

    Attributes:
        datasource: its name.
        rule: key of its rule; empty if none could be determined.
        action: drop or archive.
        segments: number of segments that exceed the rule.
        by_age: those of them that are too old.
        by_count: those that are only too many.
        num_rows: rows of all of them, where known.
        size_bytes: bytes of all of them, where known.
        oldest: time of the oldest: the end of its interval, else its publication.
        newest: the same of the newest.
        archived: segments whose data this run copied or found copied.
        dropped: segments that it dropped.
        overtaken: segments that others replaced or dropped meanwhile; they were skipped.
        failed: segments that could not be dropped, because of claims or of their data.
        failures: the first of them, with the reasons.
        left: segments that were not tried: beyond the limit, after an error, or in a dry run.
        problem: the error that ended the work on the datasource; empty if there was none.
    """

    datasource: str
    rule: str
    action: str
    segments: int = 0
    by_age: int = 0
    by_count: int = 0
    num_rows: int = 0
    size_bytes: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None
    archived: int = 0
    dropped: int = 0
    overtaken: int = 0
    failed: int = 0
    failures: tuple[RetentionFailure, ...] = ()
    left: int = 0
    problem: str = ""


@dataclass(frozen=True)
class RefusedRule:
    """A rule that is not valid and is ignored."""

    key: str
    reason: str


@dataclass(frozen=True)
class RetentionReport:
    """Result of a run, or of its dry run.

    Attributes:
        version: the version of the rules and segments.
        datasources: those with segments to drop, or with an error.
        refused: rules that are not valid, with the reasons.
        dry_run: whether nothing was changed.
        seconds: duration of the run.
        retries: commits that were tried again after a conflict.
    """

    version: int
    datasources: tuple[Retained, ...] = ()
    refused: tuple[RefusedRule, ...] = ()
    dry_run: bool = False
    seconds: float = 0.0
    retries: int = 0

    @property
    def segments(self) -> int:
        """Segments that exceed their rules."""
        return sum(each.segments for each in self.datasources)

    @property
    def archived(self) -> int:
        """Segments whose data is in an archive."""
        return sum(each.archived for each in self.datasources)

    @property
    def dropped(self) -> int:
        """Segments that were dropped."""
        return sum(each.dropped for each in self.datasources)

    @property
    def overtaken(self) -> int:
        """Segments that others replaced or dropped meanwhile."""
        return sum(each.overtaken for each in self.datasources)

    @property
    def failed(self) -> int:
        """Segments that could not be dropped."""
        return sum(each.failed for each in self.datasources)

    @property
    def left(self) -> int:
        """Segments that were not tried."""
        return sum(each.left for each in self.datasources)

    @property
    def troubled(self) -> int:
        """Datasources with an error, and rules that are not valid."""
        return sum(bool(each.problem) for each in self.datasources) + len(self.refused)

    @property
    def ok(self) -> bool:
        """Whether there was no error and no failure."""
        return not (self.troubled or self.failed)

    def facts(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "segments": self.segments,
            **self._counts(),
            "troubled": self.troubled - len(self.refused),
            "refused": len(self.refused),
            "dry_run": self.dry_run,
            "retries": self.retries,
        }

    def figures(self) -> dict[str, float]:
        return {
            **{f"retention_{name}": count for name, count in self._counts().items()},
            "retention_troubled": self.troubled,
            "conflicts_retried": self.retries,
        }

    def _counts(self) -> dict[str, int]:
        return {
            "archived": self.archived,
            "dropped": self.dropped,
            "overtaken": self.overtaken,
            "failed": self.failed,
            "left": self.left,
        }
