"""What ends an operation in the model, or makes it ready, and what moves the stable epoch."""

from .operation_plans import NOTHING, Plan, Plans, Task, partition
from .operation_rows import (
    ABORTED,
    ABSENT,
    AFTER,
    DROP,
    EPOCH,
    HOLD,
    LIVE,
    OPEN,
    PUBLISHED,
    READY,
    STABLE,
    Epoch,
    Live,
    Operation,
    Setting,
    Staged,
    Table,
    epoch_row,
    live,
    live_rows,
    operations,
    parts,
    place,
    stable_epoch,
    staged_rows,
)


def publish(task: Task, table: Table, setting: Setting) -> list[Plans]:
    rules, found = setting.rules, _complete(task, table, setting)
    # The stable epoch only rises, so that a plain read of it is enough.
    if found is None or (found[1] > stable_epoch(table) and rules.publish_checks_floor):
        return NOTHING
    staged = staged_rows(table if rules.publish_reads_once else task.seen)
    applied = _apply([found[0]], staged, table, setting)
    return [(applied,)] if applied else NOTHING


def publish_at(task: Task, table: Table, setting: Setting) -> list[Plans]:
    rules, found = setting.rules, _complete(task, table, setting)
    if found is None or task.number <= stable_epoch(table):
        return NOTHING
    own, floor = found
    if task.number < floor and rules.ready_checks_floor:
        return NOTHING
    orders = [row.order for row in operations(table).values() if row.state == READY]
    ready = own._replace(state=READY, epoch=task.number, order=max(orders, default=0) + 1)
    bump = _bump(table, stable_epoch(table), 1)
    if not rules.ready_bumps_epoch:
        bump = bump._replace(removes=(), adds=())
    if not rules.ready_tracks_epoch:
        bump = bump._replace(tracks=())
    if not rules.ready_expects_epoch:
        bump = bump._replace(tracks=(), expects=(), absent=())
    return [(_move([own], [ready], setting).united(bump),)]


def advance(task: Task, table: Table, setting: Setting) -> list[Plans]:
    rules = setting.rules
    if task.number <= stable_epoch(table):
        return NOTHING
    ready = [row for row in operations(table).values() if row.state == READY]
    due = [row for row in ready if row.epoch <= task.number]
    applied = _apply(due, staged_rows(table), table, setting)
    if applied is None:
        return NOTHING
    bump = _bump(table, task.number, 0)
    if not rules.advance_tracks_epoch:
        bump = bump._replace(tracks=())
    if not rules.advance_expects_epoch:
        bump = bump._replace(tracks=(), expects=(), absent=())
    return [(applied.united(bump),)]


def abort(task: Task, table: Table, setting: Setting) -> list[Plans]:
    own = operations(table)[task.name]
    if own.state != OPEN and (setting.rules.ready_is_final or own.state != READY):
        return NOTHING
    return [(_move([own], [own._replace(state=ABORTED)], setting),)]


def recover(task: Task, table: Table, setting: Setting) -> list[Plans]:
    own = operations(table)[task.name]
    if own.renewed or own.state != OPEN:
        return NOTHING
    ended = _move([own], [own._replace(state=ABORTED)], setting)
    if not setting.rules.recover_expects_lease:
        ended = ended._replace(expects=(), removes=(), takes=(partition(own),))
    return [(ended,)]


def renew(task: Task, table: Table, setting: Setting) -> list[Plans]:
    own = operations(table)[task.name]
    if own.renewed or own.state != OPEN:
        return NOTHING
    return [(_move([own], [own._replace(renewed=True)], setting),)]


def _complete(task: Task, table: Table, setting: Setting) -> tuple[Operation, int] | None:
    """Return the operation and its floor if it is open and all its parts are there."""
    own, there = operations(table)[task.name], parts(table, task.name)
    if own.state != OPEN or len({row.number for row in there}) < len(setting.parts(task.name)):
        return None
    return own, max((row.floor for row in there), default=0)


def _move(before: list[Operation], after: list[Operation], setting: Setting) -> Plan:
    """Plan to bring operations into another state."""
    tracks = tuple(map(partition, before)) if setting.rules.decisions_track_operation else ()
    return Plan(tracks, expects=(*before,), removes=(*before,), adds=(*after,))


def _bump(table: Table, stable: int, ready: int) -> Plan:
    """Plan to expect the epoch row as it is, or to be absent, and to write it anew."""
    row = epoch_row(table)
    there, bumps = ((row,), row.bumps) if row else ((), 0)
    new = Epoch(EPOCH, "stable", stable, bumps + ready)
    return Plan((STABLE,), there, absent=() if row else (STABLE,), removes=there, adds=(new,))


def _apply(
    due: list[Operation], staged: tuple[Staged, ...], table: Table, setting: Setting
) -> Plan | None:
    """Plan the net change of whole operations; None if the base of one is gone."""
    rules = setting.rules
    by = place if rules.advance_follows_order else (lambda row: (row.epoch, row.key))
    names = [row.key for row in sorted(due, key=by)]
    planned = _move(due, [row._replace(state=PUBLISHED) for row in due], setting)
    changing = [row for row in staged if row.operation in names and row.action != HOLD]
    changing.sort(key=lambda row: (names.index(row.operation), row.part))
    for key in sorted({row.key for row in changing}):
        rows = [row for row in changing if row.key == key]
        there, base = live_rows(table, key), rows[0].base
        if base == ABSENT:
            # Since the claim nobody else can have written the key: its bucket is not read.
            there, net = (), Plan()
        elif base != AFTER and [row.writer for row in there] != [base]:
            return None
        else:
            net = Plan(((LIVE, key),), expects=there, absent=() if there else ((LIVE, key),))
        if not rules.publish_tracks_base:
            net = net._replace(tracks=())
        if not rules.publish_expects_base:
            net = net._replace(expects=(), absent=())
        after = _net(rows, there[0] if there else None, setting)
        planned = planned.united(net._replace(removes=there, adds=(after,) if after else ()))
    return planned


def _net(rows: list[Staged], before: Live | None, setting: Setting) -> Live | None:
    """Apply the changes of one key, those of one operation as one change with one revision."""
    now = before
    for operation in dict.fromkeys(row.operation for row in rows):
        own = [row for row in rows if row.operation == operation]
        if own[0].action == DROP:
            now = None
            continue
        known = now if setting.rules.advance_counts_operations or now is None else before
        revision = known.revision + 1 if known else 1
        now = live(own[0].key, operation, revision, max(row.fingerprint for row in own))
    return now
