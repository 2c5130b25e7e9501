"""The owner of a claimed task: its writes, and the heartbeat that renews its lease."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any

from catalog.context import Call
from catalog.delta.queue import CommitQueue
from catalog.delta.runs import BUSY
from catalog.delta.writer import RefusedByCheck
from catalog.environment import Deadline, Environment
from catalog.errors import CatalogError, TaskLost
from catalog.model import Caller
from catalog.progress import Step
from catalog.tasks import plan
from catalog.tasks.kind import TaskKind, TaskStep
from catalog.tasks.model import Task, TaskState
from catalog.tasks.store import TaskTable

log = logging.getLogger(__name__)

Transition = Callable[[Task, datetime], Task]


@dataclass(frozen=True)
class TaskOptions:
    """How a task is run: the call, its lease, and after how many attempts it fails for good."""

    call: Call
    lease: timedelta
    max_attempts: int

    def deadline(self) -> Deadline:
        """The whole deadline of the call, for one write."""
        return self.call.anew().deadline

    def caller(self, task: Task) -> Caller:
        """For whom the writes of a task are recorded: its id is their run."""
        return Caller(self.call.caller.actor, self.call.caller.reason, task.id)


class TaskOwner:
    """Writes the task that it owns.

    The heartbeat writes from a thread of its own. All writes go through one queue, and each starts
    from the task that the last one wrote, so they do not conflict.
    """

    def __init__(
        self,
        table: TaskTable,
        queue: CommitQueue,
        environment: Environment,
        kind: TaskKind,
        task: Task,
        options: TaskOptions,
    ) -> None:
        self._table = table
        self._queue = queue
        self._environment = environment
        self._kind = kind
        self._options = options
        self._lease = options.lease
        self._progress = (0, 0)
        self._lost: TaskLost | None = None
        self.task = task

    def check(self) -> None:
        """Raises `TaskLost` if the task is known to be lost."""
        if self._lost is not None:
            raise self._lost

    def note(self, step: Step) -> None:
        """Keeps the progress of the current step for the next heartbeat."""
        self._progress = (step.done, step.total)

    # --- writes -----------------------------------------------------------------------------------

    def begin(self, step: TaskStep, steps: int) -> None:
        """Starts a step; the next write records it."""

        def started() -> None:
            self._progress = (0, 0)
            if self.task.step != step.name or self.task.step_started_at is None:
                self.task = plan.begin(self.task, step.name, steps, self._environment.clock())

        self._queue.alone(started, self._options.deadline())

    def beat(self) -> None:
        """Renews the lease and records the progress of the current step."""
        self._write(
            "task-beat", lambda task, now: plan.beat(task, now, self._lease, *self._progress)
        )

    def finish(self, step: TaskStep, result: dict[str, Any], version: int) -> None:
        """Completes a step, and starts the next one or ends the task, in one write.

        `version` is that of the catalog after the step.
        """

        def finished(task: Task, now: datetime) -> Task:
            after = plan.finish(task, step.name, result, now, self._lease)
            following, steps = self._kind.next_step(after.arguments, after.results)
            self._progress = (0, 0)
            if following is None:
                return plan.end(after, now, version)
            return plan.begin(after, following.name, steps, now)

        self._write("task-finish", finished)

    def end(self, version: int) -> None:
        """Ends a task that has no steps to run."""
        self._write("task-end", lambda task, now: plan.end(task, now, version))

    def fail(self, condition: str, message: str, rest: timedelta | None) -> None:
        """Records a failed step; the task is queued for after `rest`, or failed if it is None."""

        def failed(task: Task, now: datetime) -> Task:
            return plan.fail(task, condition, message, now, None if rest is None else now + rest)

        self._write("task-fail", failed)

    def _write(self, point: str, transition: Transition) -> None:
        deadline = self._options.deadline()
        self._queue.alone(lambda: self._settle(point, transition, deadline), deadline)

    def _settle(self, point: str, transition: Transition, deadline: Deadline) -> None:
        self.check()
        while self.task.state is TaskState.RUNNING:
            seen = self.task
            wanted = transition(seen, self._environment.clock())
            figures, caller = self._kind.figures(wanted.results), self._options.caller(seen)
            try:
                written = self._table.write(point, wanted, seen, figures, caller, deadline)
            except RefusedByCheck as refusal:
                self._reread(refusal)
                deadline.wait(self._environment.pause(1), f"the row of task {seen.id}")
                continue
            if written is None:
                raise self._lose(f"The row of task {seen.id} is gone.")
            self.task = written
            return

    def _reread(self, refusal: RefusedByCheck) -> None:
        """Takes over the row as it is, if it is still ours: the answer to a write was lost."""
        seen, found = self.task, self._table.find(self.task.id)
        if refusal.kind == BUSY:
            other = self._table.find(refusal.key)
            who = "another task" if other is None else f"task {other.id}, run by {other.owner},"
            raise self._lose(f"The lease of task {seen.id} ran out, and {who} runs in its place.")
        if found is None:
            raise self._lose(f"The row of task {seen.id} is gone.")
        if (found.state, found.owner, found.attempt) == (seen.state, seen.owner, seen.attempt):
            self.task = found
            return
        if found.state is TaskState.CANCELLED:
            raise self._lose(f"Task {seen.id} was {found.error_message}.")
        raise self._lose(
            f"Task {seen.id} was taken over: attempt {seen.attempt} was ours, and attempt "
            f"{found.attempt} is {found.state}, by {found.owner or 'nobody any more'}."
        )

    def _lose(self, why: str) -> TaskLost:
        self._lost = TaskLost(
            f"{why} Nothing more is written by this owner.",
            task=self.task.id,
            attempt=self.task.attempt,
        )
        return self._lost


class Heartbeat:
    """Renews the lease of a task in the background, every third of it, while a block runs."""

    def __init__(self, owner: TaskOwner, lease: timedelta) -> None:
        self._owner = owner
        self._every = lease.total_seconds() / 3
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="strata-task-heart", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._every):
            try:
                self._owner.beat()
            except TaskLost as lost:
                log.warning("%s", lost)
                return  # the owner's next check or write raises it
            except CatalogError as error:
                log.warning("A heartbeat of a task was not written, the next may be: %s", error)
            except Exception:
                log.exception("A heartbeat of a task failed; the next may be written.")
