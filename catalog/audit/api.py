"""`catalog.audit`: who changed what, when and why, and the recorded runs of jobs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Unpack

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from catalog.audit.history import CHANGES_DDL, AuditHistory
from catalog.audit.model import COMMIT_DDL, HistoryQuery, Moment, window
from catalog.audit.roller import Roller, RollReport
from catalog.context import Call, CallOptions, Context
from catalog.delta.audit_log import AuditLog
from catalog.delta.runs import Run, RunLog
from catalog.errors import InvalidInput, VersionNotFound
from catalog.model import Kind, check_actor, check_positive
from catalog.sql import audit_views
from catalog.words import chosen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger(__name__)

# Staged rows are not visible; the other kinds are bookkeeping.
_VISIBLE = "kind IN ('schema', 'retired', 'segment', 'object', 'named', 'version')"


class AuditApi:
    """The history of the catalog."""

    def __init__(self, context: Context, audit_log: AuditLog, run_log: RunLog) -> None:
        self._context = context
        self._audit_log = audit_log
        self._run_log = run_log

    def history(
        self,
        limit: int = 20,
        *,
        key: str | None = None,
        kind: str | None = None,
        since: Moment = None,
        until: Moment = None,
        actor: str | None = None,
    ) -> DataFrame:
        """The newest commits, or the newest changes of one key: who, what, when, why, which run.

        It reads Delta's log, and before that what was copied into the audit table. Versions that
        neither has are a row with the verb `gap`.

        Without key and kind there is a row for each commit: version, timestamp, verb, actors,
        reasons, runs, sessions, commit_id, and callers with these of each caller. With one of them
        there is a row for each changed row, with its possible callers and with the row before and
        after.

        Args:
            limit: at most this many rows.
            key: id of a segment, fingerprint, key of an object, name of a setting; or a datasource
                for all of its segments, or the id of an operation for all of its rows.
            kind: changes of one kind of rows: schema, retired, segment, object, setting, …
            since: a version, a time, or a duration before now.
            until: the same.
            actor: only changes by this actor.
        """
        query = HistoryQuery(
            window(since, until, self._context.environment.clock()),
            check_positive("limit", limit),
            None if key is None else check_actor("key", key),
            None if kind is None else chosen(Kind, "kind", kind).value,
            actor,
        )
        history = AuditHistory(self._audit_log, self._context.opened.detail.table_id)
        spark = self._context.spark
        if query.of_rows:
            return spark.createDataFrame(history.changes(query), CHANGES_DDL)
        return spark.createDataFrame(history.commits(query), COMMIT_DDL)

    def changes(self, after: int, until: int | None = None) -> DataFrame:
        """Rows that were added, removed and changed after one version, up to another.

        Changes of an operation appear with the version that makes them visible.
        """
        return (
            self._feed(after, until)
            .where(f"_change_type <> 'update_preimage' AND {_VISIBLE}")
            .selectExpr(
                "_commit_version AS version",
                "_commit_timestamp AS changed_at",
                "CASE _change_type WHEN 'insert' THEN 'added' WHEN 'delete' THEN 'removed' "
                "ELSE 'changed' END AS change",
                "kind",
                "key",
                "fingerprint",
                "num_rows",
                "changed_by",
            )
        )

    def growth(self, after: int, until: int | None = None) -> DataFrame:
        """For each version: segments added, removed and changed, growth of rows and schemas."""
        sign = "IF(_change_type IN ('insert', 'update_postimage'), 1, -1)"
        return (
            self._feed(after, until)
            .groupBy("_commit_version", "_commit_timestamp")
            .agg(
                F.expr("count_if(kind = 'segment' AND _change_type = 'insert') AS added"),
                F.expr("count_if(kind = 'segment' AND _change_type = 'delete') AS removed"),
                F.expr(
                    "count_if(kind = 'segment' AND _change_type = 'update_postimage') AS changed"
                ),
                F.expr(
                    "sum(IF(kind = 'segment', CAST(num_rows AS DECIMAL(38, 0)), 0) * "
                    f"{sign}) AS rows"
                ),
                F.expr(f"sum(IF(kind = 'schema', {sign}, 0)) AS schemas"),
            )
            .withColumnsRenamed({"_commit_version": "version", "_commit_timestamp": "changed_at"})
        )

    def runs(self) -> DataFrame:
        """Recorded runs of jobs, one row each."""
        return self._run_log.frame(self._context.spark)

    def record(self, run: Run, **options: Unpack[CallOptions]) -> None:
        """Records a run of a job in the `runs` table, replacing an earlier record of it."""
        call = self._context.writing(**options)
        self._context.alone(call, lambda: self._run_log.record(run, call.deadline))

    def roll(self, *, dry_run: bool = False, **options: Unpack[CallOptions]) -> RollReport:
        """Copies who changed which keys into the audit table, before the log forgets it.

        `maintain` does so before it removes files; call this where something else removes them. It
        may be stopped and run again, also concurrently: each version is kept once. Versions that
        are lost already are recorded as a gap.
        """
        if not dry_run:
            self._context.check_writable()
        return roll_history(self._context, self._context.call(**options), self._audit_log, dry_run)

    def _feed(self, after: int, until: int | None) -> DataFrame:
        """The change feed after one version, up to another."""
        store = self._context.store
        last = store.version_as_of(until)
        if isinstance(after, bool) or not isinstance(after, int) or not 0 <= after <= last:
            raise InvalidInput(
                f"Changes are read after version 0 to {last}, not after {after!r}.", after=after
            )
        try:
            # With nothing in between the range would end before it begins.
            feed = store.changes(min(after + 1, last), last)
            _ = feed.schema  # on Connect this is when it is noticed
            return feed.where(f"_commit_version > {int(after)}")
        except PySparkException as error:
            raise VersionNotFound(
                f"What changed after version {after} can no longer be read ({error}). Start from "
                "a newer one.",
                after=after,
            ) from error


def roll_history(context: Context, call: Call, audit_log: AuditLog, dry_run: bool) -> RollReport:
    """Copies the history into the audit table, within any call."""
    report = Roller(context, call, audit_log, context.opened.detail.table_id).roll(dry_run)
    if report.rolled and not dry_run and context.location.path is None:
        try:
            # The feed of the persistent view has to begin within the retention.
            audit_views.create_changes(context.store.session, audit_log)
        except PySparkException as error:
            # The actor may lack the right to it; what was copied is there all the same.
            log.warning("The view changes could not be replaced: %s", error)
    return report
