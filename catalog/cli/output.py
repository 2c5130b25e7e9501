"""The faces of an answer: tables on a terminal, plain text when piped, JSON for programs."""

from __future__ import annotations

import json
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, TextIO

from catalog.cli.answer import Answer, Table, plain
from catalog.cli.exits import condition_of
from catalog.errors import CatalogError
from catalog.evolution.diff import TINTS

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_FINGERPRINT = re.compile(r"[0-9a-f]{32}")
SHORT = 12


class Face(ABC):
    """Shows answers and errors of one command."""

    def __init__(self, command: str, out: TextIO, err: TextIO) -> None:
        self._command = command
        self._out = out
        self._err = err

    @abstractmethod
    def show(self, answer: Answer) -> None:
        """Shows an answer on standard output."""

    def fail(self, error: BaseException) -> None:
        """Says what went wrong, on standard error."""
        message = error.message if isinstance(error, CatalogError) else str(error)
        print(f"strata: [{condition_of(error)}] {visible(message)}", file=self._err)

    def tell(self, message: str) -> None:
        """Says something that is no answer, on standard error."""
        print(message, file=self._err, flush=True)


class PlainFace(Face):
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


class JsonFace(Face):
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


class RichFace(Face):
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


def face(output: str, command: str, out: TextIO | None = None, err: TextIO | None = None) -> Face:
    """The face for `--output`; without rich there is plain text instead of tables."""
    out, err = out or sys.stdout, err or sys.stderr
    if output == "json":
        return JsonFace(command, out, err)
    if output == "plain" or (output == "auto" and not out.isatty()) or not _rich_is_here():
        return PlainFace(command, out, err)
    return RichFace(command, out, err)


def _rich_is_here() -> bool:
    try:
        import rich  # noqa: F401
    except ImportError:
        return False
    return True


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
    """A value for people: whole seconds, the beginnings of ids, names one after the other."""
    if isinstance(value, datetime):
        return str(plain(value.replace(microsecond=0))).replace("T", " ")
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return visible(", ".join(dict.fromkeys(item for item in value if item)))
    shown = text(value)
    return f"{shown[:SHORT]}…" if _FINGERPRINT.fullmatch(shown) else shown


def _numeric(table: Table) -> list[bool]:
    columns = zip(*table.rows, strict=True)
    return [any(isinstance(value, int | float) for value in column) for column in columns]


def _more(name: str, table: Table) -> str:
    return f"{len(table.rows)} {name.replace('_', ' ')} shown, there are more: raise --limit."
