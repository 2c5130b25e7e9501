"""The lists of a report, each as a table."""

from __future__ import annotations

from collections.abc import Iterable

from catalog.report import tables
from catalog.report.markup import Html, tag
from catalog.report.model import (
    CommitLine,
    DatasourceLine,
    RunLine,
    SchemaLine,
    UnusedLine,
    WaitingLine,
)
from catalog.report.tables import Cell, Column, Row, Table

_DIGITS = 12
_MOODS = {
    "done": "good",
    "found": "busy",
    "running": "busy",
    "failed": "bad",
    "gave_up": "bad",
    "interrupted": "bad",
}


def datasources(lines: Iterable[DatasourceLine], linked: Iterable[str]) -> Table:
    """Datasources with their schemas, as links to the `linked` ones."""
    anchors = frozenset(linked)
    return Table(
        "datasource-table",
        "Datasources",
        (
            Column("Datasource"),
            Column("Segments", "figure"),
            Column("Rows", "figure"),
            Column("Size", "figure"),
            Column("Changed", "moment"),
            Column("Schemas"),
        ),
        tuple(
            Row(
                (
                    tables.text(line.datasource),
                    tables.count(line.segments),
                    tables.count(line.rows),
                    tables.size(line.size_bytes),
                    tables.moment(line.changed_at),
                    tables.several([_link(one, anchors) for one in line.fingerprints]),
                )
            )
            for line in lines
        ),
        "There are no datasources yet: the first publish brings one.",
    )


def schemas(lines: Iterable[SchemaLine]) -> Table:
    """Live schemas with how many share each."""
    return Table(
        "schema-table",
        "Schemas",
        (
            Column("Fingerprint"),
            Column("Datasources", "figure"),
            Column("Segments", "figure"),
            Column("Columns", "figure"),
            Column("Published", "moment"),
            Column("Definition"),
        ),
        tuple(
            Row(
                (
                    Cell(_fingerprint(line.fingerprint)),
                    tables.count(line.datasources),
                    tables.count(line.segments),
                    tables.count(line.columns),
                    tables.moment(line.published_at),
                    Cell(tables.definition(line.ddl)),
                ),
                _anchor(line.fingerprint),
            )
            for line in lines
        ),
        "There are no schemas yet: they come with the segments that use them.",
    )


def waiting(lines: Iterable[WaitingLine]) -> Table:
    """Segments without a schema, and why those in quarantine have none."""
    return Table(
        "waiting-table",
        "Segments without a schema",
        (
            Column("Segment"),
            Column("State"),
            Column("Published", "moment"),
            Column("Tried", "figure"),
            Column("Next try", "moment"),
            Column("Reason"),
            Column("Location"),
        ),
        tuple(
            Row(
                (
                    tables.text(line.segment_id),
                    Cell(
                        tables.badge("quarantined", "bad")
                        if line.quarantined
                        else tables.badge("waiting", "busy")
                    ),
                    tables.moment(line.published_at),
                    tables.count(line.attempts),
                    tables.moment(line.retry_at),
                    tables.text(line.reason),
                    tables.text(line.location),
                )
            )
            for line in lines
        ),
        "Every segment has a schema: there is nothing to backfill.",
    )


def unused(lines: Iterable[UnusedLine]) -> Table:
    """Orphans and retired schemas."""
    return Table(
        "unused-table",
        "Orphans and retired schemas",
        (
            Column("Fingerprint"),
            Column("State"),
            Column("Since", "moment"),
            Column("Definition"),
        ),
        tuple(
            Row(
                (
                    Cell(_fingerprint(line.fingerprint)),
                    Cell(tables.badge(line.state)),
                    tables.moment(line.since),
                    Cell(tables.definition(line.ddl)),
                )
            )
            for line in lines
        ),
        "Every schema is in use: there is nothing to clean up.",
    )


def commits(lines: Iterable[CommitLine]) -> Table:
    """Who changed how many segments, and why."""
    return Table(
        "commit-table",
        "Recent commits",
        (
            Column("Version", "figure"),
            Column("When", "moment"),
            Column("Verb"),
            Column("Added", "figure"),
            Column("Removed", "figure"),
            Column("Changed", "figure"),
            Column("By"),
            Column("Reason"),
        ),
        tuple(
            Row(
                (
                    _version(line.version),
                    tables.moment(line.at),
                    Cell(tables.badge(line.verb)),
                    tables.count(line.added),
                    tables.count(line.removed),
                    tables.count(line.changed),
                    _words(line.actors),
                    _words(line.reasons),
                )
            )
            for line in lines
        ),
        "There are no commits that can still be read.",
    )


def runs(lines: Iterable[RunLine]) -> Table:
    """Recorded runs of jobs."""
    return Table(
        "run-table",
        "Runs",
        (
            Column("Started", "moment"),
            Column("Job"),
            Column("Status"),
            Column("Took", "figure"),
            Column("By"),
            Column("Versions", "figure"),
            Column("Error"),
            Column("Run"),
        ),
        tuple(
            Row(
                (
                    tables.moment(line.started_at),
                    tables.text(line.job),
                    Cell(
                        tables.badge(
                            line.status.replace("_", " "), _MOODS.get(line.status, "plain")
                        )
                    ),
                    tables.lasting(line.started_at, line.ended_at),
                    tables.text(line.actor),
                    _versions(line),
                    _condition(line.error_condition),
                    Cell(tag("code", line.run_id[:_DIGITS], title=line.run_id)),
                )
            )
            for line in lines
        ),
        "No run was recorded yet.",
    )


def _anchor(fingerprint: str) -> str:
    return f"schema-{fingerprint}"


def _fingerprint(fingerprint: str) -> Html:
    return tag("code", fingerprint[:_DIGITS], title=fingerprint)


def _link(fingerprint: str, anchors: frozenset[str]) -> Html:
    shown = _fingerprint(fingerprint)
    if fingerprint not in anchors:
        return shown
    return tag("a", shown, href=f"#{_anchor(fingerprint)}")


def _words(words: Iterable[str]) -> Cell:
    return tables.several([tag("bdi", word) for word in words if word])


def _condition(name: str | None) -> Cell:
    return Cell(tag("code", name)) if name else tables.MISSING


def _version(version: int) -> Cell:
    return Cell(Html(str(version)), version)


def _versions(run: RunLine) -> Cell:
    if run.version_before is None:
        return tables.MISSING
    after = "" if run.version_after is None else run.version_after
    return Cell(Html(f"{run.version_before} → {after}"), run.version_before)
