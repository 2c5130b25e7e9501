"""The parsers of both doors, made from the commands."""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction, _SubParsersAction
from importlib.metadata import PackageNotFoundError, version

from catalog.cli.command import Access, Command
from catalog.cli.commands import COMMANDS, GROUPS
from catalog.cli.options import Parser, setting

EXITS = (
    "exit codes: 0 done, 1 found something, 2 bad input or an expected error, 3 gave up on\n"
    "conflicts, 70 an unexpected error, 130 interrupted"
)


def shell_parser() -> Parser:
    """`strata COMMAND …`."""
    parser = Parser(
        prog="strata",
        description="A Spark-native metadata catalog: which schema does this segment have?",
        epilog=f"strata COMMAND --help shows the options of a command, and an example.\n\n{EXITS}",
    )
    parser.add_argument("--version", action="version", version=f"strata {_release()}")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=Parser
    )
    groups: dict[str, _SubParsersAction[Parser]] = {}
    for command in COMMANDS:
        first, _, second = command.name.partition(" ")
        if second and first not in groups:
            groups[first] = _add_group(commands, first)
        sub = (groups[first] if second else commands).add_parser(
            second or first,
            help=command.summary,
            description=_description(command),
            epilog=f"example:\n  strata {command.example}\n\n{EXITS}",
        )
        sub.set_defaults(command=command.name)
        command.arguments(sub)
        _add_common(sub, command)
        session = sub.add_argument_group("Spark")
        session.add_argument(
            "--remote", metavar="sc://HOST:PORT", help="use a Spark Connect server, start nothing"
        )
        session.add_argument(
            "--properties-file", metavar="FILE", help="Spark settings (default: a local Spark)"
        )
        session.add_argument(
            "--conf",
            type=setting,
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="one more Spark setting; may be repeated",
        )
    return parser


def _add_group(commands: _SubParsersAction[Parser], word: str) -> _SubParsersAction[Parser]:
    """The first word of commands that have two; what it takes is the second one."""
    summary = GROUPS[word]
    group = commands.add_parser(
        word,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"strata {word} ACTION --help shows the options of an action, and an example.\n\n"
        f"{EXITS}",
    )
    return group.add_subparsers(metavar="ACTION", required=True, parser_class=Parser)


def job_parser(command: Command) -> Parser:
    """`spark-submit jobs/COMMAND.py …`, where COMMAND is a name that Python can import."""
    script = f"{command.name.replace('-', '_')}.py"
    parser = Parser(
        prog=script,
        description=_description(command),
        epilog=(
            "example:\n  spark-submit --properties-file conf/local.conf --py-files "
            f"dist/strata_catalog-….whl \\\n    jobs/{script} "
            f"{command.example.removeprefix(command.name).strip()}\n\n{EXITS}"
        ),
    )
    command.arguments(parser)
    _add_common(parser, command)
    return parser


def _description(command: Command) -> str:
    summary = command.summary[0].upper() + command.summary[1:] + "."
    return f"{summary}\n\n{command.details}" if command.details else summary


def _add_common(parser: ArgumentParser, command: Command) -> None:
    common = parser.add_argument_group("common")
    if command.access is not Access.NONE:
        common.add_argument(
            "--location",
            help="the catalog: a path such as /data/meta or a schema such as main.meta",
        )
        common.add_argument("--actor", help="who this is done for (default: the user)")
    if command.access not in (Access.NONE, Access.NEW):
        common.add_argument(
            "--session", help="in whose session, such as a token; it is recorded with the actor"
        )
        common.add_argument(
            "--record",
            action=BooleanOptionalAction,
            help="record the run in the runs table, which needs write access "
            "(default: for jobs and what changes something)",
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
    common.add_argument("--verbose", action="store_true", help="show what Spark and Strata log")


def _release() -> str:
    try:
        return version("strata-catalog")
    except PackageNotFoundError:
        return "of this checkout"
