"""The word for retention: retain."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable

from catalog.cli.answer import Answer, Table
from catalog.cli.as_task import add_as_task, is_task, run_as_task
from catalog.cli.command import Access, Command, Work
from catalog.cli.commands.writing import add_why
from catalog.cli.options import positive
from catalog.retention.report import RetentionReport
from catalog.retention.retainer import DEFAULT_LIMIT

# So many segments that stayed are listed; the counts are of all.
_LISTED = 1_000
_COLUMNS = (
    "datasource",
    "rule",
    "action",
    "segments",
    "by_age",
    "by_count",
    "num_rows",
    "size_bytes",
    "oldest",
    "newest",
    "archived",
    "dropped",
    "overtaken",
    "failed",
    "left",
    "problem",
)


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--datasource",
        action="append",
        metavar="DATASOURCE",
        help="only this datasource, which must have a rule; may be repeated",
    )
    parser.add_argument(
        "--limit",
        type=positive,
        default=DEFAULT_LIMIT,
        help="try at most so many segments, the oldest first (default %(default)s)",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    add_as_task(parser)
    add_why(parser)


def _retain(work: Work) -> Answer:
    arguments = work.arguments
    if is_task(arguments):
        return run_as_task(work, "retain", datasources=arguments.datasource, limit=arguments.limit)
    report = work.catalog.retain(
        datasources=arguments.datasource,
        limit=arguments.limit,
        dry_run=arguments.dry_run,
        reason=arguments.reason,
        deadline=arguments.deadline,
        progress=work.progress,
    )
    return shown_retention(report)


def shown_retention(report: RetentionReport) -> Answer:
    """What retention did with each datasource, and what stayed against the rules."""
    counts = {
        "archived": report.archived,
        "dropped": report.dropped,
        "overtaken": report.overtaken,
        "failed": report.failed,
        "left": report.left,
    }
    troubled = sum(bool(each.problem) for each in report.datasources)
    stayed = [
        (each.segment_id, each.reason)
        for datasource in report.datasources
        for each in datasource.failures
    ]
    return Answer(
        facts={
            "version": report.version,
            "segments": report.segments,
            **counts,
            "troubled": troubled,
            "refused": len(report.refused),
            "dry_run": report.dry_run,
            "retries": report.retries,
        },
        tables={
            "datasources": Table(
                _COLUMNS,
                tuple(
                    tuple(getattr(each, name) for name in _COLUMNS) for each in report.datasources
                ),
                brief=("datasource", "rule", "action", "segments", "dropped", "failed", "problem"),
            ),
            "failures": Table(
                ("segment_id", "reason"), tuple(stayed[:_LISTED]), more=len(stayed) > _LISTED
            ),
            "refused": Table(
                ("rule", "reason"), tuple((each.key, each.reason) for each in report.refused)
            ),
        },
        found=not report.ok,
        figures={
            **{f"retention_{name}": count for name, count in counts.items()},
            "retention_troubled": report.troubled,
            "conflicts_retried": report.retries,
        },
        note=" ".join(_advice(report)),
    )


def _advice(report: RetentionReport) -> Iterable[str]:
    """What to do about what is not done."""
    if report.refused:
        yield "Rules that are refused hold for nothing: put them again as the reason says."
    if report.failed:
        yield "Segments that failed are still there, and are tried again the next time."
    if report.left and not report.dry_run:
        yield "The rest is left to the next run."


RETENTION_APPLY = Command(
    name="retention apply",
    summary="drop segments that go by rules of retention, archived first where a rule says so",
    details=(
        "A rule is an object retention/datasource/<name> or retention/database/<name>. It may be\n"
        "stopped and run again at any time, also by two at once; what somebody replaces meanwhile\n"
        "stays. Data files are never deleted. Exit code 1 says that a rule, a datasource or a\n"
        "segment is in trouble; the others were dealt with all the same."
    ),
    example="retention apply --datasource orders --dry-run",
    access=Access.WRITE,
    arguments=_arguments,
    work=_retain,
    recorded=True,
)
