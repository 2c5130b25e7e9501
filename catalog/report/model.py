"""What a report says, as a value: made from a catalog by `collect`, shown as a page by `page`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Totals:
    """The catalog in figures, at the report's version.

    `segments_quarantined` are those without a schema whose data did not say it.
    """

    segments: int
    rows: int
    size_bytes: int
    schemas: int
    datasources: int
    orphans: int
    retired: int
    segments_without_schema: int
    segments_quarantined: int


@dataclass(frozen=True)
class Growth:
    """What stood in the catalog after one version."""

    version: int
    at: datetime
    segments: int
    rows: int
    schemas: int


@dataclass(frozen=True)
class DatasourceLine:
    """A datasource with its schemas, most used first."""

    datasource: str
    segments: int
    rows: int
    size_bytes: int | None
    changed_at: datetime
    fingerprints: tuple[str, ...]


@dataclass(frozen=True)
class SchemaLine:
    """A live schema and who shares it."""

    fingerprint: str
    ddl: str
    columns: int
    segments: int
    datasources: int
    published_at: datetime


@dataclass(frozen=True)
class WaitingLine:
    """A segment whose schema is not known yet; what follows `published_at` is of a quarantine."""

    segment_id: str
    location: str
    published_at: datetime
    quarantined: bool = False
    attempts: int | None = None
    retry_at: datetime | None = None
    reason: str | None = None


@dataclass(frozen=True)
class UnusedLine:
    """A schema that nothing refers to: an orphan, or one that is retired already."""

    fingerprint: str
    ddl: str
    state: str
    since: datetime


@dataclass(frozen=True)
class CommitLine:
    """One commit: who changed how many segments, and why."""

    version: int
    at: datetime
    verb: str
    added: int
    removed: int
    changed: int
    actors: tuple[str, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class RunLine:
    """One recorded run of a job."""

    run_id: str
    job: str
    actor: str
    status: str
    started_at: datetime
    ended_at: datetime | None
    version_before: int | None
    version_after: int | None
    error_condition: str | None


@dataclass(frozen=True)
class Problem:
    """A promise that does not hold."""

    promise: str
    what: str
    count: int
    example: str


@dataclass(frozen=True)
class Report:
    """Everything on the page.

    Lists may be cut to the most important lines; `totals` counts all. `growth` and `commits` reach
    back as far as changes can be read. `verified` says which versions were checked.
    """

    location: str
    version: int
    made_at: datetime
    totals: Totals
    growth: tuple[Growth, ...]
    datasources: tuple[DatasourceLine, ...]
    schemas: tuple[SchemaLine, ...]
    waiting: tuple[WaitingLine, ...]
    unused: tuple[UnusedLine, ...]
    commits: tuple[CommitLine, ...]
    runs: tuple[RunLine, ...]
    problems: tuple[Problem, ...]
    verified: str

    def facts(self) -> dict[str, Any]:
        return {"version": self.version, **self.figures()}

    def figures(self) -> dict[str, float]:
        return {**asdict(self.totals), "problems": len(self.problems)}
