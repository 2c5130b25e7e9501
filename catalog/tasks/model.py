"""A task as a value: its state, its owner, and the results of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any


class TaskState(StrEnum):
    """The state of a task."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Whether it only continues if somebody resumes it."""
        return self not in (TaskState.QUEUED, TaskState.RUNNING)


@dataclass(frozen=True)
class Task:
    """A task as its row has it.

    Attributes:
        id: its id, which is also its run id in the table of runs.
        name: the name of its kind; see `TASKS`.
        arguments: its arguments, a JSON object.
        actor: who started it.
        started_at: when it was first run.
        seen_at: the last heartbeat of its owner.
        state: its state.
        exclusive: only one task with this key runs at a time; None if there is no such limit.
        attempt: how often it was claimed. Only the owner of the last claim can write.
        owner: the process that runs it.
        lease_until: when the lease ends and anybody may take it over.
        step: the current step.
        step_started_at: when that began.
        steps: the number of known steps; planning may add some.
        done: progress of the current step,
        total: out of this.
        results: results of the completed steps by name, in the order of completion.
        retry_at: after a failure, when it may be tried again.
        ended_at: when it was done, failed or cancelled.
        version_before: version of the catalog when it began.
        version_after: version of the catalog when it ended.
        error_condition: stable name of the last error.
        error_message: its message.
        stamp: random id of the last write.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    actor: str
    started_at: datetime
    seen_at: datetime
    state: TaskState = TaskState.QUEUED
    exclusive: str | None = None
    attempt: int = 0
    owner: str | None = None
    lease_until: datetime | None = None
    step: str | None = None
    step_started_at: datetime | None = None
    steps: int = 0
    done: int = 0
    total: int = 0
    results: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    retry_at: datetime | None = None
    ended_at: datetime | None = None
    version_before: int | None = None
    version_after: int | None = None
    error_condition: str | None = None
    error_message: str | None = None
    stamp: str = ""

    def expired(self, now: datetime) -> bool:
        """Whether its owner let the lease run out."""
        return self.state is TaskState.RUNNING and (self.lease_until or self.seen_at) <= now

    def time_left(self, now: datetime) -> timedelta | None:
        """The estimated time until the current step is complete; None if it is unknown."""
        if self.state is not TaskState.RUNNING or self.step_started_at is None:
            return None
        if not 0 < self.done <= self.total:
            return None
        return (now - self.step_started_at) * ((self.total - self.done) / self.done)
