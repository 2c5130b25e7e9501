"""The words for schedules: cleanup, maintain, recover, verify."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import asdict

from catalog.cli.answer import Answer, Table, table_of
from catalog.cli.as_task import add_as_task, is_task, run_as_task
from catalog.cli.command import Access, Command, Work
from catalog.cli.commands.deciding import tried_again
from catalog.cli.commands.operating import standing
from catalog.cli.commands.writing import add_why
from catalog.cli.options import duration, positive
from catalog.operations.recovery import RecoverReport
from catalog.settings.known import default_of

# --- cleanup --------------------------------------------------------------------------------------


def _cleanup_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--grace",
        type=duration,
        metavar="TIME",
        help="how long a schema must have been unused (default: the setting cleanup.grace, 1d at "
        "first); 0 is safe too",
    )
    parser.add_argument(
        "--limit",
        type=positive,
        help="retire and purge at most so many each (default: the setting cleanup.limit, "
        f"{default_of('cleanup.limit')} at first)",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    add_as_task(parser)
    add_why(parser)


def _cleanup(work: Work) -> Answer:
    arguments = work.arguments
    if is_task(arguments):
        return run_as_task(work, "cleanup", grace_seconds=arguments.grace, limit=arguments.limit)
    report = work.catalog.cleanup(
        grace=arguments.grace,
        limit=arguments.limit,
        dry_run=arguments.dry_run,
        reason=arguments.reason,
        deadline=arguments.deadline,
        progress=work.progress,
    )
    done = {"restored": report.restored, "purged": report.purged, "retired": report.retired}
    rows = tuple(
        (what, change.fingerprint, change.why)
        for what, changes in done.items()
        for change in changes
    )
    counts = {what: len(changes) for what, changes in done.items()}
    return Answer(
        facts={
            "version": report.version,
            **counts,
            "dry_run": report.dry_run,
            "retries": report.retries,
        },
        tables={"changes": Table(("change", "fingerprint", "why"), rows)},
        figures={**counts, "conflicts_retried": report.retries},
    )


CLEANUP = Command(
    name="cleanup",
    summary="retire schemas that nothing uses, and purge those retired long ago",
    details="It may be stopped and run again at any time, also by two at once.",
    example="cleanup --grace 7d --dry-run",
    access=Access.WRITE,
    arguments=_cleanup_arguments,
    work=_cleanup,
    recorded=True,
)

# --- maintain -------------------------------------------------------------------------------------


def _maintain_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--no-optimize", action="store_true", help="do not compact files")
    parser.add_argument(
        "--no-audit", action="store_true", help="do not roll the history into the audit table"
    )
    parser.add_argument("--no-vacuum", action="store_true", help="do not remove old files")
    parser.add_argument(
        "--retain",
        type=duration,
        metavar="TIME",
        help="keep removed files so long, from now on (default: the setting maintain.retain, or "
        "as the table says, 7d at first)",
    )
    parser.add_argument(
        "--poller-lag",
        type=duration,
        metavar="TIME",
        help="how far behind a poller may be (default: the setting maintain.poller_lag, 7d at "
        "first); less is not retained",
    )
    parser.add_argument(
        "--cut-off-pollers",
        action="store_true",
        help="retain less all the same: pollers that are further behind load everything anew",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    add_as_task(parser)
    add_why(parser)


def _maintain(work: Work) -> Answer:
    arguments = work.arguments
    if is_task(arguments):
        return run_as_task(
            work,
            "maintain",
            optimize=False if arguments.no_optimize else None,
            audit=False if arguments.no_audit else None,
            vacuum=False if arguments.no_vacuum else None,
            retain_seconds=arguments.retain,
            poller_lag_seconds=arguments.poller_lag,
            cut_off_pollers=arguments.cut_off_pollers or None,
        )
    report = work.catalog.maintain(
        optimize=not arguments.no_optimize,
        audit=not arguments.no_audit,
        vacuum=not arguments.no_vacuum,
        retain=arguments.retain,
        poller_lag=arguments.poller_lag,
        cut_off_pollers=arguments.cut_off_pollers,
        dry_run=arguments.dry_run,
        reason=arguments.reason,
        deadline=arguments.deadline,
        progress=work.progress,
    )
    removed = sum(vacuumed.files or 0 for vacuumed in report.vacuumed)
    return Answer(
        facts={
            "version": report.version,
            "partitions_compacted": len(report.compacted),
            "files_removed": removed,
            "retention_seconds": int(report.retention.total_seconds()),
            "versions_rolled": report.audit.rolled if report.audit else 0,
            "audit_gaps": len(report.audit.gaps) if report.audit else 0,
            "dry_run": report.dry_run,
            "retries": report.retries,
        },
        tables={
            "partitions": table_of(
                [asdict(item) for item in report.compacted], ("kind", "bucket", "before", "after")
            ),
            "vacuumed": table_of([asdict(item) for item in report.vacuumed], ("table", "files")),
        },
        figures={
            "partitions_compacted": len(report.compacted),
            "files_removed": removed,
            "versions_rolled": report.audit.rolled if report.audit else 0,
            "audit_gaps": len(report.audit.gaps) if report.audit else 0,
            "conflicts_retried": report.retries,
        },
    )


MAINTAIN = Command(
    name="maintain",
    summary="compact the tables and remove files that no reader needs",
    details=(
        "OPTIMIZE rewrites partitions with many small files, sorted by key, so that publishing\n"
        "reads few of them; VACUUM removes files that were replaced longer ago than the\n"
        "retention. Before that the history is rolled into the audit table, and so outlasts them."
    ),
    example="maintain --retain 7d --dry-run",
    access=Access.WRITE,
    arguments=_maintain_arguments,
    work=_maintain,
    recorded=True,
)

# --- recover --------------------------------------------------------------------------------------


def _recover_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--keep",
        type=duration,
        metavar="TIME",
        help="how long it stays known what became of an operation (default: the setting "
        "recover.keep, 30d at first)",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    add_as_task(parser)
    add_why(parser)


def _recover(work: Work) -> Answer:
    arguments, catalog = work.arguments, work.catalog
    if is_task(arguments):
        return run_as_task(work, "recover", keep_seconds=arguments.keep)
    report = catalog.recover(
        keep=arguments.keep,
        dry_run=arguments.dry_run,
        reason=arguments.reason,
        deadline=arguments.deadline,
        progress=work.progress,
    )
    return shown_recovery(report, standing(catalog.operations()), tried_again(catalog))


def shown_recovery(report: RecoverReport, left: Mapping[str, int], tried_again: int) -> Answer:
    """What a recovery did, and how many operations are left that are not decided."""
    rows = [("aborted", row.id, row.name, row.owner, row.lease_until) for row in report.aborted]
    others = {"decided": report.decided, "swept": report.swept, "forgotten": report.forgotten}
    counts = {"aborted": len(rows), **{what: len(ids) for what, ids in others.items()}}
    rest = ((what, each, None, None, None) for what, ids in others.items() for each in ids)
    columns = ("change", "operation_id", "name", "owner", "lease_until")
    return Answer(
        facts={
            "version": report.version,
            **counts,
            **left,
            "dry_run": report.dry_run,
            "retries": tried_again,
        },
        tables={"changes": Table(columns, (*rows, *rest))},
        figures={**counts, **left, "conflicts_retried": tried_again},
    )


OPERATIONS_RECOVER = Command(
    name="operations recover",
    summary="abort operations that their owners left, and remove what decided ones staged",
    details=(
        "An operation is left when its lease is over and it is still open; those that wait for an\n"
        "epoch are never touched. It may be stopped and run again at any time, also by two at\n"
        "once and beside the owners: an operation is decided once."
    ),
    example="operations recover --dry-run",
    access=Access.WRITE,
    arguments=_recover_arguments,
    work=_recover,
    recorded=True,
)

# --- verify ---------------------------------------------------------------------------------------


def _verify_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--version", type=int, metavar="VERSION", help="the version to check (default: the newest)"
    )
    parser.add_argument(
        "--since", type=int, metavar="VERSION", help="check every version from this one on too"
    )


def _verify(work: Work) -> Answer:
    report = work.catalog.verify(
        version=work.arguments.version, since=work.arguments.since, progress=work.progress
    )
    rows = tuple((v.promise, v.what, v.count, v.rows[0]) for v in report.violations)
    return Answer(
        facts={"version": report.version, "since": report.since, "holds": report.ok},
        tables={"violations": Table(("promise", "what", "count", "example"), rows)},
        found=not report.ok,
        figures={"violations": len(report.violations)},
        note="All promises hold." if report.ok else "",
    )


VERIFY = Command(
    name="verify",
    summary="check that the catalog keeps its promises",
    details="Exit code 1 says that something was found.",
    example="verify --since 0",
    access=Access.READ,
    arguments=_verify_arguments,
    work=_verify,
)
