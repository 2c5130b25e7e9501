"""Tasks as rows of the `runs` table, built and read without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from catalog.commit.rows import TIME
from catalog.model import from_micros
from catalog.tasks.model import State, Task

_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("run_id", pa.string()),
    ("job", pa.string()),
    ("arguments", pa.string()),
    ("actor", pa.string()),
    ("status", pa.string()),
    ("started_at", TIME),
    ("ended_at", TIME),
    ("seen_at", TIME),
    ("version_before", pa.int64()),
    ("version_after", pa.int64()),
    ("figures", pa.map_(pa.string(), pa.float64())),
    ("error_condition", pa.string()),
    ("error_message", pa.string()),
    ("attempt", pa.int32()),
    ("owner", pa.string()),
    ("lease_until", TIME),
    ("exclusive_key", pa.string()),
    ("step", pa.string()),
    ("step_started_at", TIME),
    ("steps", pa.int32()),
    ("done", pa.int64()),
    ("total", pa.int64()),
    ("results", pa.string()),
    ("retry_at", TIME),
    ("stamp", pa.string()),
]
WRITTEN = tuple(name for name, _ in _COLUMNS)
# How the row was when it was read, for the statement that changes it.
_SEEN: list[tuple[str, pa.DataType]] = [
    ("seen_attempt", pa.int32()),
    ("seen_stamp", pa.string()),
]
_TIMES = tuple(name for name, kind in _COLUMNS if kind == TIME)
# What a query gives for `task_of`: times as microseconds, which mean the same in every session.
READ_SQL = ", ".join(
    f"unix_micros({name}) AS {name}" if name in _TIMES else name for name in WRITTEN
)


def told(arguments: Mapping[str, Any]) -> str:
    """Arguments as the row has them; the same arguments always give the same text."""
    return json.dumps(arguments, ensure_ascii=False, sort_keys=True)


def source(task: Task, seen: Task | None, figures: Mapping[str, float] | None) -> pa.Table:
    """The one row of the statement that makes a task, or changes it from how it was seen."""
    row = {
        "run_id": task.id,
        "job": task.name,
        "arguments": told(task.arguments),
        "actor": task.actor,
        "status": task.state.value,
        "started_at": task.started_at,
        "ended_at": task.ended_at,
        "seen_at": task.seen_at,
        "version_before": task.version_before,
        "version_after": task.version_after,
        "figures": None if figures is None else [(n, float(v)) for n, v in figures.items()],
        "error_condition": task.error_condition,
        "error_message": task.error_message,
        "attempt": task.attempt,
        "owner": task.owner,
        "lease_until": task.lease_until,
        "exclusive_key": task.exclusive,
        "step": task.step,
        "step_started_at": task.step_started_at,
        "steps": task.steps,
        "done": task.done,
        "total": task.total,
        "results": json.dumps(task.results, ensure_ascii=False),
        "retry_at": task.retry_at,
        "stamp": task.stamp,
        "seen_attempt": None if seen is None else seen.attempt,
        "seen_stamp": None if seen is None else seen.stamp,
    }
    return pa.Table.from_pylist([row], schema=pa.schema(_COLUMNS + _SEEN))


def task_of(row: Mapping[str, Any]) -> Task:
    """The task of a row that was read with `READ_SQL`."""
    times: dict[str, datetime | None] = {
        name: None if row[name] is None else from_micros(row[name]) for name in _TIMES
    }
    return Task(
        id=row["run_id"],
        name=row["job"],
        arguments=json.loads(row["arguments"]),
        actor=row["actor"],
        started_at=from_micros(row["started_at"]),
        seen_at=from_micros(row["seen_at"]),
        state=State(row["status"]),
        exclusive=row["exclusive_key"],
        attempt=row["attempt"],
        owner=row["owner"],
        lease_until=times["lease_until"],
        step=row["step"],
        step_started_at=times["step_started_at"],
        steps=row["steps"],
        done=row["done"],
        total=row["total"],
        results=json.loads(row["results"]),
        retry_at=times["retry_at"],
        ended_at=times["ended_at"],
        version_before=row["version_before"],
        version_after=row["version_after"],
        error_condition=row["error_condition"],
        error_message=row["error_message"],
        stamp=row["stamp"],
    )
