"""`catalog.backups`: copies of a version elsewhere, and rolling back to an earlier one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Unpack

from catalog.backups.backup import Backup, BackupFiles, BackupReport, rows_of
from catalog.backups.comparison import Past
from catalog.backups.rollback import Rollback, RollbackReport
from catalog.commit.committer import Committer
from catalog.context import CallOptions, Context
from catalog.delta.layout import complete
from catalog.delta.runs import RunLog
from catalog.delta.session import own_session, release, tune, tuning
from catalog.delta.store import AsOf, Store
from catalog.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class BackupsApi:
    """Backups and rollbacks. `Catalog.restore` makes a new catalog from a backup."""

    def __init__(self, context: Context, committer: Committer, run_log: RunLog) -> None:
        self._context = context
        self._committer = committer
        self._run_log = run_log

    def create(
        self,
        path: str | os.PathLike[str],
        *,
        version: AsOf = None,
        dry_run: bool = False,
        **options: Unpack[CallOptions],
    ) -> BackupReport:
        """Copies one version of the catalog, and the recorded runs, to another path.

        It does not change the catalog. A complete backup of the same version is only checked; one
        that was interrupted is made again.

        Args:
            path: the destination, on any storage that Spark can write to.
            version: which version; by default the newest.
            dry_run: only report what it would contain.

        Raises:
            PathOccupied: The path holds something else, or the backup of another version.
        """
        context, call = self._context, self._context.call(**options)
        number = context.version(version)
        session = self._large_session()
        try:
            files = BackupFiles(session, os.fspath(path))
            store = Store(session, context.location)
            work = Backup(store, self._run_log, files, call, context.environment)
            return work.make(number, dry_run)
        finally:
            release(session)

    def rollback(
        self,
        version: AsOf = None,
        *,
        backup: str | os.PathLike[str] | None = None,
        dry_run: bool = False,
        **options: Unpack[CallOptions],
    ) -> RollbackReport:
        """Makes the contents what they were, in one commit that pollers follow as any other.

        Segments, objects and settings become what they were; removed schemas and datasources come
        back; operations, the stable epoch and the history stay. Revisions still count upwards.

        Args:
            version: the version to go back to.
            backup: the path of a backup to go back to, in place of a version.
            dry_run: only report what would change, with the first keys of each kind.

        Raises:
            ClaimConflict: An undecided operation claims a row that would change.
            VersionNotFound: The version is not, or no longer, in the history.
        """
        if (version is None) == (backup is None):
            raise InvalidInput("Give a version to go back to, or the path of a backup.")
        context = self._context
        call = context.call(**options) if dry_run else context.writing(**options)
        past = self._at(version) if backup is None else self._of(os.fspath(backup))
        work = Rollback(self._committer, tuning(context.spark), call.progress)
        if dry_run:
            return work.look(past)
        return context.alone(call, lambda: work.go_back(past, call))

    def _at(self, version: AsOf) -> Past:
        store = self._context.store
        number = store.version_as_of(version)
        rows = store.session.sql(f"SELECT * FROM {complete(store.session, store.pinned(number))}")
        return Past(f"version {number}", rows)

    def _of(self, path: str) -> Past:
        files = BackupFiles(self._context.store.session, path)
        manifest = files.found()
        files.check(manifest)
        return Past(f"backup {files.path}", rows_of(files, manifest, self._context.buckets))

    def _large_session(self) -> SparkSession:
        """A session of its own: a copy may be large, and commits between its steps small."""
        session = own_session(self._context.spark)
        tune(session, tuning(self._context.spark).large)
        return session
