"""The catalog that users open: it composes the capabilities and has the daily verbs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Unpack, cast

from pyspark.sql import DataFrame

from catalog.audit.api import AuditApi, roll_history
from catalog.backfill.backfiller import Backfiller, WaitingSearch
from catalog.backfill.completer import Completed
from catalog.backfill.model import BackfillReport, Completion
from catalog.backups.api import BackupsApi
from catalog.backups.restore import RestoreReport, restore_catalog
from catalog.cache.api import board_of, open_cache
from catalog.cache.cache import Cache
from catalog.components import Components, open_components
from catalog.config import Settings, user
from catalog.context import Call, CallOptions, Context
from catalog.contracts.api import ContractsApi
from catalog.delta import tables
from catalog.delta.layout import LAYOUT, Layout
from catalog.delta.location import Location
from catalog.delta.session import release
from catalog.delta.store import AsOf
from catalog.environment import Deadline, Environment
from catalog.errors import InvalidInput, ReadOnly, RestoreUnfinished
from catalog.evolution.merge import Policy
from catalog.evolution.projection import OnLoss
from catalog.files.footer import read_footers
from catalog.files.paths import Format
from catalog.files.publisher import FilesPublisher, FilesReport, FilesRequest, Verbs
from catalog.maintenance.cleanup import Cleaner, CleanupReport
from catalog.maintenance.compaction import Maintainer, MaintainReport, check_retention
from catalog.model import (
    Caller,
    DropResult,
    OnExisting,
    PublishResult,
    Segment,
    UpgradeReport,
    check_actor,
    check_datasource,
    check_datasources,
    check_positive,
)
from catalog.names.api import NamesApi
from catalog.objects.api import ObjectsApi
from catalog.operations.api import OperationsApi
from catalog.operations.operation import Operation
from catalog.progress import silent
from catalog.read.datasource import DatasourceSchema
from catalog.read.scan import Where
from catalog.realtime.announcer import StreamAnnouncer
from catalog.retention.api import RetentionApi
from catalog.schema import Schema
from catalog.segments.batch import batch_of
from catalog.segments.drop import Selection, as_seen, select
from catalog.segments.group import PublishRequest
from catalog.settings.api import SettingsApi
from catalog.settings.model import default_of
from catalog.sql import audit_views, functions, views
from catalog.sql.api import InspectApi
from catalog.sql.stats import Stats, stats_of
from catalog.tasks.api import TasksApi
from catalog.tasks.runner import Runner
from catalog.verify import Verifier, VerifyReport
from catalog.words import chosen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

MOST_PENDING = 100_000
DEFAULT_TTL = timedelta(minutes=2)


class Catalog:
    """A catalog of segments and their schemas, kept in one Delta table.

    Open one with `Catalog.open`. It may be used from many threads: publishes that wait at the same
    time share a commit. Verbs that write take the keyword arguments of `CallOptions`: `actor`,
    `reason`, `deadline` and `progress`.

    Attributes:
        objects: named things of the platform, with links and declared types.
        names: schemas with a name, numbered versions and a compatibility mode.
        contracts: what the segments of a datasource must be like.
        operations: changes in parts that become visible in one commit, and epochs.
        settings: configuration that is stored in the catalog.
        tasks: long work in steps that goes on when its process dies.
        audit: who changed what, when and why, and the recorded runs of jobs.
        backups: copies of a version elsewhere, and rolling back to an earlier one.
        retention: segments are dropped, and archived, by rules.
        inspect: every view as a DataFrame, and as SQL.
    """

    def __init__(self, context: Context, settings: Settings, shared: Components) -> None:
        """Used by `open`."""
        self._context = context
        self._settings = settings
        self._shared = shared
        committer = shared.committer
        self.inspect = InspectApi(context, shared.run_log, shared.audit_log)
        self.settings = SettingsApi(context, committer, shared.effective)
        self.objects = ObjectsApi(context, committer)
        self.names = NamesApi(context, committer, shared.schemas.schema)
        self.contracts = ContractsApi(context, committer)
        self.operations = OperationsApi(context, committer, shared.frames, shared.caches)
        self.audit = AuditApi(context, shared.audit_log, shared.run_log)
        self.backups = BackupsApi(context, committer, shared.run_log)
        self.retention = RetentionApi(context, shared.dropper, self.inspect, settings.open_file)
        runner = Runner(shared.tasks, context.environment, self._as_run)
        self.tasks = TasksApi(context, runner, shared.run_log)

    # --- opening ----------------------------------------------------------------------------------

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
            read_only: never write; a missing catalog is an error.
            create: create the catalog if there is none; otherwise that is an error.
            actor: for whom changes are recorded, unless a call gives another.
            run_id: the run of a job that changes belong to; kept in their commits' metadata.
            session: the session in which changes are made, such as a token or the name of a
                notebook; recorded next to the actor.
            settings: see `Settings`.
            environment: clock, ids and pauses, for tests.
            layout: the table layout that this code knows, for tests.
        """
        settings = settings or Settings()
        context, shared, created = open_components(
            spark,
            location,
            settings,
            environment or Environment(),
            layout,
            create=create and not read_only,
            actor=user() if actor is None else actor,
            run_id=run_id,
            session_name=session,
            read_only=read_only,
        )
        catalog = cls(context, settings, shared)
        if created and context.location.path is None:
            catalog._create_persistent_views(replace=False)
        return catalog

    @classmethod
    def restore(
        cls,
        spark: SparkSession,
        path: str | os.PathLike[str],
        location: str | os.PathLike[str],
        *,
        segment_buckets: int | None = None,
        run_id: str = "",
        settings: Settings | None = None,
        environment: Environment | None = None,
        layout: Layout = LAYOUT,
        **options: Unpack[CallOptions],
    ) -> RestoreReport:
        """Makes a new catalog from a backup, at a location where there is none.

        Its rows are those of the backup; its versions begin anew, so caches load it whole. Until
        it is complete nobody can open it, and the same call again continues an interrupted one.

        Args:
            spark: a session with Delta; it is never changed.
            path: where the backup is.
            location: where the catalog is to be: a path or a schema.
            segment_buckets: the number of segment buckets, if not that of the backup.
            run_id: the run of a job that this belongs to.
            settings: see `Settings`; its number of buckets is ignored.
            environment: clock, ids and pauses, for tests.
            layout: the table layout that this code knows, for tests.

        Raises:
            BackupNotFound: There is no backup at the path, or it was not completed.
            BrokenBackup: The backup is damaged; nothing was created.
            PathOccupied: There is another catalog at the location.
            RestoreUnfinished: A restore of another backup to the location was not completed.
        """
        settings = settings or Settings()
        actor, waits = options.get("actor"), options.get("deadline")
        waits = settings.deadline if waits is None else waits
        caller = Caller(
            check_actor("actor", user() if actor is None else actor),
            check_actor("reason", options.get("reason", "")),
            check_actor("run_id", run_id),
        )
        deadline = Deadline(default_of("deadline") if waits is None else waits)
        call = Call(caller, deadline, options.get("progress", silent))
        return restore_catalog(
            spark,
            os.fspath(path),
            location,
            call,
            environment or Environment(),
            layout,
            settings.file_lock,
            segment_buckets,
        )

    def close(self) -> None:
        """Ends the background work of its caches, and the catalog's own sessions."""
        self._shared.close()
        release(self._context.store.session)

    def __enter__(self) -> Catalog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Catalog({str(self.location)!r})"

    @property
    def location(self) -> Location:
        """Where the catalog is, as an absolute path or a schema name."""
        return self._context.location

    @property
    def actor(self) -> str:
        """For whom changes are recorded, unless a call gives another."""
        return self._context.actor

    @property
    def version(self) -> int:
        """The newest version of the table."""
        return self._context.store.head().version

    @property
    def table_id(self) -> str | None:
        """Delta's id of the table that is there now; none if there is no complete one.

        A restore makes another table, whose versions begin anew.
        """
        try:
            found = tables.find(self._context.store.session, self.location, LAYOUT)
        except RestoreUnfinished:
            return None
        return None if found is None else found.detail.table_id

    def upgrade(self, *, dry_run: bool = False) -> UpgradeReport:
        """Brings a table with an older layout up to the one that this release writes."""
        context = self._context
        session, layout = context.store.session, context.layout
        present = tables.present_columns(session, self.location)
        found = context.opened.layout_found
        statements = layout.upgrade_statements(context.store.relation, found, present)
        report = UpgradeReport(found, layout.number, tuple(statements), dry_run)
        if dry_run or not statements:
            return report
        if context.read_only:
            raise ReadOnly("The catalog was opened with read_only=True; open it for writing.")
        call = context.call()

        def run() -> None:
            with self._shared.lock.held(call.deadline), call.deadline.not_counting():
                for statement in statements:
                    session.sql(statement)

        context.alone(call, run)
        if self.location.path is None:
            self._create_persistent_views()
        opened = tables.find(session, self.location, layout)
        assert opened is not None
        context.opened = opened
        return report

    # --- writing ----------------------------------------------------------------------------------

    def publish(
        self,
        segments: Iterable[Segment] | DataFrame,
        *,
        on_existing: str = "refuse",
        wait: bool = False,
        **options: Unpack[CallOptions],
    ) -> PublishResult:
        """Makes segments and their schemas visible, all of them or none.

        Args:
            segments: `Segment` objects, or a DataFrame with the columns segment_id (or datasource
                and name), schema (DDL or Spark's JSON), num_rows, and if known size_bytes,
                location, starts_at, ends_at. Where schema and num_rows are null, a backfill finds
                them in the data at the location.
            on_existing: for ids that exist with other content: "refuse" the whole publish, "skip"
                them, or "replace" them. The same content again is no change.
            wait: return when the caches of this catalog have reached the version.
        """
        mode = chosen(OnExisting, "on_existing", on_existing)
        call = self._context.writing(**options)
        if isinstance(segments, DataFrame):
            result = self._shared.frames.publish(
                segments, call.caller, mode, call.deadline, call.progress
            )
        else:
            result = self._publish_listed(segments, mode, call)
        if wait:
            self._shared.caches.follow(result.version, result)
        return result

    def _publish_listed(
        self, segments: Iterable[Segment], mode: OnExisting, call: Call
    ) -> PublishResult:
        batch = batch_of(segments, call.caller)
        if not batch.segments:
            return PublishResult(self.version, "", (), 0, 0)
        request = PublishRequest(self._shared.publisher, batch, call.deadline, mode)
        return cast(PublishResult, self._context.queue.submit(request))

    def publish_files(
        self,
        datasource: str,
        pattern: str | os.PathLike[str],
        *,
        format: str | None = None,
        remove_missing: bool = False,
        replace_changed: bool = False,
        batch: int | None = None,
        dry_run: bool = False,
        **options: Unpack[CallOptions],
    ) -> FilesReport:
        """Publishes files as segments, with the schemas, rows and bytes of their footers.

        Footers are read on the executors, and published a batch at a time. A broken file is
        reported and the rest goes on. Published files are skipped, so an interrupted run is simply
        run again. Names of folders, such as day=1, are not columns.

        Args:
            datasource: whose segments they become. The name of each is the file's path below the
                part of the pattern that has no wildcards.
            pattern: files, such as `/data/orders/**/*.parquet`; a folder with everything in it; or
                the path of a Delta table, whose partitions are taken from its log.
            format: parquet, orc, json, csv or delta, where names do not say so. Schemas of JSON and
                CSV are inferred from a sample, and marked so.
            remove_missing: drop segments that match the pattern and whose files are gone.
            replace_changed: publish files again that have changed since; otherwise they are only
                reported.
            batch: files in one commit; by default the setting publish_files.batch.
            dry_run: only list and compare.
        """
        context = self._context
        call = context.call(**options) if dry_run else context.writing(**options)
        check_datasource(datasource)
        request = FilesRequest(
            datasource,
            os.fspath(pattern),
            None if format is None else chosen(Format, "format", format),
            remove_missing,
            replace_changed,
            check_positive("batch", context.chosen("publish_files.batch", batch)),
            dry_run,
        )

        def publish(segments: Sequence[Segment], replacing: bool) -> PublishResult:
            mode = OnExisting.REPLACE if replacing else OnExisting.REFUSE
            return self._publish_listed(segments, mode, call.anew())

        def drop(seen: Mapping[str, str]) -> DropResult:
            return self._drop(as_seen(seen), call.anew())

        describe = partial(read_footers, context.spark, open_file=self._settings.open_file)
        publisher = FilesPublisher(
            context.spark,
            context.store,
            context.buckets,
            Verbs(describe, publish, drop),
            call.progress,
            request,
        )
        return publisher.run()

    def backfill(
        self,
        *,
        limit: int | None = None,
        datasources: Sequence[str] | None = None,
        format: str | None = None,
        retry_quarantined: bool = False,
        batch: int | None = None,
        dry_run: bool = False,
        **options: Unpack[CallOptions],
    ) -> BackfillReport:
        """Finds the schemas of segments that were published without one, and stores them.

        The footers of their files are read on the executors, and stored a batch at a time. It may
        be stopped at any point and run again, also concurrently. What is published, replaced or
        dropped meanwhile is never overwritten. A segment whose schema cannot be read is put into
        quarantine with the reason, and tried again after a growing pause.

        Args:
            limit: look at this many segments at most.
            datasources: only in these.
            format: the format of locations that do not say theirs.
            retry_quarantined: try those in quarantine again now.
            batch: segments in one commit; by default the setting backfill.batch.
            dry_run: only count.
        """
        context = self._context
        call = context.call(**options) if dry_run else context.writing(**options)
        search = WaitingSearch(
            context.store, context.buckets, check_datasources(datasources), retry_quarantined
        )
        backfiller = Backfiller(
            context,
            call,
            lambda completions, _: self._complete(completions, call.anew()),
            search,
            partial(read_footers, context.spark, open_file=self._settings.open_file),
            None if format is None else chosen(Format, "format", format),
        )
        most = None if limit is None else check_positive("limit", limit)
        size = check_positive("batch", context.chosen("backfill.batch", batch))
        return backfiller.run(most, size, dry_run)

    def _complete(self, completions: Sequence[Completion], call: Call) -> Completed:
        return self._context.alone(
            call,
            lambda: self._shared.completer.complete(completions, call.caller, call.deadline),
        )

    def drop(
        self,
        segment_ids: Iterable[str] | None = None,
        *,
        datasource: str | None = None,
        starts_at: datetime | None = None,
        ends_at: datetime | None = None,
        dry_run: bool = False,
        **options: Unpack[CallOptions],
    ) -> DropResult:
        """Removes segments: these ids, or all of a datasource, or those within an interval.

        A segment is within an interval if its own interval lies in [starts_at, ends_at) entirely.
        Ids that do not exist are counted, not an error. Schemas stay until a clean-up.
        """
        selection = select(segment_ids, datasource, starts_at, ends_at)
        if dry_run:
            return self._shared.dropper.count(selection)
        return self._drop(selection, self._context.writing(**options))

    def _drop(self, selection: Selection, call: Call) -> DropResult:
        return self._context.alone(
            call, lambda: self._shared.dropper.drop(selection, call.caller, call.deadline)
        )

    def operation(
        self,
        name: str,
        *,
        parts: int | None = None,
        lease: timedelta | None = None,
        id: str | None = None,
        **options: Unpack[CallOptions],
    ) -> Operation:
        """Opens an operation: changes in parts that become visible in one commit.

        The same as `operations.open`; `operations.get` gives the one with an id.
        """
        return self.operations.open(name, parts=parts, lease=lease, id=id, **options)

    def announcer(
        self,
        writer: str,
        *,
        ttl: timedelta = DEFAULT_TTL,
        takeover: bool = False,
        actor: str | None = None,
        reason: str = "",
    ) -> StreamAnnouncer:
        """Announces the schemas of segments that a streaming job has open and not published yet.

        Caches with `realtime=True` know them then. Nothing is committed: announcements are one
        small file for each writer, next to the table or in the folder of the settings.

        Args:
            writer: the name of the job, unique among those that run.
            ttl: announcements that are not renewed for this long expire.
            takeover: take the place of another writer of this name that seems to be alive.
            actor: for whom segments are published when they are closed.
            reason: why.
        """
        self._context.check_writable()
        return StreamAnnouncer(
            board_of(self._context, self._settings.announcements),
            writer,
            ttl=ttl,
            takeover=takeover,
            publish=partial(self.publish, actor=actor, reason=reason),
        )

    # --- reading ----------------------------------------------------------------------------------

    def segments(self, as_of: AsOf = None) -> DataFrame:
        """Segments, as of a version, a time, an `Epoch`, or now."""
        return self.inspect.segments(as_of)

    def schemas(self, as_of: AsOf = None) -> DataFrame:
        """Live schemas."""
        return self.inspect.schemas(as_of)

    def datasources(self, as_of: AsOf = None) -> DataFrame:
        """Datasources with counts of segments, schemas and rows."""
        return self.inspect.datasources(as_of)

    def stats(self, *, version: int | None = None) -> Stats:
        """The catalog in figures, at the newest version or another."""
        return stats_of(self._context.store, self._context.version(version))

    def schema(self, beginning: str, as_of: AsOf = None) -> Schema:
        """The schema with this fingerprint, or with any unique beginning of it.

        A whole fingerprint is looked up in memory first; concurrent callers share a load.
        """
        return self._shared.schemas.schema(beginning, as_of)

    def datasource_schema(
        self, datasource: str, *, as_of: AsOf = None, policy: str | None = None
    ) -> DatasourceSchema:
        """The merge of the schemas of a datasource's segments, with the origin of each column.

        A cache answers repeated questions faster. The policy is by default that of the datasource's
        contract, or strict.
        """
        return self._shared.schemas.datasource_schema(datasource, as_of, policy)

    def datasource_schemas(self, as_of: AsOf = None, policy: str = Policy.STRICT) -> DataFrame:
        """The merged schemas of all datasources.

        Columns: datasource, fingerprint, ddl, num_columns, num_schemas, num_segments and conflicts.
        """
        return self._shared.schemas.datasource_schemas(as_of, policy)

    def read(
        self,
        datasource: str,
        *,
        schema: Schema | str | StructType | None = None,
        as_of: AsOf = None,
        where: Where = None,
        policy: str | None = None,
        on_loss: str = OnLoss.REFUSE,
        format: str | None = None,
        options: Mapping[str, str] | None = None,
        segment_id: str | None = None,
    ) -> DataFrame:
        """The data of a datasource's segments as one frame, whatever their schemas.

        The files of each schema are read as such and projected to the wanted one: columns are found
        by name, cast, and filled with null. The frame stays at the version at which it was made.

        Args:
            datasource: its name.
            schema: the schema of the frame: a fingerprint or any unique beginning of one, a named
                one such as `orders@3` or `orders@current`, or a definition. By default the merge of
                all schemas of the datasource. Columns that it lacks are left out.
            as_of: the catalog as of a version, a time or an `Epoch`.
            where: only segments that overlap an interval `(from, until)`, or that fulfil a
                condition on the columns of the view `segments`. Rows are chosen by `.where` on the
                frame; that is pushed down to the files.
            policy: how columns without a common type are merged, see `merge`; by default that of
                the datasource's contract, or "strict".
            on_loss: "refuse" values that would not fit the schema, or read them as "null".
            format: the format of locations that do not say theirs: parquet, orc, json, csv, delta.
            options: for Spark's reader.
            segment_id: the name of a column for the id of each row's segment.

        Raises:
            WouldLose: Values of a column might not fit the schema.
            SchemaConflict: The schemas do not merge and the policy is strict.
            Unreadable: A segment has no location, no schema, or a format that is not known.
        """
        return self._shared.schemas.read(
            datasource, schema, as_of, where, policy, on_loss, format, options, segment_id
        )

    def cache(
        self,
        *,
        datasources: Sequence[str] | None = None,
        load: bool = True,
        resolve: bool = False,
        realtime: bool = False,
        format: str | None = None,
        most_pending: int = MOST_PENDING,
    ) -> Cache:
        """A snapshot in memory for lookups, of everything or of some datasources.

        Args:
            datasources: only these.
            load: read everything now; otherwise lookups raise `NotLoaded` until a poll or reload.
            resolve: when the schema of a segment that was published without one is looked up, find
                it in the data, answer, and store it in the background. Call `stop` in the end.
            realtime: know the open segments that streaming jobs announce, as of the last poll.
            format: the format of locations that do not say theirs, for `resolve`.
            most_pending: at most this many answers wait to be stored; more are found again.
        """
        context = self._context

        def complete(completions: Sequence[Completion]) -> Completed:
            return self._complete(completions, context.call(reason="found by a lookup"))

        if resolve:
            context.check_writable()
        cache = open_cache(
            context,
            datasources,
            board_of(context, self._settings.announcements) if realtime else None,
            complete if resolve else None,
            format,
            most_pending,
            self._settings.open_file,
        )
        self._shared.caches.add(cache)
        if load:
            cache.reload()
        return cache

    # --- upkeep -----------------------------------------------------------------------------------

    def cleanup(
        self,
        *,
        grace: timedelta | None = None,
        dry_run: bool = False,
        limit: int | None = None,
        **options: Unpack[CallOptions],
    ) -> CleanupReport:
        """Retires schemas that nothing uses, and purges those that were retired long enough ago.

        Args:
            grace: how long ago a schema must have been published to be retired, and retired to be
                purged. It is comfort, not safety: zero is safe too. By default the setting
                cleanup.grace.
            dry_run: only report what would be done.
            limit: retire at most this many, and purge at most this many; by default the setting
                cleanup.limit.
        """
        context = self._context
        call = context.call(**options) if dry_run else context.writing(**options)
        grace = context.chosen("cleanup.grace", grace)
        report = Cleaner(context, call).clean(
            grace, context.chosen("cleanup.limit", limit), dry_run
        )
        if not dry_run:
            self._shared.frames.sweep(call.deadline)
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
        **options: Unpack[CallOptions],
    ) -> MaintainReport:
        """Compacts the table, sorted so that publishing reads few files, and removes old files.

        Args:
            optimize: rewrite partitions that have many small files.
            audit: copy the history into the audit table, before anything is removed.
            vacuum: remove files that no version within the retention needs.
            retain: set the retention, now and from now on; by default the setting maintain.retain,
                or else the table's own.
            poller_lag: how far behind a poller may be. A shorter retention is refused, because such
                a poller would have to load everything again. By default the setting
                maintain.poller_lag.
            cut_off_pollers: allow it all the same.
            partitions: compact only these, as kind and bucket, and no other table.
            dry_run: only report what would be done.
        """
        context, shared = self._context, self._shared
        call = context.call(**options) if dry_run else context.writing(**options)
        maintainer = Maintainer(context, call)
        if retain is not None and not vacuum:
            raise InvalidInput("retain is for what vacuum removes; leave it out, or vacuum too.")
        if vacuum:
            retain = context.chosen("maintain.retain", retain)
        poller_lag = context.chosen("maintain.poller_lag", poller_lag)
        retention = maintainer.retention() if retain is None else retain
        if vacuum:
            check_retention(retention, poller_lag, cut_off_pollers, shared.lock.real)
        side = [table.writer for table in (shared.run_log, shared.audit_log) if table.exists()]
        staging = shared.staging.writer(context.environment)
        return maintainer.maintain(
            retention,
            [*side, *([staging] if staging else [])],
            optimize,
            vacuum,
            dry_run,
            partial(roll_history, context, call, shared.audit_log, dry_run) if audit else None,
            None if partitions is None else set(partitions),
        )

    def verify(
        self,
        *,
        version: int | None = None,
        since: int | None = None,
        **options: Unpack[CallOptions],
    ) -> VerifyReport:
        """Checks the promises I1 to I6.

        Args:
            version: the version to check; by default the newest.
            since: check every version from this one on too, by one replay of the change feed.
        """
        context = self._context
        last = context.version(version)
        if since is not None:
            context.version(since)
            if since > last:
                raise InvalidInput(f"since {since} is after version {last}.", since=since)
        verifier = Verifier(context.store, context.buckets, options.get("progress", silent))
        return verifier.verify(last, since)

    # --- inside -----------------------------------------------------------------------------------

    def _create_persistent_views(self, replace: bool = True) -> None:
        session = self._context.store.session
        views.create_views(session, self.location, replace=replace)
        functions.create_functions(session, self.location, replace=replace)
        audit_views.create_changes(session, self._shared.audit_log, replace=replace)

    def _as_run(self, run_id: str) -> Catalog:
        """The same catalog, whose commits name another run."""
        return Catalog(replace(self._context, run_id=run_id), self._settings, self._shared)
