"""Changes as declared types complete them, and the refusal of those that would break a rule."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from catalog.errors import InvalidObject, RuleViolation
from catalog.objects.body import canonical
from catalog.objects.changes import Changes
from catalog.objects.declared import DECLARATION, PARENT, Types
from catalog.objects.graph import Identify
from catalog.objects.model import Node, Object
from catalog.objects.rules import Broken, broken_rules, broken_steps, missing, newly_broken
from catalog.objects.state import State, applied
from catalog.objects.types import TYPE

_TOLD_AT_MOST = 5


def completed(state: State, changes: Changes) -> Changes:
    """The changes with the defaults and links that follow from the types declared after them.

    Where a declaration changes, the objects of its type that are there are put as well, so that
    they have what it demands.
    """
    types = types_after(state, changes)
    if not types:
        return changes
    puts = dict(completed_by(types, state, changes).puts)
    new = {each.name for each in types if each.key in changes.puts}
    # An owner was only a word as long as its type was not declared.
    new |= {each.name for each in types if new.intersection(each.owners)}
    if new:
        before = Types.among(state)
        for key, node in state.items():
            if node.type in new and key not in changes.keys:
                adopted = types.completed(_as_put(before, node), node)
                if adopted.digest != node.digest:
                    puts[key] = adopted
    return Changes(puts, changes.removes)


def completed_by(types: Types, state: State, changes: Changes) -> Changes:
    """The same by known types, for changes that declare none."""
    puts = {key: types.completed(put, state.get(key)) for key, put in changes.puts.items()}
    return Changes(puts, changes.removes)


def types_after(state: State, changes: Changes) -> Types:
    """The types that are declared once the changes are made."""
    declarations: dict[str, Node | Object] = {
        key: node for key, node in state.items() if node.type == TYPE and key not in changes.removes
    }
    declarations |= {key: put for key, put in changes.puts.items() if put.type == TYPE}
    return Types.among(declarations)


def _as_put(types: Types, node: Node) -> Object:
    """An object as it would be put by somebody who leaves out what follows from its type."""
    links = types.given_links(node, node.links)
    return Object.of_content(node.key, node.json, links, node.fingerprint, node.datasource)


def merged(state: State, changes: Changes) -> Changes:
    """Puts that only set what they give, and leave the rest of what is there as it is."""
    types = Types.among(state)
    puts = {}
    for key, put in changes.puts.items():
        node = state.get(key)
        if node is not None:
            body = canonical({**node.body, **put.body})
            links = {*types.given_links(node, node.links), *put.links}
            put = Object.of_content(
                key,
                body,
                links,
                put.fingerprint or node.fingerprint,
                put.datasource or node.datasource,
                put.schema,
            )
        puts[key] = put
    return replace(changes, puts=puts)


# --- judging -------------------------------------------------------------------------------------


def changed(
    state: State, changes: Changes, identify: Identify, touch: bool, judge: bool = True
) -> dict[str, Node]:
    """The state after changes that are completed already.

    Raises:
        RuleViolation: A rule of a declared type holds now and would not hold then.
        UnknownObject, ObjectInUse: see `applied`.
    """
    types = types_after(state, changes)
    if judge and types:
        _refuse([*_unjudged(types, changes), *_missing_targets(types, state, changes)])
    nodes = applied(state, changes, identify, touch)
    if judge:
        check(state, nodes)
    return nodes


def check(before: State, after: State) -> None:
    """Raises `RuleViolation` if a rule holds before and not after, or is broken by more then.

    What is broken already, by another release or by hand, must not be in the way of mending it.
    """
    types = Types.among(after)
    if not types:
        return
    found = list(broken_rules(types, after))
    if found:
        found = newly_broken(broken_rules(Types.among(before), before), found)
    _refuse([*found, *broken_steps(types, before, after)])


def check_part(state: State, changes: Changes, together: Changes) -> None:
    """Raises what is wrong with single objects of a part, whatever the other parts bring.

    `together` is what all parts bring so far. A secret in the clear must not even be staged.
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
        Broken(problem.rule, key, f"has {problem.path}, which {problem.text}")
        for key, put in changes.puts.items()
        for problem in types.problems(put, partial=True)
    ]
    _refuse([*found, *_open_secrets(types, state, together)])


def _open_secrets(types: Types, state: State, together: Changes) -> list[Broken]:
    # Through the rule that knows which fields are secret, over what is known of them by now.
    nodes = {**state, **{key: _node(put) for key, put in together.puts.items()}}
    return [
        each
        for each in broken_rules(types, nodes)
        if each.rule == "secret" and each.key in together.puts
    ]


def _node(put: Object) -> Node:
    links = dict.fromkeys(put.links, 0)
    return Node(put.key, "", 0, put.json, links, put.fingerprint, put.datasource, put.digest)


def _unjudged(types: Types, changes: Changes) -> list[Broken]:
    """Puts of objects whose declaration cannot be read: what they must keep is not known."""
    return [
        Broken(DECLARATION, key, f"is of a type that cannot be read: {reason.rstrip('.')}")
        for key, put in sorted(changes.puts.items())
        if (reason := types.broken.get(f"{TYPE}/{put.type}")) is not None
    ]


def _missing_targets(types: Types, state: State, changes: Changes) -> list[Broken]:
    there = (state.keys() - changes.removes) | changes.puts.keys()
    found = []
    for key, put in sorted(changes.puts.items()):
        shape = types.shape_problem(key)
        if shape is not None:
            found.append(Broken(PARENT, key, f"has a key that must be {shape}"))
            continue
        found += [
            Broken(rule, key, missing(rule, target))
            for target, rule in types.targets(key, put.body).items()
            if target not in there
        ]
    return found


def _refuse(found: Iterable[Broken]) -> None:
    broken = list(found)
    if broken:
        raise violation(broken)


def violation(broken: list[Broken], when: str = "", **values: str) -> RuleViolation:
    """The refusal of a change, which names the rules that it would break."""
    more = len(broken) - _TOLD_AT_MOST
    told = "; ".join(map(str, broken[:_TOLD_AT_MOST])) + (f"; and {more} more" if more > 0 else "")
    return RuleViolation(
        f"{when or 'This change is refused'}: {told}.",
        rule=broken[0].rule,
        key=broken[0].key,
        violations=tuple((each.rule, each.key) for each in broken),
        **values,
    )
