"""The caches of a catalog, and who announces to them what is not published yet."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from catalog.backfill.backfiller import WaitingSearch
from catalog.backfill.completer import Completed, Storer
from catalog.backfill.model import Completion
from catalog.cache.cache import Cache
from catalog.cache.courier import Courier
from catalog.cache.live import Beside, LiveCache
from catalog.cache.loader import Loader
from catalog.cache.places import Places
from catalog.cache.quarantine import Quarantine
from catalog.cache.resolver import Resolver
from catalog.config import Settings
from catalog.environment import Environment
from catalog.errors import InvalidInput
from catalog.files.footer import read_few
from catalog.files.paths import Format
from catalog.files.storage import local_path
from catalog.inquiry import Inquiry
from catalog.model import Caller, PublishResult, Segment, check_datasources, check_positive
from catalog.progress import Progress, silent
from catalog.realtime.board import Board
from catalog.realtime.follower import Follower
from catalog.realtime.stream import StreamAnnouncer
from catalog.words import chosen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The folder beside the table in which streaming jobs announce open segments.
ANNOUNCEMENTS = "announcements"
MOST_PENDING = 100_000
DEFAULT_TTL = timedelta(minutes=2)


class Caching(Inquiry):
    """The verbs of `Catalog` that give caches and announcers."""

    _settings: Settings
    _environment: Environment

    @abstractmethod
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
    ) -> PublishResult: ...

    @abstractmethod
    def _complete(
        self, completions: Sequence[Completion], caller: Caller, deadline: float | None = None
    ) -> Completed:
        """Fills in what was found of segments, in a commit of its own."""

    @abstractmethod
    def _caller(self, actor: str | None, reason: str) -> Caller: ...

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
            resolve: find the schema of a segment that was published without one in its data when
                somebody asks for it, answer at once, and store it in the background. Call `stop`
                in the end.
            realtime: know the open segments that streaming jobs announce, as of the last poll.
            format: the format of locations that do not say theirs, for `resolve`.
            most_pending: so many answers are kept until they are stored; more are found again.
        """
        only = check_datasources(datasources)
        loader = Loader(self._store, only)
        if not resolve and not realtime:
            cache = Cache(self._spark, loader)
        else:
            places = Places(check_positive("most_pending", most_pending), self._environment.at)
            follower = Follower(self._board()) if realtime else None
            beside = Beside(places, follower)
            if resolve:
                self._check_writable()
                form = None if format is None else chosen(Format, "format", format)
                beside = self._resolving(beside, form)
            cache = LiveCache(self._spark, loader, beside)
        self._caches.add(cache)
        if load:
            cache.reload()
        return cache

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
        small file for each writer, beside the table or in the folder of the settings.

        Args:
            writer: the name of the job, which no other has while it runs.
            ttl: announcements that are not renewed for so long are forgotten.
            takeover: take the place of another writer of this name that seems to be alive.
            actor: who publishes when segments are closed.
            reason: why.
        """
        self._check_writable()
        return StreamAnnouncer(
            self._board(),
            writer,
            ttl=ttl,
            takeover=takeover,
            publish=partial(self.publish, actor=actor, reason=reason),
        )

    def _board(self) -> Board:
        given = self._settings.announcements
        if given is None and self.location.path is None:
            raise InvalidInput(
                f"The catalog {self.location} is in a metastore and has no folder for "
                'announcements; open it with Settings(announcements="/Volumes/…") or another '
                "path that its writers and readers share.",
                location=str(self.location),
            )
        if given is not None:
            return Board(given)
        # As Spark knows it: a bare path may mean another file system than the local one.
        home = self._opened.detail.uri.rpartition("/")[0]
        folder = f"{home}/{ANNOUNCEMENTS}"
        return Board(local_path(folder) or folder)

    def _resolving(self, beside: Beside, format: Format | None) -> Beside:
        """The same with what finds schemas in the data and stores them."""
        buckets = self._opened.segment_buckets
        caller = self._caller(None, "found when it was asked for")

        def commit(completions: Sequence[Completion]) -> Completed:
            return self._complete(completions, caller)

        clock = self._environment.clock
        quarantine = Quarantine(clock)
        courier = Courier(beside.places, Storer(commit, clock), quarantine)
        search = WaitingSearch(self._store, buckets, None, everything=True)
        resolver = Resolver(
            beside.places,
            courier,
            quarantine,
            lambda names: search.named(names, buckets),
            partial(read_few, self._spark, open_file=self._settings.open_file),
            clock,
            format,
        )
        return replace(beside, resolver=resolver, courier=courier)
