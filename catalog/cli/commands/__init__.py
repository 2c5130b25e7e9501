"""Every word of the shell, in the order in which the help lists them."""

from catalog.cli.command import Command
from catalog.cli.commands.comparing import COLUMNS, DIFF
from catalog.cli.commands.deciding import OPERATION_ABORT, OPERATION_PUBLISH, OPERATION_RENEW
from catalog.cli.commands.demo import DEMO
from catalog.cli.commands.discovering import BACKFILL, PUBLISH_FILES
from catalog.cli.commands.epochs import ADVANCE, EPOCH
from catalog.cli.commands.objects import GET, OBJECTS, PUT, REMOVE
from catalog.cli.commands.operating import OPERATION_SHOW, OPERATIONS
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
from catalog.cli.commands.retaining import RETAIN
from catalog.cli.commands.upkeep import CLEANUP, MAINTAIN, RECOVER, VERIFY
from catalog.cli.commands.writing import DROP, INIT, PUBLISH

COMMANDS: tuple[Command, ...] = (
    INIT,
    PUBLISH,
    PUBLISH_FILES,
    BACKFILL,
    DROP,
    PUT,
    REMOVE,
    SEGMENTS,
    SCHEMAS,
    SCHEMA_OF,
    DATASOURCES,
    COLUMNS,
    DIFF,
    GET,
    OBJECTS,
    OPERATIONS,
    OPERATION_SHOW,
    OPERATION_PUBLISH,
    OPERATION_ABORT,
    OPERATION_RENEW,
    EPOCH,
    ADVANCE,
    HISTORY,
    RUNS,
    POLL,
    RETAIN,
    CLEANUP,
    RECOVER,
    VERIFY,
    MAINTAIN,
    SQL,
    REPORT,
    DEMO,
)
# First words of those that have two.
GROUPS = {"operation": "look at one operation, and decide what becomes of it"}
BY_NAME = {command.name: command for command in COMMANDS}
