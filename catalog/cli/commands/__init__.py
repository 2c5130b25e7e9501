"""Every word of the shell, in the order in which the help lists them."""

from catalog.cli.command import Command
from catalog.cli.commands.comparing import COLUMNS, DIFF
from catalog.cli.commands.config import CONFIG_GET, CONFIG_LIST, CONFIG_SET, CONFIG_UNSET
from catalog.cli.commands.contracts import (
    CONTRACT_REMOVE,
    CONTRACT_SET,
    CONTRACT_SHOW,
    CONTRACTS,
)
from catalog.cli.commands.deciding import OPERATION_ABORT, OPERATION_PUBLISH, OPERATION_RENEW
from catalog.cli.commands.demo import DEMO
from catalog.cli.commands.discovering import BACKFILL, PUBLISH_FILES
from catalog.cli.commands.epochs import ADVANCE, EPOCH
from catalog.cli.commands.history import AUDIT, HISTORY
from catalog.cli.commands.moving import REBUCKET
from catalog.cli.commands.names import NAMED, NAMED_SCHEMA, STILL_WORKS, VERSIONS
from catalog.cli.commands.naming import REGISTER, SET_MODE
from catalog.cli.commands.objects import ENSURE, GET, OBJECTS, PUT, REMOVE, RENAME
from catalog.cli.commands.operating import OPERATION_SHOW, OPERATIONS
from catalog.cli.commands.poll import POLL
from catalog.cli.commands.preserving import BACKUP, RESTORE, ROLLBACK
from catalog.cli.commands.reading import (
    DATASOURCES,
    RUNS,
    SCHEMA_OF,
    SCHEMAS,
    SEGMENTS,
    SQL,
)
from catalog.cli.commands.report import REPORT
from catalog.cli.commands.retaining import RETAIN
from catalog.cli.commands.tasks import TASK_CANCEL, TASK_RESUME, TASK_SHOW, TASKS
from catalog.cli.commands.types import DECLARE, TYPES
from catalog.cli.commands.upkeep import CLEANUP, MAINTAIN, RECOVER, VERIFY
from catalog.cli.commands.writing import DROP, INIT, PUBLISH

COMMANDS: tuple[Command, ...] = (
    INIT,
    PUBLISH,
    PUBLISH_FILES,
    BACKFILL,
    DROP,
    DECLARE,
    PUT,
    ENSURE,
    REMOVE,
    RENAME,
    REGISTER,
    SET_MODE,
    SEGMENTS,
    SCHEMAS,
    SCHEMA_OF,
    DATASOURCES,
    COLUMNS,
    DIFF,
    NAMED,
    VERSIONS,
    NAMED_SCHEMA,
    STILL_WORKS,
    GET,
    OBJECTS,
    TYPES,
    CONTRACTS,
    CONTRACT_SET,
    CONTRACT_SHOW,
    CONTRACT_REMOVE,
    OPERATIONS,
    OPERATION_SHOW,
    OPERATION_PUBLISH,
    OPERATION_ABORT,
    OPERATION_RENEW,
    EPOCH,
    ADVANCE,
    HISTORY,
    AUDIT,
    RUNS,
    CONFIG_LIST,
    CONFIG_GET,
    CONFIG_SET,
    CONFIG_UNSET,
    TASKS,
    TASK_SHOW,
    TASK_CANCEL,
    TASK_RESUME,
    POLL,
    RETAIN,
    CLEANUP,
    RECOVER,
    VERIFY,
    MAINTAIN,
    BACKUP,
    RESTORE,
    ROLLBACK,
    REBUCKET,
    SQL,
    REPORT,
    DEMO,
)
# First words of those that have two.
GROUPS = {
    "contract": "say what the segments of a datasource must be like",
    "operation": "look at one operation, and decide what becomes of it",
    "config": "look at the catalog's settings, and change them",
    "task": "look at one task, cancel it, or go on with it",
}
BY_NAME = {command.name: command for command in COMMANDS}
