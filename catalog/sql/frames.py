"""The catalog as data frames and as views: everything that only reads, pinned to one version."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from catalog.delta.audit_log import AUDIT, AuditLog
from catalog.delta.location import Location
from catalog.delta.runs import RUNS, RunLog, create_tasks_view
from catalog.delta.store import AsOf, Store
from catalog.errors import InvalidInput, VersionNotFound
from catalog.sql import audit_views, functions, views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The other kinds are how operations come about; nobody is to see what is only staged.
_VISIBLE = "kind IN ('schema', 'retired', 'segment', 'object', 'named', 'version')"


class Frames(ABC):
    """What `Catalog` shows as frames. A frame stays at the version at which it was made.

    `as_of` is a version, a time or an `Epoch`.
    """

    _spark: SparkSession
    _store: Store
    _run_log: RunLog
    _audit_log: AuditLog

    @property
    @abstractmethod
    def location(self) -> Location:
        """Where the catalog is, under the one path that it is written by."""

    @abstractmethod
    def _check_writable(self) -> None: ...

    @abstractmethod
    def _chosen(self, name: str, given: Any) -> Any:
        """What a call was given, or else what the setting of this name says."""

    def changes(self, after: int, until: int | None = None) -> DataFrame:
        """What was added, removed and changed after one version, up to another or the newest.

        What operations prepare is in it from the version on at which it is visible.
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
        """What each version after one changed: segments added, removed and changed, and by how much
        the rows and the live schemas grew."""
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
        """Recorded runs of jobs, one row each; none if no job has run yet."""
        return self._run_log.frame(self._spark)

    def schemas(self, as_of: AsOf = None) -> DataFrame:
        """Live schemas, now or as of a version or a time; the frame is pinned to that version."""
        return self._view("schemas", as_of)

    def schema_columns(self, as_of: AsOf = None) -> DataFrame:
        """Columns of live schemas, nested ones by path."""
        return self._view("schema_columns", as_of)

    def segments(self, as_of: AsOf = None) -> DataFrame:
        """Segments, now or as of a version or a time."""
        return self._view("segments", as_of)

    def segments_without_schema(self, as_of: AsOf = None) -> DataFrame:
        """Segments whose schema is not known yet, with what was wrong where one was looked for."""
        return self._view("segments_without_schema", as_of)

    def segment_schemas(self, as_of: AsOf = None) -> DataFrame:
        """Segments with the definitions of their schemas."""
        return self._view("segment_schemas", as_of)

    def datasources(self, as_of: AsOf = None) -> DataFrame:
        """Datasources with counts of segments, schemas and rows."""
        return self._view("datasources", as_of)

    def datasource_columns(self, as_of: AsOf = None) -> DataFrame:
        """Columns of datasources, over all schemas that their segments have."""
        return self._view("datasource_columns", as_of)

    def orphan_schemas(self, as_of: AsOf = None) -> DataFrame:
        """Live schemas that nothing refers to."""
        return self._view("orphan_schemas", as_of)

    def retired_schemas(self, as_of: AsOf = None) -> DataFrame:
        """Schemas on their way out."""
        return self._view("retired_schemas", as_of)

    def objects(self, as_of: AsOf = None) -> DataFrame:
        """Objects with their bodies and links, now or as of a version or a time."""
        return self._view("objects", as_of)

    def object_links(self, as_of: AsOf = None) -> DataFrame:
        """Links between objects, one row each."""
        return self._view("object_links", as_of)

    def operations(self, as_of: AsOf = None) -> DataFrame:
        """Operations with their states, parts and leases; age and expiry are those of now."""
        return self._view("operations", as_of)

    def claims(self, as_of: AsOf = None) -> DataFrame:
        """What operations that are open or ready claim, one row for each key and part."""
        return self._view("claims", as_of)

    def create_views(self, prefix: str = "") -> list[str]:
        """Makes the views available to SQL and returns their names.

        For a path they are temporary views of the given session; in a schema they are persistent,
        and exist since its creation. A catalog of an older layout has some only after `upgrade`.
        """
        if self.location.path is None:
            self._check_writable()
        made = views.create_views(self._spark, self.location, prefix)
        if self.location.path is not None and self._run_log.exists():
            self._run_log.frame(self._spark).createOrReplaceTempView(prefix + RUNS)
            made.append(prefix + RUNS)
        if self.location.path is not None and self._audit_log.exists():
            self._audit_log.frame(self._spark).createOrReplaceTempView(prefix + AUDIT)
            made.append(prefix + AUDIT)
        made.append(audit_views.create_changes(self._spark, self._audit_log, prefix))
        # In a table of an earlier release no task was run yet.
        if self._run_log.exists() and not self._run_log.lacking():
            made.append(create_tasks_view(self._spark, self.location, prefix))
        return made

    def create_functions(self, prefix: str = "") -> list[str]:
        """Makes SQL functions such as `schema_of(segment_id)` available and returns their names.

        For a path they are temporary functions of the given session; in a schema they are
        persistent, and exist since its creation.
        """
        if self.location.path is None:
            self._check_writable()
        return functions.create_functions(self._spark, self.location, prefix)

    def _feed(self, after: int, until: int | None) -> DataFrame:
        """The change feed after one version, up to another."""
        last = self._store.version_as_of(until)
        if isinstance(after, bool) or not isinstance(after, int) or not 0 <= after <= last:
            raise InvalidInput(
                f"Changes are read after version 0 to {last}, not after {after!r}.", after=after
            )
        try:
            # With nothing in between the range would end before it begins.
            feed = self._store.changes(min(after + 1, last), last)
            _ = feed.schema  # on Connect this is when it is noticed
            return feed.where(f"_commit_version > {int(after)}")
        except PySparkException as error:
            raise VersionNotFound(
                f"What changed after version {after} can no longer be read ({error}). Start from "
                "a newer one.",
                after=after,
            ) from error

    def _view(self, name: str, as_of: AsOf) -> DataFrame:
        version = self._store.version_as_of(as_of)
        pinned = self._store.pinned(version)
        return self._spark.sql(views.query_at(self._spark, name, pinned))
