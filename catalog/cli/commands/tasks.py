"""strata tasks: long work in steps that outlives its process, and commands run as tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from catalog.cli.arguments import argument
from catalog.cli.command import Answer, Table, Work, change, command, facts_of, fetch
from catalog.errors import InvalidInput, UnknownOperation, UnknownTask
from catalog.tasks.kind import TaskKind
from catalog.tasks.kinds import TASKS
from catalog.tasks.model import Task, TaskState
from catalog.tasks.plan import DEFAULT_LEASE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ID = argument("id", "its id, or any beginning of it that no other has")
_CANDIDATES = 5


# --- a command as a task --------------------------------------------------------------------------


def run_as_task(work: Work, name: str, **arguments: Any) -> Answer:
    """Runs the task of this name; arguments that are none are left out."""
    given = {key: _plain(value) for key, value in arguments.items() if value is not None}
    task = work.catalog.tasks.run(
        name,
        given,
        lease=work.arguments.lease or DEFAULT_LEASE,
        reason=work.arguments.reason,
        # Commands that do not commit have no deadline.
        deadline=getattr(work.arguments, "deadline", None),
        progress=work.progress,
    )
    return shown_task(task, TASKS[name])


def _plain(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else value


def shown_task(task: Task, kind: TaskKind | None) -> Answer:
    """A task, with the result of each of its steps."""
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
            **facts_of(task, "steps", "done", "total"),
            "seconds_left": None if left is None else int(left.total_seconds()),
            **facts_of(task, "attempt", "owner", "lease_until"),
            "expired": task.expired(now),
            "exclusive_key": task.exclusive,
            **facts_of(task, "retry_at", "actor", "started_at", "seen_at", "ended_at"),
            **facts_of(task, "error_condition", "error_message"),
        },
        tables={"results": Table(("step", "result"), rows)},
        found=kind is not None and any(figures.get(name) for name in kind.found),
        figures=figures,
        note=_advice(task, now),
    )


def _advice(task: Task, now: datetime) -> str:
    if task.expired(now):
        return f"Its process is gone: strata tasks resume {task.id} continues it."
    if task.state in (TaskState.QUEUED, TaskState.FAILED, TaskState.CANCELLED):
        return f"strata tasks resume {task.id} continues it now."
    return ""


# --- ids ------------------------------------------------------------------------------------------


def find_id(kind: str, frame: DataFrame, text: str) -> str:
    """The id of the task or operation that a text is the id or the only beginning of."""
    column = f"{kind}_id"
    ids = frame.select(column).where(F.startswith(column, F.lit(text))).orderBy(column)
    return only(kind, text, [row[column] for row in ids.limit(_CANDIDATES + 1).collect()])


def only(kind: str, text: str, ids: Sequence[str]) -> str:
    """The one id among those that begin with a text; a whole id wins over longer ones."""
    if text in ids:
        return text
    if not ids:
        unknown, listed = {
            "operation": (UnknownOperation, "strata operations list --all"),
            "task": (UnknownTask, "strata tasks list"),
        }[kind]
        raise unknown(
            f"No {kind} has an id that begins with {text!r}; `{listed}` shows all.", **{kind: text}
        )
    if len(ids) > 1:
        some = ", ".join(ids[:_CANDIDATES]) + (" and more" if len(ids) > _CANDIDATES else "")
        raise InvalidInput(
            f"The ids of several {kind}s begin with {text!r}: {some}; type more of it.",
            **{kind: text, "candidates": tuple(ids[:_CANDIDATES])},
        )
    return ids[0]


def short_id(id: str) -> str:
    """The beginning of a random id; an id that somebody chose stays whole."""
    return f"{id[:8]}…" if len(id) == 32 else id


def span(time: timedelta) -> str:
    """A duration in its largest unit, rounded down."""
    seconds = max(0, int(time.total_seconds()))
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


# --- commands -------------------------------------------------------------------------------------


@command(
    "tasks list",
    "list tasks: how far they are, who runs them, how they ended",
    argument("--state", "only tasks in this state", choices=TaskState),
    limit=20,
    details=(
        "A task is long work in steps that outlives its process. Newest first. There are\n"
        f"{', '.join(sorted(TASKS))};\n"
        "strata tasks run runs one, and so does --as-task of the command that does the same."
    ),
    example="--state running",
)
def tasks_list(work: Work) -> Answer:
    frame = work.catalog.tasks.list(work.arguments.state).orderBy(F.desc("started_at"), "task_id")
    table = fetch(frame, work.arguments.limit)
    rows = table.dicts()
    left = any(row["expired"] for row in rows)
    return Answer(
        tables={"tasks": replace(table, people=for_people(rows, datetime.now(UTC)))},
        note="strata tasks resume continues a task whose process is gone." if left else "",
    )


def for_people(rows: Sequence[Mapping[str, Any]], now: datetime) -> Table:
    """Tasks as a terminal has room for: progress in one word, durations instead of times."""
    shown = tuple(
        (
            short_id(row["task_id"]),
            row["name"],
            "left" if row["expired"] else row["state"],
            f"{row['steps_done']}/{row['steps']}",
            row["step"] if row["ended_at"] is None else None,
            _progress(row),
            None if row["seconds_left"] is None else span(timedelta(seconds=row["seconds_left"])),
            span((row["ended_at"] or now) - row["started_at"]),
            row["error_condition"],
        )
        for row in rows
    )
    columns = ("id", "name", "state", "steps", "step", "done", "left", "took", "error")
    return Table(columns, shown)


def _progress(row: Mapping[str, Any]) -> str | None:
    if row["ended_at"] is not None or not row["total"]:
        return None
    return f"{100 * row['done'] // row['total']}%"


@command(
    "tasks show",
    "show a task: its arguments, its progress, and the results of its steps",
    _ID,
    example="7c1e0a4b",
)
def tasks_show(work: Work) -> Answer:
    task = work.catalog.tasks.get(find_id("task", work.catalog.tasks.list(), work.arguments.id))
    return replace(shown_task(task, TASKS.get(task.name)), found=False, figures={})


def _arguments(text: str) -> dict[str, Any]:
    """The arguments of a task, a JSON object."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(text)  # argparse makes a usage error of it
    return found


@change(
    "tasks run",
    "run a task by its name, or take over one of the same arguments that stopped",
    argument("name", "one of %(choices)s", choices=sorted(TASKS), metavar="NAME"),
    argument(
        "--arguments",
        'its arguments as a JSON object, such as {"limit": 1000}; durations are in seconds',
        type=_arguments,
        default={},
        metavar="JSON",
    ),
    always_a_task=True,
    example="cleanup --arguments '{\"grace_seconds\": 86400}'",
)
def tasks_run(work: Work) -> Answer:
    return run_as_task(work, work.arguments.name, **work.arguments.arguments)


@change(
    "tasks resume",
    "continue a task that failed, was cancelled, or whose process is gone",
    _ID,
    always_a_task=True,
    details="Completed steps are not run again.",
    example="7c1e0a4b",
)
def tasks_resume(work: Work) -> Answer:
    task = work.catalog.tasks.resume(
        find_id("task", work.catalog.tasks.list(), work.arguments.id),
        lease=work.arguments.lease or DEFAULT_LEASE,
        **work.call,
    )
    return shown_task(task, TASKS[task.name])


@change(
    "tasks cancel",
    "cancel a task: its process stops at the next step or heartbeat",
    _ID,
    details="What it has done stays.",
    example='7c1e0a4b --reason "the wrong pattern"',
)
def tasks_cancel(work: Work) -> Answer:
    id = find_id("task", work.catalog.tasks.list(), work.arguments.id)
    return shown_task(work.catalog.tasks.cancel(id, **work.why), None)
