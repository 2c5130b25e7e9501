"""The `runs` table: one row for each run of a job and for each task, and the view of tasks."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from pyspark.errors import PySparkException

from catalog.delta.failures import Failure, classify, first_line, mark
from catalog.delta.layout import ColumnSpec, View, columns_sql, ddl, properties_sql
from catalog.delta.location import Location
from catalog.delta.side_table import SideTable
from catalog.delta.statements import Statement
from catalog.environment import Deadline
from catalog.model import Caller
from catalog.schema.names import identifier, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

RUNS = "runs"

COLUMNS = (
    ColumnSpec("run_id", "STRING", "Random id of the run, also in the metadata of its commits"),
    ColumnSpec(
        "job",
        "STRING",
        "What was run: publish, publish-files, backfill, cleanup, maintain, verify, poll or drop",
    ),
    ColumnSpec("arguments", "STRING", "The arguments as a JSON document"),
    ColumnSpec("actor", "STRING", "Who it was run for"),
    ColumnSpec(
        "status",
        "STRING",
        "running, done, found, failed, gave_up or interrupted; of a task also queued or cancelled",
    ),
    ColumnSpec("started_at", "TIMESTAMP", "When it began"),
    ColumnSpec("ended_at", "TIMESTAMP", "When it ended; null while it runs, or if it was killed"),
    ColumnSpec("seen_at", "TIMESTAMP", "Its last heartbeat"),
    ColumnSpec("version_before", "BIGINT", "Version of the catalog when it began"),
    ColumnSpec("version_after", "BIGINT", "Version of the catalog when it ended"),
    ColumnSpec("figures", "MAP<STRING, DOUBLE>", "Its figures, by name"),
    ColumnSpec("error_condition", "STRING", "Stable name of the last error"),
    ColumnSpec("error_message", "STRING", "Message of that error"),
)
DDL = ddl(COLUMNS)
# Null in the rows of runs that are not tasks.
TASK_COLUMNS = (
    ColumnSpec("attempt", "INT", "How often the task was claimed; only the last owner can write"),
    ColumnSpec("owner", "STRING", "The process that runs it"),
    ColumnSpec("lease_until", "TIMESTAMP", "When the lease ends and any process may take it over"),
    ColumnSpec(
        "exclusive_key",
        "STRING",
        "Only one task with this key runs at a time; null if unlimited",
    ),
    ColumnSpec("step", "STRING", "The current step, or the last one"),
    ColumnSpec("step_started_at", "TIMESTAMP", "When that step began"),
    ColumnSpec("steps", "INT", "Number of known steps; planning may add some"),
    ColumnSpec("done", "BIGINT", "Progress of the current step at the last heartbeat"),
    ColumnSpec("total", "BIGINT", "The total of that progress"),
    ColumnSpec("results", "STRING", "Results of completed steps by name, as a JSON document"),
    ColumnSpec("retry_at", "TIMESTAMP", "After a failure: when it may be tried again"),
    ColumnSpec("stamp", "STRING", "Random id of the last write of the task"),
)
ALL_COLUMNS = (*COLUMNS, *TASK_COLUMNS)
_COMMENTS = {column.name: column.comment for column in ALL_COLUMNS}
# By name: a later release may have added columns to the table.
_NAMES = ", ".join(column.name for column in COLUMNS)
_VALUES = ", ".join(f"s.{column.name}" for column in COLUMNS)
_SET = ", ".join(f"{column.name} = s.{column.name}" for column in COLUMNS)
_SERIALIZABLE = {"delta.isolationLevel": "Serializable"}

# --- tasks ----------------------------------------------------------------------------------------

# Why a write of a task is refused; the key is the id of the task that conflicts.
SAME, BUSY, SEEN = "same", "busy", "seen"
_UNFINISHED = "t.attempt IS NOT NULL AND t.status IN ('queued', 'running')"
# The table has no partitions, so any concurrent commit makes the statement start again: a row that
# the checks do not meet is not there. They are in ON because that is what Delta guards.
_TASK_CHECKS = (
    f"CASE WHEN t.run_id <> s.run_id AND s.status = 'running' AND {_UNFINISHED} "
    f"AND t.job = s.job AND t.arguments = s.arguments THEN {mark(repr(SAME), 't.run_id')} "
    f"WHEN t.run_id <> s.run_id AND s.status = 'running' AND t.exclusive_key = s.exclusive_key "
    f"AND t.status = 'running' AND t.lease_until > s.seen_at THEN {mark(repr(BUSY), 't.run_id')} "
    "WHEN t.run_id <> s.run_id THEN false "
    "WHEN t.run_id = s.run_id "
    "AND NOT (t.attempt <=> s.seen_attempt AND t.stamp <=> s.seen_stamp) "
    f"THEN {mark(repr(SEEN), 't.run_id')} ELSE t.run_id = s.run_id END"
)


def change_task(relation: str, id: str, new: bool) -> Callable[[str], str]:
    """The MERGE that inserts a task, or updates it as it was read, unless another conflicts."""
    names = [column.name for column in ALL_COLUMNS]
    if new:
        values = ", ".join(f"s.{name}" for name in names)
        then = f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) VALUES ({values})"
    else:
        # A writer that does not know the figures keeps them.
        values = ", ".join(f"{name} = s.{name}" for name in names if name != "figures")
        then = f"WHEN MATCHED THEN UPDATE SET {values}, figures = coalesce(s.figures, t.figures)"
    return lambda view: (
        f"MERGE INTO {relation} AS t USING {view} AS s "
        f"ON (t.run_id = {literal(id)} OR ({_UNFINISHED})) AND {_TASK_CHECKS} {then}"
    )


TASKS_VIEW = View(
    "tasks",
    "Tasks, one row each: long work in steps that outlives its process",
    "SELECT run_id AS task_id, job AS name, arguments, status AS state, step, "
    "size(json_object_keys(results)) AS steps_done, steps, done, total, "
    "IF(status = 'running' AND done > 0 AND done <= total, CAST((unix_seconds(current_timestamp()) "
    "- unix_seconds(step_started_at)) * (total - done) / done AS BIGINT), NULL) AS seconds_left, "
    "owner, lease_until, status = 'running' AND lease_until <= current_timestamp() AS expired, "
    "attempt, exclusive_key, retry_at, results, figures, actor, started_at, seen_at, ended_at, "
    "error_condition, error_message FROM {runs} WHERE attempt IS NOT NULL",
    {
        "task_id": "Id of the task, which is also its run id in the metadata of commits",
        "name": "What it does: maintain, cleanup, …",
        "arguments": _COMMENTS["arguments"],
        "state": "queued (waits to be tried again), running, done, failed or cancelled",
        "step": _COMMENTS["step"],
        "steps_done": "Number of completed steps; they are never run again",
        **{name: _COMMENTS[name] for name in ("steps", "done", "total")},
        "seconds_left": "Estimated seconds until the current step is complete",
        **{name: _COMMENTS[name] for name in ("owner", "lease_until")},
        "expired": "Whether it is running and its lease has ended: its owner is gone",
        **{
            name: _COMMENTS[name]
            for name in (
                *("attempt", "exclusive_key", "retry_at", "results", "figures", "actor"),
                *("started_at", "seen_at", "ended_at", "error_condition", "error_message"),
            )
        },
    },
)


def tasks_query(runs: str) -> str:
    """The query of the view over a relation of runs."""
    return TASKS_VIEW.query.replace("{runs}", runs)


def create_tasks_view(
    session: SparkSession, location: Location, prefix: str = "", replace: bool = True
) -> str:
    """Creates the view: persistent in a metastore, temporary for a path; returns its name."""
    name = identifier(prefix + TASKS_VIEW.name)
    if location.path is None:
        name = ".".join([*map(identifier, location.schema), name])
    columns = ", ".join(f"{c} COMMENT {literal(t)}" for c, t in TASKS_VIEW.columns.items())
    how = "OR REPLACE " if replace else ""
    unless = "" if replace else "IF NOT EXISTS "
    kind = "VIEW" if location.path is None else "TEMPORARY VIEW"
    session.sql(
        f"CREATE {how}{kind} {unless}{name} ({columns}) COMMENT {literal(TASKS_VIEW.comment)} "
        f"AS {tasks_query(location.table('runs'))}"
    )
    return prefix + TASKS_VIEW.name


# --- runs -----------------------------------------------------------------------------------------


class Status(StrEnum):
    """The status of a run."""

    RUNNING = "running"
    DONE = "done"
    FOUND = "found"
    FAILED = "failed"
    GAVE_UP = "gave_up"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Run:
    """One run of a job; recording it again replaces its row."""

    run_id: str
    job: str
    arguments: Mapping[str, object]
    actor: str
    started_at: datetime
    seen_at: datetime
    status: Status = Status.RUNNING
    ended_at: datetime | None = None
    version_before: int | None = None
    version_after: int | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    error_condition: str | None = None
    error_message: str | None = None

    def row(self) -> tuple[object, ...]:
        """The values in the order of the table's columns."""
        arguments = json.dumps(self.arguments, ensure_ascii=False, sort_keys=True, default=str)
        values = {
            **vars(self),
            "arguments": arguments,
            "status": self.status.value,
            "figures": {name: float(value) for name, value in self.figures.items()},
        }
        return tuple(values[column.name] for column in COLUMNS)


class RunLog(SideTable):
    """Records runs and reads them; the table is created by the first record."""

    name = RUNS
    comment = "Runs of jobs on the Strata catalog, one row each"
    columns = ALL_COLUMNS
    properties: ClassVar = {
        **_SERIALIZABLE,
        "delta.checkpointInterval": "100",
        "delta.dataSkippingStatsColumns": "run_id,started_at",
    }
    _complete = False

    def record(self, run: Run, deadline: Deadline) -> None:
        """Inserts or replaces the row of a run."""
        self.make(deadline)
        source = self._session.createDataFrame([run.row()], DDL)
        # One statement for the first record and for the last: each sets the whole row.
        self.writer.commit(
            lambda _: Statement(
                "record",
                lambda view: (
                    f"MERGE INTO {self.store.relation} AS t USING {view} AS s "
                    f"ON t.run_id = s.run_id AND t.run_id = {literal(run.run_id)} "
                    f"WHEN MATCHED THEN UPDATE SET {_SET} "
                    f"WHEN NOT MATCHED THEN INSERT ({_NAMES}) VALUES ({_VALUES})"
                ),
                source,
            ),
            self._environment.new_id(),
            "record",
            lambda: [Caller(run.actor, run_id=run.run_id)],
            deadline,
        )

    def restore(self, runs: DataFrame, deadline: Deadline) -> None:
        """Inserts runs of a backup; rows that exist stay."""
        self.make(deadline)
        present = [column.name for column in ALL_COLUMNS if column.name in runs.columns]
        names, values = ", ".join(present), ", ".join(f"s.{name}" for name in present)
        self.writer.commit(
            lambda _: Statement(
                "restore-runs",
                lambda view: (
                    f"MERGE INTO {self.store.relation} AS t USING {view} AS s "
                    f"ON t.run_id = s.run_id WHEN NOT MATCHED THEN INSERT ({names}) "
                    f"VALUES ({values})"
                ),
                runs,
                bulk=True,
            ),
            self._environment.new_id(),
            "restore-runs",
            list,
            deadline,
        )

    def make(self, deadline: Deadline) -> None:
        """Creates the table, unless it exists; in a metastore with the view of tasks."""
        if not self.exists():
            super().make(deadline)
            self._offer_tasks()

    def lacking(self) -> Sequence[ColumnSpec]:
        """The columns that a table of an earlier release lacks."""
        if self._complete:
            return []
        found = set(self._session.sql(f"SELECT * FROM {self.store.relation} LIMIT 0").columns)
        missing = [column for column in ALL_COLUMNS if column.name not in found]
        self._complete = not missing
        return missing

    def complete(self, deadline: Deadline) -> None:
        """Creates the table, or adds the columns that it lacks."""
        if self._complete:
            return
        self.make(deadline)
        while self.lacking():
            try:
                self._add_columns(deadline)
            except Exception as error:  # Delta's own exceptions reach Python in more than one class
                # Another process may add the same columns at this moment.
                if self.lacking() and classify(error) is not Failure.CONFLICT:
                    raise
                deadline.wait(self._environment.pause(1), f"other changes of {self.store.table}")

    def _add_columns(self, deadline: Deadline) -> None:
        relation = self.store.relation
        with self._lock.held(deadline), deadline.not_counting():
            missing = self.lacking()
            self._environment.at("complete.altering")
            if missing:
                # Before the columns: tasks rely on it once these exist.
                self._session.sql(
                    f"ALTER TABLE {relation} SET TBLPROPERTIES ({properties_sql(_SERIALIZABLE)})"
                )
                self._session.sql(f"ALTER TABLE {relation} ADD COLUMNS ({columns_sql(missing)})")
        self._offer_tasks()

    def _offer_tasks(self) -> None:
        """Creates the view of tasks in a metastore; `create_views` does too, should this fail."""
        if self._location.path is None:
            try:
                create_tasks_view(self._session, self._location, replace=False)
            except PySparkException as error:  # the right to write does not include views
                log.warning("The view of tasks could not be created: %s", first_line(error))

    def shown(self) -> str:
        """Its rows for a FROM clause, with null for columns that it lacks."""
        exists = self.exists()
        missing = self.lacking() if exists else ALL_COLUMNS
        columns = ", ".join(
            f"CAST(NULL AS {column.type}) AS {column.name}" if column in missing else column.name
            for column in ALL_COLUMNS
        )
        return f"(SELECT {columns} {f'FROM {self.store.relation}' if exists else 'WHERE false'})"

    def frame(self, spark: SparkSession) -> DataFrame:
        """All recorded runs."""
        return spark.sql(f"SELECT * FROM {self.shown()}")
