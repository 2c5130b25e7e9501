"""Tables that a reader can sort and filter, as values and as markup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from catalog.report import figures
from catalog.report.markup import Html, join, tag

# Up to here a table is taken in faster than a filter is typed.
_UNFILTERED = 10
_LONG = 72
_FEW = 3


@dataclass(frozen=True)
class Column:
    """A column's heading and what it holds; figures and moments sort by value."""

    title: str
    kind: Literal["words", "figure", "moment"] = "words"


@dataclass(frozen=True)
class Cell:
    """What a cell shows; `sort` is the value behind a figure or a moment, empty if none."""

    shown: Html
    sort: int | str | None = None


@dataclass(frozen=True)
class Row:
    """One row; links lead to its anchor."""

    cells: tuple[Cell, ...]
    anchor: str | None = None


@dataclass(frozen=True)
class Table:
    """A table; `name` is unique on a page, `empty` is the sentence shown if there are no rows."""

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    empty: str


def show(table: Table) -> Html:
    """The table as markup, or its sentence if it has no rows."""
    if not table.rows:
        return tag("p", table.empty, class_="empty")
    head = tag("thead", tag("tr", *(_heading(column) for column in table.columns)))
    body = tag("tbody", *(_row(table.columns, row) for row in table.rows))
    caption = tag("caption", table.caption, id=f"{table.name}-caption", class_="unseen")
    return join(
        [
            _filter(table) if len(table.rows) > _UNFILTERED else None,
            # Focusable, so that arrow keys scroll what does not fit.
            tag(
                "div",
                tag("table", caption, head, body, id=table.name),
                class_="scroll",
                role="region",
                aria_labelledby=f"{table.name}-caption",
                tabindex=0,
            ),
        ]
    )


MISSING = Cell(tag("span", "–", class_="muted"), "")


def text(value: str | None) -> Cell:
    """Words as they are."""
    return Cell(tag("bdi", value)) if value else MISSING


def count(value: int | None) -> Cell:
    """A count with all its digits."""
    return MISSING if value is None else Cell(Html(figures.exact(value)), value)


def size(value: int | None) -> Cell:
    """Bytes in their unit, sorted by the byte."""
    return MISSING if value is None else Cell(Html(figures.size(value)), value)


def moment(value: datetime | None) -> Cell:
    """A moment in UTC."""
    return MISSING if value is None else Cell(time(value), _millis(value))


def lasting(start: datetime, end: datetime | None) -> Cell:
    """The time between two moments, if both are there and in order."""
    if end is None or _millis(end) < _millis(start):
        return MISSING
    took = _millis(end) - _millis(start)
    return Cell(Html(figures.duration(took)), took)


def badge(word: str, mood: str = "plain") -> Html:
    """A word in a coloured frame: good, bad, busy or plain."""
    return tag("span", tag("bdi", word), class_=f"badge {mood}")


def time(value: datetime) -> Html:
    """A moment in UTC that programs can read as well."""
    machine = figures.utc(value).isoformat(timespec="seconds")
    return tag("time", figures.clock(value), datetime=machine)


def definition(ddl: str) -> Html:
    """DDL as code, folded away behind its beginning if it is long."""
    if len(ddl) <= _LONG:
        return tag("code", ddl, class_="ddl")
    summary = tag("summary", tag("code", f"{ddl[: _LONG - 12].rstrip()} …"))
    return tag("details", summary, tag("pre", tag("code", ddl)), class_="ddl")


def several(items: Sequence[Html]) -> Cell:
    """The first few items, the rest folded away."""
    if not items:
        return MISSING
    first = join(items[:_FEW], ", ")
    if len(items) <= _FEW:
        return Cell(tag("div", first, class_="several"))
    more = tag("summary", f"and {figures.exact(len(items) - _FEW)} more")
    rest = tag("details", more, join(items[_FEW:], ", "))
    return Cell(tag("div", first, " ", rest, class_="several"))


def _heading(column: Column) -> Html:
    button = tag("button", column.title, type="button")
    return tag("th", button, scope="col", class_=column.kind)


def _row(columns: Sequence[Column], row: Row) -> Html:
    cells = zip(columns, row.cells, strict=True)
    return tag("tr", *(_cell(column, cell) for column, cell in cells), id=row.anchor)


def _cell(column: Column, cell: Cell) -> Html:
    # Words are the rule and need no class of their own, which keeps large tables small.
    kind = None if column.kind == "words" else column.kind
    return tag("td", cell.shown, class_=kind, data_sort=cell.sort)


def _filter(table: Table) -> Html:
    # Shown by the script that makes it work.
    return tag(
        "p",
        tag(
            "input",
            type="search",
            placeholder="Filter",
            aria_label=f"Filter: {table.caption}",
            aria_controls=table.name,
            autocomplete="off",
            spellcheck="false",
        ),
        tag("output", "", class_="muted"),
        class_="filter",
    )


def _millis(value: datetime) -> int:
    return round(figures.utc(value).timestamp() * 1000)
