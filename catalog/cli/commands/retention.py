"""strata retention: rules by which segments are dropped, and archived before that."""

from __future__ import annotations

from collections.abc import Iterable

from catalog.cli.arguments import argument, positive
from catalog.cli.command import (
    Answer,
    Table,
    Work,
    answer_of,
    change,
    command,
    cut,
    fetch,
    is_task,
    table_of,
)
from catalog.cli.commands.tasks import run_as_task
from catalog.retention.report import RetentionReport
from catalog.retention.retainer import DEFAULT_LIMIT

# At most this many segments that stayed are listed; the counts are of all.
_LISTED = 1_000
_COLUMNS = (
    *("datasource", "rule", "action", "segments", "by_age", "by_count"),
    *("num_rows", "size_bytes", "oldest", "newest"),
    *("archived", "dropped", "overtaken", "failed", "left", "problem"),
)
_BRIEF = ("datasource", "rule", "action", "segments", "dropped", "failed", "problem")


@change(
    "retention apply",
    "drop segments by the rules of retention, archived first where a rule says so",
    argument(
        "--datasource",
        "only this datasource, which must have a rule; may be repeated",
        action="append",
        metavar="DATASOURCE",
    ),
    argument(
        "--limit",
        "try at most this many segments, the oldest first",
        type=positive,
        default=DEFAULT_LIMIT,
    ),
    dry_run=True,
    as_task=True,
    details=(
        "A rule is an object retention/datasource/<name> or retention/database/<name>. It may be\n"
        "stopped and run again at any time, also by two processes at once; segments that are\n"
        "replaced meanwhile stay. Data files are never deleted. Exit code 1 says that a rule, a\n"
        "datasource or a segment failed; the others were processed nevertheless."
    ),
    example="--datasource orders --dry-run",
    job="retain",
)
def retention_apply(work: Work) -> Answer:
    given = work.arguments
    if is_task(given):
        return run_as_task(work, "retain", datasources=given.datasource, limit=given.limit)
    report = work.catalog.retention.apply(
        datasources=given.datasource, limit=given.limit, dry_run=given.dry_run, **work.call
    )
    return shown_retention(report)


def shown_retention(report: RetentionReport) -> Answer:
    """What was done with each datasource, and which segments stayed against the rules."""
    stayed = (
        (each.segment_id, each.reason)
        for datasource in report.datasources
        for each in datasource.failures
    )
    refused = tuple((each.key, each.reason) for each in report.refused)
    return answer_of(
        report,
        tables={
            "datasources": table_of(report.datasources, _COLUMNS, _BRIEF),
            "failures": cut(("segment_id", "reason"), stayed, _LISTED),
            "refused": Table(("rule", "reason"), refused),
        },
        found=not report.ok,
        note=" ".join(_advice(report)),
    )


def _advice(report: RetentionReport) -> Iterable[str]:
    """What to do about the rest."""
    if report.refused:
        yield "Refused rules apply to nothing: put them again as the reason says."
    if report.failed:
        yield "Segments that failed are still there, and are tried again the next time."
    if report.left and not report.dry_run:
        yield "The rest is left to the next run."


@command(
    "retention rules",
    "list the rules of retention",
    as_of=True,
    limit=100,
    details="strata objects put stores a rule, strata retention apply applies them.",
)
def retention_rules(work: Work) -> Answer:
    frame = work.catalog.inspect.retention_rules(work.as_of).orderBy("key")
    return Answer(tables={"retention_rules": fetch(frame, work.arguments.limit)})
