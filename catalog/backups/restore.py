"""Restores a backup as a new catalog: the table is created, filled, compared, and then opened.

Until the last step the table has a property by which everything but a restore refuses it. So an
interrupted restore leaves nothing that looks like a catalog, and the same call again continues it.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from catalog.backups.backup import BackupFiles, rows_of
from catalog.backups.manifest import ContentDigest, Manifest, differences, digests_of
from catalog.commit.committer import Settled
from catalog.context import Call
from catalog.delta import tables
from catalog.delta.audit_log import AuditLog
from catalog.delta.layout import LAYOUT, RESTORED_PROPERTY, RESTORING_PROPERTY, Layout
from catalog.delta.location import Location, TableLock, absolute
from catalog.delta.runs import RunLog
from catalog.delta.session import Tuning, own_session, release, tune, tuning
from catalog.delta.side_table import SideTableParts
from catalog.delta.statements import Statement, insert_all
from catalog.delta.store import RESTORE_BACKUP, Store
from catalog.delta.tables import Opened
from catalog.delta.writer import Writer
from catalog.environment import Environment
from catalog.errors import BrokenBackup, InvalidInput, LayoutTooNew, PathOccupied, RestoreUnfinished
from catalog.progress import Step
from catalog.sql import audit_views, functions, views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)
_STEPS = 5


@dataclass(frozen=True)
class RestoreReport:
    """Result of a restore.

    Attributes:
        location: where the catalog is.
        version: its newest version; versions start again at 0.
        backup_version: the version that the backup was made of.
        entries: rows and digest of each kind.
        repeated: the catalog had been restored from this backup before; nothing was done.
    """

    path: str
    location: str
    version: int
    backup_version: int
    segment_buckets: int
    entries: dict[str, ContentDigest]
    runs: int = 0
    repeated: bool = False

    @property
    def rows(self) -> int:
        """The number of restored rows of the catalog."""
        return sum(content.rows for content in self.entries.values())

    def facts(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "location": self.location,
            "version": self.version,
            "backup_version": self.backup_version,
            "segment_buckets": self.segment_buckets,
            "rows": self.rows,
            "runs": self.runs,
            "repeated": self.repeated,
        }

    def figures(self) -> dict[str, float]:
        return {"rows": self.rows}


@dataclass(frozen=True)
class RestoreTarget:
    """Where and how a catalog is made from a backup; `locked` if local disk needs a lock."""

    session: SparkSession
    location: Location
    layout: Layout
    locked: bool
    call: Call
    environment: Environment
    tuning: Tuning


class Restore:
    """One restore; may be stopped at any point and run again, also concurrently."""

    def __init__(self, files: BackupFiles, target: RestoreTarget) -> None:
        self._files = files
        self._target = target
        self._deadline = target.call.deadline
        self._at = target.environment.at

    def restore(self, segment_buckets: int | None) -> RestoreReport:
        """Checks the backup, then creates, fills, compares and opens the catalog."""
        target = self._target
        manifest = self._files.found()
        if manifest.layout > target.layout.number:
            raise LayoutTooNew(
                f"The backup at {self._files.path} has layout {manifest.layout}; this release "
                f"knows up to {target.layout.number}. Install a newer release.",
                path=self._files.path,
                layout=manifest.layout,
            )
        buckets = manifest.segment_buckets if segment_buckets is None else segment_buckets
        name = f"{manifest.identity}/{buckets}"
        there = tables.find(target.session, target.location, target.layout, restoring=True)
        if there is not None and self._is_complete(there, name):
            return self._report(manifest, there, repeated=True)
        self._step("check the backup", 0)
        self._files.check(manifest)
        rows = rows_of(self._files, manifest, buckets)
        if buckets != manifest.segment_buckets:
            self._check_decided(rows)
        self._step("create", 1)
        opened = tables.create(
            target.session,
            target.location,
            target.layout,
            buckets,
            target.locked,
            self._deadline,
            {**manifest.properties, RESTORED_PROPERTY: name, RESTORING_PROPERTY: name},
        )
        if not self._is_complete(opened, name):
            self._at("restore-backup.created")
            self._fill(opened, rows, manifest)
        self._at("restore-backup.completed")
        if opened.location.path is None:
            self._offer_views(opened)
        log.info("%s restored to %s: %d rows", self._files.path, opened.location, manifest.rows)
        return self._report(manifest, opened)

    def _is_complete(self, opened: Opened, name: str) -> bool:
        """Whether a restore of this backup was completed; raises if there is something else."""
        properties = opened.detail.properties
        mark = properties.get(RESTORING_PROPERTY)
        if mark is not None and mark != name:
            raise RestoreUnfinished(
                f"A restore of another backup into {opened.location}, or with another number of "
                "buckets, was begun and not completed. Complete that one, or remove what it left.",
                location=str(opened.location),
                backup=mark,
            )
        if mark is None and properties.get(RESTORED_PROPERTY) != name:
            raise _occupied(opened.location)
        return mark is None

    @staticmethod
    def _check_decided(rows: DataFrame) -> None:
        """Refuses undecided operations: their parts refer to the buckets of their rows."""
        undecided = rows.where("kind = 'operation' AND state IN ('open', 'ready')").count()
        if undecided:
            raise InvalidInput(
                f"The backup has {undecided} operations that are not decided, and these know in "
                "which buckets their rows are. Restore it without segment_buckets, or publish or "
                "abort them and make another backup.",
                operations=undecided,
            )

    # --- steps ------------------------------------------------------------------------------------

    def _fill(self, opened: Opened, rows: DataFrame, manifest: Manifest) -> None:
        target, deadline = self._target, self._deadline
        lock = TableLock.of(opened.detail.path if target.locked else None)
        store = Store(target.session, opened.location)
        caller = target.call.caller.counting(backup=manifest.identity, rows=manifest.rows)
        self._step("fill", 2)
        tables.constrain_buckets(store, lock, opened.segment_buckets, deadline)

        def fill(uncertain: bool) -> Statement:
            # Another restore of this backup may have been quicker.
            if tables.is_complete(store):
                raise Settled(None)
            return Statement(RESTORE_BACKUP, insert_all(store.relation), rows, bulk=True)

        try:
            Writer(store, lock, target.environment, target.tuning).commit(
                fill, target.environment.new_id(), RESTORE_BACKUP, lambda: [caller], deadline
            )
        except Settled:
            return
        self._at("restore-backup.filled")
        if manifest.runs is not None:
            runs = self._files.runs(manifest.attempt)
            RunLog(*self._side_table(opened)).restore(runs, deadline)
        self._step("compare", 3)
        names = rows.columns
        there = digests_of(store.rows(store.head().version), names)
        wrong = differences(digests_of(rows, names), there)
        if wrong and not tables.is_complete(store):
            raise BrokenBackup(
                f"What was restored to {opened.location} is not what the backup holds: "
                f"{'; '.join(wrong)}. It is not opened to anybody; remove it and try again.",
                path=self._files.path,
            )
        self._at("restore-backup.compared")
        self._step("open", 4)
        tables.complete_restore(store, lock, deadline)

    def _offer_views(self, opened: Opened) -> None:
        target = self._target
        views.create_views(target.session, opened.location, replace=False)
        functions.create_functions(target.session, opened.location, replace=False)
        # Unlike the others it depends on the table, and on the version at which it begins.
        audit_views.create_changes(target.session, AuditLog(*self._side_table(opened)))

    def _side_table(self, opened: Opened) -> SideTableParts:
        """The constructor arguments of the catalog's side tables."""
        target = self._target
        local = opened.detail.path if target.locked else None
        return lambda: target.session, opened.location, local, target.environment, target.tuning

    def _report(self, manifest: Manifest, opened: Opened, repeated: bool = False) -> RestoreReport:
        return RestoreReport(
            self._files.path,
            str(opened.location),
            Store(self._target.session, opened.location).head().version,
            manifest.version,
            opened.segment_buckets,
            dict(manifest.entries),
            0 if manifest.runs is None else manifest.runs.rows,
            repeated,
        )

    def _step(self, what: str, done: int) -> None:
        self._target.call.progress(Step(f"restore: {what}", done, _STEPS))


def check_vacant(session: SparkSession, location: str) -> None:
    """Refuses a location that no backup can be restored to, before a backup is made.

    A restored catalog is accepted: it may be of the same backup.

    Raises:
        PathOccupied: There is a catalog that no restore has made.
    """
    place = absolute(session, Location.parse(location))
    there = tables.find(session, place, LAYOUT, restoring=True)
    if there is not None and RESTORED_PROPERTY not in there.detail.properties:
        raise _occupied(there.location)


def _occupied(location: Location) -> PathOccupied:
    return PathOccupied(
        f"There is a catalog at {location} already. Restore to another location, or let it go back "
        "to the backup by a rollback.",
        location=str(location),
    )


def restore_catalog(
    spark: SparkSession,
    path: str,
    location: str | os.PathLike[str],
    call: Call,
    environment: Environment,
    layout: Layout,
    locked: bool,
    segment_buckets: int | None,
) -> RestoreReport:
    """Makes a catalog from the backup at a path, in a session of its own."""
    session, tuned = own_session(spark), tuning(spark)
    tune(session, tuned.large)
    try:
        target = RestoreTarget(
            session=session,
            location=absolute(session, Location.parse(location)),
            layout=layout,
            locked=locked,
            call=call,
            environment=environment,
            tuning=tuned,
        )
        return Restore(BackupFiles(session, path), target).restore(segment_buckets)
    finally:
        release(session)
