"""Tasks in the `runs` table: every write is one MERGE that counts only if the row is as seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from catalog.delta.failures import mark
from catalog.delta.runs import RunLog
from catalog.delta.statements import Statement
from catalog.environment import Deadline, Environment
from catalog.model import Caller
from catalog.schema.names import literal
from catalog.tasks.model import Task
from catalog.tasks.rows import READ_SQL, WRITTEN, source, task_of, told

# The kinds of refusal, with the id of the task that is in the way.
SAME, BUSY, SEEN = "same", "busy", "seen"

# Rows without an attempt are runs that are no tasks.
_IS_TASK = "attempt IS NOT NULL"
_UNFINISHED = "t.attempt IS NOT NULL AND t.status IN ('queued', 'running')"
# The table has no partitions, so whatever is committed beside a statement makes it start again:
# what the checks do not meet is not there. They are in ON because that is what Delta guards.
_CHECKS = (
    f"CASE WHEN t.run_id <> s.run_id AND s.status = 'running' AND {_UNFINISHED} "
    f"AND t.job = s.job AND t.arguments = s.arguments THEN {mark(repr(SAME), 't.run_id')} "
    f"WHEN t.run_id <> s.run_id AND s.status = 'running' AND t.exclusive_key = s.exclusive_key "
    f"AND t.status = 'running' AND t.lease_until > s.seen_at THEN {mark(repr(BUSY), 't.run_id')} "
    "WHEN t.run_id <> s.run_id THEN false "
    "WHEN t.run_id = s.run_id "
    "AND NOT (t.attempt <=> s.seen_attempt AND t.stamp <=> s.seen_stamp) "
    f"THEN {mark(repr(SEEN), 't.run_id')} ELSE t.run_id = s.run_id END"
)
# What was counted stays if the writer does not know what counts.
_SET = ", ".join(f"{name} = s.{name}" for name in WRITTEN if name != "figures")
_SET += ", figures = coalesce(s.figures, t.figures)"
_INSERT = f"INSERT ({', '.join(WRITTEN)}) VALUES ({', '.join(f's.{name}' for name in WRITTEN)})"


def change_task(relation: str, id: str, new: bool) -> Callable[[str], str]:
    """The statement that makes a task or changes it, unless it or another is in the way."""
    then = f"WHEN NOT MATCHED THEN {_INSERT}" if new else f"WHEN MATCHED THEN UPDATE SET {_SET}"
    return lambda view: (
        f"MERGE INTO {relation} AS t USING {view} AS s "
        f"ON (t.run_id = {literal(id)} OR ({_UNFINISHED})) AND {_CHECKS} {then}"
    )


class TaskTable:
    """Reads and writes tasks in a session of its own, beside whatever else the catalog does."""

    def __init__(self, runs: RunLog, environment: Environment) -> None:
        self._runs = runs
        self._environment = environment

    def close(self) -> None:
        """Ends its session, if there was need of one."""
        self._runs.close()

    def prepare(self, deadline: Deadline) -> None:
        """Makes the table, or gives one of an earlier release the columns of tasks."""
        self._runs.complete(deadline)

    def find(self, id: str) -> Task | None:
        """The task with this id."""
        return self._first(f"run_id = {literal(id)}")

    def unfinished(self, name: str, arguments: Mapping[str, Any]) -> Task | None:
        """The task with this name and these arguments that is not over."""
        return self._first(
            f"status IN ('queued', 'running') AND job = {literal(name)} "
            f"AND arguments = {literal(told(arguments))}"
        )

    def _first(self, condition: str) -> Task | None:
        if not self._runs.exists() or self._runs.lacking():
            return None
        store = self._runs.store
        rows = store.session.sql(
            f"SELECT {READ_SQL} FROM {store.pinned(store.head().version)} "
            f"WHERE {_IS_TASK} AND {condition} ORDER BY started_at, run_id LIMIT 1"
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
        """Makes the task, or changes it from how it was seen; gives it as it stands then.

        None if its row is gone.

        Raises:
            RefusedByCheck: It is not as it was seen, or another task is in the way.
        """
        store = self._runs.store
        # No clock tells two writes apart for certain.
        task = replace(task, stamp=self._environment.new_id())
        frame = store.session.createDataFrame(source(task, seen, figures))
        statement = Statement(point, change_task(store.relation, task.id, seen is None), frame)
        executed = self._runs.writer.commit(
            lambda _: statement, self._environment.new_id(), point, lambda: [caller], deadline
        )
        return None if executed.version is None else task
