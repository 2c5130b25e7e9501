"""Renderers of an answer (tables, plain text, JSON), and progress on a terminal."""

from __future__ import annotations

import json
import re
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TextIO

from catalog.cli.command import Answer, Table, plain
from catalog.cli.outcome import condition_of
from catalog.errors import CatalogError
from catalog.evolution.diff import TINTS
from catalog.progress import Progress, Step

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_FINGERPRINT = re.compile(r"[0-9a-f]{32}")
_SHORT = 12
# Where there is no progress bar, seconds between two lines.
_EVERY = 10.0


class Renderer(ABC):
    """Renders answers and errors of one command."""

    def __init__(self, command: str, out: TextIO, err: TextIO) -> None:
        self._command = command
        self._out = out
        self._err = err

    @abstractmethod
    def show(self, answer: Answer) -> None:
        """Shows an answer on standard output."""

    def fail(self, error: BaseException) -> None:
        """Prints an error on standard error."""
        message = error.message if isinstance(error, CatalogError) else str(error)
        print(f"strata: [{condition_of(error)}] {visible(message)}", file=self._err)

    def tell(self, message: str) -> None:
        """Prints a message that is not part of the answer, on standard error."""
        print(message, file=self._err, flush=True)


class PlainRenderer(Renderer):
    """Tab-separated lines with a header, for pipes: facts first, then each table."""

    def show(self, answer: Answer) -> None:
        for name, value in answer.facts.items():
            self._line([name, text(value)])
        for table in answer.tables.values():
            self._line(table.columns)
            for row in table.rows:
                self._line([text(value) for value in row])
        self._out.flush()
        for name, table in answer.tables.items():
            if table.more:
                self.tell(_more(name, table))

    def _line(self, cells: Any) -> None:
        print("\t".join(cells), file=self._out)


class JsonRenderer(Renderer):
    """One JSON document on a line of its own for each answer; the shape is documented."""

    def show(self, answer: Answer) -> None:
        self._write(
            {
                "command": self._command,
                "ok": True,
                "found": answer.found,
                "facts": plain(answer.facts),
                "tables": {name: plain(table.dicts()) for name, table in answer.tables.items()},
                "more": sorted(name for name, table in answer.tables.items() if table.more),
            }
        )

    def fail(self, error: BaseException) -> None:
        values: Mapping[str, Any] = error.values if isinstance(error, CatalogError) else {}
        message = error.message if isinstance(error, CatalogError) else str(error)
        self._write(
            {
                "command": self._command,
                "ok": False,
                "error": {
                    "condition": condition_of(error),
                    "message": message,
                    "retryable": bool(getattr(error, "retryable", False)),
                    "values": plain(values),
                },
            }
        )

    def _write(self, document: dict[str, Any]) -> None:
        print(json.dumps(document, ensure_ascii=True, allow_nan=False), file=self._out, flush=True)


class RichRenderer(Renderer):
    """Tables for people, drawn by rich; nothing from the catalog is read as markup."""

    def show(self, answer: Answer) -> None:
        from rich.console import Console
        from rich.table import Table as Drawn
        from rich.text import Text

        console = Console(file=self._out, highlight=False)
        if answer.facts:
            width = max(map(len, answer.facts))
            for name, value in answer.facts.items():
                words = f"{name.replace('_', ' '):<{width}}  "
                console.print(Text.assemble((words, "dim"), text(value)), soft_wrap=True)
        for name, table in answer.tables.items():
            if not table.rows:
                console.print(Text(f"No {name.replace('_', ' ')}.", style="dim"))
                continue
            table = _brief(table)
            drawn = Drawn(title=Text(name.replace("_", " ")), title_justify="left")
            for column, numeric in zip(table.columns, _numeric(table), strict=True):
                drawn.add_column(
                    Text(column), justify="right" if numeric else "left", overflow="fold"
                )
            for row in table.rows:
                drawn.add_row(*(Text(_shown(value)) for value in row), style=_tint(table, row))
            console.print(drawn)
            if table.more:
                console.print(Text(_more(name, table), style="dim"))
        if answer.note:
            console.print(Text(answer.note))


def renderer(
    output: str, command: str, out: TextIO | None = None, err: TextIO | None = None
) -> Renderer:
    """The renderer for `--output`; without rich it is plain text instead of tables."""
    out, err = out or sys.stdout, err or sys.stderr
    if output == "json":
        return JsonRenderer(command, out, err)
    if output == "plain" or (output == "auto" and not out.isatty()) or not _rich_is_here():
        return PlainRenderer(command, out, err)
    return RichRenderer(command, out, err)


def _rich_is_here() -> bool:
    return find_spec("rich") is not None


def text(value: Any) -> str:
    """A value on one line: nothing for null, JSON for what has parts."""
    value = plain(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False)
    return visible(str(value))


def visible(value: str) -> str:
    """Text whose control characters, which could steer a terminal, are spelled out."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", value)


def _brief(table: Table) -> Table:
    """What a terminal has room for."""
    if table.people is not None:
        return replace(table.people, more=table.more)
    kept = [table.columns.index(name) for name in table.brief] or range(len(table.columns))
    rows = tuple(tuple(row[index] for index in kept) for row in table.rows)
    columns = tuple(table.columns[index] for index in kept)
    return Table(columns, rows, table.more, tinted_by=table.tinted_by)


def _tint(table: Table, row: tuple[Any, ...]) -> str | None:
    if not table.tinted_by:
        return None
    return TINTS[row[table.columns.index(table.tinted_by)]]


def _shown(value: Any) -> str:
    """A value for people: whole seconds, shortened fingerprints, names with commas."""
    if isinstance(value, datetime):
        return str(plain(value.replace(microsecond=0))).replace("T", " ")
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return visible(", ".join(dict.fromkeys(item for item in value if item)))
    shown = text(value)
    return f"{shown[:_SHORT]}…" if _FINGERPRINT.fullmatch(shown) else shown


def _numeric(table: Table) -> list[bool]:
    columns = zip(*table.rows, strict=True)
    return [any(isinstance(value, int | float) for value in column) for column in columns]


def _more(name: str, table: Table) -> str:
    return f"{len(table.rows)} {name.replace('_', ' ')} shown, there are more: raise --limit."


# --- progress -------------------------------------------------------------------------------------


def estimate(step: Step, spent: float) -> str:
    """How long the rest will take at the speed so far."""
    if step.done <= 0 or step.total <= step.done:
        return ""
    left = spent / step.done * (step.total - step.done)
    return f", about {left:.0f} s left" if left < 100 else f", about {left / 60:.0f} min left"


class ProgressLines:
    """A line on a stream at most every ten seconds."""

    def __init__(self, err: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._err = err
        self._clock = clock
        self._began = self._printed = clock()
        self._done = 0

    def __call__(self, step: Step) -> None:
        now = self._clock()
        if step.done < self._done:  # the next step of the work has begun
            self._began = now
        self._done = step.done
        if now - self._printed >= _EVERY:
            self._printed = now
            rest = estimate(step, now - self._began)
            print(f"{step.what}: {step.done} of {step.total}{rest}", file=self._err, flush=True)


@contextmanager
def shown_progress(long: bool, err: TextIO | None = None) -> Iterator[Progress]:
    """Shows progress while inside: a bar for a long command on a terminal, otherwise lines."""
    err = err or sys.stderr
    if not long or not err.isatty() or not _rich_is_here():
        yield ProgressLines(err)
        return
    from rich import console, progress

    bars = progress.Progress(
        *(progress.SpinnerColumn(), progress.TextColumn("{task.description}")),
        *(progress.BarColumn(), progress.MofNCompleteColumn()),
        *(progress.TimeElapsedColumn(), progress.TimeRemainingColumn()),
        console=console.Console(file=err),
        transient=True,
        # What a command prints goes where it was sent, not through the console of the bar.
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with bars:
        yield _ProgressBar(bars)


class _ProgressBar:
    """One bar, reset for each step of the work."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._task = bars.add_task("working", total=None)
        self._done = 0

    def __call__(self, step: Step) -> None:
        if step.done < self._done:
            self._bars.reset(self._task)
        self._done = step.done
        self._bars.update(self._task, description=step.what, completed=step.done, total=step.total)
