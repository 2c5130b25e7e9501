"""What an open catalog is made of: its table, session and queue, and the parts that verbs share."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.backfill.completer import Completer
from catalog.cache.cache import Caches
from catalog.commit.committer import Committer, OperationCounters
from catalog.config import Settings
from catalog.context import Context
from catalog.contracts.enforcement import KnownTerms
from catalog.delta import tables
from catalog.delta.audit_log import AuditLog
from catalog.delta.layout import Layout
from catalog.delta.location import Location, TableLock, absolute
from catalog.delta.queue import CommitQueue
from catalog.delta.runs import RunLog
from catalog.delta.session import own_session, tuning
from catalog.delta.store import Store
from catalog.delta.writer import Writer
from catalog.environment import Deadline, Environment
from catalog.errors import CatalogNotFound
from catalog.model import check_actor
from catalog.read.api import SchemaReader
from catalog.segments.drop import Dropper
from catalog.segments.frame import FramePublisher
from catalog.segments.group import Publisher
from catalog.segments.staging import Staging
from catalog.settings.api import EffectiveSettings
from catalog.settings.model import default_of
from catalog.tasks.store import TaskTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


class Components:
    """What an open catalog makes once, and shares with the catalogs of its tasks' runs."""

    def __init__(
        self,
        context: Context,
        lock: TableLock,
        local: Path | None,
        effective: EffectiveSettings,
    ) -> None:
        spark, location, environment = context.spark, context.location, context.environment
        buckets = context.opened.segment_buckets
        tuned = tuning(spark)
        self.lock = lock
        self.effective = effective
        self.staging = Staging(
            lambda: own_session(spark), location, Staging.lock_file_of(local), tuned
        )
        side = (lambda: own_session(spark), location, local, environment, tuned)
        self.run_log = RunLog(*side)
        self.audit_log = AuditLog(*side)
        # Of its own, with a session of its own: a heartbeat must not wait for a long commit.
        self.tasks = TaskTable(RunLog(*side), environment)
        self.caches = Caches()
        self.schemas = SchemaReader(context, self.caches)
        terms = KnownTerms(context.store, buckets)
        self.publisher = Publisher(context.writer, buckets, terms, environment)
        self.frames = FramePublisher(
            context.writer,
            self.staging,
            context.queue,
            buckets,
            terms,
            lambda: Deadline(context.setting("deadline")),
            environment,
        )
        self.dropper = Dropper(context.writer, buckets, environment)
        self.completer = Completer(context.writer, buckets, terms, environment)
        self.committer = Committer(context.writer, buckets, environment, OperationCounters())

    def close(self) -> None:
        self.caches.stop()
        self.staging.close()
        self.run_log.close()
        self.audit_log.close()
        self.tasks.close()


def open_components(
    spark: SparkSession,
    location: str | os.PathLike[str],
    settings: Settings,
    environment: Environment,
    layout: Layout,
    *,
    create: bool,
    actor: str,
    run_id: str,
    session_name: str,
    read_only: bool,
) -> tuple[Context, Components, bool]:
    """The context and the parts of the catalog at a location, and whether it was created now."""
    own = own_session(spark)
    place = absolute(own, Location.parse(location))
    opened = tables.find(own, place, layout)
    created = False
    if opened is None:
        if not create:
            raise CatalogNotFound(
                f"There is no catalog at {place}, and it is not to be created here.",
                location=str(place),
            )
        opened = tables.create(
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
    store = Store(own, opened.location)
    local = opened.detail.path if settings.file_lock else None
    lock = TableLock.of(local)
    given = dict(settings.given)
    if settings.deadline is not None:
        given["deadline"] = settings.deadline
    effective = EffectiveSettings(store, given, settings.fallback)
    context = Context(
        spark=spark,
        store=store,
        opened=opened,
        layout=layout,
        writer=Writer(store, lock, environment, tuning(spark)),
        queue=CommitQueue(),
        environment=environment,
        setting=effective.value,
        actor=check_actor("actor", actor),
        run_id=check_actor("run_id", run_id),
        session_name=check_actor("session", session_name),
        read_only=read_only,
    )
    return context, Components(context, lock, local, effective), created
