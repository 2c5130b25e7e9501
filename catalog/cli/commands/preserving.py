"""The words for backups and the way back: backup, restore, rollback."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from catalog.backups.backup import BackupReport
from catalog.backups.restore import RestoreReport
from catalog.backups.rollback import RollbackReport
from catalog.cli.answer import Answer, Table
from catalog.cli.as_task import add_as_task, is_task, run_as_task
from catalog.cli.command import Access, Command, Work
from catalog.cli.commands.deciding import tried_again
from catalog.cli.commands.writing import add_why
from catalog.cli.options import as_of, positive

_CONTENTS = ("kind", "rows", "digest")

# --- backup ---------------------------------------------------------------------------------------


def _backup_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="where to: a path of its own, on any storage")
    parser.add_argument(
        "--version", type=as_of, metavar="VERSION|TIME", help="which one (default: the newest)"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what it would hold")
    add_as_task(parser)
    parser.add_argument("--reason", default="", help="why; stands in the backup's manifest")


def _backup(work: Work) -> Answer:
    arguments = work.arguments
    if is_task(arguments):
        return run_as_task(work, "backup", path=arguments.path, **_which(arguments.version))
    report = work.catalog.backup(
        arguments.path,
        version=arguments.version,
        dry_run=arguments.dry_run,
        reason=arguments.reason,
        progress=work.progress,
    )
    return shown_backup(report)


def _which(version: int | datetime | None) -> dict[str, Any]:
    """What to copy, as the arguments of a task have it."""
    if isinstance(version, datetime):
        return {"time": version.isoformat()}
    return {"version": version}


def shown_backup(report: BackupReport) -> Answer:
    """What a backup holds, kind by kind."""
    rows = tuple((kind, each.rows, each.digest) for kind, each in sorted(report.entries.items()))
    runs = 0 if report.runs is None else report.runs.rows
    return Answer(
        facts={
            "path": report.path,
            "version": report.version,
            "rows": report.rows,
            "runs": runs,
            "repeated": report.repeated,
            "dry_run": report.dry_run,
        },
        tables={"contents": Table(_CONTENTS, rows)},
        figures={"rows": report.rows},
        note="It had been made before, and was checked." if report.repeated else "",
    )


BACKUPS_CREATE = Command(
    name="backups create",
    summary="copy one version of the catalog to a path of its own, and check the copy",
    details=(
        "It disturbs no writer. The same version again is only checked. A backup that was stopped\n"
        "is written anew by the same command; a complete one is never replaced. As a task it also\n"
        "needs the right to write to the catalog, where tasks are recorded."
    ),
    example="backups create /backups/2024-01-31 --reason nightly",
    access=Access.READ,
    arguments=_backup_arguments,
    work=_backup,
)

# --- restore --------------------------------------------------------------------------------------


def _restore_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="where the backup is")
    parser.add_argument(
        "--segment-buckets",
        type=positive,
        metavar="NUMBER",
        help="among how many buckets segments are spread (default: as in the backup)",
    )
    parser.add_argument("--reason", default="", help="why; stands in the commit's metadata")


def _restore(work: Work) -> Answer:
    from catalog.catalog import Catalog  # only here is there none that is opened already

    arguments = work.arguments
    report = Catalog.restore(
        work.spark,
        arguments.path,
        work.location,
        segment_buckets=arguments.segment_buckets,
        actor=work.actor,
        reason=arguments.reason,
        progress=work.progress,
    )
    return shown_restore(report)


def shown_restore(report: RestoreReport) -> Answer:
    """What came back, kind by kind."""
    rows = tuple((kind, each.rows, each.digest) for kind, each in sorted(report.entries.items()))
    return Answer(
        facts={
            "path": report.path,
            "location": report.location,
            "version": report.version,
            "backup_version": report.backup_version,
            "segment_buckets": report.segment_buckets,
            "rows": report.rows,
            "runs": report.runs,
            "repeated": report.repeated,
        },
        tables={"contents": Table(_CONTENTS, rows)},
        figures={"rows": report.rows},
        note="It had been restored before." if report.repeated else "The catalog is ready.",
    )


BACKUPS_RESTORE = Command(
    name="backups restore",
    summary="bring a backup back as a new catalog, where there is none",
    details=(
        "The backup is checked before anything is created. Nobody can open the catalog until it\n"
        "is complete, and the same command again goes on where one was stopped."
    ),
    example="backups restore /backups/2024-01-31 --location /data/meta",
    access=Access.NEW,
    arguments=_restore_arguments,
    work=_restore,
)

# --- rollback -------------------------------------------------------------------------------------


def _rollback_arguments(parser: ArgumentParser) -> None:
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument(
        "version", nargs="?", type=as_of, metavar="VERSION|TIME", help="what to go back to"
    )
    target.add_argument("--backup", metavar="PATH", help="go back to what a backup holds")
    parser.add_argument(
        "--dry-run", action="store_true", help="only say what would change, with the first keys"
    )
    add_why(parser)


def _rollback(work: Work) -> Answer:
    arguments = work.arguments
    report = work.catalog.rollback(
        arguments.version,
        backup=arguments.backup,
        dry_run=arguments.dry_run,
        reason=arguments.reason,
        deadline=arguments.deadline,
        progress=work.progress,
    )
    return shown_rollback(report, tried_again(work.catalog, report.retries))


def shown_rollback(report: RollbackReport, tried_again: int) -> Answer:
    """What a rollback did with the rows of each kind; a dry run shows the first keys."""
    changes = tuple((c.kind, c.inserted, c.updated, c.deleted) for c in report.changes)
    keys = tuple((c.kind, change, key) for c in report.changes for change, key in c.first)
    return Answer(
        facts={
            "version": report.version,
            "commit_id": report.commit_id or None,
            "target": report.target,
            "planned_at": report.planned_at,
            "rows": report.rows,
            "beside": report.beside,
            "dry_run": report.dry_run,
            "retries": tried_again,
        },
        tables={
            "changes": Table(("kind", "inserted", "updated", "deleted"), changes),
            "keys": Table(("kind", "change", "key"), keys),
        },
        figures={"rows": report.rows, "conflicts_retried": tried_again},
        note="" if report.rows else "Everything is as it was then.",
    )


BACKUPS_ROLLBACK = Command(
    name="backups rollback",
    summary="make the contents what they were at a version or in a backup, by one commit",
    details=(
        "Segments, objects and settings become what they were; schemas and datasources that went\n"
        "come back. Operations, the stable epoch and the history stay as they are. It can itself\n"
        "be undone by a rollback to the version before it."
    ),
    example='backups rollback 117 --dry-run --reason "a bad load"',
    access=Access.WRITE,
    arguments=_rollback_arguments,
    work=_rollback,
    recorded=True,
)
