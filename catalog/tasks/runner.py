"""Runs tasks: claims one or takes it over, runs its steps, and records how it ended."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from catalog.delta.failures import condition_of
from catalog.delta.queue import CommitQueue
from catalog.delta.runs import BUSY, SAME
from catalog.delta.writer import RefusedByCheck
from catalog.environment import Deadline, Environment
from catalog.errors import CatalogError, TaskBusy, TaskLost, UnknownTask
from catalog.progress import Step
from catalog.tasks import plan
from catalog.tasks.kind import TaskKind, TaskStep, TaskWork, check_result
from catalog.tasks.model import Task, TaskState
from catalog.tasks.owner import Heartbeat, TaskOptions, TaskOwner
from catalog.tasks.store import TaskTable

log = logging.getLogger(__name__)


class Runner:
    """Runs the tasks of one catalog; `catalog_of` gives it with a task's id as its run."""

    def __init__(
        self, table: TaskTable, environment: Environment, catalog_of: Callable[[str], Any]
    ) -> None:
        self._table = table
        self._queue = CommitQueue()
        self._environment = environment
        self._catalog_of = catalog_of

    def get(self, id: str) -> Task:
        """The task with this id."""
        found = self._table.find(id)
        if found is None:
            raise UnknownTask(f"There is no task {id}.", task=id)
        return found

    def run(self, kind: TaskKind, arguments: dict[str, Any], options: TaskOptions) -> Task:
        """Runs a task, or continues the unfinished one with this name and these arguments."""

        def find() -> Task | None:
            return self._table.unfinished(kind.name, arguments)

        def make() -> Task:
            now, id = self._environment.clock(), self._environment.new_id()
            return Task(
                *(id, kind.name, arguments, options.call.caller.actor, now, now),
                exclusive=kind.exclusive,
                version_before=self._catalog_of(id).version,
            )

        return self._run_steps(kind, self._claim(find, make, kind, options, False), options)

    def resume(self, kind: TaskKind, id: str, options: TaskOptions) -> Task:
        """Continues a task that is queued, failed, cancelled or abandoned."""

        def get() -> Task:
            return self.get(id)

        return self._run_steps(kind, self._claim(get, get, kind, options, True), options)

    def cancel(self, id: str, options: TaskOptions) -> Task:
        """Cancels a task; no change if it is cancelled already."""
        deadline, caller = options.deadline(), options.call.caller

        def cancel() -> Task:
            while True:
                seen = self.get(id)
                now = self._environment.clock()
                wanted = plan.cancel(seen, caller.actor, caller.reason, now)
                if wanted is seen:
                    return seen
                written = self._written("task-cancel", wanted, seen, options, deadline)
                if written is not None:
                    return written
                deadline.wait(self._environment.pause(1), f"the owner of task {id}")

        return self._queue.alone(cancel, deadline)

    def _claim(
        self,
        find: Callable[[], Task | None],
        make: Callable[[], Task],
        kind: TaskKind,
        options: TaskOptions,
        again: bool,
    ) -> TaskOwner:
        deadline = options.deadline()
        name = f"{socket.gethostname()}:{os.getpid()}:{self._environment.new_id()[:8]}"

        def claim() -> Task:
            self._table.prepare(deadline)
            while True:
                seen = find()
                self._environment.at("task.planned")
                now = self._environment.clock()
                wanted = plan.claim(seen or make(), name, now, options.lease, again)
                written = self._written("task-claim", wanted, seen, options, deadline)
                if written is not None:
                    return written
                deadline.wait(self._environment.pause(1), f"other tasks {kind.name}")

        task = self._queue.alone(claim, deadline)
        self._environment.at("task.claimed")
        log.info("Claimed task %s (%s), attempt %d.", task.id, task.name, task.attempt)
        return TaskOwner(self._table, self._queue, self._environment, kind, task, options)

    def _written(
        self,
        point: str,
        wanted: Task,
        seen: Task | None,
        options: TaskOptions,
        deadline: Deadline,
    ) -> Task | None:
        """What was written; None if another writer was first, and the caller must plan again."""
        try:
            return self._table.write(point, wanted, seen, None, options.caller(wanted), deadline)
        except RefusedByCheck as refusal:
            # A new task finds one with its name and arguments when it plans again.
            if refusal.kind == BUSY or (refusal.kind == SAME and seen is not None):
                holder = self._table.find(refusal.key)
                if holder is not None and not holder.state.ended:
                    raise _conflicting(wanted, holder) from refusal
            log.info("%s: %s %s", point, refusal.kind, refusal.key)
            return None

    # --- steps ------------------------------------------------------------------------------------

    def _run_steps(self, kind: TaskKind, owner: TaskOwner, options: TaskOptions) -> Task:
        catalog, call = self._catalog_of(owner.task.id), options.call

        def progress(step: Step) -> None:
            owner.note(step)
            call.progress(step)
            owner.check()

        with Heartbeat(owner, options.lease):
            try:
                while owner.task.state is TaskState.RUNNING:
                    task = owner.task
                    step, steps = kind.next_step(task.arguments, task.results)
                    if step is None:
                        owner.end(catalog.version)
                        break
                    owner.begin(step, steps)
                    work = TaskWork(
                        *(catalog, task.arguments, task.results, progress, owner.beat),
                        *(call.caller.actor, call.caller.reason, call.deadline.seconds),
                    )
                    self._environment.at("task.step.entered")
                    result = self._result(step, work, owner, options.max_attempts)
                    self._environment.at("task.step.returned")
                    owner.finish(step, result, catalog.version)
                    self._environment.at("task.step.finished")
            except (KeyboardInterrupt, SystemExit):
                # The next owner can begin at once; otherwise the lease would have to run out.
                with suppress(Exception):
                    owner.fail("INTERRUPTED", "its process was told to stop", timedelta(0))
                raise
        return owner.task

    def _result(
        self, step: TaskStep, work: TaskWork, owner: TaskOwner, max_attempts: int
    ) -> dict[str, Any]:
        owner.check()
        try:
            return check_result(step.name, step.run(work))
        except TaskLost:
            raise
        except Exception as error:
            owner.check()
            self._fail(owner, step.name, error, max_attempts)
            raise

    def _fail(self, owner: TaskOwner, step: str, error: Exception, max_attempts: int) -> None:
        """Records the error; it is raised to the caller as well."""
        task = owner.task
        retryable, condition = True, condition_of(error) or type(error).__name__
        if isinstance(error, CatalogError):
            retryable, condition = error.retryable, error.condition
        retry = retryable and task.attempt < max_attempts
        rest = plan.pause_after(task.attempt) if retry else None
        try:
            owner.fail(condition, f"{step}: {error}", rest)
        except Exception as failure:
            log.warning("Task %s failed, and its row does not say so: %s", task.id, failure)


def _conflicting(wanted: Task, holder: Task) -> TaskBusy:
    if holder.state is TaskState.QUEUED:
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
