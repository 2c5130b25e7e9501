"""The catalog that users open: each verb is a call into one module."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, cast

from pyspark.sql import DataFrame

from catalog.auditing import Auditing
from catalog.backfill.completing import Completed, Completer
from catalog.backfill.waiting import Completion
from catalog.commit.committer import Committer, Request
from catalog.commit.counters import Counters
from catalog.config import Settings, user
from catalog.configuring import Configuring
from catalog.context import Errand
from catalog.contracting import Contracting
from catalog.contracts.keeper import ContractKeeper
from catalog.contracts.reading import KnownTerms
from catalog.delta import opening
from catalog.delta.audit_log import AuditLog
from catalog.delta.layout import LAYOUT, Layout
from catalog.delta.location import Location
from catalog.delta.lock import TableLock
from catalog.delta.queue import CommitQueue
from catalog.delta.runs import Run, RunLog
from catalog.delta.session import own_session, release, tuning
from catalog.delta.store import Store
from catalog.delta.writer import Writer
from catalog.environment import Deadline, Environment
from catalog.errors import (
    CatalogNotFound,
    InvalidInput,
    ReadOnly,
    UpgradeNeeded,
)
from catalog.keeping import Keeping
from catalog.maintenance.cleanup import Cleaner, CleanupReport
from catalog.maintenance.maintain import Maintainer, MaintainReport, check_retention
from catalog.model import Caller, DropResult, OnExisting, PublishResult, Segment, check_actor
from catalog.names.registrar import Registrar
from catalog.naming import Naming
from catalog.objects.keeper import Keeper
from catalog.operating import Operating
from catalog.operations.service import Operations
from catalog.preserving import Preserving
from catalog.progress import Progress, silent
from catalog.retaining import Retaining
from catalog.segments.batch import Batch, batch_of
from catalog.segments.drop import Dropper, Selection, select
from catalog.segments.frame import FramePublisher
from catalog.segments.group import Publisher, PublishRequest
from catalog.segments.staging import Staging
from catalog.settings.keeper import SettingKeeper
from catalog.settings.known import default_of
from catalog.sql import audit_views, functions, views
from catalog.tasking import Tasking
from catalog.tasks.runner import Runner
from catalog.tasks.table import TaskTable
from catalog.words import chosen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class UpgradeReport:
    """What an upgrade of the layout did, or would do."""

    before: int
    after: int
    statements: tuple[str, ...]
    dry_run: bool = False


class Catalog(
    Keeping, Naming, Contracting, Auditing, Configuring, Tasking, Preserving, Retaining, Operating
):
    """A catalog of segments and their schemas, kept in one Delta table.

    Open one with `Catalog.open`. Calls from many threads are welcome: publishes that wait at the
    same time share a commit.
    """

    def __init__(
        self,
        spark: SparkSession,
        session: SparkSession,
        opened: opening.Opened,
        layout: Layout,
        settings: Settings,
        environment: Environment,
        actor: str,
        run_id: str,
        session_name: str,
        read_only: bool,
    ) -> None:
        """Used by `open`."""
        super().__init__(spark, Store(session, opened.location), opened)
        self._layout = layout
        self._settings = settings
        self._layers = None
        self._layers_lock = threading.Lock()
        self._environment = environment
        self._actor = actor
        self._run_id = run_id
        self._session_name = session_name
        self._read_only = read_only
        local = opened.detail.path if settings.file_lock else None
        self._lock = TableLock.beside(local)
        tuned = tuning(spark)
        self._writer = Writer(self._store, self._lock, environment, tuned)
        self._staging = Staging(
            lambda: own_session(spark), opened.location, Staging.lock_file_of(local), tuned
        )
        beside = (lambda: own_session(spark), opened.location, local, environment, tuned)
        self._run_log = RunLog(*beside)
        self._audit_log = AuditLog(*beside)
        # Of its own, with a session of its own: a beat must not wait for a long commit.
        tasks = TaskTable(RunLog(*beside), environment)
        self._runner = Runner(tasks, environment, self._as_run)
        self._queue = CommitQueue()
        terms = KnownTerms(self._store, opened.segment_buckets)
        self._publisher = Publisher(self._writer, opened.segment_buckets, terms, environment)
        self._frames = FramePublisher(
            self._writer,
            self._staging,
            self._queue,
            opened.segment_buckets,
            terms,
            lambda: self._deadline(None),
            environment,
        )
        self._dropper = Dropper(self._writer, opened.segment_buckets, environment)
        self._completer = Completer(self._writer, opened.segment_buckets, terms, environment)
        self._counters = Counters()
        self._committer = Committer(
            self._writer, opened.segment_buckets, environment, self._counters
        )
        self._keeper = Keeper(self._committer)
        self._contracts = ContractKeeper(self._committer)
        self._registrar = Registrar(self._committer)
        self._setting_keeper = SettingKeeper(self._committer)
        self._operations = Operations(
            self._committer, self._queue, self._frames, self._caches, self._writing
        )

    @classmethod
    def open(
        cls,
        spark: SparkSession,
        location: str | os.PathLike[str],
        *,
        read_only: bool = False,
        create: bool = True,
        actor: str | None = None,
        run_id: str = "",
        session: str = "",
        settings: Settings | None = None,
        environment: Environment | None = None,
        layout: Layout = LAYOUT,
    ) -> Catalog:
        """Opens the catalog at a path or in a schema, and creates it if there is none.

        Args:
            spark: a session with Delta; it is never changed.
            location: a path (`/data/meta`, `s3://bucket/meta`) or a schema name (`main.meta`).
            read_only: never write; a catalog that is not there is an error.
            create: create the catalog if there is none; otherwise that is an error.
            actor: who changes are recorded for, unless a call says otherwise.
            run_id: the run of a job that changes belong to; it stands in their commits' metadata.
            session: whoever's session changes are made in, such as a token or the name of a
                notebook; it stands beside the actor.
            settings: see `Settings`.
            environment: clock, ids and pauses, for tests.
            layout: the table layout that this code knows, for tests.
        """
        settings = settings or Settings()
        own = own_session(spark)
        place = opening.absolute(own, Location.parse(location))
        opened = opening.find(own, place, layout)
        created = False
        if opened is None:
            if read_only or not create:
                raise CatalogNotFound(
                    f"There is no catalog at {place}, and it is not to be created here.",
                    location=str(place),
                )
            opened = opening.create(
                own,
                place,
                layout,
                settings.segment_buckets,
                settings.file_lock,
                Deadline(settings.deadline or default_of("deadline")),
            )
            created = True
        if opened.layout_found < layout.number:
            log.warning(
                "The catalog at %s has layout %d and this release writes layout %d: it can be "
                "read; call upgrade() before writing.",
                opened.location,
                opened.layout_found,
                layout.number,
            )
        catalog = cls(
            spark,
            own,
            opened,
            layout,
            settings,
            environment or Environment(),
            check_actor("actor", actor if actor is not None else user()),
            check_actor("run_id", run_id),
            check_actor("session", session),
            read_only,
        )
        if created and opened.location.path is None:
            views.create_views(own, opened.location, replace=False)
            functions.create_functions(own, opened.location, replace=False)
            audit_views.create_changes(own, catalog._audit_log, replace=False)
        return catalog

    def __repr__(self) -> str:
        return f"Catalog({str(self.location)!r})"

    def close(self) -> None:
        """Ends the background work of its caches, and the catalog's own sessions."""
        self._caches.stop()
        self._staging.close()
        self._run_log.close()
        self._audit_log.close()
        self._runner.close()
        release(self._store.session)

    def __enter__(self) -> Catalog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def actor(self) -> str:
        """Who changes are recorded for, unless a call says otherwise."""
        return self._actor

    # --- changing ---------------------------------------------------------------------------------

    def publish(
        self,
        segments: Iterable[Segment] | DataFrame,
        *,
        on_existing: str = "refuse",
        wait: bool = False,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
        progress: Progress = silent,
    ) -> PublishResult:
        """Makes segments and their schemas visible, all of them or none.

        Args:
            segments: `Segment` objects, or a DataFrame with the columns segment_id (or datasource
                and name), schema (DDL or Spark's JSON), num_rows, and if known size_bytes,
                location, starts_at, ends_at. Where schema and num_rows are null, a backfill finds
                them in the data at the location.
            on_existing: what to do about ids that are there with other content: "refuse" the whole
                publish, "skip" them, or "replace" them. The same content again is no change.
            wait: return when the caches of this catalog have reached the version.
            actor: who publishes.
            reason: why; both stand in the commit's user metadata.
            deadline: seconds to wait for others before giving up.
            progress: is told of each step of publishing a DataFrame.
        """
        self._check_writable()
        mode = chosen(OnExisting, "on_existing", on_existing)
        caller = self._caller(actor, reason)
        until = self._deadline(deadline)
        if isinstance(segments, DataFrame):
            result = self._frames.publish(segments, caller, mode, until, progress)
        else:
            result = self._publish_listed(batch_of(segments, caller), mode, until)
        if wait:
            self._caches.follow(result.version, result)
        return result

    def _publish_listed(self, batch: Batch, mode: OnExisting, until: Deadline) -> PublishResult:
        if not batch.segments:
            return PublishResult(self._store.head().version, "", (), 0, 0)
        result = self._queue.submit(PublishRequest(self._publisher, batch, until, mode))
        return cast(PublishResult, result)

    def drop(
        self,
        segment_ids: Iterable[str] | None = None,
        *,
        datasource: str | None = None,
        starts_at: datetime | None = None,
        ends_at: datetime | None = None,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
    ) -> DropResult:
        """Removes segments: these ids, or all of a datasource, or those within an interval.

        A segment is within an interval if its own interval lies in [starts_at, ends_at) entirely.
        Ids that are not there are counted, not an error. Schemas stay until a clean-up.
        """
        selection = select(segment_ids, datasource, starts_at, ends_at)
        if dry_run:
            return self._dropper.count(selection)
        self._check_writable()
        return self._drop(selection, self._caller(actor, reason), self._deadline(deadline))

    def cleanup(
        self,
        *,
        grace: timedelta | None = None,
        dry_run: bool = False,
        limit: int | None = None,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
        progress: Progress = silent,
    ) -> CleanupReport:
        """Retires schemas that nothing uses, and purges those that were retired long enough ago.

        Args:
            grace: how long ago a schema must have been published to be retired, and retired to be
                purged. It is comfort, not safety: zero is safe too. If not given, the setting
                cleanup.grace.
            dry_run: only say what would be done.
            limit: at most so many are retired, and so many purged, in this run; if not given, the
                setting cleanup.limit.
            actor: who cleans up.
            reason: why.
            deadline: seconds to wait for others before giving up.
            progress: is told of each step.
        """
        if not dry_run:
            self._check_writable()
        grace, limit = self._chosen("cleanup.grace", grace), self._chosen("cleanup.limit", limit)
        errand = self._errand(actor, reason, deadline, progress)
        report = Cleaner(errand).clean(grace, limit, dry_run)
        if not dry_run:
            self._frames.sweep(errand.deadline)
        return report

    def maintain(
        self,
        *,
        optimize: bool = True,
        audit: bool = True,
        vacuum: bool = True,
        retain: timedelta | None = None,
        poller_lag: timedelta | None = None,
        cut_off_pollers: bool = False,
        partitions: Iterable[tuple[str, int]] | None = None,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
        progress: Progress = silent,
    ) -> MaintainReport:
        """Compacts the table, sorted so that publishing reads few files, and removes old files.

        Args:
            optimize: rewrite partitions that have many small files.
            audit: roll the history into the audit table, before anything is removed.
            vacuum: remove files that no version within the retention needs.
            retain: set the retention, for this time and from now on; if not given, the setting
                maintain.retain, or else the table's own.
            poller_lag: how far behind a poller may be. A shorter retention is refused, because such
                a poller would have to load everything anew. If not given, the setting
                maintain.poller_lag.
            cut_off_pollers: allow it all the same.
            partitions: compact only these, as kind and bucket, and nothing beside them.
            dry_run: only say what would be done.
            actor: who maintains.
            reason: why.
            deadline: seconds to wait for others before giving up.
            progress: is told of each step.
        """
        if not dry_run:
            self._check_writable()
        errand = self._errand(actor, reason, deadline, progress)
        maintainer = Maintainer(errand)
        if retain is not None and not vacuum:
            raise InvalidInput("retain is for what vacuum removes; leave it out, or vacuum too.")
        if vacuum:
            retain = self._chosen("maintain.retain", retain)
        poller_lag = self._chosen("maintain.poller_lag", poller_lag)
        retention = maintainer.retention() if retain is None else retain
        if vacuum:
            check_retention(retention, poller_lag, cut_off_pollers, self._lock.real)
        tables = (self._run_log, self._audit_log)
        beside = [table.writer for table in tables if table.exists()]
        staging = self._staging.writer(self._environment)
        return maintainer.maintain(
            retention,
            [*beside, *([staging] if staging else [])],
            optimize,
            vacuum,
            dry_run,
            partial(self._roll, errand, dry_run) if audit else None,
            None if partitions is None else set(partitions),
        )

    def record(self, run: Run, *, deadline: float | None = None) -> None:
        """Records a run of a job in the `runs` table, in place of what was recorded of it."""
        self._check_writable()
        until = self._deadline(deadline)
        self._queue.alone(lambda: self._run_log.record(run, until), until)

    def upgrade(self, *, dry_run: bool = False) -> UpgradeReport:
        """Brings a table with an older layout up to the one that this release writes."""
        found, wanted = self._opened.layout_found, self._layout.number
        session, place = self._store.session, self._opened.location
        present = opening.present_columns(session, place)
        statements = self._layout.upgrade_statements(self._store.relation, found, present)
        report = UpgradeReport(found, wanted, tuple(statements), dry_run)
        if dry_run or not statements:
            return report
        if self._read_only:
            raise ReadOnly("The catalog was opened with read_only=True; open it for writing.")

        def run() -> None:
            with self._lock.held(until), until.not_counting():
                for statement in statements:
                    session.sql(statement)

        until = self._deadline(None)
        self._queue.alone(run, until)
        if place.path is None:
            views.create_views(session, place)
            functions.create_functions(session, place)
            audit_views.create_changes(session, self._audit_log)
        opened = opening.find(session, place, self._layout)
        assert opened is not None
        self._opened = opened
        return report

    # --- inside -----------------------------------------------------------------------------------

    def _check_writable(self) -> None:
        if self._read_only:
            raise ReadOnly("The catalog was opened with read_only=True; open it for writing.")
        if self._opened.layout_found < self._layout.number:
            raise UpgradeNeeded(
                f"The catalog at {self.location} has layout {self._opened.layout_found} and this "
                f"release writes layout {self._layout.number}; run `strata upgrade` or call "
                "upgrade() first.",
                location=str(self.location),
            )

    def _complete(
        self, completions: Sequence[Completion], caller: Caller, deadline: float | None = None
    ) -> Completed:
        until = self._deadline(deadline)
        return self._queue.alone(
            lambda: self._completer.complete(completions, caller, until), until
        )

    def _drop(self, selection: Selection, caller: Caller, until: Deadline) -> DropResult:
        return self._queue.alone(lambda: self._dropper.drop(selection, caller, until), until)

    def _as_run(self, run_id: str) -> Catalog:
        """The same catalog, whose commits name another run."""
        other = copy(self)
        other._run_id = run_id
        other._operations = copy(self._operations)
        other._operations.asking = other._writing
        return other

    def _caller(self, actor: str | None, reason: str) -> Caller:
        return Caller(
            check_actor("actor", self._actor if actor is None else actor),
            check_actor("reason", reason),
            self._run_id,
            self._session_name,
        )

    def _asking(self, actor: str | None, reason: str, deadline: float | None) -> Request:
        return Request(self._caller(actor, reason), self._deadline(deadline))

    def _writing(self, actor: str | None, reason: str, deadline: float | None) -> Request:
        """The same for calls on an operation, which may be held for longer than it is open."""
        self._check_writable()
        return self._asking(actor, reason, deadline)

    def _errand(
        self, actor: str | None, reason: str, deadline: float | None, progress: Progress
    ) -> Errand:
        return Errand(
            self._writer,
            self._queue,
            self._environment,
            self._caller(actor, reason),
            self._deadline(deadline),
            progress,
        )

    def _deadline(self, seconds: float | None) -> Deadline:
        given = self._settings.deadline if seconds is None else seconds
        return Deadline(self._chosen("deadline", given))
