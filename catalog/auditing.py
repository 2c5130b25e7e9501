"""Who changed what, when and why: the verbs of `Catalog` for the audit."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from catalog.audit.history import CHANGES_DDL, AuditHistory
from catalog.audit.model import COMMIT_DDL, HistoryQuery, Moment, window
from catalog.audit.roller import Roller, RollReport
from catalog.context import Call
from catalog.environment import Environment
from catalog.model import Kind, check_actor, check_positive
from catalog.operating import Operating
from catalog.progress import Progress, silent
from catalog.sql import audit_views
from catalog.words import chosen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger(__name__)


class Auditing(Operating):
    """The verbs of `Catalog` that tell what happened."""

    _environment: Environment

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
        """The newest commits, or changes of one key: who did what, when, why, and in which run.

        It reads what is in the log, and before that what was rolled into the audit table. Versions
        that neither has are a row with the verb `gap`.

        Without key and kind there is a row for each commit: version, timestamp, verb, actors,
        reasons, runs, sessions, commit_id, and callers, which says these of each caller. With one
        of them there is a row for each changed row, with the callers that it can be from, and
        beside it what the row was before and is after.

        Args:
            limit: at most so many rows.
            key: id of a segment, fingerprint, key of an object, name of a setting; or the name of a
                datasource, which stands for all of its segments, or the id of an operation, for
                all of its rows.
            kind: changes of one kind of rows: schema, retired, segment, object, setting, …
            since: a version, a moment, or a time before now.
            until: the same.
            actor: only what this one did.
        """
        query = HistoryQuery(
            window(since, until, self._environment.clock()),
            check_positive("limit", limit),
            None if key is None else check_actor("key", key),
            None if kind is None else chosen(Kind, "kind", kind).value,
            actor,
        )
        history = AuditHistory(self._audit_log, self._opened.detail.table_id)
        if query.of_rows:
            return self._spark.createDataFrame(history.changes(query), CHANGES_DDL)
        return self._spark.createDataFrame(history.commits(query), COMMIT_DDL)

    def roll_audit(
        self,
        *,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
        progress: Progress = silent,
    ) -> RollReport:
        """Copies who changed which keys into the audit table, before the log forgets it.

        `maintain` does so before it removes files; call this where something else does. It may be
        stopped and run again at any time, also by two at once: each version is kept once. What
        comes too late is recorded as a gap.
        """
        if not dry_run:
            self._check_writable()
        return self._roll(
            self._context.call(actor=actor, reason=reason, deadline=deadline, progress=progress),
            dry_run,
        )

    def _roll(self, call: Call, dry_run: bool) -> RollReport:
        report = Roller(self._context, call, self._audit_log, self._opened.detail.table_id).roll(
            dry_run
        )
        if report.rolled and not dry_run and self.location.path is None:
            self._renew_changes()
        return report

    def _renew_changes(self) -> None:
        """Makes the persistent view anew: its feed has to begin within the retention."""
        try:
            audit_views.create_changes(self._store.session, self._audit_log)
        except PySparkException as error:
            # Whoever rolls may have no right to it; what was rolled is there all the same.
            log.warning("The view changes could not be made anew: %s", error)
