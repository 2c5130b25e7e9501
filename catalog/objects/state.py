"""What changes make of all objects: new revisions, links that agree with them, and refusals.

A state is complete: whatever an object in it links to is in it too, and the link has the revision
of its target. Each function here keeps that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from catalog.objects.changes import Changes
from catalog.objects.graph import Graph, Identify
from catalog.objects.limits import given_limits
from catalog.objects.model import Node, Object

State = Mapping[str, Node]


def applied(state: State, changes: Changes, identify: Identify, touch: bool) -> dict[str, Node]:
    """The state after an operation (`touch`) or after a plain call.

    Every object that is put, and every one that links to such directly or through others, gets
    exactly one revision more. A plain call leaves alone what is put with the content that it has.
    To remove what is not there changes nothing.

    Raises:
        UnknownObject: Something is put with a link to what is not there afterwards.
        ObjectInUse: Something is removed that an object which stays links to.
    """
    graph = Graph(state)
    graph.apply(changes, identify, touch)
    return graph.nodes


def applied_in_order(
    state: State,
    operations: Iterable[tuple[Identify, Changes]],
    complete: Callable[[State, Changes], Changes] = lambda state, changes: changes,
) -> dict[str, Node]:
    """The state after several operations, one after the other, each completed by what is then."""
    graph = Graph(state)
    for identify, changes in operations:
        graph.apply(complete(graph.nodes, changes), identify, touch=True)
    return graph.nodes


@dataclass(frozen=True)
class Difference:
    """What has to be written to come from one state to another, by key.

    `inserted` and `updated` hold the new nodes, `deleted` the old ones. A key that was removed and
    created again is updated, to an object with another id: it is in `recreated` as well.
    """

    inserted: Mapping[str, Node]
    updated: Mapping[str, Node]
    deleted: Mapping[str, Node]
    recreated: frozenset[str]


def difference(before: State, after: State) -> Difference:
    """What is not the same in two states."""
    updated = {key: node for key, node in after.items() if key in before and before[key] != node}
    return Difference(
        inserted={key: node for key, node in after.items() if key not in before},
        updated=updated,
        deleted={key: node for key, node in before.items() if key not in after},
        recreated=frozenset(key for key, node in updated.items() if before[key].id != node.id),
    )


@dataclass(frozen=True)
class Locks:
    """What nobody else may touch, or may only refer to, until changes are decided.

    Changes whose locks are compatible can be applied in any order with the same result.
    """

    exclusive: frozenset[str]
    held: frozenset[str]
    datasources: frozenset[str]


def locks(state: State, changes: Changes) -> Locks:
    """The locks that changes need; what they link to need not be there yet.

    All parts of an operation together have the locks that their union needs.
    """
    # Holders in the state after the changes are no others: whatever way leads there to a changed
    # object consists of links of today up to the first object on it that is put.
    exclusive = Graph(state).with_holders(changes.keys)
    targets = {target for put in changes.puts.values() for target in put.links}
    datasources: set[str | None] = set()
    for key in changes.keys:
        old, new = _standing(state.get(key)), _standing(changes.puts.get(key))
        if old != new:
            datasources |= {old[0], new[0]}
    return Locks(
        exclusive=frozenset(exclusive),
        held=frozenset(targets - exclusive),
        datasources=frozenset(name for name in datasources if name is not None),
    )


def _standing(found: Node | Object | None) -> tuple[str | None, dict[str, int]]:
    """The datasource that an object stands for, and the limits that it gives or would give.

    Whether its type is declared does not matter: somebody may declare it before an operation that
    was staged is decided.
    """
    if found is None:
        return None, {}
    return found.datasource, given_limits(found, found.datasource)
