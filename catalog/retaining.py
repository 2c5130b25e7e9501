"""Retention: the verbs of `Catalog` for rules by which segments go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from catalog.config import Settings
from catalog.delta.store import AsOf
from catalog.files.storage import Copier, Files
from catalog.model import DropResult, check_datasources, check_positive
from catalog.operating import Operating
from catalog.progress import Progress, silent
from catalog.retention.archiver import Archiver
from catalog.retention.report import RetentionReport
from catalog.retention.retainer import DEFAULT_LIMIT, Retainer
from catalog.segments.drop import as_seen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Retaining(Operating):
    """The verbs of `Catalog` for retention."""

    _settings: Settings

    def retain(
        self,
        *,
        datasources: Sequence[str] | None = None,
        dry_run: bool = False,
        limit: int = DEFAULT_LIMIT,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
        progress: Progress = silent,
    ) -> RetentionReport:
        """Drops segments that go by the rules of retention, and archives their data where told.

        A rule is an object `retention/datasource/<name>` or `retention/database/<name>`. It may be
        stopped at any point and run again, also by two at once. A segment that somebody replaces
        meanwhile stays. Data files are never deleted: they are their owner's.

        Args:
            datasources: only these; each must have a rule.
            dry_run: only say what would be done.
            limit: try at most so many segments, the oldest of each datasource first.
            actor: who runs it.
            reason: why.
            deadline: seconds that each commit may wait for others before giving up.
            progress: is told of each batch.

        Raises:
            UnknownObject: One of the datasources has no rule.
        """
        if not dry_run:
            self._check_writable()
        only = check_datasources(datasources)
        call = self._context.call(actor=actor, reason=reason, deadline=deadline, progress=progress)

        def drop(seen: Mapping[str, str]) -> DropResult:
            return self._drop(as_seen(seen), call.caller, self._deadline(deadline))

        retainer = Retainer(self._context, call, self._buckets(), drop, self._archiver)
        return retainer.run(only, check_positive("limit", limit), dry_run)

    def retention_rules(self, as_of: AsOf = None) -> DataFrame:
        """Rules of retention, now or as of a version or a time."""
        return self._view("retention_rules", as_of)

    def _archiver(self, archive: str, datasource: str) -> Archiver:
        open_file = self._settings.open_file
        # What only opens files cannot write any; pyarrow does, with what the environment has.
        files = open_file if isinstance(open_file, Files) else Files()
        return Archiver(self._spark, self._store, Copier(open_file, files), archive, datasource)
