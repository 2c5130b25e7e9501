"""Making a backup: one version of the catalog, copied, compared and then declared complete."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from catalog.backups.digests import Content, contents
from catalog.backups.files import BackupFiles, content_of_runs
from catalog.backups.manifest import Manifest
from catalog.delta.layout import (
    BUCKETS_PROPERTY,
    LAYOUT_PROPERTY,
    RESTORED_PROPERTY,
    RESTORING_PROPERTY,
    TABLE_PROPERTIES,
)
from catalog.delta.runs import RunLog
from catalog.delta.store import Detail, Store
from catalog.environment import Environment
from catalog.errors import BrokenBackup, PathOccupied
from catalog.model import Caller
from catalog.progress import Progress, Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger(__name__)
_STEPS = 4


@dataclass(frozen=True)
class BackupReport:
    """What a backup holds, or would hold.

    Attributes:
        version: the version that was copied.
        entries: rows and digest of each kind.
        runs: the same of the recorded runs, if there are any.
        repeated: this version had been backed up to the path before; it was only checked.
    """

    path: str
    version: int
    entries: dict[str, Content]
    runs: Content | None = None
    repeated: bool = False
    dry_run: bool = False

    @property
    def rows(self) -> int:
        """How many rows of the catalog it holds."""
        return sum(content.rows for content in self.entries.values())

    def facts(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "version": self.version,
            "rows": self.rows,
            "runs": 0 if self.runs is None else self.runs.rows,
            "repeated": self.repeated,
            "dry_run": self.dry_run,
        }

    def figures(self) -> dict[str, float]:
        return {"rows": self.rows}


class Backup:
    """Writes one backup. It changes nothing in the catalog, and takes no turn among its writers."""

    def __init__(
        self,
        store: Store,
        runs: RunLog,
        files: BackupFiles,
        caller: Caller,
        environment: Environment,
        progress: Progress,
    ) -> None:
        self._store = store
        self._runs = runs
        self._files = files
        self._caller = caller
        self._environment = environment
        self._progress = progress

    def make(self, version: int, dry_run: bool) -> BackupReport:
        """Copies a version; the same one again is only checked.

        Others may make a backup there at the same time: whoever writes the manifest first has made
        it, and everybody else finds that.
        """
        detail = self._store.detail()
        before = self._files.manifest()
        if before is not None:
            return self._again(before, detail, version, dry_run)
        self._files.check_free()
        self._step("count", 0)
        rows = self._store.rows(version)
        entries = contents(rows, rows.columns)
        runs = self._recorded()
        counted = None if runs is None else content_of_runs(runs)
        report = BackupReport(self._files.path, version, entries, counted, dry_run=dry_run)
        if dry_run:
            return report
        self._step("copy", 1)
        attempt = self._environment.new_id()
        self._files.write_entries(rows, attempt)
        self._environment.at("backup.copied")
        if runs is not None:
            self._files.write_runs(runs, attempt)
        manifest = Manifest(
            layout=int(detail.properties[LAYOUT_PROPERTY]),
            segment_buckets=int(detail.properties[BUCKETS_PROPERTY]),
            table_id=detail.table_id,
            version=version,
            version_at=self._moment(version),
            made_at=self._environment.clock(),
            actor=self._caller.actor,
            reason=self._caller.reason,
            columns=tuple(rows.columns),
            entries=entries,
            runs=counted,
            properties=kept_properties(detail),
            attempt=attempt,
        )
        self._step("check", 2)
        self._check(manifest)
        self._environment.at("backup.checked")
        self._step("complete", 3)
        made = self._files.complete(manifest)
        if made.attempt != attempt:
            return self._again(made, detail, version, dry_run)
        log.info("version %d backed up to %s: %d rows", version, report.path, report.rows)
        return report

    def _again(self, before: Manifest, detail: Detail, version: int, dry_run: bool) -> BackupReport:
        if (before.table_id, before.version) != (detail.table_id, version):
            raise PathOccupied(
                f"{self._files.path} holds the backup of version {before.version} of table "
                f"{before.table_id}, and this is version {version} of {detail.table_id}. A backup "
                "is never replaced; choose another path.",
                path=self._files.path,
                version=before.version,
            )
        self._files.check(before)
        return BackupReport(
            self._files.path, version, dict(before.entries), before.runs, True, dry_run
        )

    def _recorded(self) -> DataFrame | None:
        """The recorded runs at the newest version of their table; a backup's own run is there too.

        They need no transaction with the catalog, only to be the same when they are read twice.
        """
        if not self._runs.exists():
            return None
        return self._runs.store.rows(self._runs.store.head().version)

    def _moment(self, version: int) -> datetime | None:
        rows = self._store.history().where(f"version = {int(version)}").select("timestamp")
        return next((row["timestamp"].astimezone() for row in rows.collect()), None)

    def _check(self, manifest: Manifest) -> None:
        """Reads back what was written: what is not right here must not be relied on later."""
        try:
            self._files.check(manifest)
        except BrokenBackup as error:
            raise BrokenBackup(
                f"What was written to {self._files.path} is not what the catalog holds, so the "
                f"backup was not completed: {error.message}",
                path=self._files.path,
            ) from error

    def _step(self, what: str, done: int) -> None:
        self._progress(Step(f"backup: {what}", done, _STEPS))


def kept_properties(detail: Detail) -> dict[str, str]:
    """The table's properties that a restore sets again: ours, and those that we set."""
    ours = {LAYOUT_PROPERTY, BUCKETS_PROPERTY, RESTORED_PROPERTY, RESTORING_PROPERTY}
    return {
        name: value
        for name, value in detail.properties.items()
        if name in TABLE_PROPERTIES or (name.startswith("strata.") and name not in ours)
    }
