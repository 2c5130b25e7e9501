"""The words that ask the data what it is: publish-files, backfill."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from catalog.backfill.report import BackfillReport
from catalog.cli.answer import Answer, Table, cut
from catalog.cli.as_task import add_as_task, is_task, run_as_task
from catalog.cli.command import Access, Command, Work
from catalog.cli.commands.writing import add_why
from catalog.cli.options import LIMIT, positive
from catalog.files.formats import FORMATS
from catalog.files.publish import FilesReport
from catalog.settings.known import default_of

# So many are listed of those that go into quarantine in one run; all of them are counted.
LISTED = 1000


def _add_batch(parser: ArgumentParser, what: str, setting: str) -> None:
    parser.add_argument(
        "--batch",
        type=positive,
        help=f"how many {what} go into one commit (default: the setting {setting}, "
        f"{default_of('backfill.batch')} at first)",
    )


# --- publish-files --------------------------------------------------------------------------------


def _publish_files_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("datasource", help="the datasource whose segments they become")
    parser.add_argument(
        "pattern",
        help="files such as '/data/orders/**/*.parquet' (in quotes, or your shell expands it), "
        "a folder with everything in it, or a Delta table",
    )
    parser.add_argument(
        "--format", choices=FORMATS, help="the format of files whose names do not tell it"
    )
    parser.add_argument(
        "--remove-missing",
        action="store_true",
        help="drop segments that the pattern fits and whose files are gone",
    )
    parser.add_argument(
        "--replace-changed",
        action="store_true",
        help="publish files anew that are not what was published",
    )
    _add_batch(parser, "files", "publish_files.batch")
    parser.add_argument(
        "--limit",
        type=positive,
        default=LIMIT,
        help="list at most so many broken, changed and missing ones each (default %(default)s)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="only list and compare; no data file is opened"
    )
    add_as_task(parser)
    add_why(parser)


def _publish_files(work: Work) -> Answer:
    arguments = work.arguments
    if is_task(arguments):
        return run_as_task(
            work,
            "publish-files",
            datasource=arguments.datasource,
            pattern=arguments.pattern,
            format=arguments.format,
            remove_missing=arguments.remove_missing or None,
            replace_changed=arguments.replace_changed or None,
            batch=arguments.batch,
        )
    report = work.catalog.publish_files(
        arguments.datasource,
        arguments.pattern,
        format=arguments.format,
        remove_missing=arguments.remove_missing,
        replace_changed=arguments.replace_changed,
        batch=arguments.batch,
        dry_run=arguments.dry_run,
        reason=arguments.reason,
        deadline=arguments.deadline,
        progress=work.progress,
    )
    counts = {
        "files": report.files,
        "published": report.published,
        "replaced": report.replaced,
        "unchanged": report.unchanged,
        "waiting": report.waiting,
        "changed": len(report.changed),
        "missing": len(report.missing),
        "dropped": report.dropped,
        "broken": len(report.broken),
    }
    limit = arguments.limit
    broken = ((problem.path, problem.reason) for problem in report.broken)
    return Answer(
        facts={"version": report.version, **counts, "dry_run": report.dry_run},
        tables={
            "broken": cut(("path", "reason"), broken, limit),
            "changed": cut(("segment_id",), ((each,) for each in report.changed), limit),
            "missing": cut(("segment_id",), ((each,) for each in report.missing), limit),
        },
        found=bool(report.broken),
        figures={**counts, "conflicts_retried": report.retries},
        note=" ".join(_advice(report, arguments)),
    )


def _advice(report: FilesReport, arguments: Namespace) -> Iterable[str]:
    """What to do about what was found."""
    if report.broken:
        yield "Broken files are left out: mend them and run the same again."
    if report.changed and not arguments.replace_changed:
        yield "Changed files stay as they were published: --replace-changed publishes them anew."
    if report.missing and not arguments.remove_missing:
        yield "Segments whose files are missing are kept: --remove-missing drops them."
    if report.waiting:
        yield "Segments that wait for their schema get it from strata backfill."


PUBLISH_FILES = Command(
    name="publish-files",
    summary="publish files as segments, with the schemas and rows that they tell themselves",
    details=(
        "Footers are read on the executors, and of a Delta table the log. A segment is named\n"
        "after its file's path below the part of the pattern that has no wildcards. What is\n"
        "published already is passed by, so a run that was stopped is simply run again. Exit code\n"
        "1 says that files are broken; the others are published all the same."
    ),
    example="publish-files orders '/data/orders/**/*.parquet' --reason \"daily load\"",
    access=Access.WRITE,
    arguments=_publish_files_arguments,
    work=_publish_files,
    recorded=True,
)

# --- backfill -------------------------------------------------------------------------------------


def _backfill_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--limit", type=positive, help="look at so many segments at most")
    parser.add_argument(
        "--datasource",
        action="append",
        metavar="DATASOURCE",
        help="only those of a datasource; may be repeated",
    )
    parser.add_argument(
        "--format", choices=FORMATS, help="the format of locations that do not tell theirs"
    )
    parser.add_argument(
        "--retry-quarantined",
        action="store_true",
        help="try those in quarantine again now, not when their pause is over",
    )
    _add_batch(parser, "segments", "backfill.batch")
    parser.add_argument("--dry-run", action="store_true", help="only count those that wait")
    add_as_task(parser)
    add_why(parser)


def _backfill(work: Work) -> Answer:
    arguments = work.arguments
    if is_task(arguments):
        return run_as_task(
            work,
            "backfill",
            limit=arguments.limit,
            datasources=arguments.datasource,
            format=arguments.format,
            retry_quarantined=arguments.retry_quarantined or None,
            batch=arguments.batch,
        )
    report = work.catalog.backfill(
        limit=arguments.limit,
        datasources=arguments.datasource,
        format=arguments.format,
        retry_quarantined=arguments.retry_quarantined,
        batch=arguments.batch,
        dry_run=arguments.dry_run,
        reason=arguments.reason,
        deadline=arguments.deadline,
        progress=work.progress,
    )
    counts = {
        "completed": report.completed,
        "overtaken": report.overtaken,
        "claimed": report.claimed,
        "quarantined": len(report.quarantined),
        "resting": report.resting,
        "left": report.left,
    }
    rows = tuple(
        (each.segment_id, each.location, each.reason, each.attempts, each.retry_at)
        for each in report.quarantined[:LISTED]
    )
    return Answer(
        facts={
            "version": report.version,
            "waiting": report.waiting,
            **counts,
            "per_second": round(report.per_second, 2),
            "seconds": round(report.seconds, 2),
            "dry_run": report.dry_run,
            "retries": report.retries,
        },
        tables={
            "quarantined": Table(
                ("segment_id", "location", "reason", "attempts", "retry_at"),
                rows,
                brief=("segment_id", "reason", "attempts", "retry_at"),
            )
        },
        found=bool(report.quarantined),
        figures={
            **counts,
            "per_second": report.per_second,
            "seconds": report.seconds,
            "conflicts_retried": report.retries,
        },
        note=" ".join(_next(report)),
    )


def _next(report: BackfillReport) -> Iterable[str]:
    """What to do about what is not done."""
    if report.quarantined:
        yield "Those in quarantine are tried again when their pause is over: mend their data."
    if report.quarantined or report.resting:
        yield "strata segments --without-schema lists all of them."
    if report.claimed:
        yield "Those that operations claim wait until these are over: strata operations list lists them."
    if report.left and not report.dry_run:
        yield "The rest is left to the next backfill."


BACKFILL = Command(
    name="backfill",
    summary="find the schemas of segments that were published without one",
    details=(
        "The footers of their files are read on the executors, and what they say is stored a\n"
        "batch at a time. It may be stopped and run again at any time, also by two at once. Exit\n"
        "code 1 says that segments went into quarantine: their data does not say its schema."
    ),
    example="backfill --datasource orders --limit 100000",
    access=Access.WRITE,
    arguments=_backfill_arguments,
    work=_backfill,
    recorded=True,
)
