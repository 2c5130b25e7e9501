"""The shell: `strata COMMAND`, with a Spark of its own or a Connect server's."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from catalog.cli import session
from catalog.cli.choices import (
    SPARK_LOCATION,
    Choices,
    from_environment,
    from_file,
    no_location,
)
from catalog.cli.commands import BY_NAME
from catalog.cli.exits import Exit
from catalog.cli.output import Face
from catalog.cli.parsers import shell_parser
from catalog.cli.runner import Sessions, run
from catalog.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_session(
    arguments: Namespace, choices: Choices, shown: Face
) -> AbstractContextManager[SparkSession]:
    """A Connect server's session if one was named, else one that is started here."""
    if choices.remote is not None:
        if arguments.conf or arguments.properties_file:
            raise InvalidInput(
                "--conf and --properties-file are for a Spark that is started here, not for the "
                f"server {choices.remote}; leave them out."
            )
        return session.remote(choices.remote, arguments.verbose, shown.tell)
    chosen = {**session.settings(choices.properties_file), **dict(arguments.conf)}
    if hasattr(arguments, "location") and not (choices.location or chosen.get(SPARK_LOCATION)):
        raise no_location()  # before ten seconds have been spent on starting Spark
    return session.local(chosen, arguments.verbose, shown.tell)


def main(argv: Sequence[str] | None = None, sessions: Sessions = open_session) -> int:
    """Runs one command and returns its exit code."""
    try:
        arguments = shell_parser().parse_args(argv)
    except SystemExit as end:  # argparse has said why
        return int(end.code or Exit.DONE)
    command = BY_NAME[arguments.command]
    wanted = getattr(arguments, "record", None)
    recorded = command.recorded if wanted is None else wanted
    return run(command, arguments, lambda: choices_of(arguments), sessions, recorded)


def choices_of(arguments: Namespace) -> Choices:
    """Options win over the environment, and that over the configuration file."""
    given = Choices(
        location=getattr(arguments, "location", None),
        actor=getattr(arguments, "actor", None),
        remote=getattr(arguments, "remote", None),
        properties_file=getattr(arguments, "properties_file", None),
        session=getattr(arguments, "session", None),
    )
    return given.over(from_environment(os.environ)).over(from_file(arguments.config, os.environ))
