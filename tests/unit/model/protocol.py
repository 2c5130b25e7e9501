"""A model of publish, drop, backfill and clean-up of one schema under Delta's conflict rule.

A statement begins on a snapshot, where it decides what it removes and adds, and commits later.
Delta refuses the commit when a partition that the statement tracks was touched in between; then the
statement begins again. The search visits every interleaving and checks the promises in every state.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from .search import Search, visit

SCHEMA, RETIRED, SEGMENT = "schema", "retired", "segment/"
# A segment that was published without a schema. In the table it is a row of the segment's partition
# with no fingerprint; whoever names that partition tracks both here.
WAITING = "waiting/"

# The token of a row stands for its commit id. Tokens are renamed by order of appearance at every
# commit, or the states would be without end. One that left the table cannot come back: it is GONE.
NEW, GONE, NO_TOKEN = -2, -1, 0

# Partition and token. Each segment has a partition of its own, which gives the fewest conflicts
# and so the most interleavings. A table is a multiset, so that it can hold a row too many.
Row = tuple[str, int]
Table = tuple[Row, ...]


class Rules(NamedTuple):
    """The protocol as designed; a field that is false breaks that part of it."""

    delta_refuses_conflicts: bool = True
    publish_carries_schema: bool = True
    purge_matches_token: bool = True
    purge_spares_references: bool = True
    retire_matches_token: bool = True
    retire_plans_around_copies: bool = True
    retire_refuses_copies: bool = True
    backfill_carries_schema: bool = True
    backfill_matches_token: bool = True


class Task(NamedTuple):
    """A plan to be made, or a statement to be run on the rows that its plan has seen."""

    verb: str
    segment: str = ""
    targets: Table = ()

    def __str__(self) -> str:
        return f"{self.verb} {self.segment}".rstrip()

    def acknowledges(self) -> tuple[str, ...]:
        return (self.segment,) if self.verb.startswith("publish") else ()


class Statement(NamedTuple):
    """What a running statement tracks and is about to write, decided when it began."""

    tracks: tuple[str, ...] = ()
    removes: Table = ()
    adds: Table = ()
    conflict: bool = False


IDLE, CONFLICT = Statement(), Statement(conflict=True)


class Process(NamedTuple):
    """The tasks that a process has before it, and the statement of the first if it has begun."""

    todo: tuple[Task, ...] = ()
    running: Statement = IDLE


DONE = Process()
Move = tuple[str, Process, tuple[str, ...]]  # its name, the process after it, what it acknowledges


class State(NamedTuple):
    """The table, the published segments that nobody dropped, the processes in sorted order."""

    table: Table
    acknowledged: tuple[str, ...]
    processes: tuple[Process, ...]


def publisher(segment: str, rules: Rules) -> Process:
    verb = "publish" if rules.publish_carries_schema else "plan to publish"
    return Process((Task(verb, segment),))


def waiter(segment: str) -> Process:
    """Publishes a segment without its schema."""
    return Process((Task("publish waiting", segment),))


def replacer(segment: str) -> Process:
    """Publishes a segment with its schema, also in place of one without."""
    return Process((Task("publish in place", segment),))


def backfiller(segment: str, runs: int) -> Process:
    return Process((Task("plan to backfill", segment),) * runs)


def dropper(segment: str) -> Process:
    return Process((Task("drop", segment),))


def cleaner(runs: int) -> Process:
    verbs = ("plan to restore and purge", "plan to retire", "plan to restore")
    return Process(tuple(map(Task, verbs)) * runs)


def broken_promise(table: Table, acknowledged: tuple[str, ...]) -> str:
    """Name the promise that does not hold, or return an empty string."""
    partitions = [partition for partition, _ in table]
    keys = [partition.replace(WAITING, SEGMENT) for partition in partitions]
    if len(keys) != len(set(keys)):
        return "I2"
    if _referenced(table) and SCHEMA not in partitions and RETIRED not in partitions:
        return "I3"
    return "" if all(SEGMENT + segment in keys for segment in acknowledged) else "I7"


def search(tables: Iterable[Table], processes: Sequence[Process], rules: Rules) -> Search:
    """Visit every state that can be reached from these tables, up to the first broken promise."""
    return visit(
        [State(table, (), tuple(sorted(processes))) for table in tables],
        lambda state: _successors(state, rules),
        lambda state: broken_promise(state.table, state.acknowledged),
        lambda state: all(process == DONE for process in state.processes),
    )


def _successors(state: State, rules: Rules) -> Iterator[tuple[str, State]]:
    for i, process in enumerate(state.processes):
        others = state.processes[:i] + state.processes[i + 1 :]
        if process.running not in (IDLE, CONFLICT):
            yield f"{process.todo[0]} commits", _commit(state, process, others, rules)
            continue
        for action, moved, published in _moves(process, state.table, rules):
            acknowledged = tuple(sorted({*state.acknowledged, *published}))
            yield action, State(state.table, acknowledged, tuple(sorted((*others, moved))))


@cache
def _moves(process: Process, table: Table, rules: Rules) -> list[Move]:
    """List what a process can do that leaves the table as it is: plan, begin, skip, be refused."""
    if process == DONE:
        return []
    task, rest = process.todo[0], process.todo[1:]
    if task.verb.startswith("plan"):
        return [(str(task), Process(_plan(task, table, rules) + rest), ())]
    if process.running == CONFLICT:
        return [(f"{task} is refused", Process(process.todo), ())]
    statement = _begin(task, table, rules)
    # A statement with nothing to write commits nothing and is not checked.
    if statement.removes or statement.adds:
        moves: list[Move] = [(f"{task} begins", process._replace(running=statement), ())]
    else:
        moves = [(f"{task} has nothing to do", Process(rest), task.acknowledges())]
    # A cleaner may fail at a step and go on. To plan again is to have planned later.
    return moves if task.segment else [*moves, (f"{task} is skipped", Process(rest), ())]


def _plan(task: Task, table: Table, rules: Rules) -> tuple[Task, ...]:
    """Plan by a plain read of the newest version, which Delta does not check."""
    live, retired, referenced = _rows(table, SCHEMA), _rows(table, RETIRED), _referenced(table)
    if task.verb == "plan to backfill":
        waiting = _rows(table, WAITING + task.segment)
        return (Task("backfill", task.segment, waiting),) if waiting else ()
    if task.verb == "plan to publish":
        return (Task("publish without schema" if live else "publish", task.segment),)
    if task.verb == "plan to retire":
        copied = retired and rules.retire_plans_around_copies
        return (Task("retire", "", live),) if live and not referenced and not copied else ()
    restores = (Task("restore"),) if retired and referenced else ()
    if task.verb == "plan to restore":
        return restores
    purgeable = retired and (live or not referenced or not rules.purge_spares_references)
    return (*restores, Task("purge", "", retired)) if purgeable else restores


def _begin(task: Task, table: Table, rules: Rules) -> Statement:
    """Decide, on the snapshot where a statement begins, what it will write."""
    live, retired = _rows(table, SCHEMA), _rows(table, RETIRED)
    own, empty = SEGMENT + task.segment, WAITING + task.segment
    waiting = _rows(table, empty)
    new_schema: Table = () if live else ((SCHEMA, NEW),)
    new_segment: Table = () if _rows(table, own) else ((own, NO_TOKEN),)
    match task.verb:
        case "publish":
            return Statement((SCHEMA, own), (), (*new_schema, *new_segment))
        case "publish without schema":
            return Statement((own,), (), new_segment)
        case "publish waiting":
            there = waiting or _rows(table, own)
            return Statement((own, empty), (), () if there else ((empty, NEW),))
        case "publish in place":
            return Statement((SCHEMA, own, empty), waiting, (*new_schema, *new_segment))
        case "backfill":
            seen = tuple(row for row in waiting if row in task.targets)
            if not seen and rules.backfill_matches_token:
                return Statement((SCHEMA, own, empty))
            if not rules.backfill_carries_schema:
                return Statement((own, empty), seen, ((own, NO_TOKEN),))
            return Statement((SCHEMA, own, empty), seen, (*new_schema, (own, NO_TOKEN)))
        case "drop":
            return Statement((own, empty), (*_rows(table, own), *waiting), ())
        case "restore":
            return Statement((SCHEMA,), (), new_schema)
        case "purge":
            rows = [r for r in retired if r in task.targets or not rules.purge_matches_token]
            return Statement((RETIRED,), tuple(rows), ())
    if retired and rules.retire_refuses_copies:
        return IDLE
    rows = [r for r in live if r in task.targets or not rules.retire_matches_token]
    return Statement((SCHEMA, RETIRED), tuple(rows), tuple((RETIRED, NEW) for _ in rows))


def _commit(state: State, process: Process, others: tuple[Process, ...], rules: Rules) -> State:
    task, statement = process.todo[0], process.running
    kept = [row for row in state.table if row not in statement.removes]
    rows = sorted((*kept, *statement.adds))
    tokens = dict.fromkeys((NO_TOKEN, *(token for _, token in rows)))
    names = {token: i for i, token in enumerate(tokens)}
    dropped = {task.segment} if task.verb == "drop" else set()
    touched = {partition for partition, _ in (*statement.removes, *statement.adds)}
    processes = [Process(process.todo[1:])]
    for other in others:
        meets = rules.delta_refuses_conflicts and not touched.isdisjoint(other.running.tracks)
        processes.append(other._replace(running=CONFLICT) if meets else other)
    return State(
        tuple((partition, names[token]) for partition, token in rows),
        tuple(sorted({*state.acknowledged} - dropped | {*task.acknowledges()})),
        tuple(sorted(_renamed(process, tuple(names.items())) for process in processes)),
    )


@cache
def _renamed(process: Process, names: tuple[tuple[int, int], ...]) -> Process:
    to = dict(names)

    def rename(rows: Table) -> Table:
        return tuple((partition, to.get(token, GONE)) for partition, token in rows)

    todo = tuple(task._replace(targets=rename(task.targets)) for task in process.todo)
    return Process(todo, process.running._replace(removes=rename(process.running.removes)))


def _rows(table: Table, partition: str) -> Table:
    return tuple(row for row in table if row[0] == partition)


def _referenced(table: Table) -> bool:
    return any(partition.startswith(SEGMENT) for partition, _ in table)
