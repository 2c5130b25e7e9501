"""What a rollback makes of all objects: old contents, and revisions that only go up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from catalog.objects.changes import Graph
from catalog.objects.model import ObjectNode

State = Mapping[str, ObjectNode]


def rolled_back(now: State, then: State, highest: int) -> dict[str, ObjectNode]:
    """All objects with the contents and ids that they had then.

    What differs from now gets a new revision, and so does all that links to it, directly or through
    others, as after a put. An object that is there under its id gets one more. One that is gone, or
    whose key has another object by now, gets one above `highest`: the highest revision that any
    object ever had. So a pair of id and revision never stands for two contents.
    """
    differing = {key for key, node in then.items() if not _same(now.get(key), node)}
    changed = Graph(then).with_holders(differing)
    revisions = {
        key: _revision(now.get(key), node, highest) if key in changed else now[key].revision
        for key, node in then.items()
    }
    return {
        key: replace(
            node,
            revision=revisions[key],
            links={target: revisions[target] for target in node.links},
        )
        for key, node in then.items()
    }


def _same(now: ObjectNode | None, then: ObjectNode) -> bool:
    # The digest covers all content but the revisions in links.
    return now is not None and now.id == then.id and now.digest == then.digest


def _revision(now: ObjectNode | None, then: ObjectNode, highest: int) -> int:
    return now.revision + 1 if now is not None and now.id == then.id else highest + 1
