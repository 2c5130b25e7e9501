"""A task in the hands of its owner: the one way by which an owner writes it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any

from catalog.delta.queue import CommitQueue
from catalog.delta.writer import RefusedByCheck
from catalog.environment import Deadline, Environment
from catalog.errors import CatalogError, TaskLost
from catalog.model import Caller
from catalog.progress import Step
from catalog.tasks import plan
from catalog.tasks.kind import TaskKind, TaskStep
from catalog.tasks.model import State, Task
from catalog.tasks.table import BUSY, TaskTable

log = logging.getLogger(__name__)


class Holding:
    """The owner's side of a task that it has claimed.

    The heart writes beside the owner's own thread. Both go through one queue, and each write starts
    from what the last one left, so they never stand in each other's way.
    """

    def __init__(
        self,
        table: TaskTable,
        queue: CommitQueue,
        environment: Environment,
        kind: TaskKind,
        task: Task,
        lease: timedelta,
        caller: Caller,
        deadline: Callable[[], Deadline],
    ) -> None:
        self._table = table
        self._queue = queue
        self._environment = environment
        self._kind = kind
        self._lease = lease
        self._caller = caller
        self._deadline = deadline
        self._progress = (0, 0)
        self._lost: TaskLost | None = None
        self.task = task

    def check(self) -> None:
        """Raises `TaskLost` if the task is known not to be ours any more."""
        if self._lost is not None:
            raise self._lost

    def note(self, step: Step) -> None:
        """How far the step under way has come; the next beat writes it down."""
        self._progress = (step.done, step.total)

    # --- writes -----------------------------------------------------------------------------------

    def begin(self, step: TaskStep, steps: int) -> None:
        """A step is under way; whoever looks sees it from the next write on."""

        def started() -> None:
            self._progress = (0, 0)
            if self.task.step != step.name or self.task.step_started_at is None:
                self.task = plan.begin(self.task, step.name, steps, self._environment.clock())

        self._queue.alone(started, self._deadline())

    def beat(self) -> None:
        """Renews the lease and writes down how far the step has come."""
        self._write(
            "task-beat", lambda task, now: plan.beat(task, now, self._lease, *self._progress)
        )

    def finish(self, step: TaskStep, result: dict[str, Any], version: int) -> None:
        """The step is complete, and the next one is under way; or the task is done, in one write.

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
        """All steps are complete; that is so at once only if there are none."""
        self._write("task-end", lambda task, now: plan.end(task, now, version))

    def fail(self, condition: str, message: str, rest: timedelta | None) -> None:
        """A step failed; the task may be tried again after a rest, or not by itself."""

        def failed(task: Task, now: datetime) -> Task:
            return plan.fail(task, condition, message, now, None if rest is None else now + rest)

        self._write("task-fail", failed)

    def _write(self, point: str, transition: Callable[[Task, datetime], Task]) -> None:
        until = self._deadline()
        self._queue.alone(lambda: self._settle(point, transition, until), until)

    def _settle(
        self, point: str, transition: Callable[[Task, datetime], Task], until: Deadline
    ) -> None:
        self.check()
        while self.task.state is State.RUNNING:
            seen = self.task
            wanted = transition(seen, self._environment.clock())
            figures = self._kind.figures(wanted.results)
            try:
                written = self._table.write(point, wanted, seen, figures, self._caller, until)
            except RefusedByCheck as refusal:
                self._learn(refusal)
                until.wait(self._environment.pause(1), f"the row of task {seen.id}")
                continue
            if written is None:
                raise self._lost_because(f"The row of task {seen.id} is gone.")
            self.task = written
            return

    def _learn(self, refusal: RefusedByCheck) -> None:
        """Takes the row as it is if it still is ours: the answer to an earlier write was lost."""
        seen, found = self.task, self._table.find(self.task.id)
        if refusal.kind == BUSY:
            other = self._table.find(refusal.key)
            who = "another task" if other is None else f"task {other.id}, run by {other.owner},"
            raise self._lost_because(
                f"The lease of task {seen.id} ran out, and {who} runs in its place."
            )
        if found is None:
            raise self._lost_because(f"The row of task {seen.id} is gone.")
        if (found.state, found.owner, found.attempt) == (seen.state, seen.owner, seen.attempt):
            self.task = found
            return
        if found.state is State.CANCELLED:
            raise self._lost_because(f"Task {seen.id} was {found.error_message}.")
        raise self._lost_because(
            f"Task {seen.id} was taken over: attempt {seen.attempt} was ours, and attempt "
            f"{found.attempt} is {found.state}, by {found.owner or 'nobody any more'}."
        )

    def _lost_because(self, why: str) -> TaskLost:
        self._lost = TaskLost(
            f"{why} Nothing more is written by this owner.",
            task=self.task.id,
            attempt=self.task.attempt,
        )
        return self._lost


class Heart:
    """Renews the lease of a task in the background, a third of it apart, while a block runs."""

    def __init__(self, holding: Holding, lease: timedelta) -> None:
        self._holding = holding
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
                self._holding.beat()
            except TaskLost as lost:
                log.warning("%s", lost)
                return  # the owner learns it from its next word
            except CatalogError as error:
                log.warning("A beat of a task did not get through, the next may: %s", error)
            except Exception:
                log.exception("A beat of a task failed; the next may get through.")
