"""The commands of upkeep: cleanup, maintain, verify, upgrade."""

from __future__ import annotations

from typing import Any

from catalog.cli.arguments import argument, by_setting, duration, flag, positive
from catalog.cli.command import (
    Access,
    Answer,
    Table,
    Work,
    answer_of,
    change,
    command,
    facts_of,
    is_task,
    table_of,
)
from catalog.cli.commands.tasks import run_as_task


@change(
    "cleanup",
    "retire schemas that nothing uses, and purge those retired long ago",
    argument(
        "--grace",
        f"how long a schema must have been unused {by_setting('cleanup.grace')}; 0 is safe",
        type=duration,
    ),
    argument(
        "--limit",
        f"retire and purge at most this many each {by_setting('cleanup.limit')}",
        type=positive,
    ),
    dry_run=True,
    as_task=True,
    details="It may be stopped and run again at any time, also by two processes at once.",
    example="--grace 7d --dry-run",
)
def cleanup(work: Work) -> Answer:
    given = work.arguments
    if is_task(given):
        return run_as_task(work, "cleanup", grace_seconds=given.grace, limit=given.limit)
    report = work.catalog.cleanup(
        grace=given.grace, limit=given.limit, dry_run=given.dry_run, **work.call
    )
    done = facts_of(report, "restored", "purged", "retired")
    rows = tuple(
        (what, change.fingerprint, change.why)
        for what, changes in done.items()
        for change in changes
    )
    return answer_of(report, tables={"changes": Table(("change", "fingerprint", "why"), rows)})


@change(
    "maintain",
    "compact the tables and remove files that no reader needs",
    flag("--no-optimize", "do not compact files"),
    flag("--no-audit", "do not copy the history into the audit table"),
    flag("--no-vacuum", "do not remove old files"),
    argument(
        "--retain",
        "keep replaced files this long, from now on (default: the setting maintain.retain, "
        "or the table's, initially 7d)",
        type=duration,
    ),
    argument(
        "--poller-lag",
        f"how far behind a poller may be {by_setting('maintain.poller_lag')}; a shorter "
        "retention is refused",
        type=duration,
    ),
    flag(
        "--cut-off-pollers",
        "allow a shorter retention: pollers that are further behind load everything anew",
    ),
    dry_run=True,
    as_task=True,
    details=(
        "OPTIMIZE rewrites partitions with many small files, sorted by key, so that publishing\n"
        "reads few of them; VACUUM removes files that were replaced longer ago than the\n"
        "retention. Before that the history is copied into the audit table, and so outlasts them."
    ),
    example="--retain 7d --dry-run",
)
def maintain(work: Work) -> Answer:
    given = work.arguments
    steps = ("optimize", "audit", "vacuum")
    skipped: dict[str, Any] = {step: False for step in steps if getattr(given, f"no_{step}")}
    if is_task(given):
        return run_as_task(
            work,
            "maintain",
            **skipped,
            retain_seconds=given.retain,
            poller_lag_seconds=given.poller_lag,
            cut_off_pollers=given.cut_off_pollers or None,
        )
    report = work.catalog.maintain(
        **skipped,
        retain=given.retain,
        poller_lag=given.poller_lag,
        cut_off_pollers=given.cut_off_pollers,
        dry_run=given.dry_run,
        **work.call,
    )
    return answer_of(
        report,
        tables={
            "partitions": table_of(report.compacted, ("kind", "bucket", "before", "after")),
            "vacuumed": table_of(report.vacuumed, ("table", "files")),
        },
    )


@command(
    "verify",
    "check that the catalog keeps its promises",
    argument(
        "--version", "the version to check (default: the newest)", type=int, metavar="VERSION"
    ),
    argument("--since", "check every version from this one on too", type=int, metavar="VERSION"),
    details="Exit code 1 says that a promise is broken.",
    example="--since 0",
)
def verify(work: Work) -> Answer:
    report = work.catalog.verify(
        version=work.arguments.version, since=work.arguments.since, progress=work.progress
    )
    rows = tuple((v.promise, v.what, v.count, v.rows[0]) for v in report.violations)
    return answer_of(
        report,
        tables={"violations": Table(("promise", "what", "count", "example"), rows)},
        found=not report.ok,
        note="All promises hold." if report.ok else "",
    )


@command(
    "upgrade",
    "bring the layout of the table up to this release, so that it can be written again",
    dry_run="only show the statements",
    details=(
        "A catalog that an older release created is read as it is; writing to it ends with\n"
        "UPGRADE_NEEDED. Older releases cannot open it afterwards."
    ),
    example="--dry-run",
    access=Access.UPGRADE,
)
def upgrade(work: Work) -> Answer:
    report = work.catalog.upgrade(dry_run=work.arguments.dry_run)
    statements = tuple((each,) for each in report.statements)
    current = f"The layout is {report.after} already."
    return Answer(
        facts=facts_of(report, "before", "after", "dry_run"),
        tables={"statements": Table(("statement",), statements)},
        note="" if statements else current,
    )
