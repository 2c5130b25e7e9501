"""Every word of the shell, in the order in which the help lists them."""

from catalog.cli.command import Command
from catalog.cli.commands.comparing import COLUMNS, DIFF
from catalog.cli.commands.demo import DEMO
from catalog.cli.commands.discovering import BACKFILL, PUBLISH_FILES
from catalog.cli.commands.poll import POLL
from catalog.cli.commands.reading import (
    DATASOURCES,
    HISTORY,
    RUNS,
    SCHEMA_OF,
    SCHEMAS,
    SEGMENTS,
    SQL,
)
from catalog.cli.commands.report import REPORT
from catalog.cli.commands.upkeep import CLEANUP, MAINTAIN, VERIFY
from catalog.cli.commands.writing import DROP, INIT, PUBLISH

COMMANDS: tuple[Command, ...] = (
    INIT,
    PUBLISH,
    PUBLISH_FILES,
    BACKFILL,
    DROP,
    SEGMENTS,
    SCHEMAS,
    SCHEMA_OF,
    DATASOURCES,
    COLUMNS,
    DIFF,
    HISTORY,
    RUNS,
    POLL,
    CLEANUP,
    VERIFY,
    MAINTAIN,
    SQL,
    REPORT,
    DEMO,
)
BY_NAME = {command.name: command for command in COMMANDS}
