"""Restoring a backup into a place without a catalog: created, filled and compared, then opened.

Until the last step the table carries a mark by which everybody but a restore refuses it. So a
restore that is stopped leaves nothing that passes for a catalog, and the same call again goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog.backups.digests import Content, contents, differences
from catalog.backups.files import BackupFiles
from catalog.backups.kinds import bucket_sql
from catalog.backups.manifest import Manifest
from catalog.commit.committer import Settled
from catalog.delta import opening
from catalog.delta.audit_log import AuditLog
from catalog.delta.failures import BUCKETS_CONSTRAINT
from catalog.delta.layout import (
    COLUMNS,
    LAYOUT,
    RESTORED_PROPERTY,
    RESTORING_PROPERTY,
    Layout,
    nulls,
)
from catalog.delta.location import Location
from catalog.delta.lock import TableLock
from catalog.delta.opening import Opened
from catalog.delta.runs import RunLog
from catalog.delta.session import Tuning
from catalog.delta.statements import Statement
from catalog.delta.store import RESTORE_BACKUP, Store
from catalog.delta.writer import Writer
from catalog.environment import Deadline, Environment
from catalog.errors import BrokenBackup, InvalidInput, LayoutTooNew, PathOccupied, RestoreUnfinished
from catalog.model import Caller
from catalog.progress import Progress, Step
from catalog.sql import audit_views, functions, views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BesideParts = tuple[Callable[[], "SparkSession"], Location, Path | None, Environment, Tuning]

log = logging.getLogger(__name__)
_STEPS = 5
_CONSTRAINT = f"delta.constraints.{BUCKETS_CONSTRAINT}"
# One row for a key; of staged rows one for each operation and part.
_SAME = (
    "t.kind = s.kind AND t.bucket = s.bucket AND t.key = s.key AND t.target <=> s.target "
    "AND t.operation <=> s.operation AND t.part <=> s.part"
)


@dataclass(frozen=True)
class RestoreReport:
    """What a restore brought back.

    Attributes:
        location: where the catalog is now.
        version: its newest version; versions begin anew.
        backup_version: the version that the backup was made of.
        entries: rows and digest of each kind.
        repeated: the catalog had been restored from this backup before; nothing was done.
    """

    path: str
    location: str
    version: int
    backup_version: int
    segment_buckets: int
    entries: dict[str, Content]
    runs: int = 0
    repeated: bool = False

    @property
    def rows(self) -> int:
        """How many rows of the catalog it brought back."""
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
class Ground:
    """What a restore has at hand."""

    session: SparkSession
    location: Location
    layout: Layout
    locked: bool
    caller: Caller
    deadline: Deadline
    environment: Environment
    tuning: Tuning
    progress: Progress


class Restore:
    """One restore; may be stopped and run again at any point, also by two at once."""

    def __init__(self, files: BackupFiles, ground: Ground) -> None:
        self._files = files
        self._ground = ground

    def restore(self, segment_buckets: int | None) -> RestoreReport:
        """Checks the backup, then creates, fills and compares the catalog, and opens it for all."""
        ground = self._ground
        manifest = self._files.found()
        if manifest.layout > ground.layout.number:
            raise LayoutTooNew(
                f"The backup at {self._files.path} has layout {manifest.layout}; this release "
                f"knows up to {ground.layout.number}. Install a newer release.",
                path=self._files.path,
                layout=manifest.layout,
            )
        buckets = manifest.segment_buckets if segment_buckets is None else segment_buckets
        name = f"{manifest.identity}/{buckets}"
        there = opening.find(ground.session, ground.location, ground.layout, restoring=True)
        if there is not None and self._is_complete(there, name):
            return self._report(manifest, there, repeated=True)
        self._step("check the backup", 0)
        self._files.check(manifest)
        rows = rows_of(self._files, manifest, buckets)
        if buckets != manifest.segment_buckets:
            self._check_decided(rows)
        self._step("create", 1)
        opened = opening.create(
            ground.session,
            ground.location,
            ground.layout,
            buckets,
            ground.locked,
            ground.deadline,
            {**manifest.properties, RESTORED_PROPERTY: name, RESTORING_PROPERTY: name},
        )
        if not self._is_complete(opened, name):
            ground.environment.at("restore-backup.created")
            self._fill(opened, rows, manifest)
        ground.environment.at("restore-backup.completed")
        if opened.location.path is None:
            self._offer_views(opened)
        log.info("%s restored to %s: %d rows", self._files.path, opened.location, manifest.rows)
        return self._report(manifest, opened)

    def _is_complete(self, opened: Opened, name: str) -> bool:
        """Whether a restore of this backup has ended there; raises if something else is there."""
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
        """Parts of operations that are under way know the buckets of their rows."""
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
        ground = self._ground
        local = opened.detail.path if ground.locked else None
        lock = TableLock.beside(local)
        store = Store(ground.session, opened.location)
        writer = Writer(store, lock, ground.environment, ground.tuning)
        names = [column.name for column in COLUMNS]
        text = ", ".join(names)
        values = ", ".join(f"s.{name}" for name in names)
        self._step("fill", 2)
        self._guard(store, lock, opened.segment_buckets)
        commit_id = ground.environment.new_id()

        def fill(uncertain: bool) -> Statement:
            if is_open(store):  # by another restore of the same backup: it is everybody's now
                raise Settled(None)
            # What is there is left alone: the same again after a lost answer or a stop is safe.
            return Statement(
                RESTORE_BACKUP,
                lambda view: (
                    f"MERGE INTO {store.relation} AS t USING {view} AS s ON {_SAME} "
                    f"WHEN NOT MATCHED THEN INSERT ({text}) VALUES ({values})"
                ),
                rows,
                bulk=True,
            )

        try:
            writer.commit(
                fill,
                commit_id,
                RESTORE_BACKUP,
                lambda: [ground.caller.counting(backup=manifest.identity, rows=manifest.rows)],
                ground.deadline,
            )
        except Settled:
            return
        ground.environment.at("restore-backup.filled")
        if manifest.runs is not None:
            runs = self._files.runs(manifest.attempt)
            RunLog(*self._beside(opened)).restore(runs, ground.deadline)
        self._step("compare", 3)
        wrong = differences(
            contents(rows, names), contents(store.rows(store.head().version), names)
        )
        if wrong and not is_open(store):
            raise BrokenBackup(
                f"What was restored to {opened.location} is not what the backup holds: "
                f"{'; '.join(wrong)}. It is not opened to anybody; remove it and try again.",
                path=self._files.path,
            )
        ground.environment.at("restore-backup.compared")
        self._step("open", 4)
        self._open(store, lock)

    def _guard(self, store: Store, lock: TableLock, buckets: int) -> None:
        """Has the table refuse rows in other buckets than those that it has.

        I2: catalogs that were open before may know another number, and nothing of this table. Only
        the table itself can tell them for sure, and it costs a publish no question.
        """
        with lock.held(self._ground.deadline), self._ground.deadline.not_counting():
            if _CONSTRAINT in store.detail().properties:
                return
            try:
                store.session.sql(
                    f"ALTER TABLE {store.relation} ADD CONSTRAINT {BUCKETS_CONSTRAINT} "
                    f"CHECK (bucket = {bucket_sql(buckets)})"
                )
            except Exception:  # another restore was quicker, or only the answer was lost
                if _CONSTRAINT not in store.detail().properties:
                    raise

    def _open(self, store: Store, lock: TableLock) -> None:
        """Takes the mark away: from now on it is a catalog."""
        with lock.held(self._ground.deadline), self._ground.deadline.not_counting():
            try:
                store.session.sql(
                    f"ALTER TABLE {store.relation} UNSET TBLPROPERTIES IF EXISTS "
                    f"('{RESTORING_PROPERTY}')"
                )
            except Exception:  # another restore was quicker, or only the answer was lost
                if not is_open(store):
                    raise

    def _offer_views(self, opened: Opened) -> None:
        ground = self._ground
        views.create_views(ground.session, opened.location, replace=False)
        functions.create_functions(ground.session, opened.location, replace=False)
        # Unlike the others it knows which table it is of, and at which version it begins.
        audit_views.create_changes(ground.session, AuditLog(*self._beside(opened)))

    def _beside(self, opened: Opened) -> BesideParts:
        """What tables beside the entries are made of."""
        ground = self._ground
        local = opened.detail.path if ground.locked else None
        return lambda: ground.session, opened.location, local, ground.environment, ground.tuning

    def _report(self, manifest: Manifest, opened: Opened, repeated: bool = False) -> RestoreReport:
        return RestoreReport(
            self._files.path,
            str(opened.location),
            Store(self._ground.session, opened.location).head().version,
            manifest.version,
            opened.segment_buckets,
            dict(manifest.entries),
            0 if manifest.runs is None else manifest.runs.rows,
            repeated,
        )

    def _step(self, what: str, done: int) -> None:
        self._ground.progress(Step(f"restore: {what}", done, _STEPS))


def is_open(store: Store) -> bool:
    """Whether the mark of a restore is gone."""
    return RESTORING_PROPERTY not in store.detail().properties


def rows_of(files: BackupFiles, manifest: Manifest, buckets: int) -> DataFrame:
    """The rows of a backup with all columns of the table, in the buckets of such a catalog."""
    rows = files.entries(manifest.attempt)
    complete = rows.selectExpr("*", *nulls(rows.columns))
    return complete.selectExpr(
        *(
            f"{bucket_sql(buckets)} AS bucket" if column.name == "bucket" else column.name
            for column in COLUMNS
        )
    )


def check_vacant(session: SparkSession, location: str) -> None:
    """Refuses a place that no backup can be restored to; for those who have yet to make theirs.

    A catalog that a restore has made is let pass: it may have been of the same backup.

    Raises:
        PathOccupied: There is a catalog that no restore has made.
    """
    place = opening.absolute(session, Location.parse(location))
    there = opening.find(session, place, LAYOUT, restoring=True)
    if there is not None and RESTORED_PROPERTY not in there.detail.properties:
        raise _occupied(there.location)


def _occupied(location: Location) -> PathOccupied:
    return PathOccupied(
        f"There is a catalog at {location} already. Restore to another location, or let it go back "
        "to the backup by a rollback.",
        location=str(location),
    )
