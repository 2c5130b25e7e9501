"""Objects and who links to whom: where changes are carried out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from catalog.errors import ObjectInUse, UnknownObject
from catalog.objects.changes import Changes
from catalog.objects.model import Node, Object

# The id of an object that is created under a key.
Identify = Callable[[str], str]
_NAMED_AT_MOST = 5


class Graph:
    """All objects, and for each those that link to it: a change costs only what it touches."""

    def __init__(self, state: Mapping[str, Node]) -> None:
        self.nodes = dict(state)
        self._holders: defaultdict[str, set[str]] = defaultdict(set)
        for key, node in state.items():
            self._link(key, node.links)

    def with_holders(self, keys: Iterable[str]) -> set[str]:
        """The keys, and those of all objects that link to them directly or through others."""
        found = set(keys)
        pending = list(found)
        while pending:
            # get: to look must not fill the index.
            new = self._holders.get(pending.pop(), set()) - found
            found |= new
            pending.extend(new)
        return found

    def apply(self, changes: Changes, identify: Identify, touch: bool) -> None:
        """Carries the changes out; what is refused changes nothing."""
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
            more = len(holders) - _NAMED_AT_MOST
            named = ", ".join(holders[:_NAMED_AT_MOST]) + (f" and {more} more" if more > 0 else "")
            raise ObjectInUse(
                f"Object {key} cannot be removed while others link to it: {named}. Remove them "
                "together with it, or put them without the link.",
                key=key,
                holders=tuple(holders),
            )

    def _write(self, put: Object, identify: Identify) -> None:
        """Puts the content in place; `bump` gives it its revision and those of its links."""
        old = self.nodes.get(put.key)
        if old is not None:
            self._unlink(put.key)
        self._link(put.key, put.links)
        self.nodes[put.key] = Node(
            key=put.key,
            id=identify(put.key) if old is None else old.id,
            revision=0 if old is None else old.revision,
            json=put.json,
            links=dict.fromkeys(put.links, 0),
            fingerprint=put.fingerprint,
            datasource=put.datasource,
            digest=put.digest,
        )

    def bump(self, touched: Iterable[str]) -> None:
        """Gives each of these one revision more, and their links the revisions of their targets."""
        revisions = {key: self.nodes[key].revision + 1 for key in touched}
        for key, revision in revisions.items():
            node = self.nodes[key]
            links = {
                target: revisions.get(target) or self.nodes[target].revision
                for target in node.links
            }
            # Not by replace: of a node that knows its commit the new one would name an old commit.
            self.nodes[key] = Node(
                key=key,
                id=node.id,
                revision=revision,
                json=node.json,
                links=links,
                fingerprint=node.fingerprint,
                datasource=node.datasource,
                digest=node.digest,
            )

    def _link(self, key: str, targets: Iterable[str]) -> None:
        for target in targets:
            self._holders[target].add(key)

    def _unlink(self, key: str) -> None:
        for target in self.nodes[key].links:
            self._holders[target].discard(key)
