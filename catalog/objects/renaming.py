"""Renaming an object: what is below it moves along, and what refers to it follows."""

from __future__ import annotations

from typing import Any

from catalog.errors import InvalidObject, UnknownObject
from catalog.objects.body import canonical
from catalog.objects.declared import Types
from catalog.objects.graph import Graph
from catalog.objects.judging import violation
from catalog.objects.keys import check_key
from catalog.objects.model import Node, digest_of
from catalog.objects.rules import NAMES, Broken
from catalog.objects.state import State
from catalog.objects.types import TYPE


def renamed(state: State, key: str, name: str) -> tuple[dict[str, Node], dict[str, str]]:
    """The state after a rename, and the new key of every object that has another by it.

    Each keeps its id, and its revision goes on. To give the name that it has changes nothing.
    """
    types = Types.among(state)
    moves = _moves(types, state, key, _new_key(types, state, key, name))
    place = _Place(types, moves)
    graph = Graph({moves.get(old, old): place.node(node) for old, node in state.items()})
    changed = [new for new, node in graph.nodes.items() if state.get(new) != node]
    graph.bump(graph.with_holders(changed))
    return graph.nodes, moves


def _new_key(types: Types, state: State, key: str, name: Any) -> str:
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
            f"Object {key} has its name from what it stands for, and cannot be renamed; rename "
            "that, or put another and remove this one.",
            key=key,
        )
    return new


def _moves(types: Types, state: State, key: str, new: str) -> dict[str, str]:
    place = _Place(types, {key: new})
    moves = {old: now for old in state if (now := place.of(old)) != old}
    taken = [
        Broken(NAMES, now, f"is there already, so {old} cannot have its name")
        for old, now in sorted(moves.items())
        if now in state
    ]
    if taken:
        raise violation(taken)
    return moves


class _Place:
    """Where objects are once some were moved."""

    def __init__(self, types: Types, moves: dict[str, str]) -> None:
        self._types = types
        self._known = dict(moves)

    def of(self, key: str) -> str:
        """The key that an object has then: its path follows from those above it."""
        if key not in self._known:
            self._known[key] = key  # a circle of parents ends here
            self._known[key] = self._follow(key)
        return self._known[key]

    def _follow(self, key: str) -> str:
        kind, _, path = key.partition("/")
        declared = self._types.get(kind)
        if declared is None:
            return key
        above, _, name = path.rpartition("/")
        if declared.named_by is not None:
            name = self.of(f"{declared.named_by}/{name}").partition("/")[2]
        if declared.parent is not None:
            above = self.of(f"{declared.parent}/{above}").partition("/")[2]
        elif declared.owners:
            return f"{kind}/{self.of(path)}"
        return f"{kind}/{above}/{name}" if above else f"{kind}/{name}"

    def node(self, node: Node) -> Node:
        """The object with the keys that it refers to then; itself if nothing is otherwise."""
        key = self.of(node.key)
        links = {self.of(target): revision for target, revision in node.links.items()}
        json = self._json(node)
        if (key, links, json) == (node.key, node.links, node.json):
            return node
        digest = digest_of(json, links, node.fingerprint, node.datasource)
        return Node(
            key, node.id, node.revision, json, links, node.fingerprint, node.datasource, digest
        )

    def _json(self, node: Node) -> str:
        declared = self._types.get(node.type)
        if declared is None or not declared.references:
            return node.json
        body = node.body
        for name, target in declared.references.items():
            value = body.get(name)
            if isinstance(value, list):
                body[name] = [self._path(target, each) for each in value]
            elif value is not None:
                body[name] = self._path(target, value)
        return canonical(body)

    def _path(self, target: str, path: Any) -> Any:
        return self.of(f"{target}/{path}").partition("/")[2] if isinstance(path, str) else path
