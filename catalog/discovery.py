"""What a catalog learns from the data itself: files to publish, schemas to backfill."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial

from catalog.backfill.backfiller import Backfiller, WaitingSearch
from catalog.backfill.model import BackfillReport
from catalog.caching import Caching
from catalog.context import Context
from catalog.environment import Deadline
from catalog.files.footer import Footer, read_footers
from catalog.files.paths import Format, Place
from catalog.files.publisher import FilesPublisher, FilesReport, FilesRequest, Verbs
from catalog.model import (
    Caller,
    DropResult,
    OnExisting,
    PublishResult,
    Segment,
    check_datasource,
    check_datasources,
    check_positive,
)
from catalog.progress import Progress, silent
from catalog.segments.drop import Selection, as_seen
from catalog.words import chosen


class Discovery(Caching):
    _context: Context
    """The verbs of `Catalog` that ask the data what it is."""

    @abstractmethod
    def _drop(self, selection: Selection, caller: Caller, until: Deadline) -> DropResult: ...

    @abstractmethod
    def _deadline(self, seconds: float | None) -> Deadline: ...

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
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
        progress: Progress = silent,
    ) -> FilesReport:
        """Publishes files as segments, with the schemas, rows and bytes that they tell themselves.

        Footers are read on the executors, and published a batch at a time. A broken file is
        reported and the rest goes on. What is published already is passed by, so a run that was
        stopped is simply run again. Names of folders, such as day=1, are not taken for columns.

        Args:
            datasource: whose segments they become. The name of each is the file's path below the
                part of the pattern that has no wildcards.
            pattern: files, such as `/data/orders/**/*.parquet`; a folder with everything in it; or
                the path of a Delta table, whose partitions are taken from its log.
            format: parquet, orc, json, csv or delta, where names do not say so. Schemas of JSON and
                CSV are inferred from a sample, and marked so.
            remove_missing: drop segments that the pattern fits and whose files are gone.
            replace_changed: publish files anew that are not what was published; they are only
                reported otherwise.
            batch: how many files go into one commit; if not given, the setting
                publish_files.batch.
            dry_run: only list and compare.
            actor: who publishes.
            reason: why.
            deadline: seconds that each commit may wait for others before giving up.
            progress: is told of each step.
        """
        if not dry_run:
            self._check_writable()
        check_datasource(datasource)
        request = FilesRequest(
            datasource,
            os.fspath(pattern),
            None if format is None else chosen(Format, "format", format),
            remove_missing,
            replace_changed,
            check_positive("batch", self._chosen("publish_files.batch", batch)),
            dry_run,
        )
        caller = self._caller(actor, reason)

        def publish(segments: Sequence[Segment], replace: bool) -> PublishResult:
            return self.publish(
                segments,
                on_existing=OnExisting.REPLACE if replace else OnExisting.REFUSE,
                actor=actor,
                reason=reason,
                deadline=deadline,
            )

        def drop(seen: Mapping[str, str]) -> DropResult:
            return self._drop(as_seen(seen), caller, self._deadline(deadline))

        verbs = Verbs(self._described, publish, drop)
        buckets = self._buckets()
        publisher = FilesPublisher(self._spark, self._store, buckets, verbs, progress, request)
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
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
        progress: Progress = silent,
    ) -> BackfillReport:
        """Finds the schemas of segments that were published without one, and stores them.

        The footers of their files are read on the executors, and stored a batch at a time. It may
        be stopped at any point and run again, also by two at once. What somebody else publishes,
        replaces or drops meanwhile is never overwritten. A segment whose data does not say its
        schema is put into quarantine with the reason, and tried again after a pause that grows.

        Args:
            limit: look at so many at most.
            datasources: only in these.
            format: the format of locations that do not say theirs.
            retry_quarantined: try those in quarantine again now.
            batch: how many segments go into one commit; if not given, the setting backfill.batch.
            dry_run: only count.
            actor: who runs it.
            reason: why.
            deadline: seconds that each commit may wait for others before giving up.
            progress: is told of each batch; the doors show how long the rest will take.
        """
        if not dry_run:
            self._check_writable()
        search = WaitingSearch(
            self._store,
            self._buckets(),
            check_datasources(datasources),
            retry_quarantined,
        )
        backfiller = Backfiller(
            self._context,
            self._context.call(actor=actor, reason=reason, deadline=deadline, progress=progress),
            partial(self._complete, deadline=deadline),
            search,
            self._described,
            None if format is None else chosen(Format, "format", format),
        )
        most = None if limit is None else check_positive("limit", limit)
        size = check_positive("batch", self._chosen("backfill.batch", batch))
        return backfiller.run(most, size, dry_run)

    def _described(self, places: Sequence[Place]) -> list[Footer | str]:
        """What the data at some places says of itself, asked in the user's session."""
        return read_footers(self._spark, places, self._settings.open_file)
