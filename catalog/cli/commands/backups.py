"""strata backups: copies of the catalog, and the way back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from catalog.backups.backup import BackupReport
from catalog.backups.manifest import ContentDigest
from catalog.backups.restore import RestoreReport
from catalog.backups.rollback import RollbackReport
from catalog.cli.arguments import REASON, argument, one_of, positive, version_or_time
from catalog.cli.command import (
    Access,
    Answer,
    Table,
    Work,
    answer_of,
    change,
    command,
    is_task,
    table_of,
)
from catalog.cli.commands.tasks import run_as_task


@command(
    "backups create",
    "copy one version of the catalog to its own path, and check the copy",
    argument("path", "where to: a path of its own, on any storage"),
    argument("--version", "which version (default: the newest)", type=version_or_time),
    argument("--reason", "why; recorded in the backup's manifest", default=""),
    dry_run="only show what it would hold",
    as_task=True,
    details=(
        "It disturbs no writer. The same version again is only checked. A backup that was stopped\n"
        "is written anew by the same command; a complete one is never replaced. As a task it also\n"
        "needs the right to write to the catalog, where tasks are recorded."
    ),
    example="/backups/2024-01-31 --reason nightly",
    job="backup",
)
def backups_create(work: Work) -> Answer:
    given = work.arguments
    if is_task(given):
        return run_as_task(work, "backup", path=given.path, **_which(given.version))
    report = work.catalog.backups.create(
        given.path,
        version=given.version,
        dry_run=given.dry_run,
        reason=given.reason,
        progress=work.progress,
    )
    return shown_backup(report)


def _which(version: int | datetime | None) -> dict[str, Any]:
    """The version to copy, as the arguments of a task have it."""
    if isinstance(version, datetime):
        return {"time": version.isoformat()}
    return {"version": version}


def shown_backup(report: BackupReport) -> Answer:
    """The contents of a backup, by kind of row."""
    return answer_of(
        report,
        tables={"contents": _contents(report.entries)},
        note="It existed already, and was checked." if report.repeated else "",
    )


def _contents(entries: Mapping[str, ContentDigest]) -> Table:
    rows = tuple((kind, each.rows, each.digest) for kind, each in sorted(entries.items()))
    return Table(("kind", "rows", "digest"), rows)


@command(
    "backups restore",
    "restore a backup as a new catalog, where there is none",
    argument("path", "where the backup is"),
    argument(
        "--segment-buckets",
        "number of buckets of the segments (default: as in the backup)",
        type=positive,
        metavar="NUMBER",
    ),
    REASON,
    details=(
        "The backup is checked before anything is created. Nobody can open the catalog until it\n"
        "is complete, and the same command again continues one that was stopped."
    ),
    example="/backups/2024-01-31 --location /data/meta",
    access=Access.NEW,
)
def backups_restore(work: Work) -> Answer:
    from catalog.catalog import Catalog  # the only command that opens no catalog

    report = Catalog.restore(
        work.spark,
        work.arguments.path,
        work.location,
        segment_buckets=work.arguments.segment_buckets,
        actor=work.actor,
        reason=work.arguments.reason,
        progress=work.progress,
    )
    return shown_restore(report)


def shown_restore(report: RestoreReport) -> Answer:
    """What was restored, by kind of row."""
    return answer_of(
        report,
        tables={"contents": _contents(report.entries)},
        note="It was restored already." if report.repeated else "The catalog is ready.",
    )


@change(
    "backups rollback",
    "restore the contents of a version or of a backup, by one commit",
    one_of(
        argument("version", "what to go back to", nargs="?", type=version_or_time),
        argument("--backup", "go back to the contents of a backup", metavar="PATH"),
        required=True,
    ),
    dry_run="only show what would change, with the first keys",
    details=(
        "Segments, objects and settings become what they were; schemas and datasources that were\n"
        "removed come back. Operations, the stable epoch and the history stay as they are. It can\n"
        "itself be undone by a rollback to the version before it."
    ),
    example='117 --dry-run --reason "a bad load"',
)
def backups_rollback(work: Work) -> Answer:
    given = work.arguments
    report = work.catalog.backups.rollback(
        given.version, backup=given.backup, dry_run=given.dry_run, **work.call
    )
    return shown_rollback(report, work.retries(report.retries))


def shown_rollback(report: RollbackReport, retries: int) -> Answer:
    """What a rollback changed, by kind of row; a dry run lists the first keys."""
    keys = tuple((c.kind, change, key) for c in report.changes for change, key in c.first)
    return answer_of(
        report,
        retries,
        tables={
            "changes": table_of(report.changes, ("kind", "inserted", "updated", "deleted")),
            "keys": Table(("kind", "change", "key"), keys),
        },
        note="" if report.rows else "The contents are the same already.",
    )


@change(
    "backups rebucket",
    "copy the catalog to another location with another number of buckets",
    argument("target", "location of the new catalog"),
    argument(
        "segment_buckets",
        "number of buckets of the segments there",
        type=positive,
        metavar="NUMBER",
    ),
    argument("--through", "where the backup in between goes", required=True, metavar="PATH"),
    always_a_task=True,
    details=(
        "A task: a backup, its restore to the new location, and a verification of that. Stop the\n"
        "writers before; the old catalog stays as it is. Exit code 1 says that the old one was\n"
        "changed since the backup (versions_since), or that the new one breaks a promise."
    ),
    example="/data/meta2 64 --through /backups/move",
    job="rebucket",
)
def backups_rebucket(work: Work) -> Answer:
    given = work.arguments
    return run_as_task(
        work,
        "rebucket",
        path=given.through,
        target=given.target,
        segment_buckets=given.segment_buckets,
    )
