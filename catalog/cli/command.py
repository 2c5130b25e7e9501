"""A command as a value, and what it has at hand while it works."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from catalog.cli.answer import Answer
from catalog.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from catalog.catalog import Catalog


class Access(Enum):
    """What a command does with the catalog."""

    NONE = "has no need of one"
    READ = "reads it"
    WRITE = "changes it"
    CREATE = "changes it, and creates it if there is none"
    NEW = "makes one where there is none, by itself"


@dataclass(frozen=True)
class Work:
    """What a command has at hand.

    `tell` shows an answer before the last one, for commands that go on. `location` and `actor` are
    for commands that make a catalog by themselves.
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
        """The catalog, for commands that asked for access to one."""
        assert self.opened is not None
        return self.opened


@dataclass(frozen=True)
class Command:
    """What the shell can be told to do, and perhaps a job.

    Attributes:
        name: the word, or two with a blank between them.
        summary: one line for the list of commands.
        details: what the help says beyond it.
        example: a command line without the program's name.
        access: what it does with the catalog.
        arguments: adds its arguments to a parser.
        work: does it.
        recorded: whether the shell records it unless told otherwise; jobs always are.
        long: whether it works for long and prints nothing meanwhile, so that a bar may be shown.
    """

    name: str
    summary: str
    example: str
    access: Access
    arguments: Callable[[ArgumentParser], None]
    work: Callable[[Work], Answer]
    details: str = ""
    recorded: bool = False
    long: bool = True
