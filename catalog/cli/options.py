"""Reading the command line: a parser that suggests, and the types of arguments."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NoReturn

from catalog.settings.types import parse_duration

LIMIT = 100


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


def as_of(text: str) -> int | datetime:
    """A version, or a time."""
    return int(text) if text.isdecimal() else moment(text)


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


def add_as_of(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for commands that show the catalog as it was."""
    when = parser.add_mutually_exclusive_group()
    when.add_argument(
        "--as-of", type=as_of, metavar="VERSION|TIME", help="the catalog as it was then"
    )
    when.add_argument(
        "--as-of-epoch",
        type=positive,
        metavar="EPOCH",
        help="the same, before the stable epoch went past this one",
    )


def add_limit(parser: argparse.ArgumentParser, default: int = LIMIT) -> None:
    """Adds the argument for commands that list something."""
    parser.add_argument(
        "--limit", type=positive, default=default, help="at most so many (default %(default)s)"
    )
