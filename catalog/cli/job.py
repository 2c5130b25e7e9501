"""The jobs: the same commands in the session of spark-submit, each run recorded."""

from __future__ import annotations

from collections.abc import Sequence

from catalog.cli import session
from catalog.cli.commands import BY_NAME
from catalog.cli.exits import Exit
from catalog.cli.parsers import job_parser
from catalog.cli.runner import Sessions, run
from catalog.cli.shell import choices_of


def run_job(
    name: str,
    argv: Sequence[str] | None = None,
    sessions: Sessions = lambda arguments, *_: session.submitted(arguments.verbose),
) -> int:
    """Runs a command as a job and returns its exit code."""
    command = BY_NAME[name]
    try:
        arguments = job_parser(command).parse_args(argv)
    except SystemExit as end:  # argparse has said why
        return int(end.code or Exit.DONE)
    recorded = True if arguments.record is None else arguments.record
    return run(command, arguments, lambda: choices_of(arguments), sessions, recorded)
