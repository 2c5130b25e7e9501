"""What callers want of objects, as functions of all objects: planned again until it is settled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from catalog.contracts.limits import TableLimits
from catalog.objects.changes import Changes, changes_of
from catalog.objects.graph import Graph, Identify
from catalog.objects.judging import changed, check, completed, merged
from catalog.objects.limits import changed_limits
from catalog.objects.model import Node
from catalog.objects.renaming import renamed
from catalog.objects.state import Locks, State, difference, locks
from catalog.objects.types import ObjectType, types_of


@dataclass(frozen=True)
class Outcome:
    """What becomes of all objects.

    Attributes:
        nodes: the state afterwards.
        changes: what was asked for, completed.
        locks: what nobody else may have a claim on.
        moves: the new keys of objects that were renamed, by the old ones.
        limits: what tables give to the datasources for which that changes.
    """

    nodes: Mapping[str, Node]
    changes: Changes
    locks: Locks
    moves: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, TableLimits] = field(default_factory=dict)


Work = Callable[[State, Identify], Outcome]


def putting(changes: Changes) -> Work:
    """Puts and removes."""
    return lambda state, identify: _outcome(state, changes, identify)


def ensuring(changes: Changes) -> Work:
    """Creates, or sets only what is given."""
    return lambda state, identify: _outcome(state, merged(state, changes), identify)


def declaring(types: ObjectType | Iterable[ObjectType]) -> Work:
    """Declares types, and gives the objects that are there what they demand."""
    return putting(changes_of(put=[each.object() for each in types_of(types)]))


def removing(changes: Changes, cascade: bool) -> Work:
    """Removes; with `cascade` also everything that links to it, directly or through others."""

    def work(state: State, identify: Identify) -> Outcome:
        if not cascade:
            return _outcome(state, changes, identify)
        below = Graph(state).with_holders(changes.removes & state.keys())
        return _outcome(state, Changes({}, changes.removes | below), identify)

    return work


def renaming(key: str, name: str) -> Work:
    """Gives an object another name."""

    def work(state: State, identify: Identify) -> Outcome:
        nodes, moves = renamed(state, key, name)
        check(state, nodes)
        found = difference(state, nodes)
        written = {**found.inserted, **found.updated}
        exclusive = frozenset(written.keys() | found.deleted.keys())
        targets = {target for node in written.values() for target in node.links}
        needed = Locks(exclusive, frozenset(targets - exclusive), frozenset())
        return _limited(state, Outcome(nodes, Changes(), needed, moves))

    return work


def _outcome(state: State, changes: Changes, identify: Identify) -> Outcome:
    wanted = completed(state, changes)
    nodes = changed(state, wanted, identify, touch=False)
    return _limited(state, Outcome(nodes, wanted, locks(state, wanted)))


def _limited(state: State, outcome: Outcome) -> Outcome:
    """With the limits that change: what others have staged was checked by those that are there."""
    limits = changed_limits(state, outcome.nodes)
    needed = outcome.locks
    datasources = needed.datasources | limits.keys()
    return replace(outcome, limits=limits, locks=replace(needed, datasources=datasources))
