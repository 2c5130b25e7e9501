"""Makes a report from a catalog: a handful of queries, all at one version."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from catalog.errors import VersionNotFound
from catalog.progress import Progress, Step, silent
from catalog.report.model import (
    CommitLine,
    DatasourceLine,
    Growth,
    Problem,
    Report,
    RunLine,
    SchemaLine,
    Totals,
    UnusedLine,
    WaitingLine,
)
from catalog.settings.known import default_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from catalog.catalog import Catalog
    from catalog.sql.stats import Stats

LINES = 500
_FINGERPRINTS = 20

Rows = list[dict[str, Any]]


def collect(
    catalog: Catalog,
    versions: int = default_of("report.versions"),
    progress: Progress = silent,
    lines: int = LINES,
) -> Report:
    """The report of the newest version, with its growth over at most so many before it."""
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
    waiting = _waiting(catalog, stats.version, lines)
    unused = _unused(catalog, stats.version, lines)
    begin(3)
    runs = _runs(catalog, lines)
    begin(4)
    checked = catalog.verify(version=stats.version)
    begin(5)
    return Report(
        location=str(catalog.location),
        version=stats.version,
        made_at=datetime.now(UTC),
        totals=Totals(
            segments=stats.segments,
            rows=stats.rows,
            size_bytes=stats.size_bytes,
            schemas=stats.schemas,
            datasources=stats.datasources,
            orphans=stats.orphans,
            retired=stats.retired,
            segments_without_schema=stats.segments_without_schema,
            segments_quarantined=stats.segments_quarantined,
        ),
        growth=_growth(changes, stats),
        datasources=datasources,
        schemas=schemas,
        waiting=waiting,
        unused=unused,
        commits=_commits(catalog, since, changes, lines),
        runs=runs,
        problems=tuple(
            Problem(v.promise, v.what, v.count, str(v.rows[0])) for v in checked.violations
        ),
        verified=f"version {checked.version}",
    )


def _rows(frame: DataFrame, limit: int) -> Rows:
    return frame.limit(limit).toArrow().to_pylist()


def _changes(catalog: Catalog, first: int, last: int) -> tuple[int, Rows]:
    """What each version changed after one from which the change feed can be read, and that one."""
    while first < last:
        try:
            return first, catalog.audit.growth(first, last).orderBy("version").toArrow().to_pylist()
        except (VersionNotFound, PySparkException):
            # Older files are gone. Half as far back is looked at next, so this ends soon.
            first += (last - first + 1) // 2
    return last, []


def _growth(changes: Rows, now: Stats) -> tuple[Growth, ...]:
    """What stood after each version, reckoned back from now: old versions may not be readable."""
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
        .select(
            "fingerprint",
            "ddl",
            F.col("num_columns").alias("columns"),
            F.coalesce("segments", F.lit(0)).alias("segments"),
            F.coalesce("datasources", F.lit(0)).alias("datasources"),
            "published_at",
        )
    )
    ordered = frame.orderBy(F.desc("segments"), "fingerprint")
    return tuple(SchemaLine(**row) for row in _rows(ordered, lines))


def _waiting(catalog: Catalog, version: int, lines: int) -> tuple[WaitingLine, ...]:
    """Those in quarantine first: somebody has to look after them."""
    names = list(WaitingLine.__dataclass_fields__)
    frame = catalog.inspect.segments_without_schema(as_of=version).select(*names)
    ordered = frame.orderBy(F.desc("quarantined"), "segment_id")
    return tuple(WaitingLine(**row) for row in _rows(ordered, lines))


def _unused(catalog: Catalog, version: int, lines: int) -> tuple[UnusedLine, ...]:
    orphans = catalog.inspect.orphan_schemas(as_of=version).selectExpr(
        "fingerprint", "ddl", "'orphan' AS state", "published_at AS since"
    )
    retired = catalog.inspect.retired_schemas(as_of=version).selectExpr(
        "fingerprint", "ddl", "'retired' AS state", "retired_at AS since"
    )
    frame = orphans.union(retired).orderBy("since", "fingerprint")
    return tuple(UnusedLine(**row) for row in _rows(frame, lines))


def _commits(catalog: Catalog, since: int, changes: Rows, lines: int) -> tuple[CommitLine, ...]:
    """The newest commits whose changes could be read; what they added is known of no others."""
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


def _runs(catalog: Catalog, lines: int) -> tuple[RunLine, ...]:
    names = list(RunLine.__dataclass_fields__)
    frame = catalog.audit.runs().orderBy(F.desc("started_at")).select(*names)
    return tuple(RunLine(**row) for row in _rows(frame, lines))


def _distinct(texts: Iterable[str | None] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts or () if text))
