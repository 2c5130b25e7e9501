"""What removes rows that nobody needs in the model of operations: sweep and clean-up."""

from .operation_plans import Plan, Plans, Task, partition
from .operation_rows import (
    OPEN,
    READY,
    RETIRED,
    SCHEMA,
    Live,
    Setting,
    Table,
    operations,
    staged_rows,
)


def sweep(task: Task, table: Table, setting: Setting) -> list[Plans]:
    """Remove any one row of a decided operation: whatever goes together can also go in steps."""
    spared = (OPEN, READY) if setting.rules.sweep_spares_ready else (OPEN,)
    states = operations(table)
    rows = [row for row in staged_rows(table) if states[row.operation].state not in spared]
    return [(Plan((partition(row),), expects=(row,), removes=(row,)),) for row in rows]


def clean(task: Task, table: Table, setting: Setting) -> list[Plans]:
    """Plan any step of a clean-up of one schema; restore and purge may come from one read."""
    rules, row, copy = setting.rules, (SCHEMA, task.fingerprint), (RETIRED, task.fingerprint)
    seen = table if rules.cleanup_reads_once else task.seen
    referring = [row.fingerprint for row in seen if isinstance(row, Live)]
    if rules.cleanup_counts_staged:
        referring += [row.fingerprint for row in staged_rows(table)]
    referenced = task.fingerprint in referring
    live, retired = row in table, copy in table
    retire = Plan((row, copy), expects=(row,), absent=(copy,), removes=(row,), adds=(copy,))
    restore = Plan((row,), carries=(task.fingerprint,))
    purge = Plan((copy,), expects=(copy,), removes=(copy,))
    if not rules.purge_matches_token:
        purge = Plan((copy,), takes=(copy,))
    restores, purges = retired and referenced, retired and (live or not referenced)
    plans: list[tuple[bool, Plans]] = [
        (live and not referenced and not retired, (retire,)),
        (restores, (restore,)),
        (purges, (purge,)),
        (restores and purges, (restore, purge)),
    ]
    return [steps for possible, steps in plans if possible]
