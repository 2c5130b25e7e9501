"""`catalog.inspect`: every view of the catalog as a DataFrame, and as SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from catalog.context import Context
from catalog.delta.audit_log import AUDIT, AuditLog
from catalog.delta.runs import RUNS, RunLog, create_tasks_view
from catalog.delta.store import AsOf
from catalog.sql import audit_views, functions, views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class InspectApi:
    """The views. A frame stays at the version at which it was made.

    `as_of` is a version, a time or an `Epoch`; by default the newest version.
    """

    def __init__(self, context: Context, run_log: RunLog, audit_log: AuditLog) -> None:
        self._context = context
        self._run_log = run_log
        self._audit_log = audit_log

    def schemas(self, as_of: AsOf = None) -> DataFrame:
        """Live schemas."""
        return self._view("schemas", as_of)

    def schema_columns(self, as_of: AsOf = None) -> DataFrame:
        """Columns of live schemas, nested ones by path."""
        return self._view("schema_columns", as_of)

    def segments(self, as_of: AsOf = None) -> DataFrame:
        """Segments."""
        return self._view("segments", as_of)

    def segments_without_schema(self, as_of: AsOf = None) -> DataFrame:
        """Segments without a schema, with the reason where a backfill failed."""
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
        """Schemas that a clean-up has retired and will purge."""
        return self._view("retired_schemas", as_of)

    def objects(self, as_of: AsOf = None) -> DataFrame:
        """Objects with their bodies and links."""
        return self._view("objects", as_of)

    def object_links(self, as_of: AsOf = None) -> DataFrame:
        """Links between objects, one row each."""
        return self._view("object_links", as_of)

    def operations(self, as_of: AsOf = None) -> DataFrame:
        """Operations with their states, parts and leases; age and expiry are those of now."""
        return self._view("operations", as_of)

    def claims(self, as_of: AsOf = None) -> DataFrame:
        """Claims of undecided operations, one row for each key and part."""
        return self._view("claims", as_of)

    def named_schemas(self, as_of: AsOf = None) -> DataFrame:
        """Named schemas with their modes and current versions."""
        return self._view("named_schemas", as_of)

    def schema_versions(self, name: str | None = None, as_of: AsOf = None) -> DataFrame:
        """Versions of all named schemas, or of one."""
        frame = self._view("schema_versions", as_of)
        return frame if name is None else frame.where(F.col("name") == F.lit(name))

    def contracts(self, as_of: AsOf = None) -> DataFrame:
        """Contracts of datasources and the limits of their tables, one row each."""
        return self._view("contracts", as_of)

    def retention_rules(self, as_of: AsOf = None) -> DataFrame:
        """Rules of retention."""
        return self._view("retention_rules", as_of)

    def create_views(self, prefix: str = "") -> list[str]:
        """Creates the SQL views and returns their names.

        For a path they are temporary views of the session; in a schema they are persistent and
        exist from the start. A catalog of an older layout has some only after `upgrade`.
        """
        if self._context.location.path is None:
            self._context.check_writable()
        made = views.create_views(self._context.spark, self._context.location, prefix)
        if self._context.location.path is not None and self._run_log.exists():
            self._run_log.frame(self._context.spark).createOrReplaceTempView(prefix + RUNS)
            made.append(prefix + RUNS)
        if self._context.location.path is not None and self._audit_log.exists():
            self._audit_log.frame(self._context.spark).createOrReplaceTempView(prefix + AUDIT)
            made.append(prefix + AUDIT)
        made.append(audit_views.create_changes(self._context.spark, self._audit_log, prefix))
        # In a table of an earlier release no task was run yet.
        if self._run_log.exists() and not self._run_log.lacking():
            made.append(create_tasks_view(self._context.spark, self._context.location, prefix))
        return made

    def create_functions(self, prefix: str = "") -> list[str]:
        """Creates SQL functions such as `schema_of(segment_id)` and returns their names.

        For a path they are temporary functions of the session; in a schema they are persistent and
        exist from the start.
        """
        if self._context.location.path is None:
            self._context.check_writable()
        return functions.create_functions(self._context.spark, self._context.location, prefix)

    def _view(self, name: str, as_of: AsOf) -> DataFrame:
        context = self._context
        pinned = context.store.pinned(context.version(as_of))
        return context.spark.sql(views.query_at(context.spark, name, pinned))
