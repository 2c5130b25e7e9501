"""A task as a value: how it stands, and what its steps have given so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any


class State(StrEnum):
    """How a task stands."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Whether nobody goes on with it by itself."""
        return self not in (State.QUEUED, State.RUNNING)


@dataclass(frozen=True)
class Task:
    """A task as its row says it.

    Attributes:
        id: its id, which is also that of the run in the table of runs.
        name: what it does; see `TASKS`.
        arguments: what it was given, as JSON has it.
        actor: who asked for it.
        started_at: when it was first run.
        seen_at: when its owner last said that it was alive.
        state: how it stands.
        exclusive: of all tasks with this key one runs at a time; none if others do not matter.
        attempt: how often it was claimed. Only the owner of the last claim can write.
        owner: the process that runs it.
        lease_until: from then on anybody may take it over.
        step: the step under way, and since when.
        steps: how many steps are known; planning may add some.
        done: of the step under way, so much is behind us.
        total: of so much.
        results: what the completed steps have given, by their names, in the order of completion.
        retry_at: after a failure, when it may be tried again.
        ended_at: when it was done, failed or was cancelled.
        version_before: version of the catalog when it began.
        version_after: version of the catalog when it ended.
        error_condition: stable name of what stopped it last.
        error_message: what that said.
        stamp: random id of the write that made it so.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    actor: str
    started_at: datetime
    seen_at: datetime
    state: State = State.QUEUED
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
        """Whether its owner has let the lease run out."""
        return self.state is State.RUNNING and (self.lease_until or self.seen_at) <= now

    def time_left(self, now: datetime) -> timedelta | None:
        """How long the step under way will take if it goes on as before; none if nobody knows."""
        if self.state is not State.RUNNING or self.step_started_at is None:
            return None
        if not 0 < self.done <= self.total:
            return None
        return (now - self.step_started_at) * ((self.total - self.done) / self.done)
