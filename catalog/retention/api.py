"""`catalog.retention`: segments are dropped, and archived, by rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Unpack

from catalog.context import CallOptions, Context
from catalog.delta.store import AsOf
from catalog.files.storage import Copier, Files, OpenFile
from catalog.model import DropResult, check_datasources, check_positive
from catalog.retention.archive import Archiver
from catalog.retention.report import RetentionReport
from catalog.retention.retainer import DEFAULT_LIMIT, Retainer
from catalog.segments.drop import Dropper, as_seen
from catalog.sql.api import InspectApi

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RetentionApi:
    """Rules are objects `retention/datasource/<name>` or `retention/database/<name>`."""

    def __init__(
        self, context: Context, dropper: Dropper, inspect: InspectApi, open_file: OpenFile
    ) -> None:
        self._context = context
        self._dropper = dropper
        self._inspect = inspect
        self._open_file = open_file

    def apply(
        self,
        *,
        datasources: Sequence[str] | None = None,
        dry_run: bool = False,
        limit: int = DEFAULT_LIMIT,
        **options: Unpack[CallOptions],
    ) -> RetentionReport:
        """Drops segments by the rules, and archives their data first where a rule says so.

        It may be stopped at any point and run again, also concurrently. A segment that is replaced
        meanwhile stays. Data files are never deleted: they belong to their owner.

        Args:
            datasources: only these; each must have a rule.
            dry_run: only report what would be done.
            limit: try at most this many segments, the oldest of each datasource first.

        Raises:
            UnknownObject: One of the datasources has no rule.
        """
        context = self._context
        only = check_datasources(datasources)
        call = context.call(**options) if dry_run else context.writing(**options)

        def drop(seen: Mapping[str, str]) -> DropResult:
            each = call.anew()
            return context.alone(
                each, lambda: self._dropper.drop(as_seen(seen), each.caller, each.deadline)
            )

        retainer = Retainer(context, call, context.buckets, drop, self._archiver)
        return retainer.run(only, check_positive("limit", limit), dry_run)

    def rules(self, as_of: AsOf = None) -> DataFrame:
        """The rules, with the datasources that each is for."""
        return self._inspect.retention_rules(as_of)

    def _archiver(self, archive: str, datasource: str) -> Archiver:
        # What only opens files cannot write any; pyarrow does, with what the environment has.
        files = self._open_file if isinstance(self._open_file, Files) else Files()
        return Archiver(
            self._context.spark,
            self._context.store,
            Copier(self._open_file, files),
            archive,
            datasource,
        )
