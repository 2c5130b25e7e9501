"""How processes move in the model of operations, under Delta's conflict rule.

A process plans from a plain read. Its statement begins on that version or a later one, where it
finds out whether what it expects is there, and commits later. Delta refuses the commit when a
partition that the statement tracks was touched in between.
"""

from collections.abc import Hashable, Iterator
from functools import cache
from typing import Generic, NamedTuple, TypeVar

from . import operation_deciding as deciding
from . import operation_staging as staging
from . import operation_tidying as tidying
from .operation_plans import Plans, Task, partition
from .operation_promises import broken_commit, broken_state
from .operation_rows import GONE, LIVE, RETIRED, SCHEMA, STAGED, Partition, Setting, Table

PLANNERS = {
    "stage": staging.stage,
    "insert": staging.write,
    "put": staging.write,
    "drop": staging.write,
    "publish": deciding.publish,
    "publish at": deciding.publish_at,
    "advance": deciding.advance,
    "abort": deciding.abort,
    "recover": deciding.recover,
    "renew": deciding.renew,
    "sweep": tidying.sweep,
    "clean": tidying.clean,
}


class Statement(NamedTuple):
    """What a running statement tracks and is about to write, decided when it began."""

    tracks: tuple[Partition, ...] = ()
    removes: Table = ()
    adds: Table = ()
    conflict: bool = False


IDLE, CONFLICT = Statement(), Statement(conflict=True)


class Process(NamedTuple):
    """What a process has before it, and what it does again and again if it never ends."""

    todo: tuple[Task, ...]
    again: tuple[Task, ...] = ()
    plans: Plans = ()
    running: Statement = IDLE


class Move(NamedTuple):
    """A step of one process: how it is after it, and what it removed and added if it committed."""

    action: str
    process: Process
    table: Table
    touched: frozenset[Partition] = frozenset()
    gone: tuple[Partition, ...] = ()
    broken: str = ""


class State(NamedTuple):
    """The table, the processes in sorted order, and the promise that the last commit broke.

    Tables and processes are numbers that a machine gave them: states are compared all the time.
    """

    table: int
    processes: tuple[int, ...]
    broken: str = ""


class Step(NamedTuple):
    """A move in numbers; what it touched, too, if it committed."""

    action: str
    process: int
    table: int
    commit: int | None
    broken: str


Value = TypeVar("Value", bound=Hashable)


class Numbers(Generic[Value]):
    """Values in the order in which they were first seen."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self._numbers: dict[Value, int] = {}

    def of(self, value: Value) -> int:
        number = self._numbers.setdefault(value, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number


class Machine:
    """What the processes of one search can do; it remembers what it has worked out."""

    def __init__(self, setting: Setting, in_one_step: bool) -> None:
        self._setting = setting
        self._in_one_step = in_one_step
        self._tables: Numbers[Table] = Numbers()
        self._processes: Numbers[Process] = Numbers()
        self._commits: Numbers[tuple[frozenset[Partition], tuple[Partition, ...]]] = Numbers()
        self._steps = cache(self._find_steps)
        self._disturbed = cache(self._find_disturbed)
        self._broken = cache(lambda number: broken_state(self.table(number), setting))

    def state(self, table: Table, processes: tuple[Process, ...]) -> State:
        return State(self._tables.of(table), tuple(sorted(map(self._processes.of, processes))))

    def table(self, number: int) -> Table:
        return self._tables.values[number]

    def successors(self, state: State) -> Iterator[tuple[str, State]]:
        for i, process in enumerate(state.processes):
            for step in self._steps(process, state.table):
                others = [*state.processes[:i], *state.processes[i + 1 :]]
                if step.commit is not None:
                    others = [self._disturbed(other, step.commit) for other in others]
                processes = tuple(sorted((*others, step.process)))
                yield step.action, State(step.table, processes, step.broken)

    def broken(self, state: State) -> str:
        return state.broken or self._broken(state.table)

    def finished(self, state: State) -> bool:
        processes = (self._processes.values[number] for number in state.processes)
        return all(process.again or not process.todo for process in processes)

    def _find_steps(self, process: int, table: int) -> list[Step]:
        moves = self._find_moves(self._processes.values[process], self.table(table))
        return [
            Step(
                move.action,
                self._processes.of(move.process),
                self._tables.of(move.table),
                self._commits.of((move.touched, move.gone)) if move.touched else None,
                move.broken,
            )
            for move in moves
        ]

    def _find_disturbed(self, process: int, commit: int) -> int:
        disturbed = _disturbed(self._processes.values[process], *self._commits.values[commit])
        return self._processes.of(disturbed)

    def _find_moves(self, process: Process, table: Table) -> list[Move]:
        if not process.todo:
            return []
        task = process.todo[0]
        if process.running == CONFLICT:
            return [Move(f"{task} is refused", process._replace(running=IDLE), table)]
        if process.running != IDLE:
            return [self._commit(process, process.running, table)]
        if process.plans:
            return [self._begin(process, table)]
        if task.verb.startswith("look to"):
            verb = task.verb.removeprefix("look to ")
            kind = LIVE if verb == "clean" else STAGED
            looked = task._replace(verb=verb, seen=tuple(row for row in table if row[0] == kind))
            return [Move(str(task), process._replace(todo=(looked, *process.todo[1:])), table)]
        return [
            Move(f"{task} is planned" if plans else f"{task} ends", after, table)
            for plans in PLANNERS[task.verb](task, table, self._setting)
            if (after := process._replace(plans=plans) if plans else _next(process)) != process
        ]

    def _begin(self, process: Process, table: Table) -> Move:
        """Find out, on the snapshot where a statement begins, what it will write."""
        task, first = process.todo[0], process.plans[0]
        as_expected = (
            all(row in table for row in first.expects)
            and not any(partition(row) in first.absent for row in table)
            and all(claim.holds(table) for claim in first.claims)
        )
        if not as_expected:
            # A cleaner goes on with its next step, others read and plan again.
            after = _next(process) if process.again else process._replace(plans=())
            return Move(f"{task} finds something else", after, table)
        schemas = [(SCHEMA, fingerprint) for fingerprint in first.carries]
        statement = Statement(
            first.tracks if self._setting.rules.delta_refuses_conflicts else (),
            (*first.removes, *(row for row in table if partition(row) in first.takes)),
            (*first.adds, *(row for row in schemas if row not in table)),
        )
        if not statement.removes and not statement.adds:
            return Move(f"{task} has nothing to do", _next(process), table)
        if self._in_one_step and first.evaluates() <= {*statement.tracks}:
            return self._commit(process, statement, table)
        return Move(f"{task} begins", process._replace(running=statement), table)

    def _commit(self, process: Process, statement: Statement, table: Table) -> Move:
        task = process.todo[0]
        kept = [row for row in table if row not in statement.removes]
        after = tuple(sorted((*kept, *statement.adds)))
        rows = (*statement.removes, *statement.adds)
        removed = [partition(row) for row in statement.removes]
        return Move(
            f"{task} commits",
            _next(process),
            after,
            frozenset(map(partition, rows)),
            tuple(row for row in removed if row[0] in (SCHEMA, RETIRED)),
            broken_commit(table, after, task, self._setting),
        )


def _next(process: Process) -> Process:
    """Return the process after the first of its plans, or after a task that needed none."""
    if len(process.plans) > 1:
        return process._replace(plans=process.plans[1:], running=IDLE)
    return Process(process.todo[1:] or process.again, process.again)


def _disturbed(
    process: Process, touched: frozenset[Partition], gone: tuple[Partition, ...]
) -> Process:
    """Return another process after a commit: refused, or without the schema rows it has seen."""
    if not touched.isdisjoint(process.running.tracks):
        return process._replace(running=CONFLICT)
    if not gone:
        return process

    def known(rows: Table) -> Table:
        return tuple((GONE, row[1]) if row in gone else row for row in rows)

    plans = tuple(
        one._replace(expects=known(one.expects), removes=known(one.removes))
        for one in process.plans
    )
    running = process.running._replace(removes=known(process.running.removes))
    return process._replace(plans=plans, running=running)
