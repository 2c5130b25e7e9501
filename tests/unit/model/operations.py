"""A model of operations and epochs: who takes part, and the search of all that can happen.

The search visits every interleaving and checks the promises in every state and of every commit.
"""

from collections.abc import Mapping
from typing import NamedTuple

from .operation_machine import Machine, Process, State
from .operation_plans import Task
from .operation_rows import OPERATION, Operation, Parts, Row, Rules, Setting, Table
from .search import Search, hopeless, visit


def stager(operation: str, part: int) -> Process:
    return Process((Task("stage", operation, part),))


def publisher(operation: str, rules: Rules) -> Process:
    """Publishes at once, as soon as all parts are there."""
    verb = "publish" if rules.publish_reads_once else "look to publish"
    return Process((Task(verb, operation),))


def epoch_publisher(operation: str, epoch: int) -> Process:
    return Process((Task("publish at", operation, epoch),))


def advancer(*epochs: int) -> Process:
    return Process(tuple(Task("advance", "", epoch) for epoch in epochs))


def aborter(operation: str) -> Process:
    return Process((Task("abort", operation),))


def recoverer(operation: str) -> Process:
    """Aborts an operation whose lease it finds run out, as it may unless it was renewed."""
    return Process((Task("recover", operation),))


def renewer(operation: str) -> Process:
    return Process((Task("renew", operation),))


def sweeper() -> Process:
    return Process((Task("sweep"),), (Task("sweep"),))


def cleaner(fingerprint: str, rules: Rules) -> Process:
    """Restores, purges and retires one schema, in any order: a step may have failed before."""
    verb = "clean" if rules.cleanup_reads_once else "look to clean"
    tasks = (Task(verb, "", 0, fingerprint),)
    return Process(tasks, tasks)


def writer(verb: str, key: str, number: int = 0, fingerprint: str = "") -> Process:
    """Inserts, puts or drops a key without an operation."""
    return Process((Task(verb, key, number, fingerprint),))


class Scenario(NamedTuple):
    """Operations that are open at the start, rows that are there, and who acts upon them."""

    operations: Mapping[str, Parts]
    processes: tuple[Process, ...]
    rows: tuple[Row, ...] = ()

    def machine(self, rules: Rules, in_one_step: bool = True) -> Machine:
        """Return what moves it.

        A statement that tracks all that it evaluates may begin and commit in one step: had
        anything that matters to it changed in between, Delta would have refused it.
        """
        return Machine(Setting(rules, tuple(self.operations.items())), in_one_step)

    def table(self) -> Table:
        opened = [Operation(OPERATION, name) for name in self.operations]
        return tuple(sorted((*opened, *self.rows)))


def search(scenario: Scenario, rules: Rules) -> Search:
    """Visit every state of a scenario, up to the first broken promise."""
    machine = scenario.machine(rules)
    start = machine.state(scenario.table(), scenario.processes)
    found = visit([start], machine.successors, machine.broken, machine.finished)
    steps = tuple((action, machine.table(number)) for action, number in found.trace)
    return found._replace(trace=steps)


def count_hopeless(scenario: Scenario, rules: Rules) -> int:
    """Count the states of a scenario in which somebody can do nothing but try for ever."""
    machine = scenario.machine(rules)
    start = machine.state(scenario.table(), scenario.processes)
    return hopeless([start], machine.successors, machine.finished)


def tables(scenario: Scenario, rules: Rules, in_one_step: bool = True) -> set[Table]:
    """Return every table that a scenario can lead to."""
    machine, found = scenario.machine(rules, in_one_step), set[int]()
    start = machine.state(scenario.table(), scenario.processes)

    def note(state: State) -> str:
        found.add(state.table)
        return ""

    visit([start], machine.successors, note, machine.finished)
    return {machine.table(number) for number in found}
