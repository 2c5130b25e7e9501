"""The entry points: `strata COMMAND`, and the jobs of spark-submit."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, BooleanOptionalAction, Namespace, _SubParsersAction
from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from catalog.cli import session
from catalog.cli.arguments import Parser, setting
from catalog.cli.choices import (
    NAMES,
    SPARK_LOCATION,
    Choices,
    from_environment,
    from_file,
    no_location,
)
from catalog.cli.command import Access, Command
from catalog.cli.commands import BY_JOB, BY_NAME, COMMANDS, DAILY, GROUPS, actions, renamed
from catalog.cli.outcome import Exit
from catalog.cli.output import Renderer
from catalog.cli.runner import Sessions, run
from catalog.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EXITS = (
    "exit codes: 0 done, 1 found something, 2 bad input or an expected error, 3 gave up on\n"
    "conflicts, 70 an unexpected error, 130 interrupted"
)


def main(argv: Sequence[str] | None = None, sessions: Sessions | None = None) -> int:
    """Runs one command of the shell and returns its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = shell_parser()
    try:
        now = renamed(words)
        if now is not None:
            parser.error(now)
        arguments = parser.parse_args(words)
    except SystemExit as end:  # argparse has printed why
        return int(end.code or Exit.DONE)
    command = BY_NAME[arguments.command]
    wanted = getattr(arguments, "record", None)
    recorded = command.recorded if wanted is None else wanted
    return run(command, arguments, lambda: choices_of(arguments), sessions or _opened, recorded)


def run_job(
    name: str,
    argv: Sequence[str] | None = None,
    sessions: Sessions = lambda arguments, *_: session.submitted(arguments.verbose),
) -> int:
    """Runs a command as a job, in the session of spark-submit, and returns its exit code."""
    command = BY_JOB[name]
    try:
        arguments = job_parser(command).parse_args(argv)
    except SystemExit as end:  # argparse has printed why
        return int(end.code or Exit.DONE)
    recorded = True if arguments.record is None else arguments.record
    return run(command, arguments, lambda: choices_of(arguments), sessions, recorded)


def choices_of(arguments: Namespace) -> Choices:
    """Options win over the environment, and that over the configuration file."""
    options: dict[str, Any] = {name: getattr(arguments, name, None) for name in NAMES}
    given = Choices(**options)
    return given.over(from_environment(os.environ)).over(from_file(arguments.config, os.environ))


def _opened(
    arguments: Namespace, choices: Choices, shown: Renderer
) -> AbstractContextManager[SparkSession]:
    """The session of a Connect server if one was named, else one that is started here."""
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


# --- parsers --------------------------------------------------------------------------------------


class _ShellParser(Parser):
    """The parser of the shell, whose help is an overview on one screen."""

    def format_help(self) -> str:
        return overview()


def overview() -> str:
    """All commands on one screen, by what people want to do."""
    daily = [(wish, "  ".join(each.name for each in some)) for wish, some in DAILY.items()]
    groups = [(group, " ".join(actions(group))) for group in GROUPS]
    width = max(len(first) for first, _ in (*daily, *groups)) + 2
    return "\n".join(
        [
            "A Spark-native metadata catalog: which schema does this segment have?",
            "",
            "usage: strata COMMAND [options], or strata GROUP ACTION [options]",
            "       --help after either one shows its options and an example",
            "",
            *(f"  {first:<{width}}{words}" for first, words in daily),
            "",
            "groups and their actions, such as strata names register:",
            *(f"  {first:<{width}}{words}" for first, words in groups),
            "",
            "All commands take --location (or STRATA_LOCATION), --output json and --verbose.",
            "strata --version shows the release. First steps: strata demo.",
            *_EXITS.splitlines(),
            "",
        ]
    )


def shell_parser() -> Parser:
    """`strata COMMAND …`."""
    parser = _ShellParser(prog="strata")
    parser.add_argument("--version", action="version", version=f"strata {_release()}")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=Parser
    )
    groups = {group: _add_group(commands, group) for group in GROUPS}
    for command in COMMANDS:
        group = command.name.partition(" ")[0]
        sub = groups.get(group, commands).add_parser(
            command.action,
            help=command.summary,
            description=_description(command),
            epilog=f"example:\n  strata {command.name} {command.example}".rstrip()
            + f"\n\n{_EXITS}",
        )
        sub.set_defaults(command=command.name)
        _add_arguments(sub, command)
        spark = sub.add_argument_group("Spark")
        spark.add_argument(
            "--remote", metavar="sc://HOST:PORT", help="use a Spark Connect server, start nothing"
        )
        spark.add_argument(
            "--properties-file", metavar="FILE", help="Spark settings (default: a local Spark)"
        )
        spark.add_argument(
            "--conf",
            type=setting,
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="one more Spark setting; may be repeated",
        )
    return parser


def _add_group(commands: _SubParsersAction[Parser], word: str) -> _SubParsersAction[Parser]:
    """A parser of the first word of commands that have two; it takes the second one."""
    summary = GROUPS[word][0]
    group = commands.add_parser(
        word,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"strata {word} ACTION --help shows the options of an action, and an example.\n\n"
        f"{_EXITS}",
    )
    return group.add_subparsers(metavar="ACTION", required=True, parser_class=Parser)


def job_parser(command: Command) -> Parser:
    """`spark-submit jobs/JOB.py …`, where JOB is a name that Python can import."""
    script = f"{command.job_name.replace('-', '_')}.py"
    parser = Parser(
        prog=script,
        description=_description(command),
        epilog=(
            "example:\n  spark-submit --properties-file conf/local.conf --py-files "
            f"dist/strata_catalog-….whl \\\n    jobs/{script} {command.example}\n\n{_EXITS}"
        ),
    )
    _add_arguments(parser, command)
    return parser


def _description(command: Command) -> str:
    summary = command.summary[0].upper() + command.summary[1:] + "."
    return f"{summary}\n\n{command.details}" if command.details else summary


def _add_arguments(parser: ArgumentParser, command: Command) -> None:
    """The arguments of a command, and those that all of them have."""
    for add in command.arguments:
        add(parser)
    common = parser.add_argument_group("common")
    if command.access is not Access.NONE:
        common.add_argument(
            "--location",
            help="the catalog: a path such as /data/meta or a schema such as main.meta",
        )
        common.add_argument("--actor", help="who the change is recorded for (default: the user)")
    if command.access.opens:
        common.add_argument(
            "--session", help="an id of the caller's session, recorded with the actor"
        )
    if command.access.opens and command.access is not Access.UPGRADE:
        common.add_argument(
            "--record",
            action=BooleanOptionalAction,
            help="record the run in the runs table, which needs write access "
            "(default: for jobs and commands that change something)",
        )
    common.add_argument("--config", metavar="FILE", help="a configuration file (strata.toml)")
    common.add_argument(
        "--output",
        choices=("auto", "table", "plain", "json"),
        default="auto",
        help="auto is a table on a terminal and plain text otherwise",
    )
    common.add_argument(
        "--metrics-file", metavar="FILE", help="write figures for Prometheus to this file"
    )
    common.add_argument("--verbose", action="store_true", help="show the logs of Spark and Strata")


def _release() -> str:
    try:
        return version("strata-catalog")
    except PackageNotFoundError:
        return "of this checkout"
