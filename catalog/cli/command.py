"""A command and its answer as values: arguments, the work, facts and tables."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from math import isfinite
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from catalog.cli.arguments import Add, shared
from catalog.errors import InvalidInput
from catalog.model import Reported
from catalog.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from catalog.catalog import Catalog
    from catalog.delta.store import AsOf

# --- the command ----------------------------------------------------------------------------------


class Access(Enum):
    """What a command does with the catalog."""

    NONE = "needs none"
    READ = "reads it"
    WRITE = "changes it; the run is recorded"
    CREATE = "changes it, and creates it if there is none"
    UPGRADE = "changes its layout; before that nothing can be recorded"
    NEW = "creates one by itself, where there is none"

    @property
    def opens(self) -> bool:
        """Whether the catalog is opened before the command runs."""
        return self not in (Access.NONE, Access.NEW)


@dataclass(frozen=True)
class Work:
    """The context of a running command.

    `tell` shows an answer before the last one, for commands that keep running. `location` and
    `actor` are for commands that create a catalog themselves.
    """

    spark: SparkSession
    arguments: Namespace
    progress: Progress
    tell: Callable[[Answer], None]
    opened: Catalog | None = None
    location: str = ""
    actor: str = ""

    @property
    def catalog(self) -> Catalog:
        """The catalog, for commands whose access opens one."""
        assert self.opened is not None
        return self.opened

    @property
    def as_of(self) -> AsOf:
        """The version, the time or the epoch of `--as-of`."""
        found: AsOf = self.arguments.as_of
        return found

    @property
    def why(self) -> dict[str, Any]:
        """Reason and deadline, as every verb of the catalog that commits takes them."""
        return {"reason": self.arguments.reason, "deadline": self.arguments.deadline}

    @property
    def call(self) -> dict[str, Any]:
        """Reason, deadline and progress, for verbs that take long."""
        return {**self.why, "progress": self.progress}

    def retries(self, conflicts: int = 0) -> int:
        """Commits that were tried again: after conflicts, and because a plan was out of date."""
        return conflicts + self.catalog.operations.metrics().replans


@dataclass(frozen=True)
class Command:
    """A command of the shell, which may also run as a job.

    Attributes:
        name: one word, or a group and an action with a blank between them.
        summary: one line for lists of commands.
        arguments: each adds one or more arguments to a parser.
        work: runs it.
        example: arguments that it can be run with.
        details: what the help says beyond the summary.
        access: what it does with the catalog.
        long: whether it runs for long without printing, so that a progress bar may be shown.
        job: its name in the runs table, in metrics, as a task and under jobs/, if not `name`.
    """

    name: str
    summary: str
    arguments: tuple[Add, ...]
    work: Callable[[Work], Answer]
    example: str = ""
    details: str = ""
    access: Access = Access.READ
    long: bool = True
    job: str = ""

    @property
    def action(self) -> str:
        """The last word of the name."""
        return self.name.split()[-1]

    @property
    def job_name(self) -> str:
        """The name in the runs table, in metrics, as a task and under jobs/."""
        return self.job or self.name

    @property
    def recorded(self) -> bool:
        """Whether the shell records its runs by default; jobs are always recorded."""
        return self.access is Access.WRITE


def command(
    name: str,
    summary: str,
    *arguments: Add,
    example: str = "",
    details: str = "",
    access: Access = Access.READ,
    long: bool = True,
    job: str = "",
    **wanted: Any,
) -> Callable[[Callable[[Work], Answer]], Command]:
    """Makes a command out of the function that runs it; `wanted` are those of `shared`."""
    all_of_them = (*arguments, *shared(**wanted))
    return lambda work: Command(
        name, summary, all_of_them, work, example, details, access, long, job
    )


def change(
    name: str, summary: str, *arguments: Add, **options: Any
) -> Callable[[Callable[[Work], Answer]], Command]:
    """Makes a command that commits: it is recorded, and takes a reason and a deadline."""
    return command(name, summary, *arguments, access=Access.WRITE, why=True, **options)


def is_task(arguments: Namespace) -> bool:
    """Whether a command is run as a task; a dry run never is, as it writes nothing."""
    return getattr(arguments, "as_task", False) and not getattr(arguments, "dry_run", False)


# --- the answer -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """Rows under named columns.

    Attributes:
        columns: their names.
        rows: values in the order of the columns.
        more: there were more rows than the limit allowed.
        brief: the columns that a terminal has room for; all of them if none are named.
        tinted_by: the column whose `+`, `-` or `~` colours the row on a terminal.
        people: what a terminal shows instead, where leaving out columns is not enough.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool = False
    brief: tuple[str, ...] = ()
    tinted_by: str = ""
    people: Table | None = None

    def dicts(self) -> list[dict[str, Any]]:
        """The rows by name."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True)
class Answer:
    """What a command returns.

    Attributes:
        facts: single values by name, such as counts and versions.
        tables: tables by name.
        found: something was found that the exit code reports.
        figures: what the run's record and its metrics count.
        note: a sentence for people, not part of the documented shape.
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(default_factory=dict)
    found: bool = False
    figures: Mapping[str, float] = field(default_factory=dict)
    note: str = ""


def facts_of(result: object, *names: str) -> dict[str, Any]:
    """Attributes of a result by name; an empty commit id means that nothing was committed."""
    facts = {name: getattr(result, name) for name in names}
    return facts | ({"commit_id": facts["commit_id"] or None} if "commit_id" in facts else {})


def answer_of(report: Reported, retries: int | None = None, **more: Any) -> Answer:
    """A report as an answer; `retries` counts more than the report does, if it is given.

    `more` are the other attributes of the answer: tables, found, note.
    """
    facts, figures = report.facts(), report.figures()
    if retries is not None:
        facts["retries"] = figures["conflicts_retried"] = retries
    return Answer(facts, figures=figures, **more)


def table_of(items: Iterable[object], columns: Sequence[str], brief: Sequence[str] = ()) -> Table:
    """A table of attributes of some items."""
    rows = tuple(tuple(getattr(item, name) for name in columns) for item in items)
    return Table(tuple(columns), rows, brief=tuple(brief))


def cut(columns: Sequence[str], rows: Iterable[tuple[Any, ...]], limit: int) -> Table:
    """A table of the first rows."""
    given = tuple(rows)
    return Table(tuple(columns), given[:limit], more=len(given) > limit)


def fetch(frame: DataFrame, limit: int, brief: Sequence[str] = ()) -> Table:
    """The first rows of a frame."""
    found = frame.limit(limit + 1).toArrow()
    twice = sorted(name for name, times in Counter(found.column_names).items() if times > 1)
    if twice:
        raise InvalidInput(f"Two columns have the same name: {', '.join(twice)}; rename one.")
    columns = [_values(column) for column in found.slice(0, limit).columns]
    rows = tuple(zip(*columns, strict=True))
    return Table(tuple(found.column_names), rows, found.num_rows > limit, tuple(brief))


def _values(column: pa.ChunkedArray[Any]) -> list[Any]:
    values = column.to_pylist()
    if not pa.types.is_map(column.type):
        return values
    return [None if pairs is None else dict(pairs) for pairs in values]  # Arrow gives pairs


def plain(value: Any) -> Any:
    """A value as JSON has it: times in UTC as ISO 8601, mappings and lists all the way down.

    A time without a zone stays without one; NaN and infinities become texts.
    """
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return value.isoformat()
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
