"""The words that tell what happened: history, audit."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import asdict

from catalog.cli.answer import Answer, fetch, table_of
from catalog.cli.command import Access, Command, Work
from catalog.cli.commands.writing import add_why
from catalog.cli.options import add_limit, window_end
from catalog.model import Kind

_COMMITS = ("version", "timestamp", "verb", "actors", "reasons")
_CHANGES = ("version", "timestamp", "verb", "change", "kind", "key", "actors")


def _history_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "key",
        nargs="?",
        metavar="KEY",
        help="only changes of a segment id, fingerprint, object key or setting; of a datasource "
        "with its segments, or of an operation with its rows",
    )
    parser.add_argument(
        "--kind", choices=[kind.value for kind in Kind], help="only changes of such rows"
    )
    for name, what in (("--since", "from then on"), ("--until", "up to then")):
        parser.add_argument(
            name, type=window_end, metavar="VERSION|TIME|AGO", help=f"only {what}, such as 12 or 7d"
        )
    # Not --actor, which says who asks.
    parser.add_argument("--by", metavar="ACTOR", help="only what this one did")
    add_limit(parser, 20)


def _history(work: Work) -> Answer:
    arguments = work.arguments
    frame = work.catalog.history(
        arguments.limit + 1,
        key=arguments.key,
        kind=arguments.kind,
        since=arguments.since,
        until=arguments.until,
        actor=arguments.by,
    )
    if arguments.key is None and arguments.kind is None:
        return Answer(tables={"commits": fetch(frame, arguments.limit, _COMMITS)})
    return Answer(tables={"changes": fetch(frame, arguments.limit, _CHANGES)})


HISTORY = Command(
    name="history",
    summary="show who changed what and why, newest first",
    details=(
        "Without KEY and --kind it lists commits, with every caller of each; with one of them\n"
        "the rows that were changed, each with the callers that it can be from. It reaches as far\n"
        "back as the log and what was rolled into the audit table; what neither has is a gap."
    ),
    example="history orders/2024-01-01 --since 30d",
    access=Access.READ,
    arguments=_history_arguments,
    work=_history,
)


def _audit_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    add_why(parser)


def _audit(work: Work) -> Answer:
    arguments = work.arguments
    report = work.catalog.roll_audit(
        dry_run=arguments.dry_run,
        reason=arguments.reason,
        deadline=arguments.deadline,
        progress=work.progress,
    )
    figures = {"versions_rolled": report.rolled, "audit_gaps": len(report.gaps)}
    return Answer(
        facts={
            "reached": report.reached,
            **figures,
            "dry_run": report.dry_run,
            "retries": report.retries,
        },
        tables={"gaps": table_of([asdict(gap) for gap in report.gaps], ("first", "last", "what"))},
        figures={**figures, "conflicts_retried": report.retries},
    )


AUDIT_ROLL = Command(
    name="audit roll",
    summary="roll the history into the audit table, before the log forgets it",
    details="maintain does so too. It may be stopped and run again, also by two at once.",
    example="audit roll --dry-run",
    access=Access.WRITE,
    arguments=_audit_arguments,
    work=_audit,
    recorded=True,
)
