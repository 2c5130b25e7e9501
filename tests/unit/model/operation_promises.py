"""What must hold in every state of the model of operations, and of every commit."""

from .operation_plans import Task
from .operation_rows import (
    ABSENT,
    AFTER,
    DROP,
    HOLD,
    OPEN,
    PUBLISHED,
    PUT,
    READY,
    RETIRED,
    SCHEMA,
    Change,
    Live,
    Operation,
    Part,
    Parts,
    Setting,
    Staged,
    Table,
    live,
    operations,
    place,
    stable_epoch,
    staged_rows,
)

DECIDED_TWICE, TWO_HOLDERS, BASE_GONE = "decided twice", "two holders", "base gone"
LATE_PART, LOST_PART, LOST_UPDATE = "late part", "lost part", "lost update"
CONTRADICTION, RENEWED = "contradiction", "renewed lease"


def broken_state(table: Table, setting: Setting) -> str:
    """Name the promise that a table breaks, or return an empty string."""
    lives = [row for row in table if isinstance(row, Live)]
    schemas = [row for row in table if row[0] in (SCHEMA, RETIRED)]
    if len({row.key for row in lives}) < len(lives) or len({*schemas}) < len(schemas):
        return "I2"
    known = {row[1] for row in schemas}
    referring = {row.fingerprint for row in lives} | {row.fingerprint for row in staged_rows(table)}
    if referring - known - {""}:
        return "I3"
    ready = [row for row in operations(table).values() if row.state == READY]
    if any(row.epoch <= stable_epoch(table) for row in ready):
        return "I8"
    return _broken_claims(table) or _broken_parts(table, setting)


def broken_commit(before: Table, after: Table, task: Task, setting: Setting) -> str:
    """Name the promise that a commit breaks, or return an empty string."""
    was, now = operations(before), operations(after)
    rows = sum(isinstance(row, Operation) for row in after)
    moved = [row for row in was.values() if row not in after]
    if rows > len(now) or any(not _lawful(row, now[row.key]) for row in moved):
        return DECIDED_TWICE
    if task.verb == "recover" and was[task.name].renewed:
        return RENEWED
    new_parts = [row for row in after if isinstance(row, Part) and row not in before]
    if any(was[row.operation].state != OPEN for row in new_parts):
        return LATE_PART
    low, high = stable_epoch(before), stable_epoch(after)
    applied = [row for row in moved if now[row.key].state == PUBLISHED]
    at_epochs = [row for row in applied if row.state == READY]
    if low > high or any(not low < row.epoch <= high for row in at_epochs):
        return "I8"
    return _broken_rows(before, after, sorted(applied, key=place), task, setting)


def _lawful(row: Operation, now: Operation) -> bool:
    return row.state == OPEN or (row.state == READY and now.state == PUBLISHED)


def _broken_claims(table: Table) -> str:
    states = operations(table)
    writers = {row.key: row.writer for row in table if isinstance(row, Live)}
    rows = [row for row in staged_rows(table) if states[row.operation].state in (OPEN, READY)]
    for row in (row for row in rows if row.action != HOLD):
        if row.base not in (ABSENT, AFTER) and writers.get(row.key) != row.base:
            return BASE_GONE  # the operation could never be published
        for other in (other for other in rows if other.key == row.key):
            if other.operation == row.operation and other.action not in (row.action, HOLD):
                return CONTRADICTION
            if other.operation != row.operation and _both_open(row, other, states):
                return TWO_HOLDERS
    return ""


def _both_open(one: Staged, other: Staged, states: dict[str, Operation]) -> bool:
    return states[one.operation].state == states[other.operation].state == OPEN


def _broken_parts(table: Table, setting: Setting) -> str:
    """Check that each part of an undecided operation is there once, with all its changes."""
    undecided = {row.key for row in operations(table).values() if row.state in (OPEN, READY)}
    parts = [row for row in table if isinstance(row, Part)]
    wanted = [
        (row.operation, row.number, change.key)
        for row in parts
        for change in setting.parts(row.operation)[row.number]
        if row.operation in undecided
    ]
    staged = [row for row in staged_rows(table) if row.operation in undecided]
    found = [(row.operation, row.part, row.key) for row in staged]
    if len({*parts}) < len(parts) or len({*found}) < len(found):
        return "I2"
    return "" if {*found} == {*wanted} else LOST_PART


def _broken_rows(
    before: Table, after: Table, applied: list[Operation], task: Task, setting: Setting
) -> str:
    """Compare the live rows with those that a commit of whole operations or one write leaves."""
    rows = {row.key: row for row in before if isinstance(row, Live)}
    for operation in applied:
        own = [row for row in staged_rows(before) if row.operation == operation.key]
        overs = {row.key: row.over for row in own}
        for change in _united(setting.parts(operation.key)):
            there = rows.get(change.key)
            if overs.get(change.key) != (there.writer if there else ABSENT):
                return BASE_GONE
            _write(rows, change, operation.key)
    if task.verb in ("insert", "put", "drop"):
        action = DROP if task.verb == "drop" else PUT
        _write(rows, Change(task.name, action, task.fingerprint), task.token())
    found = [row for row in after if isinstance(row, Live)]
    if len({row.key for row in found}) < len(found):
        return "I2"
    if sorted(rows.values()) == found:
        return ""
    return "I4" if applied else LOST_UPDATE


def _united(parts: Parts) -> list[Change]:
    """Return the one change of each key that the parts of an operation make together."""
    changes = [change for part in parts for change in part]
    united: dict[str, Change] = {}
    # A hold says less than the others, and no fingerprint less than one.
    for change in sorted(changes, key=lambda change: (change.action != HOLD, change.fingerprint)):
        united[change.key] = change
    return list(united.values())


def _write(rows: dict[str, Live], change: Change, writer: str) -> None:
    there = rows.get(change.key)
    if change.action == DROP:
        rows.pop(change.key, None)
    elif change.action == PUT:
        revision = there.revision + 1 if there else 1
        rows[change.key] = live(change.key, writer, revision, change.fingerprint)
