"""The transitions of a task, as functions from one value to the next (pure).

The attempt is a fencing token: every claim and every cancellation raises it, and a write succeeds
only if the row is still as its writer read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from catalog.environment import growing_pause
from catalog.errors import TaskBusy, TaskEnded
from catalog.tasks.model import Task, TaskState

DEFAULT_LEASE = timedelta(minutes=5)
DEFAULT_ATTEMPTS = 5
_FIRST_PAUSE = timedelta(minutes=1)
_LONGEST_PAUSE = timedelta(hours=1)
_LONGEST_MESSAGE = 4000


def claim(task: Task, owner: str, now: datetime, lease: timedelta, again: bool = False) -> Task:
    """The task claimed by an owner; unchanged if it is the owner's already.

    With `again`, which only a person decides, a task that failed, was cancelled or waits to be
    tried again is claimed as well.

    Raises:
        TaskBusy: Another owner holds the lease, or the task waits after a failure.
        TaskEnded: There is nothing left to run.
    """
    if task.state is TaskState.RUNNING and task.owner == owner:
        return task
    if task.state is TaskState.RUNNING and not task.expired(now):
        raise busy(task)
    if task.state is TaskState.DONE or (task.state.ended and not again):
        raise ended(task)
    if task.state is TaskState.QUEUED and not again and task.retry_at and task.retry_at > now:
        raise TaskBusy(
            f"Task {task.id} ({task.name}) failed with {task.error_condition} and rests until "
            f"{task.retry_at.isoformat()}; try again then, or resume it to run it now.",
            task=task.id,
            retry_at=task.retry_at,
        )
    return replace(
        task,
        state=TaskState.RUNNING,
        owner=owner,
        attempt=task.attempt + 1,
        lease_until=now + lease,
        seen_at=now,
        step=None,
        step_started_at=None,
        done=0,
        total=0,
        retry_at=None,
        ended_at=None,
        version_after=None,
    )


def beat(task: Task, now: datetime, lease: timedelta, done: int, total: int) -> Task:
    """A heartbeat: renews the lease and records the progress of the current step."""
    return replace(task, seen_at=now, lease_until=now + lease, done=done, total=total)


def begin(task: Task, step: str, steps: int, now: datetime) -> Task:
    """Starts a step."""
    return replace(task, step=step, step_started_at=now, steps=steps, done=0, total=0)


def finish(
    task: Task, step: str, result: Mapping[str, Any], now: datetime, lease: timedelta
) -> Task:
    """Completes a step, which is never run again."""
    results = {**task.results, step: dict(result)}
    return replace(task, results=results, seen_at=now, lease_until=now + lease)


def end(task: Task, now: datetime, version: int) -> Task:
    """Ends a task whose steps are all complete."""
    return replace(
        _released(task, now),
        state=TaskState.DONE,
        steps=len(task.results),
        ended_at=now,
        version_after=version,
        error_condition=None,
        error_message=None,
    )


def fail(
    task: Task, condition: str, message: str, now: datetime, again_at: datetime | None
) -> Task:
    """Records a failed step; the task is queued until `again_at`, or failed if that is None."""
    return replace(
        _released(task, now),
        state=TaskState.FAILED if again_at is None else TaskState.QUEUED,
        retry_at=again_at,
        ended_at=now if again_at is None else None,
        error_condition=condition,
        error_message=message[:_LONGEST_MESSAGE],
    )


def cancel(task: Task, who: str, reason: str, now: datetime) -> Task:
    """Cancels a task; its owner finds out at its next write. Unchanged if cancelled before.

    Raises:
        TaskEnded: It is done or has failed.
    """
    if task.state is TaskState.CANCELLED:
        return task
    if task.state.ended:
        raise ended(task)
    why = f": {reason}" if reason else ""
    return replace(
        _released(task, now),
        state=TaskState.CANCELLED,
        attempt=task.attempt + 1,
        retry_at=None,
        ended_at=now,
        error_condition="CANCELLED",
        error_message=f"cancelled by {who}{why}"[:_LONGEST_MESSAGE],
    )


def _released(task: Task, now: datetime) -> Task:
    return replace(task, seen_at=now, lease_until=None, owner=None, step_started_at=None)


def pause_after(attempt: int) -> timedelta:
    """How long a task rests after an attempt that failed."""
    return growing_pause(attempt, _FIRST_PAUSE, _LONGEST_PAUSE)


def busy(task: Task) -> TaskBusy:
    """The error that names the owner of a task and its lease."""
    until = "unknown" if task.lease_until is None else task.lease_until.isoformat()
    return TaskBusy(
        f"Task {task.id} ({task.name}) is run by {task.owner}, whose lease is until {until}; try "
        "again when it is done, or cancel it.",
        task=task.id,
        owner=task.owner,
        lease_until=task.lease_until,
    )


def ended(task: Task) -> TaskEnded:
    """The error that says how a task ended."""
    how = f" ({task.error_message})" if task.error_message else ""
    return TaskEnded(
        f"Task {task.id} ({task.name}) is {task.state}{how}.", task=task.id, state=task.state.value
    )
