"""Tasks: the verbs of `Catalog` for long work that outlives its process."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from catalog.context import Call
from catalog.delta.runs import tasks_query
from catalog.errors import InvalidInput, UnknownTask
from catalog.model import check_positive
from catalog.operating import Operating
from catalog.progress import Progress, silent
from catalog.tasks.kind import TaskKind
from catalog.tasks.kinds import TASKS
from catalog.tasks.model import Task, TaskState
from catalog.tasks.owner import TaskOptions
from catalog.tasks.plan import DEFAULT_ATTEMPTS, DEFAULT_LEASE
from catalog.tasks.runner import Runner
from catalog.words import chosen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A beat is a commit, and there are three in a lease.
SHORTEST_LEASE = timedelta(seconds=3)


class Tasking(Operating):
    """The verbs of `Catalog` on tasks."""

    _runner: Runner

    def run_task(
        self,
        task: str | TaskKind,
        arguments: Mapping[str, Any] | None = None,
        *,
        lease: timedelta = DEFAULT_LEASE,
        max_attempts: int = DEFAULT_ATTEMPTS,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
        progress: Progress = silent,
    ) -> Task:
        """Runs long work in steps, and goes on with it where a process that died has left it.

        A task of the same name and arguments that is not over is taken over; steps that it has
        completed are not run again.

        Args:
            task: a name out of `TASKS`, or a kind of your own.
            arguments: what it is given, as JSON has it.
            lease: how long the others wait for this process before they take the task over; it is
                renewed in the background.
            max_attempts: an attempt that fails is not the last one until there were so many.
            actor: who asks for it.
            reason: why.
            deadline: seconds that each commit may wait for others before giving up.
            progress: is told of each step.

        Raises:
            TaskBusy: Somebody else runs it, or one that must not run beside it; or it rests.
            TaskLost: It was cancelled, or taken over because the lease ran out.
        """
        self._check_writable()
        kind = kind_of(task)
        asked = self._asked(actor, reason, deadline, lease, max_attempts, progress)
        return self._runner.run(kind, kind.check(arguments or {}), asked)

    def resume_task(
        self,
        id: str,
        *,
        kind: TaskKind | None = None,
        lease: timedelta = DEFAULT_LEASE,
        max_attempts: int = DEFAULT_ATTEMPTS,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
        progress: Progress = silent,
    ) -> Task:
        """Goes on with a task now: one that rests, failed, was cancelled, or was left.

        Args:
            id: its id.
            kind: what it does, if that is a kind of your own.
            lease: how long the others wait for this process.
            max_attempts: an attempt that fails is not the last one until there were so many.
            actor: who asks for it.
            reason: why.
            deadline: seconds that each commit may wait for others before giving up.
            progress: is told of each step.

        Raises:
            TaskBusy: Somebody else runs it, or one that must not run beside it.
            TaskEnded: It is done.
        """
        self._check_writable()
        found = self._runner.get(id)
        known = kind_of(found.name) if kind is None else kind
        if known.name != found.name:
            raise InvalidInput(
                f"Task {id} is a {found.name}, not a {known.name}.", task=id, name=known.name
            )
        asked = self._asked(actor, reason, deadline, lease, max_attempts, progress)
        return self._runner.resume(known, id, asked)

    def cancel_task(
        self,
        id: str,
        *,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
    ) -> Task:
        """Cancels a task: whoever runs it stops at its next step or beat. Again is no change.

        What it has done stays done.

        Raises:
            TaskEnded: It is done or has failed already.
        """
        self._check_writable()
        asked = self._asked(actor, reason, deadline, DEFAULT_LEASE, DEFAULT_ATTEMPTS, silent)
        return self._runner.cancel(id, asked)

    def task(self, id: str) -> Task:
        """The task with this id, as it stands."""
        return self._runner.get(id)

    def tasks(self, state: str | None = None) -> DataFrame:
        """Tasks, or those in a state; what they have done, how far they are, who runs them."""
        wanted = None if state is None else chosen(TaskState, "state", state)
        frame = self._spark.sql(tasks_query(self._run_log.shown()))
        return frame if wanted is None else frame.where(F.col("state") == F.lit(wanted.value))

    def _asked(
        self,
        actor: str | None,
        reason: str,
        deadline: float | None,
        lease: timedelta,
        max_attempts: int,
        progress: Progress,
    ) -> TaskOptions:
        if lease < SHORTEST_LEASE:
            raise InvalidInput(
                f"A lease must last at least {SHORTEST_LEASE.total_seconds():.0f} seconds, since "
                f"it is renewed by commits; not {lease!r}.",
                lease=lease,
            )
        attempts = check_positive("max_attempts", max_attempts)
        call = Call(self._caller(actor, reason), self._deadline(deadline), progress)
        return TaskOptions(call, lease, attempts)


def kind_of(task: str | TaskKind) -> TaskKind:
    """What a task of this name does."""
    if isinstance(task, TaskKind):
        return task
    if task not in TASKS:
        raise UnknownTask(
            f"There is no task named {task!r}; there are {', '.join(sorted(TASKS))}.", name=task
        )
    return TASKS[task]
