"""Runs tasks: claims one or takes it over, goes through its steps, and says how it ended."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from catalog.delta import failures
from catalog.delta.queue import CommitQueue
from catalog.delta.writer import RefusedByCheck
from catalog.environment import Deadline, Environment
from catalog.errors import CatalogError, TaskBusy, TaskLost, UnknownTask
from catalog.model import Caller
from catalog.progress import Progress, Step
from catalog.tasks import plan
from catalog.tasks.holding import Heart, Holding
from catalog.tasks.kind import TaskKind, TaskStep, TaskWork, check_result
from catalog.tasks.model import State, Task
from catalog.tasks.table import BUSY, SAME, TaskTable

if TYPE_CHECKING:
    from catalog.catalog import Catalog

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Asked:
    """How a task is to be run, and for whom."""

    caller: Caller
    lease: timedelta
    max_attempts: int
    seconds: float
    progress: Progress

    def deadline(self) -> Deadline:
        """A new budget of waiting, for one write."""
        return Deadline(self.seconds)


class Runner:
    """Runs the tasks of one catalog."""

    def __init__(
        self,
        table: TaskTable,
        environment: Environment,
        catalog_of: Callable[[str], Catalog],
    ) -> None:
        self._table = table
        self._queue = CommitQueue()
        self._environment = environment
        self._catalog_of = catalog_of

    def close(self) -> None:
        """Ends the session, if there was need of one."""
        self._table.close()

    # --- reading ----------------------------------------------------------------------------------

    def get(self, id: str) -> Task:
        """The task with this id."""
        found = self._table.find(id)
        if found is None:
            raise UnknownTask(f"There is no task {id}.", task=id)
        return found

    # --- running ----------------------------------------------------------------------------------

    def run(self, kind: TaskKind, arguments: dict[str, Any], asked: Asked) -> Task:
        """Runs a task, or goes on with one of this name and these arguments that is not over."""

        def find() -> Task | None:
            return self._table.unfinished(kind.name, arguments)

        def make() -> Task:
            now = self._environment.clock()
            id = self._environment.new_id()
            version = self._catalog_of(id).version
            return Task(
                *(id, kind.name, arguments, asked.caller.actor, now, now),
                exclusive=kind.exclusive,
                version_before=version,
            )

        return self._go_through(kind, self._claimed(find, make, kind, asked, again=False), asked)

    def resume(self, kind: TaskKind, id: str, asked: Asked) -> Task:
        """Goes on with a task that rests, failed, was cancelled or was left."""
        claimed = self._claimed(lambda: self.get(id), lambda: self.get(id), kind, asked, again=True)
        return self._go_through(kind, claimed, asked)

    def cancel(self, id: str, asked: Asked) -> Task:
        """Cancels a task; the same again is no change."""
        until = asked.deadline()
        return self._queue.alone(lambda: self._cancel(id, asked, until), until)

    def _cancel(self, id: str, asked: Asked, until: Deadline) -> Task:
        while True:
            seen = self.get(id)
            now = self._environment.clock()
            wanted = plan.cancel(seen, asked.caller.actor, asked.caller.reason, now)
            if wanted is seen:
                return seen
            written = self._written("task-cancel", wanted, seen, asked, until)
            if written is not None:
                return written
            until.wait(self._environment.pause(1), f"the owner of task {id}")

    def _claimed(
        self,
        find: Callable[[], Task | None],
        make: Callable[[], Task],
        kind: TaskKind,
        asked: Asked,
        again: bool,
    ) -> Holding:
        until = asked.deadline()
        owner = f"{socket.gethostname()}:{os.getpid()}:{self._environment.new_id()[:8]}"

        def claim() -> Task:
            self._table.prepare(until)
            while True:
                seen = find()
                self._environment.at("task.planned")
                now = self._environment.clock()
                wanted = plan.claim(seen or make(), owner, now, asked.lease, again)
                written = self._written("task-claim", wanted, seen, asked, until)
                if written is not None:
                    return written
                until.wait(self._environment.pause(1), f"other tasks {kind.name}")

        task = self._queue.alone(claim, until)
        self._environment.at("task.claimed")
        log.info("Task %s (%s), attempt %d, is ours.", task.id, task.name, task.attempt)
        return Holding(
            *(self._table, self._queue, self._environment, kind, task, asked.lease),
            Caller(asked.caller.actor, asked.caller.reason, task.id),
            asked.deadline,
        )

    def _written(
        self, point: str, wanted: Task, seen: Task | None, asked: Asked, until: Deadline
    ) -> Task | None:
        """What was written; if nothing, somebody was quicker and the plan is made again."""
        caller = Caller(asked.caller.actor, asked.caller.reason, wanted.id)
        try:
            return self._table.write(point, wanted, seen, None, caller, until)
        except RefusedByCheck as refusal:
            # One of the same name and arguments is found by the next plan, unless it goes by an id.
            if refusal.kind == BUSY or (refusal.kind == SAME and seen is not None):
                holder = self._table.find(refusal.key)
                if holder is not None and not holder.state.ended:
                    raise _taken(wanted, holder) from refusal
            log.info("%s: %s %s", point, refusal.kind, refusal.key)
            return None

    # --- steps ------------------------------------------------------------------------------------

    def _go_through(self, kind: TaskKind, holding: Holding, asked: Asked) -> Task:
        catalog = self._catalog_of(holding.task.id)

        def progress(step: Step) -> None:
            holding.note(step)
            asked.progress(step)
            holding.check()

        with Heart(holding, asked.lease):
            try:
                while holding.task.state is State.RUNNING:
                    task = holding.task
                    step, steps = kind.next_step(task.arguments, task.results)
                    if step is None:
                        holding.end(catalog.version)
                        break
                    holding.begin(step, steps)
                    work = TaskWork(
                        *(catalog, task.arguments, task.results, progress, holding.beat),
                        *(asked.caller.actor, asked.caller.reason, asked.seconds),
                    )
                    self._environment.at("task.step.entered")
                    result = self._result(step, work, holding, asked.max_attempts)
                    self._environment.at("task.step.returned")
                    holding.finish(step, result, catalog.version)
                    self._environment.at("task.step.finished")
            except (KeyboardInterrupt, SystemExit):
                self._release(holding)
                raise
        return holding.task

    def _result(
        self, step: TaskStep, work: TaskWork, holding: Holding, max_attempts: int
    ) -> dict[str, Any]:
        holding.check()
        try:
            return check_result(step.name, step.run(work))
        except TaskLost:
            raise
        except Exception as error:
            holding.check()
            self._fail(holding, step.name, error, max_attempts)
            raise

    def _fail(self, holding: Holding, step: str, error: Exception, max_attempts: int) -> None:
        """Writes down what went wrong; the error itself is for the caller."""
        attempt = holding.task.attempt
        hopeful = not isinstance(error, CatalogError) or error.retryable
        rest = plan.pause_after(attempt) if hopeful and attempt < max_attempts else None
        condition = (
            error.condition
            if isinstance(error, CatalogError)
            else failures.condition_of(error) or type(error).__name__
        )
        try:
            holding.fail(condition, f"{step}: {error}", rest)
        except Exception as failure:
            log.warning("Task %s failed, and its row does not say so: %s", holding.task.id, failure)

    def _release(self, holding: Holding) -> None:
        """Lets the next owner begin at once; without it the lease has to run out."""
        with suppress(Exception):
            holding.fail("INTERRUPTED", "its process was told to stop", timedelta(0))


def _taken(wanted: Task, holder: Task) -> TaskBusy:
    if holder.state is State.QUEUED:
        return TaskBusy(
            f"Task {wanted.id} cannot go on: task {holder.id} has its name and arguments and is "
            "queued. Resume that one, or cancel it.",
            task=holder.id,
        )
    error = plan.busy(holder)
    return TaskBusy(
        f"{wanted.name} cannot run: only one task at a time is for "
        f"{wanted.exclusive or 'the same arguments'!r}. {error.message}",
        **error.values,
    )
