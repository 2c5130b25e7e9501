"""Tasks in the `runs` table: every write is one MERGE with a compare-and-swap on the row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import pyarrow as pa

from catalog.commit.rows import TIME
from catalog.delta.runs import ALL_COLUMNS, RunLog, change_task
from catalog.delta.statements import Statement
from catalog.environment import Deadline, Environment
from catalog.model import Caller, from_micros
from catalog.schema.names import literal
from catalog.tasks.model import Task, TaskState

# --- rows -----------------------------------------------------------------------------------------

_ARROW: dict[str, pa.DataType] = {
    "STRING": pa.string(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "TIMESTAMP": TIME,
    "MAP<STRING, DOUBLE>": pa.map_(pa.string(), pa.float64()),
}
# The columns, and the attempt and stamp of the row as it was read, for the compare-and-swap.
_SOURCE: list[tuple[str, pa.DataType]] = [
    *((column.name, _ARROW[column.type]) for column in ALL_COLUMNS),
    ("seen_attempt", pa.int32()),
    ("seen_stamp", pa.string()),
]
_TIMES = {column.name for column in ALL_COLUMNS if column.type == "TIMESTAMP"}
_RENAMED = {"id": "run_id", "name": "job", "state": "status", "exclusive": "exclusive_key"}
_COLUMN_OF = {each.name: _RENAMED.get(each.name, each.name) for each in fields(Task)}
# The columns that `task_of` reads; times as microseconds, which no session's time zone changes.
READ_SQL = ", ".join(
    f"unix_micros({name}) AS {name}" if name in _TIMES else name for name in _COLUMN_OF.values()
)


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """Arguments as they are stored; equal arguments give equal text."""
    return json.dumps(arguments, ensure_ascii=False, sort_keys=True)


def source(task: Task, seen: Task | None, figures: Mapping[str, float] | None) -> pa.Table:
    """The one source row of the statement that inserts a task, or updates it from `seen`."""
    row = {
        **{column: getattr(task, name) for name, column in _COLUMN_OF.items()},
        "arguments": arguments_text(task.arguments),
        "results": json.dumps(task.results, ensure_ascii=False),
        "figures": None if figures is None else [(n, float(v)) for n, v in figures.items()],
        "seen_attempt": None if seen is None else seen.attempt,
        "seen_stamp": None if seen is None else seen.stamp,
    }
    return pa.Table.from_pylist([row], schema=pa.schema(_SOURCE))


def task_of(row: Mapping[str, Any]) -> Task:
    """The task of a row that was read with `READ_SQL`."""
    values: dict[str, Any] = {}
    for name, column in _COLUMN_OF.items():
        value = row[column]
        values[name] = from_micros(value) if column in _TIMES and value is not None else value
    values["state"] = TaskState(values["state"])
    values["arguments"] = json.loads(values["arguments"])
    values["results"] = json.loads(values["results"])
    return Task(**values)


# --- the table ------------------------------------------------------------------------------------


class TaskTable:
    """Reads and writes tasks, in a session of its own."""

    def __init__(self, runs: RunLog, environment: Environment) -> None:
        self._runs = runs
        self._environment = environment

    def close(self) -> None:
        """Ends its session, if it was used."""
        self._runs.close()

    def prepare(self, deadline: Deadline) -> None:
        """Creates the table, or adds the columns of tasks to one of an earlier release."""
        self._runs.complete(deadline)

    def find(self, id: str) -> Task | None:
        """The task with this id."""
        return self._first(f"run_id = {literal(id)}")

    def unfinished(self, name: str, arguments: Mapping[str, Any]) -> Task | None:
        """The queued or running task with this name and these arguments."""
        return self._first(
            f"status IN ('queued', 'running') AND job = {literal(name)} "
            f"AND arguments = {literal(arguments_text(arguments))}"
        )

    def _first(self, condition: str) -> Task | None:
        if not self._runs.exists() or self._runs.lacking():
            return None
        store = self._runs.store
        # Rows without an attempt are runs that are not tasks.
        rows = store.session.sql(
            f"SELECT {READ_SQL} FROM {store.pinned(store.head().version)} "
            f"WHERE attempt IS NOT NULL AND {condition} ORDER BY started_at, run_id LIMIT 1"
        ).collect()
        return task_of(rows[0].asDict(recursive=True)) if rows else None

    def write(
        self,
        point: str,
        task: Task,
        seen: Task | None,
        figures: Mapping[str, float] | None,
        caller: Caller,
        deadline: Deadline,
    ) -> Task | None:
        """Inserts the task, or updates it from `seen`; returns what was written.

        None if its row is gone.

        Raises:
            RefusedByCheck: The row is not as `seen`, or another task conflicts.
        """
        store = self._runs.store
        # Times do not tell two writes apart for certain.
        task = replace(task, stamp=self._environment.new_id())
        frame = store.session.createDataFrame(source(task, seen, figures))
        statement = Statement(point, change_task(store.relation, task.id, seen is None), frame)
        executed = self._runs.writer.commit(
            lambda _: statement, self._environment.new_id(), point, lambda: [caller], deadline
        )
        return None if executed.version is None else task
