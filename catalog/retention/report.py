"""What retention did, or would do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class RetentionFailure:
    """A segment that should have gone and is still there."""

    segment_id: str
    reason: str


@dataclass(frozen=True)
class Retained:
    """What retention did with one datasource.

    Attributes:
        datasource: its name.
        rule: key of the rule that holds for it; empty if that could not be told.
        action: drop or archive.
        segments: how many go by the rule.
        by_age: those of them that are too old.
        by_count: those that are only too many.
        num_rows: rows of all that go, as far as they are known.
        size_bytes: bytes of all that go, as far as they are known.
        oldest: moment of the oldest that goes: the end of its interval, else its publication.
        newest: of the newest that goes.
        archived: segments whose data was copied, or was found copied, by this run.
        dropped: segments that it dropped.
        overtaken: segments that somebody replaced or dropped meanwhile; they were left alone.
        failed: segments that are still there, because of claims or of their data.
        failures: the first of them, with the reasons.
        left: segments that were not tried, because of a limit, of trouble or of a dry run.
        problem: why the datasource as a whole was given up; empty if it was not.
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
    """A rule that holds for nothing, because it breaks the rules for rules."""

    key: str
    reason: str


@dataclass(frozen=True)
class RetentionReport:
    """What retention did, or would do.

    Attributes:
        version: the version that was looked at; rules and segments are those of it.
        datasources: those of which something goes, or that are in trouble.
        refused: rules that hold for nothing, with the reasons.
        dry_run: whether it only looked.
        seconds: how long it worked.
        retries: commits that were tried again because another came first.
    """

    version: int
    datasources: tuple[Retained, ...] = ()
    refused: tuple[RefusedRule, ...] = ()
    dry_run: bool = False
    seconds: float = 0.0
    retries: int = 0

    @property
    def segments(self) -> int:
        """Segments that go by the rules."""
        return sum(each.segments for each in self.datasources)

    @property
    def archived(self) -> int:
        """Segments whose data is in an archive now."""
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
        """Segments that should have gone and are still there."""
        return sum(each.failed for each in self.datasources)

    @property
    def left(self) -> int:
        """Segments that were not tried."""
        return sum(each.left for each in self.datasources)

    @property
    def troubled(self) -> int:
        """Datasources that were given up, and rules that hold for nothing."""
        return sum(bool(each.problem) for each in self.datasources) + len(self.refused)

    @property
    def ok(self) -> bool:
        """Whether no rule, no datasource and no segment was in trouble."""
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
