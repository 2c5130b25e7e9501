"""Plans of changes: from all objects to all objects afterwards, or a refusal. Pure.

A change is carried out in three steps: declared types complete it with defaults and links, it is
applied to all objects, and the rules of the types are checked on the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import Any

from catalog.commit.operation_rows import OperationRow
from catalog.contracts.model import TableLimits
from catalog.errors import CatalogError, InvalidObject, RuleViolation, UnknownObject
from catalog.model import micros
from catalog.objects.changes import (
    Changes,
    Graph,
    Identify,
    Locks,
    Nodes,
    StagedObject,
    applied,
    applied_in_order,
    changes_of,
    difference,
    locks,
    united,
)
from catalog.objects.declarations import DECLARATION, PARENT, Moves, Types
from catalog.objects.model import Object, ObjectNode, canonical, check_key
from catalog.objects.platform import changed_limits
from catalog.objects.rules import NAMES, BrokenRule, broken_rules, check_rules, missing, refuse
from catalog.objects.types import TYPE, ObjectType, types_of

# --- verbs ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ObjectPlan:
    """What a call makes of all objects.

    Attributes:
        nodes: the state afterwards.
        changes: the requested changes, completed.
        locks: the keys and datasources that no operation may claim.
        moves: the new keys of renamed objects, by the old ones.
        limits: the new limits of datasources whose tables set others than before.
    """

    nodes: Nodes
    changes: Changes
    locks: Locks
    moves: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, TableLimits] = field(default_factory=dict)


# Plans a call for the objects of one version; called again after every conflict.
Planner = Callable[[Nodes, Identify], ObjectPlan]


def put(changes: Changes) -> Planner:
    """Puts and removes."""
    return lambda state, identify: _plan(state, changes, identify)


def ensure(changes: Changes) -> Planner:
    """Creates objects, or sets only what is given of existing ones."""
    return lambda state, identify: _plan(state, merged(state, changes), identify)


def declare(types: ObjectType | Iterable[ObjectType]) -> Planner:
    """Declares types, and completes existing objects by them."""
    return put(changes_of(put=[each.object() for each in types_of(types)]))


def remove(changes: Changes, cascade: bool) -> Planner:
    """Removes; with `cascade` also everything that links to it, directly or through others."""

    def planner(state: Nodes, identify: Identify) -> ObjectPlan:
        below = Graph(state).with_holders(changes.removes & state.keys()) if cascade else set()
        return _plan(state, Changes(changes.puts, changes.removes | below), identify)

    return planner


def rename(key: str, name: str) -> Planner:
    """Gives an object another name."""

    def planner(state: Nodes, identify: Identify) -> ObjectPlan:
        nodes, moves = _renamed(state, key, name)
        check_rules(state, nodes)
        found = difference(state, nodes)
        exclusive = frozenset(found.written.keys() | found.deleted.keys())
        targets = {target for node in found.written.values() for target in node.links}
        needed = Locks(exclusive, frozenset(targets - exclusive), frozenset())
        return _limited(state, ObjectPlan(nodes, Changes(), needed, moves))

    return planner


def _plan(state: Nodes, changes: Changes, identify: Identify) -> ObjectPlan:
    wanted = completed(state, changes)
    nodes = _changed(state, wanted, identify, touch=False)
    return _limited(state, ObjectPlan(nodes, wanted, locks(state, wanted)))


def _limited(state: Nodes, plan: ObjectPlan) -> ObjectPlan:
    """With the limits that change, whose datasources are locked: staged segments of others were
    checked against the present limits."""
    limits = changed_limits(state, plan.nodes)
    datasources = plan.locks.datasources | limits.keys()
    return replace(plan, limits=limits, locks=replace(plan.locks, datasources=datasources))


# --- completion by types --------------------------------------------------------------------------


def completed(state: Nodes, changes: Changes) -> Changes:
    """The changes with the defaults and links that follow from the types declared after them.

    Where a declaration changes, existing objects of its type are put as well, so that they get the
    defaults and links that it requires.
    """
    types = _types_after(state, changes)
    if not types:
        return changes
    puts = dict(completed_by(types, state, changes).puts)
    new = {each.name for each in types if each.key in changes.puts}
    # Owners need to exist from the moment at which their type is declared.
    new |= {each.name for each in types if new.intersection(each.owners)}
    if new:
        before = Types.among(state)
        for key, node in state.items():
            if node.type in new and key not in changes.keys:
                adopted = types.completed(_as_put(before, node), node)
                if adopted.digest != node.digest:
                    puts[key] = adopted
    return Changes(puts, changes.removes)


def completed_by(types: Types, state: Nodes, changes: Changes) -> Changes:
    """The changes, which declare no types, with the defaults and links of given types."""
    puts = {key: types.completed(put, state.get(key)) for key, put in changes.puts.items()}
    return Changes(puts, changes.removes)


def _types_after(state: Nodes, changes: Changes) -> Types:
    """The types that are declared after the changes."""
    declarations: dict[str, ObjectNode | Object] = {
        key: node for key, node in state.items() if node.type == TYPE and key not in changes.removes
    }
    declarations |= {key: put for key, put in changes.puts.items() if put.type == TYPE}
    return Types.among(declarations)


def _as_put(types: Types, node: ObjectNode) -> Object:
    """An object as a caller would put it, without the links that follow from its type."""
    links = types.given_links(node, node.links)
    return Object.of_content(node.key, node.json, links, node.fingerprint, node.datasource)


def merged(state: Nodes, changes: Changes) -> Changes:
    """Puts that only set what they give, merged with the objects that exist."""
    types = Types.among(state)
    puts = {}
    for key, put in changes.puts.items():
        node = state.get(key)
        if node is not None:
            put = Object.of_content(
                key,
                canonical({**node.body, **put.body}),
                {*types.given_links(node, node.links), *put.links},
                put.fingerprint or node.fingerprint,
                put.datasource or node.datasource,
                put.schema,
            )
        puts[key] = put
    return replace(changes, puts=puts)


# --- checks ---------------------------------------------------------------------------------------


def _changed(
    state: Nodes, changes: Changes, identify: Identify, touch: bool
) -> dict[str, ObjectNode]:
    """The state after changes that are completed already.

    Raises:
        RuleViolation: A rule of a declared type holds now and would not hold then.
        UnknownObject, ObjectInUse: see `applied`.
    """
    types = _types_after(state, changes)
    if types:
        refuse([*_unreadable(types, changes), *_missing_targets(types, state, changes)])
    nodes = applied(state, changes, identify, touch)
    check_rules(state, nodes)
    return nodes


def _unreadable(types: Types, changes: Changes) -> list[BrokenRule]:
    """Puts of objects whose declaration cannot be read, so that they cannot be checked."""
    return [
        BrokenRule(DECLARATION, key, f"is of a type that cannot be read: {reason.rstrip('.')}")
        for key, put in sorted(changes.puts.items())
        if (reason := types.broken.get(f"{TYPE}/{put.type}")) is not None
    ]


def _missing_targets(types: Types, state: Nodes, changes: Changes) -> list[BrokenRule]:
    there = (state.keys() - changes.removes) | changes.puts.keys()
    found = []
    for key, put in sorted(changes.puts.items()):
        shape = types.shape_problem(key)
        if shape is not None:
            found.append(BrokenRule(PARENT, key, f"has a key that must be {shape}"))
            continue
        found += [
            BrokenRule(rule, key, missing(rule, target))
            for target, rule in types.targets(key, put.body).items()
            if target not in there
        ]
    return found


def check_part(state: Nodes, changes: Changes, together: Changes) -> None:
    """Raises for objects of a part that are wrong whatever the other parts of the operation bring.

    `together` are the changes of all parts so far. A secret in the clear must not even be staged.
    """
    for key in sorted(changes.keys):
        if key.startswith(f"{TYPE}/"):
            raise InvalidObject(
                f"Object {key} is a declaration, which cannot be part of an operation; use declare "
                "or remove.",
                key=key,
            )
    types = Types.among(state)
    if not types:
        return
    found = [
        BrokenRule(problem.rule, key, f"has {problem.path}, which {problem.text}")
        for key, put in changes.puts.items()
        for problem in types.problems(put, partial=True)
    ]
    # By the rules, which know the fields that the type of another object declares as secret.
    nodes = {**state, **{key: ObjectNode.of_put(put) for key, put in together.puts.items()}}
    found += [
        each
        for each in broken_rules(types, nodes)
        if each.rule == "secret" and each.key in together.puts
    ]
    refuse(found)


# --- rename ---------------------------------------------------------------------------------------


def _renamed(state: Nodes, key: str, name: str) -> tuple[dict[str, ObjectNode], dict[str, str]]:
    """The state after a rename, and the new keys of all objects that it moves.

    Each keeps its id, and its revision goes on. The present name again changes nothing.
    """
    types = Types.among(state)
    place = Moves(types, {key: _new_key(types, state, key, name)})
    moves = {old: now for old in state if (now := place.of(old)) != old}
    refuse(
        [
            BrokenRule(NAMES, now, f"is there already, so {old} cannot have its name")
            for old, now in sorted(moves.items())
            if now in state
        ]
    )
    graph = Graph({moves.get(old, old): place.node(node) for old, node in state.items()})
    changed = [new for new, node in graph.nodes.items() if state.get(new) != node]
    graph.bump(graph.with_holders(changed))
    return graph.nodes, moves


def _new_key(types: Types, state: Nodes, key: str, name: Any) -> str:
    if not isinstance(name, str) or "/" in name:
        raise InvalidObject(
            f"The new name of {key} must be a text without slashes, not {name!r:.80}.", key=key
        )
    new = check_key(f"{key.rpartition('/')[0]}/{name}", "The new key")
    if key not in state:
        raise UnknownObject(f"There is no object {key} to rename.", key=key)
    kind = key.partition("/")[0]
    declared = types.get(kind)
    if kind == TYPE or (declared is not None and (declared.named_by or declared.owners)):
        raise InvalidObject(
            f"Object {key} has the name of another object, and cannot be renamed; rename that, or "
            "put another and remove this one.",
            key=key,
        )
    return new


# --- operations -----------------------------------------------------------------------------------


def identity(origin: str, key: str) -> str:
    """The id of an object that a commit or an operation creates, the same in every retry."""
    return sha256(f"{origin}/{key}".encode()).hexdigest()[:32]


def _identities(operation: OperationRow) -> Identify:
    """The ids of objects that an operation creates, the same for every process that applies it."""
    # The id of a forgotten operation can be used again; the time distinguishes the two.
    return partial(identity, f"{operation.id}/{micros(operation.opened_at)}")


def changes_by_part(staged: Iterable[StagedObject], operation: str) -> dict[int, Changes]:
    """The changes of each part of an operation."""
    parts: dict[int, Changes] = {}
    for row in staged:
        if row.operation == operation and row.changes.keys:
            before = parts.get(row.part, Changes())
            parts[row.part] = Changes(
                {**before.puts, **row.changes.puts}, before.removes | row.changes.removes
            )
    return parts


def in_order(operations: Iterable[OperationRow]) -> list[OperationRow]:
    """Ready operations in the order in which they are applied."""
    return sorted(operations, key=lambda each: (each.epoch or 0, each.order or 0))


def after(
    nodes: Nodes, staged: Sequence[StagedObject], operations: Iterable[OperationRow]
) -> dict[str, ObjectNode]:
    """All objects after these operations, in this order.

    Rules are not checked: that was done when each became ready, and nothing may block it now.
    """
    # Operations declare no types, so all have the same.
    complete = partial(completed_by, Types.among(nodes))
    return applied_in_order(
        nodes,
        [(_identities(each), united(changes_by_part(staged, each.id))) for each in operations],
        complete,
    )


def check_in_order(
    nodes: Nodes,
    staged: Sequence[StagedObject],
    operations: Iterable[OperationRow],
    own: str | None = None,
) -> None:
    """Raises if operations that wait for their epochs could no longer be applied.

    All rules must hold after each of them, in their order: an advance can stop anywhere. An error
    of the operation with the id `own` is raised as it is.
    """
    types = Types.among(nodes)
    for each in operations:
        changes = completed_by(types, nodes, united(changes_by_part(staged, each.id)))
        try:
            nodes = _changed(nodes, changes, _identities(each), touch=True)
        except CatalogError as error:
            if each.id == own:
                raise
            raise RuleViolation(
                f"This change is refused because {each} could no longer be applied at its "
                f"epoch {each.epoch}: {error.message}",
                rule=error.values.get("rule", "ready"),
                key=error.values.get("key"),
                operation=each.id,
            ) from error
