"""All commands of the shell: the daily ones by what people want to do, the others in groups."""

from difflib import get_close_matches
from types import ModuleType

from catalog.cli.command import Command
from catalog.cli.commands import (
    audit,
    backups,
    contracts,
    demo,
    look,
    names,
    objects,
    operations,
    retention,
    settings,
    tasks,
    upkeep,
    write,
)


def _in_groups(module: ModuleType) -> tuple[Command, ...]:
    """The commands with two words that a module defines, in the order of the module."""
    found = [each for each in vars(module).values() if isinstance(each, Command)]
    return tuple(each for each in found if " " in each.name)


# What people want to do, and the commands for it.
DAILY: dict[str, tuple[Command, ...]] = {
    "start": (write.init, demo.demo),
    "write": (write.publish, write.publish_files, write.backfill, write.drop),
    "look": (
        *(look.segments, look.schemas, look.datasources, look.schema_of),
        *(look.columns, look.diff, look.sql),
    ),
    "follow": (audit.poll, look.stats, look.report),
    "upkeep": (upkeep.cleanup, upkeep.maintain, upkeep.verify, upkeep.upgrade),
}
# The first word of commands that have two, with what the group is about.
GROUPS: dict[str, tuple[str, tuple[Command, ...]]] = {
    group: (about, _in_groups(module))
    for group, about, module in (
        ("objects", "named JSON documents with revisions, links and declared types", objects),
        ("names", "named schemas and their numbered versions", names),
        ("contracts", "what the segments of a datasource must be like", contracts),
        ("operations", "changes in several parts that become visible together", operations),
        ("settings", "settings that are stored in the catalog", settings),
        ("tasks", "long work in steps that outlives its process", tasks),
        ("audit", "who changed what and when, kept longer than the log", audit),
        ("backups", "copies of the catalog, and the way back", backups),
        ("retention", "rules by which segments are dropped, and archived before", retention),
    )
}
COMMANDS: tuple[Command, ...] = (
    *(command for commands in DAILY.values() for command in commands),
    *(command for _, commands in GROUPS.values() for command in commands),
)
BY_NAME = {command.name: command for command in COMMANDS}
# By the name in the runs table, in metrics, as a task and under jobs/.
BY_JOB = {command.job_name: command for command in COMMANDS}


def actions(group: str) -> list[str]:
    """The second words of a group."""
    return [command.action for command in GROUPS[group][1]]


# Words of the shell before it had groups, and what they are now.
RENAMED = {
    **{word: f"objects {word}" for word in ("put", "ensure", "get", "remove", "rename")},
    **{word: f"objects {word}" for word in ("declare", "types")},
    **{word: f"names {word}" for word in ("register", "versions", "set-mode", "still-works")},
    "named": "names list",
    "named-schema": "names get",
    **{f"contract {word}": f"contracts {word}" for word in ("set", "remove")},
    "contract show": "contracts get",
    **{f"operation {word}": f"operations {word}" for word in ("show", "publish", "abort", "renew")},
    **{word: f"operations {word}" for word in ("epoch", "advance", "recover")},
    **{f"config {word}": f"settings {word}" for word in ("list", "get", "set", "unset")},
    **{f"task {word}": f"tasks {word}" for word in ("show", "cancel", "resume")},
    **{word: f"audit {word}" for word in ("history", "runs")},
    **{word: f"backups {word}" for word in ("restore", "rollback", "rebucket")},
    "backup": "backups create",
    "retain": "retention apply",
    # First words alone.
    **{word: f"{word}s" for word in ("contract", "operation", "task")},
    "config": "settings",
    # These were commands and are groups now.
    **{word: f"{word} list" for word in ("objects", "contracts", "operations", "tasks")},
    "audit": "audit roll",
}


def renamed(words: list[str]) -> str | None:
    """What to answer to a command line that begins with an old word, or none."""
    if any(word.partition("=")[0] == "--as-of-epoch" for word in words):
        return "`--as-of-epoch N` is now `--as-of epoch:N`"
    first, second = [*words[:2], "", ""][:2]
    if first in GROUPS and (
        second in ("-h", "--help") or get_close_matches(second, actions(first), 1)
    ):
        return None
    for old in (f"{first} {second}", first):
        if old in RENAMED:
            more = f"; a group: {', '.join(actions(old))}" if old in GROUPS else ""
            return f"`strata {old}` is now `strata {RENAMED[old]}`{more}"
    return None
