"""Those who meet claims in the model of operations: stages, and writers without an operation."""

from .operation_plans import NOTHING, Claim, Plan, Plans, Task, partition, schemas
from .operation_rows import (
    ABSENT,
    AFTER,
    HOLD,
    LIVE,
    OPEN,
    PART,
    PUT,
    READY,
    STAGED,
    Change,
    Part,
    Setting,
    Staged,
    Table,
    live,
    live_rows,
    operations,
    part_key,
    parts,
    place,
    staged_rows,
)


def stage(task: Task, table: Table, setting: Setting) -> list[Plans]:
    rules, own = setting.rules, operations(table)[task.name]
    known = any(row.number == task.number for row in parts(table, task.name))
    if own.state != OPEN or known:
        return NOTHING
    changes = setting.parts(task.name)[task.number]
    claims = [_claim(task, change, table, setting) for change in changes]
    if None in claims:
        return NOTHING
    found = [claim for claim in claims if claim is not None]
    floor = max((floor for _, floor in found), default=0)
    row = Part(PART, part_key(task.name, task.number), task.name, task.number, floor)
    planned = Plan(expects=(own,), adds=(row,))
    if rules.stage_tracks_operation:
        planned = planned._replace(tracks=(partition(own),))
    if rules.stage_expects_part:
        planned = planned.united(Plan((partition(row),), absent=(partition(row),)))
    if rules.stage_carries_schemas:
        carries = tuple(sorted({change.fingerprint for change in changes} - {""}))
        planned = planned.united(Plan(schemas(carries), carries=carries))
    for claim, _ in found:
        planned = planned.united(claim)
    return [(planned,)]


def _claim(task: Task, change: Change, table: Table, setting: Setting) -> tuple[Plan, int] | None:
    """Plan the claim of one key and return it with its floor; None if it cannot be had."""
    rules, states = setting.rules, operations(table)
    shared = change.action == HOLD
    rows = [row for row in staged_rows(table) if row.key == change.key]
    mine = [row for row in rows if row.operation == task.name]
    exclusive = {row.action for row in mine} - {HOLD}
    if exclusive and not shared and change.action not in exclusive:
        return None  # the part contradicts another one
    others = [] if exclusive else _others(task, shared, rows, table, setting)
    if any(states[row.operation].state == OPEN for row in others):
        return None
    last = states[others[-1].operation] if others else None
    allowed = {row.operation for row in rows if states[row.operation].state != OPEN}
    if mine or not rules.stage_expects_siblings:
        allowed.add(task.name)
    planned = Plan(claims=(Claim(change.key, task.name, shared, tuple(sorted(allowed))),))
    if rules.stage_tracks_claims:
        planned = planned._replace(tracks=((STAGED, change.key),))
    if last and rules.stage_expects_predecessor:
        tracks = (partition(last),) if rules.stage_tracks_predecessor else ()
        planned = planned.united(Plan(tracks, expects=(last,)))
    changing = [row for row in others if row.action != HOLD]
    if mine and rules.stage_joins_siblings:
        base, over = mine[0].base, mine[0].over
    elif changing:
        base, over = AFTER, changing[-1].operation if changing[-1].action == PUT else ABSENT
    else:
        there = live_rows(table, change.key)
        base = over = there[0].writer if there else ABSENT
        tracks = ((LIVE, change.key),) if rules.stage_tracks_base else ()
        absent = () if there else ((LIVE, change.key),)
        planned = planned.united(Plan(tracks, expects=there, absent=absent))
    key, action, fingerprint = change
    row = Staged(STAGED, key, task.name, task.number, action, fingerprint, base, over)
    floor = last.epoch if last and rules.stage_sets_floor else 0
    return planned.united(Plan(adds=(row,))), floor


def _others(
    task: Task, shared: bool, rows: list[Staged], table: Table, setting: Setting
) -> list[Staged]:
    """Return the claims of other undecided operations to wait for or to queue behind, in order."""
    states = operations(table)
    others = [
        row
        for row in rows
        if row.operation != task.name
        and states[row.operation].state in (OPEN, READY)
        and not (shared and row.action == HOLD)
        and (setting.rules.stage_respects_holds or row.action != HOLD)
    ]
    return sorted(others, key=lambda row: place(states[row.operation]))


def write(task: Task, table: Table, setting: Setting) -> list[Plans]:
    """Insert, put or drop a key, past claims of operations that this read shows as decided."""
    rules, key, states = setting.rules, task.name, operations(table)
    undecided = (OPEN, READY) if rules.writers_respect_ready else (OPEN,)
    holders = {row.operation for row in staged_rows(table) if row.key == key}
    there = live_rows(table, key)
    if (task.verb == "insert" and there) or (task.verb == "drop" and not there):
        return NOTHING
    planned = Plan(
        tracks=((LIVE, key),),
        expects=there,
        absent=() if there else ((LIVE, key),),
        removes=there,
    )
    if rules.writers_respect_claims:
        if any(states[holder].state in undecided for holder in holders):
            return NOTHING
        tracks = ((STAGED, key),) if rules.writers_track_claims else ()
        claim = Claim(key, "", False, tuple(sorted(holders)))
        planned = planned.united(Plan(tracks, claims=(claim,)))
    if task.verb != "drop":
        revision = there[0].revision + 1 if there else 1
        row = live(key, task.token(), revision, task.fingerprint)
        carries = (task.fingerprint,) if task.fingerprint else ()
        planned = planned.united(Plan(schemas(carries), carries=carries, adds=(row,)))
    return [(planned,)]
