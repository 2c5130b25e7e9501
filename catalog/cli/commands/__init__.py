"""Every command of the shell: the daily ones by what people want to do, the others in groups."""

from dataclasses import replace
from difflib import get_close_matches

from catalog.cli.command import Command
from catalog.cli.commands.comparing import COLUMNS, DIFF
from catalog.cli.commands.config import SETTINGS_GET, SETTINGS_LIST, SETTINGS_SET, SETTINGS_UNSET
from catalog.cli.commands.contracts import (
    CONTRACTS_GET,
    CONTRACTS_LIST,
    CONTRACTS_REMOVE,
    CONTRACTS_SET,
)
from catalog.cli.commands.deciding import OPERATIONS_ABORT, OPERATIONS_PUBLISH, OPERATIONS_RENEW
from catalog.cli.commands.demo import DEMO
from catalog.cli.commands.discovering import BACKFILL, PUBLISH_FILES
from catalog.cli.commands.epochs import OPERATIONS_ADVANCE, OPERATIONS_EPOCH
from catalog.cli.commands.history import AUDIT_ROLL, HISTORY
from catalog.cli.commands.moving import BACKUPS_REBUCKET
from catalog.cli.commands.names import NAMES_GET, NAMES_LIST, NAMES_STILL_WORKS, NAMES_VERSIONS
from catalog.cli.commands.naming import NAMES_REGISTER, NAMES_SET_MODE
from catalog.cli.commands.objects import (
    OBJECTS_ENSURE,
    OBJECTS_GET,
    OBJECTS_LIST,
    OBJECTS_PUT,
    OBJECTS_REMOVE,
    OBJECTS_RENAME,
)
from catalog.cli.commands.operating import OPERATIONS_LIST, OPERATIONS_SHOW
from catalog.cli.commands.poll import POLL
from catalog.cli.commands.preserving import BACKUPS_CREATE, BACKUPS_RESTORE, BACKUPS_ROLLBACK
from catalog.cli.commands.reading import (
    DATASOURCES,
    RUNS,
    SCHEMA_OF,
    SCHEMAS,
    SEGMENTS,
    SQL,
    STATS,
)
from catalog.cli.commands.report import REPORT
from catalog.cli.commands.retaining import RETENTION_APPLY, RETENTION_RULES
from catalog.cli.commands.tasks import (
    TASKS_CANCEL,
    TASKS_LIST,
    TASKS_RESUME,
    TASKS_RUN,
    TASKS_SHOW,
)
from catalog.cli.commands.types import OBJECTS_DECLARE, OBJECTS_TYPES
from catalog.cli.commands.upkeep import CLEANUP, MAINTAIN, OPERATIONS_RECOVER, VERIFY
from catalog.cli.commands.writing import DROP, INIT, PUBLISH

# In the order of the help: what people want to do, and the commands for it.
DAILY: dict[str, tuple[Command, ...]] = {
    "start": (INIT, DEMO),
    "write": (PUBLISH, PUBLISH_FILES, BACKFILL, DROP),
    "look": (SEGMENTS, SCHEMAS, DATASOURCES, SCHEMA_OF, COLUMNS, DIFF, SQL),
    "follow": (POLL, HISTORY, RUNS, STATS, REPORT),
    "upkeep": (CLEANUP, MAINTAIN, VERIFY),
}
# The first word of commands that have two, with what the group is about.
GROUPS: dict[str, tuple[str, tuple[Command, ...]]] = {
    "objects": (
        "tables, views, nodes and other named things, with rules for their types",
        (
            *(OBJECTS_PUT, OBJECTS_ENSURE, OBJECTS_GET, OBJECTS_LIST),
            *(OBJECTS_REMOVE, OBJECTS_RENAME, OBJECTS_DECLARE, OBJECTS_TYPES),
        ),
    ),
    "names": (
        "named schemas and their numbered versions",
        (
            *(NAMES_REGISTER, NAMES_GET, NAMES_LIST),
            *(NAMES_VERSIONS, NAMES_SET_MODE, NAMES_STILL_WORKS),
        ),
    ),
    "contracts": (
        "what the segments of a datasource must be like",
        (CONTRACTS_SET, CONTRACTS_GET, CONTRACTS_LIST, CONTRACTS_REMOVE),
    ),
    "operations": (
        "changes in several parts that become visible at one moment, and their epochs",
        (
            *(OPERATIONS_LIST, OPERATIONS_SHOW, OPERATIONS_PUBLISH, OPERATIONS_ABORT),
            *(OPERATIONS_RENEW, OPERATIONS_EPOCH, OPERATIONS_ADVANCE, OPERATIONS_RECOVER),
        ),
    ),
    "settings": (
        "settings that are stored in the catalog",
        (SETTINGS_LIST, SETTINGS_GET, SETTINGS_SET, SETTINGS_UNSET),
    ),
    "tasks": (
        "long work in steps that outlives its process",
        (TASKS_LIST, TASKS_SHOW, TASKS_RUN, TASKS_RESUME, TASKS_CANCEL),
    ),
    "audit": (
        "who changed what and why, kept for longer than the log",
        (replace(HISTORY, name="audit history", example=f"audit {HISTORY.example}"), AUDIT_ROLL),
    ),
    "backups": (
        "copies of the catalog, and the way back",
        (BACKUPS_CREATE, BACKUPS_RESTORE, BACKUPS_ROLLBACK, BACKUPS_REBUCKET),
    ),
    "retention": (
        "rules by which segments are dropped, and archived before that",
        (RETENTION_APPLY, RETENTION_RULES),
    ),
}
COMMANDS: tuple[Command, ...] = (
    *(command for commands in DAILY.values() for command in commands),
    *(command for _, commands in GROUPS.values() for command in commands),
)
BY_NAME = {command.name: command for command in COMMANDS}
# As the runs table, the metrics, the tasks and the scripts under jobs/ name them.
BY_JOB = {command.job_name: command for command in COMMANDS}

# Commands of the shell before it had groups.
RENAMED = {
    **{name: f"objects {name}" for name in ("put", "ensure", "get", "remove", "rename")},
    **{name: f"objects {name}" for name in ("declare", "types")},
    **{name: f"names {name}" for name in ("register", "versions", "set-mode", "still-works")},
    **{"named": "names list", "named-schema": "names get", "contract show": "contracts get"},
    **{name: f"operations {name}" for name in ("epoch", "advance", "recover")},
    **{name: f"backups {name}" for name in ("restore", "rollback", "rebucket")},
    **{"backup": "backups create", "retain": "retention apply", "config": "settings"},
    **{name: f"{name}s" for name in ("contract", "operation", "task")},
    # These were lists, and audit rolled; now they are groups.
    **{name: f"{name} list" for name in ("objects", "contracts", "operations", "tasks")},
    "audit": "audit roll",
}


def renamed(words: list[str]) -> str | None:
    """What a command line that begins with a command from before is answered with, or none."""
    first, second = [*words[:2], "", ""][:2]
    both = f"{first} {second}"
    if both in RENAMED:
        return f"'{both}' is now '{RENAMED[both]}'"
    new = RENAMED.get(first)
    if new is None:
        return None
    if first in GROUPS:
        actions = [command.action for command in GROUPS[first][1]]
        if second in ("-h", "--help") or get_close_matches(second, actions, 1):
            return None
    elif f"{new} {second}" in BY_NAME:
        return f"'{both}' is now '{new} {second}'"
    return f"'{first}' is now '{new}'"
