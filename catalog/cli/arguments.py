"""Reading the command line: a parser that suggests, the types of arguments, and shared ones."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

from catalog.delta.store import Epoch
from catalog.errors import InvalidInput
from catalog.settings.model import default_of
from catalog.settings.types import duration_text, parse_duration

# Adds one or more arguments to a parser, or to a group of one.
Add = Callable[[argparse._ActionsContainer], object]
STDIN = "-"


class Parser(argparse.ArgumentParser):
    """argparse with a suggestion for a wrong word, and texts that keep their line breaks."""

    def __init__(self, *args: object, **options: object) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        options.setdefault("allow_abbrev", False)
        super().__init__(*args, **options)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        """Ends with code 2 and says what is wrong, and what was probably meant."""
        hint = suggestion(message, self._words())
        super().error(f"{message}\ndid you mean {hint}?" if hint else message)

    def _words(self) -> set[str]:
        words: set[str] = set()
        for action in self._actions:
            words.update(action.option_strings)
            words.update(str(choice) for choice in action.choices or ())
            if isinstance(action.choices, dict):  # the options of every command below this one
                for parser in action.choices.values():
                    words.update(parser._words())
        return words


def suggestion(message: str, words: Iterable[str]) -> str | None:
    """The known word that comes nearest to the one that argparse complains about."""
    wrong = re.search(r"invalid choice: '([^']*)'", message) or re.search(
        r"unrecognized arguments: (\S+)", message
    )
    if wrong is None:
        return None
    near = difflib.get_close_matches(wrong[1].split("=")[0], list(words), 1, 0.6)
    return near[0] if near else None


# --- types ----------------------------------------------------------------------------------------


def duration(text: str) -> timedelta:
    """`90s`, `30m`, `12h`, `7d`, `2w`, several of them in a row, or `0`."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def moment(text: str) -> datetime:
    """An ISO 8601 time; one without a time zone is UTC."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time such as 2024-01-31 or 2024-01-31T12:00:00Z"
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def version_or_time(text: str) -> int | datetime:
    """A version, or a time."""
    return int(text) if text.isdecimal() else moment(text)


def as_of_type(text: str) -> int | datetime | Epoch:
    """A version, a time, or `epoch:N`."""
    word, colon, number = text.partition(":")
    return Epoch(positive(number)) if colon and word == "epoch" else version_or_time(text)


def window_end(text: str) -> int | datetime | timedelta:
    """A version, a time, or a time before now such as 7d."""
    if text.isdecimal():
        return int(text)
    try:
        return parse_duration(text)
    except ValueError:
        return moment(text)


def positive(text: str) -> int:
    """A whole number above zero."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above zero")
    return int(text)


def natural(text: str) -> int:
    """A whole number, zero too."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def seconds(text: str) -> float:
    """A time above zero, in seconds; a bare number is taken as seconds."""
    try:
        found = float(text)
    except ValueError:
        found = duration(text).total_seconds()
    if not 0 < found < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time above zero")
    return found


def setting(text: str) -> tuple[str, str]:
    """A Spark setting, `name=value`."""
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a setting such as spark.driver.memory=4g"
        )
    return name, value


def text_of(file: str) -> str:
    """The text of a local file, or of standard input for `-`."""
    try:
        data = sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
        return data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{source(file)} cannot be read: {error}.", file=file) from error


def source(file: str) -> str:
    """A file as messages name it."""
    return "standard input" if file == STDIN else file


# --- arguments that commands share ----------------------------------------------------------------


_METAVARS = {
    **dict.fromkeys((duration, seconds, moment), "TIME"),
    version_or_time: "VERSION|TIME",
    window_end: "VERSION|TIME|AGO",
}


def argument(name: str, help: str, choices: Iterable[Any] | None = None, **options: Any) -> Add:
    """One argument, as argparse takes it.

    Its metavar follows from its type or its name, the help ends with its default, and an
    enumeration has choices.
    """
    if choices is not None:
        options["choices"] = [str(getattr(each, "value", each)) for each in choices]
    elif options.get("type") in _METAVARS:
        options.setdefault("metavar", _METAVARS[options["type"]])
    elif not name.startswith("-"):
        options.setdefault("metavar", name.upper())
    if options.get("default"):
        help += " (default %(default)s)"
    return lambda parser: parser.add_argument(name, help=help, **options)


def flag(name: str, help: str) -> Add:
    """An option without a value."""
    return argument(name, help, action="store_true")


def one_of(*arguments: Add, required: bool = False) -> Add:
    """Arguments of which at most one may be given."""

    def add(parser: argparse._ActionsContainer) -> None:
        group = parser.add_mutually_exclusive_group(required=required)
        for each in arguments:
            each(group)

    return add


def by_setting(name: str) -> str:
    """The end of a help text: which setting is the default, and what it is initially."""
    value = default_of(name)
    span = value if isinstance(value, timedelta) else timedelta(seconds=value)
    text = duration_text(span) if isinstance(value, timedelta | float) else value
    return f"(default: the setting {name}, initially {text})"


REASON = argument("--reason", "why; recorded in the commit's metadata", default="")


def shared(
    as_of: bool = False,
    limit: int | None = None,
    dry_run: bool | str = False,
    as_task: bool = False,
    always_a_task: bool = False,
    why: bool = False,
) -> Iterator[Add]:
    """Arguments that many commands have; `limit` is its default, `dry_run` may be its help."""
    if as_of:
        yield argument(
            "--as-of",
            "the catalog as it was then; epoch:N is before the stable epoch passed N",
            type=as_of_type,
            metavar="VERSION|TIME|epoch:N",
        )
    if limit is not None:
        yield argument("--limit", "list at most this many", type=positive, default=limit)
    if dry_run:
        yield flag("--dry-run", "only show what would be done" if dry_run is True else dry_run)
    if as_task:
        words = "run it as a task: if this process dies, the same command continues it"
        yield flag("--as-task", words)
    if always_a_task:
        yield lambda parser: parser.set_defaults(as_task=True)
    if as_task or always_a_task:
        words = "of a task: how long others wait for this process, which renews it (default 5m)"
        yield argument("--lease", words, type=duration)
    if why:
        words = f"how long to wait for other writers before giving up {by_setting('deadline')}"
        yield REASON
        yield argument("--deadline", words, type=seconds)
