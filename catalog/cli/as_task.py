"""A word of the shell run as a task: the same work, which outlives its process."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from catalog.cli.answer import Answer, Table
from catalog.cli.command import Work
from catalog.cli.options import duration
from catalog.tasks.kind import TaskKind
from catalog.tasks.kinds import TASKS
from catalog.tasks.model import State, Task
from catalog.tasks.plan import DEFAULT_LEASE


def add_as_task(parser: ArgumentParser) -> None:
    """The options of words that can be run as a task."""
    parser.add_argument(
        "--as-task",
        action="store_true",
        help="run it as a task: if this process dies, the same command goes on where it stood",
    )
    add_lease(parser)


def add_lease(parser: ArgumentParser) -> None:
    """How long others wait for a process that runs a task."""
    parser.add_argument(
        "--lease",
        type=duration,
        metavar="TIME",
        help="of a task: how long others wait for this process, which renews it (default 5m)",
    )


def is_task(arguments: Any) -> bool:
    """Whether a command is run as a task; a dry run never is, as it leaves no trace."""
    return getattr(arguments, "as_task", False) and not getattr(arguments, "dry_run", False)


def run_as_task(work: Work, name: str, **arguments: Any) -> Answer:
    """Runs the task of this name; what was not given is left out of its arguments."""
    given = {key: _plain(value) for key, value in arguments.items() if value is not None}
    task = work.catalog.run_task(
        name,
        given,
        lease=work.arguments.lease or DEFAULT_LEASE,
        reason=work.arguments.reason,
        # What changes nothing in the catalog has none.
        deadline=getattr(work.arguments, "deadline", None),
        progress=work.progress,
    )
    return shown_task(task, TASKS[name])


def _plain(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else value


def shown_task(task: Task, kind: TaskKind | None) -> Answer:
    """A task, with what each of its steps gave."""
    figures: Mapping[str, float] = {} if kind is None else kind.figures(task.results)
    now = datetime.now(UTC)
    left = task.time_left(now)
    rows = tuple((name, json.dumps(result)) for name, result in task.results.items())
    return Answer(
        facts={
            "task_id": task.id,
            "name": task.name,
            "arguments": dict(task.arguments),
            "state": task.state.value,
            "step": task.step,
            "steps_done": len(task.results),
            "steps": task.steps,
            "done": task.done,
            "total": task.total,
            "seconds_left": None if left is None else int(left.total_seconds()),
            "attempt": task.attempt,
            "owner": task.owner,
            "lease_until": task.lease_until,
            "expired": task.expired(now),
            "exclusive_key": task.exclusive,
            "retry_at": task.retry_at,
            "actor": task.actor,
            "started_at": task.started_at,
            "seen_at": task.seen_at,
            "ended_at": task.ended_at,
            "error_condition": task.error_condition,
            "error_message": task.error_message,
        },
        tables={"results": Table(("step", "result"), rows)},
        found=kind is not None and any(figures.get(name) for name in kind.found),
        figures=figures,
        note=_advice(task, now),
    )


def _advice(task: Task, now: datetime) -> str:
    if task.expired(now):
        return f"Its owner is gone: strata tasks resume {task.id} goes on with it."
    if task.state in (State.QUEUED, State.FAILED, State.CANCELLED):
        return f"strata tasks resume {task.id} goes on with it now."
    return ""
