"""The content of a report, and the queries that collect it from a catalog, all at one version."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from catalog.errors import VersionNotFound
from catalog.progress import Progress, Step, silent
from catalog.settings.model import default_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from catalog.catalog import Catalog
    from catalog.sql.stats import Stats

# The most lines in a list of a report, and the most schemas of a datasource.
LINES = 500
_FINGERPRINTS = 20

L = TypeVar("L")
Rows = list[dict[str, Any]]

# --- values ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Totals:
    """Counts at the report's version; segments in quarantine are among those without a schema."""

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
    """The totals after one version."""

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
    """A live schema, and how many share it."""

    fingerprint: str
    ddl: str
    columns: int
    segments: int
    datasources: int
    published_at: datetime


@dataclass(frozen=True)
class WaitingLine:
    """A segment whose schema is not known yet; from `quarantined` on it is about its quarantine."""

    segment_id: str
    location: str
    published_at: datetime
    quarantined: bool = False
    attempts: int | None = None
    retry_at: datetime | None = None
    reason: str | None = None


@dataclass(frozen=True)
class UnusedLine:
    """A schema that nothing refers to: an orphan, or one that is already retired."""

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
class BrokenPromise:
    """A promise that does not hold."""

    promise: str
    what: str
    count: int
    example: str


@dataclass(frozen=True)
class Report:
    """The content of the page.

    Lists may be cut to the most important lines; `totals` counts all. `growth` and `commits` reach
    back as far as changes can be read. `verified` names the versions that were checked.
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
    problems: tuple[BrokenPromise, ...]
    verified: str

    def facts(self) -> dict[str, Any]:
        return {"version": self.version, **self.figures()}

    def figures(self) -> dict[str, float]:
        return {**asdict(self.totals), "problems": len(self.problems)}


# --- queries --------------------------------------------------------------------------------------


def collect(
    catalog: Catalog,
    versions: int = default_of("report.versions"),
    progress: Progress = silent,
    lines: int = LINES,
) -> Report:
    """The report of the newest version, with the growth over at most `versions` before it."""
    parts = ("figures", "growth", "schemas", "runs", "promises", "page")

    def begin(done: int) -> None:
        progress(Step(f"report: {parts[done]}", done, len(parts) - 1))

    begin(0)
    stats = catalog.stats()
    begin(1)
    since, changes = _changes(catalog, max(0, stats.version - versions), stats.version)
    begin(2)
    pairs = (
        catalog.segments(as_of=stats.version)
        .where("fingerprint IS NOT NULL")
        .groupBy("datasource", "fingerprint")
        .agg(F.count("*").alias("segments"))
    )
    datasources = _datasources(catalog, stats.version, pairs, lines)
    schemas = _schemas(catalog, stats.version, pairs, lines)
    # Those in quarantine first: they need attention.
    without_schema = catalog.inspect.segments_without_schema(as_of=stats.version)
    waiting = _lines(
        WaitingLine, without_schema.orderBy(F.desc("quarantined"), "segment_id"), lines
    )
    unused = _unused(catalog, stats.version, lines)
    begin(3)
    runs = _lines(RunLine, catalog.audit.runs().orderBy(F.desc("started_at")), lines)
    begin(4)
    checked = catalog.verify(version=stats.version)
    begin(5)
    return Report(
        location=str(catalog.location),
        version=stats.version,
        made_at=datetime.now(UTC),
        totals=Totals(**{name: getattr(stats, name) for name in _names(Totals)}),
        growth=_growth(changes, stats),
        datasources=datasources,
        schemas=schemas,
        waiting=waiting,
        unused=unused,
        commits=_commits(catalog, since, changes, lines),
        runs=runs,
        problems=tuple(
            BrokenPromise(v.promise, v.what, v.count, str(v.rows[0])) for v in checked.violations
        ),
        verified=f"version {checked.version}",
    )


def _names(line: type[Any]) -> list[str]:
    return [field.name for field in fields(line)]


def _rows(frame: DataFrame, limit: int) -> Rows:
    return frame.limit(limit).toArrow().to_pylist()


def _lines(line: type[L], frame: DataFrame, limit: int) -> tuple[L, ...]:
    """The first rows of a frame that has a column for each field of the line."""
    return tuple(line(**row) for row in _rows(frame.select(*_names(line)), limit))


def _changes(catalog: Catalog, first: int, last: int) -> tuple[int, Rows]:
    """The oldest version from which the feed can be read, and what each later one changed."""
    while first < last:
        try:
            return first, catalog.audit.growth(first, last).orderBy("version").toArrow().to_pylist()
        except (VersionNotFound, PySparkException):
            # Older files are gone. The next try goes back half as far, so this ends soon.
            first += (last - first + 1) // 2
    return last, []


def _growth(changes: Rows, now: Stats) -> tuple[Growth, ...]:
    """The totals after each version, computed back from now: old versions may be unreadable."""
    segments, rows, schemas = now.segments, now.rows, now.schemas
    found = []
    for change in reversed(changes):
        found.append(Growth(change["version"], change["changed_at"], segments, rows, schemas))
        segments -= change["added"] - change["removed"]
        rows -= int(change["rows"] or 0)  # none is known of segments without a schema
        schemas -= change["schemas"]
    return tuple(reversed(found))


def _datasources(
    catalog: Catalog, version: int, pairs: DataFrame, lines: int
) -> tuple[DatasourceLine, ...]:
    most = F.expr(
        "slice(reverse(array_sort(collect_list(struct(segments, fingerprint)))), 1, "
        f"{_FINGERPRINTS}).fingerprint"
    )
    used = pairs.groupBy("datasource").agg(most.alias("fingerprints"))
    frame = catalog.datasources(as_of=version).join(used, "datasource", "left")
    return tuple(
        DatasourceLine(
            datasource=row["datasource"],
            segments=row["num_segments"],
            rows=int(row["num_rows"] or 0),
            size_bytes=row["size_bytes"],
            changed_at=row["changed_at"],
            fingerprints=tuple(row["fingerprints"] or ()),
        )
        for row in _rows(frame.orderBy(F.desc("num_segments"), "datasource"), lines)
    )


def _schemas(
    catalog: Catalog, version: int, pairs: DataFrame, lines: int
) -> tuple[SchemaLine, ...]:
    shared = pairs.groupBy("fingerprint").agg(
        F.sum("segments").alias("segments"), F.count("*").alias("datasources")
    )
    frame = (
        catalog.schemas(as_of=version)
        .join(shared, "fingerprint", "left")
        .withColumnRenamed("num_columns", "columns")
        .na.fill(0, ["segments", "datasources"])
    )
    return _lines(SchemaLine, frame.orderBy(F.desc("segments"), "fingerprint"), lines)


def _unused(catalog: Catalog, version: int, lines: int) -> tuple[UnusedLine, ...]:
    orphans = catalog.inspect.orphan_schemas(as_of=version).selectExpr(
        "fingerprint", "ddl", "'orphan' AS state", "published_at AS since"
    )
    retired = catalog.inspect.retired_schemas(as_of=version).selectExpr(
        "fingerprint", "ddl", "'retired' AS state", "retired_at AS since"
    )
    return _lines(UnusedLine, orphans.union(retired).orderBy("since", "fingerprint"), lines)


def _commits(catalog: Catalog, since: int, changes: Rows, lines: int) -> tuple[CommitLine, ...]:
    """The newest commits whose changes could be read."""
    changed = {row["version"]: row for row in changes}
    nothing = {"added": 0, "removed": 0, "changed": 0}
    return tuple(
        CommitLine(
            version=row["version"],
            at=row["timestamp"],
            verb=row["verb"],
            **{name: changed.get(row["version"], nothing)[name] for name in nothing},
            actors=_distinct(row["actors"]),
            reasons=_distinct(row["reasons"]),
        )
        for row in _rows(catalog.audit.history(lines), lines)
        if row["version"] > since
    )


def _distinct(texts: Iterable[str | None] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts or () if text))
