"""Objects: their contents have their digests, and links the revisions that their targets have.

I3: a link leads to an object. I4: a change of an object and of all that link to it is seen at once.
I5: what an object says is what was put.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from catalog.errors import InvalidObject
from catalog.objects.model import ObjectNode, digest_of
from catalog.verify.changes import Row, Step
from catalog.verify.report import Findings, Problem, Sort

KIND = "object"
_NOWHERE = "an object links to one that is not there"
_DISAGREES = "a link does not have its target's revision"

# --- one version ----------------------------------------------------------------------------------


def check_objects(found: Findings, pinned: str) -> None:
    """The contents and links of all objects at one version."""
    contents = found.session.sql(
        f"SELECT key, revision, fingerprint, datasource, digest, payload FROM {pinned} "
        "WHERE kind = 'object'"
    )
    found.expect_none(
        "I5",
        "an object's content does not have its digest",
        contents.mapInArrow(_wrong_contents, "key STRING, problem STRING"),
    )
    links = "from_json(payload, 'links MAP<STRING, BIGINT>').links"
    rows = found.session.sql(
        "SELECT l.key, l.target, l.seen, o.revision, o.key IS NULL AS nowhere, "
        "o.key IS NOT NULL AND NOT l.seen <=> o.revision AS disagrees FROM "
        "(SELECT key, target, seen FROM "
        f"(SELECT key, {links} AS links FROM {pinned} WHERE kind = 'object') "
        "LATERAL VIEW explode(links) linked AS target, seen) AS l LEFT JOIN "
        f"(SELECT key, revision FROM {pinned} WHERE kind = 'object') AS o ON l.target = o.key"
    )
    found.expect_no_flags(
        rows, [Sort("I3", _NOWHERE, "nowhere"), Sort("I4", _DISAGREES, "disagrees")]
    )


def _wrong_contents(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        wrong = [
            {"key": row["key"], "problem": problem}
            for row in batch.to_pylist()
            if (problem := _problem(**row)) is not None
        ]
        schema = pa.schema([("key", pa.string()), ("problem", pa.string())])
        yield pa.RecordBatch.from_pylist(wrong, schema=schema)


def _problem(payload: str, **columns: Any) -> str | None:
    try:
        node = ObjectNode.from_payload(payload, **columns)
    except InvalidObject as error:
        return f"the payload cannot be read: {error.message}"
    digest = digest_of(node.json, node.links, node.fingerprint, node.datasource)
    if digest != node.digest:
        return f"the content has the digest {digest}, the row {node.digest}"
    return None


# --- every version --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Object:
    revision: int
    links: dict[str, int]


class Links:
    """Follows objects from version to version; only what a version touched is looked at."""

    def __init__(self) -> None:
        self._objects: dict[str, _Object] = {}
        self._holders: dict[str, set[str]] = {}

    def start(self, step: Step) -> None:
        """Takes what is there at first, without judging it."""
        for key, row in step.of_kind(KIND):
            self._put(key, row)

    def follow(self, step: Step) -> Iterator[Problem]:
        """Goes to the next version and tells which links do not agree there."""
        self.start(step)
        touched = {key for key, _ in step.of_kind(KIND)}
        holders = {holder for key in touched for holder in self._holders.get(key, ())}
        for key in sorted((touched | holders) & self._objects.keys()):
            for target, seen in self._objects[key].links.items():
                other = self._objects.get(target)
                row = {"version": step.version, "key": key, "target": target, "seen": seen}
                if other is None:
                    yield Problem("I3", _NOWHERE, row)
                elif other.revision != seen:
                    yield Problem("I4", _DISAGREES, {**row, "revision": other.revision})

    def _put(self, key: str, row: Row | None) -> None:
        old = self._objects.pop(key, None)
        for target in old.links if old else ():
            self._holders[target].discard(key)
        if row is None:
            return
        self._objects[key] = now = _Object(row["revision"], _links(row["said"]))
        for target in now.links:
            self._holders.setdefault(target, set()).add(key)


def _links(said: str | None) -> dict[str, int]:
    """Links as the row has them; none if they cannot be read."""
    try:
        links = json.loads(said or "{}")
    except ValueError:
        return {}
    return links if isinstance(links, dict) else {}
