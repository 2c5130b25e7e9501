"""The words about tasks: which there are, how one stands, cancel it, go on with it."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from catalog.cli.answer import Answer, Table, fetch
from catalog.cli.as_task import add_lease, shown_task
from catalog.cli.command import Access, Command, Work
from catalog.cli.commands.operating import SHORT, span
from catalog.cli.commands.writing import add_why
from catalog.cli.options import add_limit
from catalog.errors import InvalidInput, UnknownTask
from catalog.tasks.kinds import TASKS as KINDS
from catalog.tasks.model import State
from catalog.tasks.plan import DEFAULT_LEASE

if TYPE_CHECKING:
    from catalog.catalog import Catalog

_NAMED = 5

# --- tasks ----------------------------------------------------------------------------------------


def _tasks_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--state", choices=[state.value for state in State], help="only those in this state"
    )
    add_limit(parser, 20)


def _tasks(work: Work) -> Answer:
    frame = work.catalog.tasks(work.arguments.state).orderBy(F.desc("started_at"), "task_id")
    table = fetch(frame, work.arguments.limit)
    rows = table.dicts()
    left = any(row["expired"] for row in rows)
    return Answer(
        tables={"tasks": replace(table, people=for_people(rows, datetime.now(UTC)))},
        note="strata tasks resume goes on with what was left." if left else "",
    )


def for_people(rows: Sequence[Mapping[str, Any]], now: datetime) -> Table:
    """Tasks as a terminal has room for: progress in one word, spans of time for moments."""
    shown = tuple(
        (
            f"{row['task_id'][:SHORT]}…",
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


TASKS_LIST = Command(
    name="tasks list",
    summary="list tasks: how far they are, who runs them, what became of them",
    details=(
        "A task is long work in steps that outlives its process. Newest first. There are\n"
        f"{', '.join(sorted(KINDS))}:\n"
        "the commands of these names, with --as-task where they are not tasks anyway."
    ),
    example="tasks list --state running",
    access=Access.READ,
    arguments=_tasks_arguments,
    work=_tasks,
)

# --- one task -------------------------------------------------------------------------------------


def _add_id(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="its id; any unique beginning of it will do")


def only(text: str, ids: Sequence[str]) -> str:
    """The one id of those that begin with a text; a whole id wins over longer ones."""
    if text in ids:
        return text
    if not ids:
        raise UnknownTask(
            f"No task has an id that begins with {text!r}; `strata tasks list` lists those that there "
            "are.",
            task=text,
        )
    if len(ids) > 1:
        named = ", ".join(ids[:_NAMED]) + (" and more" if len(ids) > _NAMED else "")
        raise InvalidInput(
            f"{text!r} is the beginning of several tasks' ids: {named}; type more of it.",
            task=text,
            candidates=tuple(ids[:_NAMED]),
        )
    return ids[0]


def _named(catalog: Catalog, text: str) -> str:
    ids = catalog.tasks().select("task_id").where(F.startswith("task_id", F.lit(text)))
    rows = ids.orderBy("task_id").limit(_NAMED + 1).collect()
    return only(text, [row["task_id"] for row in rows])


def _show(work: Work) -> Answer:
    task = work.catalog.task(_named(work.catalog, work.arguments.id))
    return replace(shown_task(task, KINDS.get(task.name)), found=False, figures={})


TASKS_SHOW = Command(
    name="tasks show",
    summary="show a task: its arguments, how far it is, and what its steps gave",
    example="tasks show 7c1e0a4b",
    access=Access.READ,
    arguments=_add_id,
    work=_show,
)


def _cancel_arguments(parser: ArgumentParser) -> None:
    _add_id(parser)
    add_why(parser)


def _cancel(work: Work) -> Answer:
    arguments, catalog = work.arguments, work.catalog
    task = catalog.cancel_task(
        _named(catalog, arguments.id), reason=arguments.reason, deadline=arguments.deadline
    )
    return shown_task(task, None)


TASKS_CANCEL = Command(
    name="tasks cancel",
    summary="cancel a task: whoever runs it stops at its next step or beat",
    details="What it has done stays done.",
    example='tasks cancel 7c1e0a4b --reason "the wrong pattern"',
    access=Access.WRITE,
    arguments=_cancel_arguments,
    work=_cancel,
    recorded=True,
)


def _resume_arguments(parser: ArgumentParser) -> None:
    parser.set_defaults(as_task=True)  # its row is that of the run
    _add_id(parser)
    add_lease(parser)
    add_why(parser)


def _resume(work: Work) -> Answer:
    arguments, catalog = work.arguments, work.catalog
    task = catalog.resume_task(
        _named(catalog, arguments.id),
        lease=arguments.lease or DEFAULT_LEASE,
        reason=arguments.reason,
        deadline=arguments.deadline,
        progress=work.progress,
    )
    return shown_task(task, KINDS[task.name])


TASKS_RESUME = Command(
    name="tasks resume",
    summary="go on with a task that was left, rests after a failure, failed or was cancelled",
    details="Steps that are complete are not run again.",
    example="tasks resume 7c1e0a4b",
    access=Access.WRITE,
    arguments=_resume_arguments,
    work=_resume,
    recorded=True,
)
