"""Backups and the way back: the verbs of `Catalog` for when something went wrong."""

from __future__ import annotations

import os
from abc import abstractmethod
from typing import TYPE_CHECKING

from catalog.backups.backup import Backup, BackupFiles, BackupReport, rows_of
from catalog.backups.comparison import Past
from catalog.backups.restore import Restore, RestoreReport, RestoreTarget
from catalog.backups.rollback import Rollback, RollbackReport
from catalog.commit.committer import Committer
from catalog.config import Settings, user
from catalog.context import Call
from catalog.delta.layout import LAYOUT, Layout, complete
from catalog.delta.location import Location, absolute
from catalog.delta.session import own_session, release, tune, tuning
from catalog.delta.store import AsOf
from catalog.environment import Deadline, Environment
from catalog.errors import InvalidInput
from catalog.model import Caller, check_actor
from catalog.operating import Operating
from catalog.progress import Progress, silent
from catalog.settings.model import default_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Preserving(Operating):
    """The verbs of `Catalog` that make backups, and those that go back."""

    _committer: Committer
    _environment: Environment

    @abstractmethod
    def _caller(self, actor: str | None, reason: str) -> Caller: ...

    def backup(
        self,
        path: str | os.PathLike[str],
        *,
        version: AsOf = None,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
        progress: Progress = silent,
    ) -> BackupReport:
        """Copies one version of the catalog, and the recorded runs, to a path of their own.

        It changes nothing in the catalog and disturbs nobody. The same version again is checked
        and left as it is; after a backup that was stopped another one can be made there.

        Args:
            path: where to, on any storage that Spark can write to.
            version: which one, as a number or a time; the newest if not given.
            dry_run: only say what it would hold.
            actor: who makes the backup.
            reason: why; both stand in its manifest.
            progress: is told of each step.

        Raises:
            PathOccupied: The path holds something else, or the backup of another version.
        """
        caller = self._caller(actor, reason)
        chosen = self._store.version_as_of(version)
        session = self._large_session()
        try:
            files = BackupFiles(session, os.fspath(path))
            store = type(self._store)(session, self._store.location)
            call = Call(caller, self._deadline(None), progress)
            work = Backup(store, self._run_log, files, call, self._environment)
            return work.make(chosen, dry_run)
        finally:
            release(session)

    @classmethod
    def restore(
        cls,
        spark: SparkSession,
        path: str | os.PathLike[str],
        location: str | os.PathLike[str],
        *,
        segment_buckets: int | None = None,
        actor: str | None = None,
        run_id: str = "",
        reason: str = "",
        deadline: float | None = None,
        progress: Progress = silent,
        settings: Settings | None = None,
        environment: Environment | None = None,
        layout: Layout = LAYOUT,
    ) -> RestoreReport:
        """Brings a backup back as a new catalog, at a location where there is none.

        Its rows are those of the backup; its versions begin anew, so caches load it whole. Until
        it is complete nobody can open it, and the same call again goes on where one was stopped.

        Args:
            spark: a session with Delta; it is never changed.
            path: where the backup is.
            location: where the catalog is to be: a path or a schema.
            segment_buckets: among how many buckets segments are spread, if not as before.
            actor: who restores it.
            run_id: the run of a job that this belongs to.
            reason: why.
            deadline: seconds to wait for others before giving up.
            progress: is told of each step.
            settings: see `Settings`; its number of buckets is not looked at.
            environment: clock, ids and pauses, for tests.
            layout: the table layout that this code knows, for tests.

        Raises:
            BackupNotFound: There is no backup at the path, or it was not completed.
            BrokenBackup: The backup is damaged; nothing was created.
            PathOccupied: There is another catalog at the location.
            RestoreUnfinished: A restore of another backup to the location was not completed.
        """
        settings = settings or Settings()
        waits = settings.deadline if deadline is None else deadline
        session, tuned = own_session(spark), tuning(spark)
        tune(session, tuned.large)
        caller = Caller(
            check_actor("actor", user() if actor is None else actor),
            check_actor("reason", reason),
            check_actor("run_id", run_id),
        )
        try:
            ground = RestoreTarget(
                session=session,
                location=absolute(session, Location.parse(location)),
                layout=layout,
                locked=settings.file_lock,
                call=Call(
                    caller, Deadline(default_of("deadline") if waits is None else waits), progress
                ),
                environment=environment or Environment(),
                tuning=tuned,
            )
            return Restore(BackupFiles(session, os.fspath(path)), ground).restore(segment_buckets)
        finally:
            release(session)

    def rollback(
        self,
        version: AsOf = None,
        *,
        backup: str | os.PathLike[str] | None = None,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
        progress: Progress = silent,
    ) -> RollbackReport:
        """Makes the contents what they were, by one commit that pollers follow as any other.

        Segments, objects and settings become what they were; schemas and datasources that went
        come back; operations, the stable epoch and the history stay. Revisions go on upwards.

        Args:
            version: what to go back to, as a number or a time.
            backup: the path of a backup to go back to, in place of a version.
            dry_run: only say what would change, with the first keys of each kind.
            actor: who goes back.
            reason: why.
            deadline: seconds to wait for others before giving up.
            progress: is told of each step.

        Raises:
            ClaimConflict: An operation that is not decided claims what would change.
            VersionNotFound: The version is not, or no longer, in the history.
        """
        if (version is None) == (backup is None):
            raise InvalidInput("Give a version to go back to, or the path of a backup.")
        if not dry_run:
            self._check_writable()
        asking = self._asking(actor, reason, deadline)
        past = self._at(version) if backup is None else self._of(os.fspath(backup))
        work = Rollback(self._committer, tuning(self._spark), progress)
        if dry_run:
            return work.look(past)
        return self._queue.alone(lambda: work.go_back(past, asking), asking.deadline)

    def _at(self, version: AsOf) -> Past:
        number = self._store.version_as_of(version)
        session = self._store.session
        rows = session.sql(f"SELECT * FROM {complete(session, self._store.pinned(number))}")
        return Past(f"version {number}", rows)

    def _of(self, path: str) -> Past:
        files = BackupFiles(self._store.session, path)
        manifest = files.found()
        files.check(manifest)
        return Past(f"backup {files.path}", rows_of(files, manifest, self._buckets()))

    def _large_session(self) -> SparkSession:
        """A session of its own: a copy may be large, and commits between its steps small."""
        session = own_session(self._spark)
        tune(session, tuning(self._spark).large)
        return session
