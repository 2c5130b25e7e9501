"""The view of tasks, over the table of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog.delta.location import Location
from catalog.delta.view import View
from catalog.schema.names import identifier, literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
        "task_id": "Id of the task; it is its run's id too, which the metadata of commits has",
        "name": "What it does: maintain, cleanup, …",
        "arguments": "The arguments as a JSON document",
        "state": "queued (waits to be tried again), running, done, failed or cancelled",
        "step": "The step under way, or the last one",
        "steps_done": "How many steps are complete; they are never run again",
        "steps": "How many steps are known; planning may add some",
        "done": "So much of the step under way is done, when its owner was last seen",
        "total": "Of so much",
        "seconds_left": "Seconds that the step under way will still take, if it goes on like this",
        "owner": "The process that runs it",
        "lease_until": "From then on anybody may take it over",
        "expired": "Whether it is running and its lease is over: its owner is gone",
        "attempt": "How often it was claimed; only the last owner can write",
        "exclusive_key": "Of the tasks with this key one runs at a time; null if others do not "
        "matter",
        "retry_at": "After a failure: when it may be tried again",
        "results": "What completed steps have given, by name, as a JSON document",
        "figures": "What it counted, by name",
        "actor": "Who asked for it",
        "started_at": "When it was first run",
        "seen_at": "When its owner last said that it was alive",
        "ended_at": "When it was done, failed or was cancelled; null until then",
        "error_condition": "Stable name of the error that stopped it last",
        "error_message": "What the error said",
    },
)


def tasks_query(runs: str) -> str:
    """The query of the view over a relation of runs."""
    return TASKS_VIEW.query.replace("{runs}", runs)


def create_tasks_view(
    session: SparkSession, location: Location, prefix: str = "", replace: bool = True
) -> str:
    """Creates the view: persistent in a metastore, temporary for a path; gives its name."""
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
