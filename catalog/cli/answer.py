"""What a command answers, as a value: facts and tables, which `output` shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from catalog.errors import InvalidInput
from catalog.model import Reported

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Table:
    """Rows under named columns.

    Attributes:
        columns: their names.
        rows: values in the order of the columns.
        more: there were further rows than the limit allowed.
        brief: the columns that a terminal has room for; all of them if none are named.
        tinted_by: the column whose `+`, `-` or `~` colours the row on a terminal.
        people: what a terminal shows in its place, where leaving out columns is not enough.
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
    """What a command has to say.

    Attributes:
        facts: single values by name, such as counts and versions.
        tables: tables by name.
        found: something was found that the caller wanted to be told of by the exit code.
        figures: what the run's record and its metrics count.
        note: a sentence for people, not part of the documented shape.
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(default_factory=dict)
    found: bool = False
    figures: Mapping[str, float] = field(default_factory=dict)
    note: str = ""


def answer_of(
    report: Reported,
    retries: int | None = None,
    *,
    tables: Mapping[str, Table] | None = None,
    found: bool = False,
    note: str = "",
) -> Answer:
    """A report as an answer; `retries` counts more than the report does, if it is given."""
    facts, figures = report.facts(), report.figures()
    if retries is not None:
        facts["retries"] = figures["conflicts_retried"] = retries
    return Answer(facts, tables or {}, found, figures, note)


def table_of(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Table:
    """A table of some columns of rows."""
    return Table(tuple(columns), tuple(tuple(row[name] for name in columns) for row in rows))


def cut(columns: Sequence[str], rows: Iterable[tuple[Any, ...]], limit: int) -> Table:
    """A table of the first rows."""
    given = tuple(rows)
    return Table(tuple(columns), given[:limit], more=len(given) > limit)


def fetch(frame: DataFrame, limit: int, brief: Sequence[str] = ()) -> Table:
    """The first rows of a frame."""
    found = frame.limit(limit + 1).toArrow()
    twice = sorted(name for name, times in Counter(found.column_names).items() if times > 1)
    if twice:
        raise InvalidInput(f"Two columns have one name: {', '.join(twice)}; give each its own.")
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

    A time without a zone stays one, and a number that is none becomes a text.
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
