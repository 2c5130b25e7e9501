"""`catalog.tasks`: long work in steps that goes on when its process dies."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Unpack

from pyspark.sql import functions as F

from catalog.context import CallOptions, Context
from catalog.delta.runs import RunLog, tasks_query
from catalog.errors import InvalidInput, UnknownTask
from catalog.model import check_positive
from catalog.tasks.kind import TaskKind
from catalog.tasks.kinds import TASKS
from catalog.tasks.model import Task, TaskState
from catalog.tasks.owner import TaskOptions
from catalog.tasks.plan import DEFAULT_ATTEMPTS, DEFAULT_LEASE
from catalog.tasks.runner import Runner
from catalog.words import chosen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A heartbeat is a commit, and there are three in a lease.
SHORTEST_LEASE = timedelta(seconds=3)


class TasksApi:
    """Tasks of the catalog."""

    def __init__(self, context: Context, runner: Runner, run_log: RunLog) -> None:
        self._context = context
        self._runner = runner
        self._run_log = run_log

    def run(
        self,
        task: str | TaskKind,
        arguments: Mapping[str, Any] | None = None,
        *,
        lease: timedelta = DEFAULT_LEASE,
        max_attempts: int = DEFAULT_ATTEMPTS,
        **options: Unpack[CallOptions],
    ) -> Task:
        """Runs a task, or continues an unfinished one of the same name and arguments.

        Completed steps are not run again.

        Args:
            task: a name out of `TASKS`, or a kind of your own.
            arguments: its arguments, as JSON values.
            lease: how long other processes wait for this one before they take the task over; it is
                renewed in the background.
            max_attempts: after this many failed attempts the task has failed.

        Raises:
            TaskBusy: Another process runs it, or one that excludes it; or it waits to be retried.
            TaskLost: It was cancelled, or taken over because the lease ran out.
        """
        kind = kind_of(task)
        how = self._options(lease, max_attempts, **options)
        return self._runner.run(kind, kind.check(arguments or {}), how)

    def resume(
        self,
        id: str,
        *,
        kind: TaskKind | None = None,
        lease: timedelta = DEFAULT_LEASE,
        max_attempts: int = DEFAULT_ATTEMPTS,
        **options: Unpack[CallOptions],
    ) -> Task:
        """Continues a task now: a queued, failed, cancelled or abandoned one.

        Args:
            id: its id.
            kind: what it does, if that is a kind of your own.
            lease: as for `run`.
            max_attempts: as for `run`.

        Raises:
            TaskBusy: Another process runs it, or one that excludes it.
            TaskEnded: It is done.
        """
        self._context.check_writable()
        found = self._runner.get(id)
        known = kind_of(found.name) if kind is None else kind
        if known.name != found.name:
            raise InvalidInput(
                f"Task {id} is a {found.name}, not a {known.name}.", task=id, name=known.name
            )
        return self._runner.resume(known, id, self._options(lease, max_attempts, **options))

    def cancel(self, id: str, **options: Unpack[CallOptions]) -> Task:
        """Cancels a task: it stops at its next step or heartbeat, and its completed steps stay.

        Raises:
            TaskEnded: It is done or has failed already.
        """
        return self._runner.cancel(id, self._options(DEFAULT_LEASE, DEFAULT_ATTEMPTS, **options))

    def get(self, id: str) -> Task:
        """The task with this id, as it is now."""
        return self._runner.get(id)

    def list(self, state: str | None = None) -> DataFrame:
        """Tasks, or those in a state, with their steps, progress and owners."""
        wanted = None if state is None else chosen(TaskState, "state", state)
        frame = self._context.spark.sql(tasks_query(self._run_log.shown()))
        return frame if wanted is None else frame.where(F.col("state") == F.lit(wanted.value))

    def _options(
        self, lease: timedelta, max_attempts: int, **options: Unpack[CallOptions]
    ) -> TaskOptions:
        call = self._context.writing(**options)
        if lease < SHORTEST_LEASE:
            raise InvalidInput(
                f"A lease must last at least {SHORTEST_LEASE.total_seconds():.0f} seconds, since "
                f"it is renewed by commits; not {lease!r}.",
                lease=lease,
            )
        attempts = check_positive("max_attempts", max_attempts)
        return TaskOptions(call, lease, attempts)


def kind_of(task: str | TaskKind) -> TaskKind:
    """The kind of task with this name."""
    if isinstance(task, TaskKind):
        return task
    if task not in TASKS:
        raise UnknownTask(
            f"There is no task named {task!r}; there are {', '.join(sorted(TASKS))}.", name=task
        )
    return TASKS[task]
