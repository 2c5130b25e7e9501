"""Changes of objects: what a call or the parts of an operation change, and the state afterwards.

A state holds all objects, and its links are consistent: every target is in it, and the link has the
revision of its target. Each function here keeps that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog.commit.operation_rows import StagedAction
from catalog.errors import InvalidObject, ObjectInUse, PartConflict, UnknownObject
from catalog.objects.model import LARGEST_BODY, Object, ObjectNode, canonical, check_key, parsed
from catalog.objects.platform import table_limits
from catalog.schema.names import child

# All objects at one moment, by key.
Nodes = Mapping[str, ObjectNode]
# Makes the id of an object that is created under a key.
Identify = Callable[[str], str]
_NESTED = ("{", "[")
_SHOWN = 5


@dataclass(frozen=True)
class Changes:
    """Objects to put, by key, and keys to remove; no key is both."""

    puts: Mapping[str, Object] = field(default_factory=dict)
    removes: frozenset[str] = frozenset()

    @property
    def keys(self) -> frozenset[str]:
        """Every key that is put or removed."""
        return self.removes | self.puts.keys()


def changes_of(put: Iterable[Object] | Object = (), remove: Iterable[str] | str = ()) -> Changes:
    """The changes that a caller requests, as lists or as a single object or key.

    Raises:
        InvalidObject: A value is no object or no key, one key is put twice with different content,
            or is put and removed.
    """
    puts: dict[str, Object] = {}
    for given in _several("put", put, Object):
        if not isinstance(given, Object):
            raise InvalidObject(f"put takes Object values, not {given!r:.80}.", value=given)
        if puts.setdefault(given.key, given) != given:
            raise InvalidObject(
                f"Object {given.key} is put twice with different content; put it once.",
                key=given.key,
            )
    removes = frozenset(map(check_key, _several("remove", remove, str)))
    for key in sorted(removes & puts.keys()):
        raise InvalidObject(
            f"Object {key} is put and removed by one call; do one of the two.", key=key
        )
    return Changes(puts, removes)


def _several(name: str, given: Any, one: type) -> Iterable[Any]:
    if isinstance(given, one):
        return (given,)
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise InvalidObject(f"{name} takes {one.__name__} or a list, not {given!r:.80}.")
    return given


# --- parts of an operation ------------------------------------------------------------------------


def united(parts: Mapping[int, Changes]) -> Changes:
    """What the parts of one operation change together; their order makes no difference.

    Puts of one object are united: their bodies by top-level field, their links, and schema and
    datasource where a part gives one.

    Raises:
        PartConflict: Two parts contradict each other, or a body grows too large.
    """
    puts: dict[str, dict[int, Object]] = {}
    removers: dict[str, int] = {}
    # By number, so that the message does not depend on the order in which parts were staged.
    for part, changes in sorted(parts.items()):
        for key, put in changes.puts.items():
            puts.setdefault(key, {})[part] = put
        for key in changes.removes:
            removers.setdefault(key, part)
    for key in sorted(puts.keys() & removers.keys()):
        how = f"one puts object {key} and the other removes it"
        raise _conflict(key, "action", (min(puts[key]), removers[key]), how)
    return Changes({key: _united(key, puts[key]) for key in sorted(puts)}, frozenset(removers))


def _united(key: str, puts: Mapping[int, Object]) -> Object:
    first, *others = puts.values()
    if not others:
        return first
    links = {target for put in puts.values() for target in put.links}
    fingerprint = _agreed(key, "schema", {part: put.fingerprint for part, put in puts.items()})
    datasource = _agreed(key, "datasource", {part: put.datasource for part, put in puts.items()})
    # Of several spellings of the schema always the same one, whichever part comes first.
    spellings = (put.schema for put in puts.values() if put.schema is not None)
    schema = min(spellings, key=lambda each: each.json, default=None)
    return Object.of_content(key, _body(key, puts), links, fingerprint, datasource, schema)


def _body(key: str, puts: Mapping[int, Object]) -> str:
    given: dict[str, dict[int, str | None]] = {}
    body: dict[str, Any] = {}
    for part, put in puts.items():
        for name, value in put.body.items():
            # As texts: in Python 1 equals true and 1.0.
            given.setdefault(name, {})[part] = canonical(value)
            body[name] = value
    for name in sorted(given):
        _agreed(key, child("body", name), given[name])
    text = canonical(body)
    size = len(text.encode())
    if size > LARGEST_BODY:
        raise PartConflict(
            f"The parts {', '.join(map(str, puts))} give object {key} a body of {size} bytes "
            f"together, and at most {LARGEST_BODY} are kept; store the rest elsewhere.",
            key=key,
            field="body",
            parts=tuple(puts),
        )
    return text


def _agreed(key: str, name: str, given: Mapping[int, str | None]) -> str | None:
    """The one value that all parts give which give one."""
    found: tuple[int, str] | None = None
    for part, value in given.items():
        if value is None:
            continue
        if found is None:
            found = part, value
        elif found[1] != value:
            how = f"{name} of object {key} is {found[1]:.80} in one and {value:.80} in the other"
            # Nested values may hold a secret, which no type has declared as one yet.
            if found[1].startswith(_NESTED) or value.startswith(_NESTED):
                how = f"{name} of object {key} is not the same in both"
            raise _conflict(key, name, (found[0], part), how)
    return None if found is None else found[1]


def _conflict(key: str, name: str, parts: tuple[int, int], how: str) -> PartConflict:
    one, other = sorted(parts)
    return PartConflict(
        f"Parts {one} and {other} of one operation contradict each other: {how}. Let only one of "
        "them say it.",
        key=key,
        field=name,
        parts=(one, other),
    )


def put_payload(put: Object) -> str:
    """The JSON document of a staged put; fingerprint and datasource have columns of their own."""
    return canonical({"body": put.body, "links": put.links})


def put_from(key: str, payload: str, fingerprint: str | None, datasource: str | None) -> Object:
    """The put in a staged row; of its schema only the fingerprint is known."""
    document = parsed(key, payload, {"body": dict, "links": list})
    return Object.of_content(
        key, canonical(document["body"]), document["links"], fingerprint, datasource
    )


@dataclass(frozen=True)
class StagedObject:
    """A row that a part of an operation has staged for an object."""

    key: str
    operation: str
    part: int
    action: StagedAction
    changes: Changes


# --- the state afterwards -------------------------------------------------------------------------


class Graph:
    """All objects, with an index of the objects that link to each."""

    def __init__(self, state: Nodes) -> None:
        self.nodes = dict(state)
        self._holders: defaultdict[str, set[str]] = defaultdict(set)
        for key, node in state.items():
            self._link(key, node.links)

    def with_holders(self, keys: Iterable[str]) -> set[str]:
        """The keys, and those of all objects that link to them directly or through others."""
        found = set(keys)
        pending = list(found)
        while pending:
            # get: a lookup must not add to the index.
            new = self._holders.get(pending.pop(), set()) - found
            found |= new
            pending.extend(new)
        return found

    def apply(self, changes: Changes, identify: Identify, touch: bool) -> None:
        """Makes the changes, all or none; see `applied`."""
        gone = changes.removes & self.nodes.keys()
        self._check_links(changes, gone)
        self._check_holders(changes, gone)
        for key in gone:
            self._unlink(key)
            del self.nodes[key]
        written = []
        for key, put in changes.puts.items():
            if touch or key not in self.nodes or self.nodes[key].digest != put.digest:
                self._write(put, identify)
                written.append(key)
        self.bump(self.with_holders(written))

    def bump(self, touched: Iterable[str]) -> None:
        """Gives each of these a new revision, and their links the revisions of their targets."""
        revisions = {key: self.nodes[key].revision + 1 for key in touched}
        for key, revision in revisions.items():
            node = self.nodes[key]
            links = {
                target: revisions.get(target) or self.nodes[target].revision
                for target in node.links
            }
            self.nodes[key] = node.revised(revision, links)

    def _check_links(self, changes: Changes, gone: frozenset[str]) -> None:
        for key, put in sorted(changes.puts.items()):
            for target in put.links:
                if target in changes.puts or (target in self.nodes and target not in gone):
                    continue
                how = "is removed by the same change" if target in gone else "is not there"
                raise UnknownObject(
                    f"Object {key} is put with a link to {target}, which {how}; put {target} "
                    "together with it or before, or leave the link out.",
                    key=target,
                    holder=key,
                )

    def _check_holders(self, changes: Changes, gone: frozenset[str]) -> None:
        for key in sorted(gone):
            holders = sorted(self._holders.get(key, set()) - gone - changes.puts.keys())
            if not holders:
                continue
            more = len(holders) - _SHOWN
            named = ", ".join(holders[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
            raise ObjectInUse(
                f"Object {key} cannot be removed while others link to it: {named}. Remove them "
                "together with it, or put them without the link.",
                key=key,
                holders=tuple(holders),
            )

    def _write(self, put: Object, identify: Identify) -> None:
        """Writes the content; `bump` sets its revision and those of its links."""
        old = self.nodes.get(put.key)
        if old is not None:
            self._unlink(put.key)
        self._link(put.key, put.links)
        made = (identify(put.key), 0) if old is None else (old.id, old.revision)
        self.nodes[put.key] = ObjectNode.of_put(put, *made)

    def _link(self, key: str, targets: Iterable[str]) -> None:
        for target in targets:
            self._holders[target].add(key)

    def _unlink(self, key: str) -> None:
        for target in self.nodes[key].links:
            self._holders[target].discard(key)


def applied(
    state: Nodes, changes: Changes, identify: Identify, touch: bool
) -> dict[str, ObjectNode]:
    """The state after an operation (`touch`) or after a plain call.

    Every object that is put, and every one that links to such directly or through others, gets
    exactly one new revision. A plain call skips objects that have the content already. Removing
    an absent object changes nothing.

    Raises:
        UnknownObject: An object is put with a link to one that does not exist afterwards.
        ObjectInUse: An object is removed that another one, which stays, links to.
    """
    graph = Graph(state)
    graph.apply(changes, identify, touch)
    return graph.nodes


def applied_in_order(
    state: Nodes,
    operations: Iterable[tuple[Identify, Changes]],
    complete: Callable[[Nodes, Changes], Changes] = lambda state, changes: changes,
) -> dict[str, ObjectNode]:
    """The state after several operations, each completed by the state before it."""
    graph = Graph(state)
    for identify, changes in operations:
        graph.apply(complete(graph.nodes, changes), identify, touch=True)
    return graph.nodes


@dataclass(frozen=True)
class Difference:
    """The rows that lead from one state to another, by key.

    `inserted` and `updated` hold the new nodes, `deleted` the old ones. A key that was removed and
    created again is updated, with another id: it is in `recreated` as well.
    """

    inserted: Mapping[str, ObjectNode]
    updated: Mapping[str, ObjectNode]
    deleted: Mapping[str, ObjectNode]
    recreated: frozenset[str]

    @property
    def written(self) -> dict[str, ObjectNode]:
        """The new nodes."""
        return {**self.inserted, **self.updated}


def difference(before: Nodes, after: Nodes) -> Difference:
    """The difference of two states."""
    updated = {key: node for key, node in after.items() if key in before and before[key] != node}
    return Difference(
        inserted={key: node for key, node in after.items() if key not in before},
        updated=updated,
        deleted={key: node for key, node in before.items() if key not in after},
        recreated=frozenset(key for key, node in updated.items() if before[key].id != node.id),
    )


@dataclass(frozen=True)
class Locks:
    """Keys that changes need exclusively, or shared (`held`), until they are decided.

    Changes with compatible locks can be applied in any order with the same result.
    """

    exclusive: frozenset[str]
    held: frozenset[str]
    datasources: frozenset[str]


def locks(state: Nodes, changes: Changes) -> Locks:
    """The locks that changes need; targets of their links need not exist yet.

    All parts of an operation together have the locks that their union needs.
    """
    # Holders in the state after the changes are no others: any path there to a changed object
    # consists of links of the present state up to the first object on it that is put.
    exclusive = Graph(state).with_holders(changes.keys)
    targets = {target for put in changes.puts.values() for target in put.links}
    datasources: set[str | None] = set()
    for key in changes.keys:
        old, new = _represented(state.get(key)), _represented(changes.puts.get(key))
        if old != new:
            datasources |= {old[0], new[0]}
    return Locks(
        exclusive=frozenset(exclusive),
        held=frozenset(targets - exclusive),
        datasources=frozenset(name for name in datasources if name is not None),
    )


def _represented(found: ObjectNode | Object | None) -> tuple[str | None, dict[str, int]]:
    """The datasource that an object represents, and the limits that it sets or would set.

    Whether the type of tables is declared does not matter: that may happen before an operation
    that was staged is decided.
    """
    return (None, {}) if found is None else (found.datasource, table_limits(found))
