"""Objects as the table has them: all of them with what guards them, or some for a reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from catalog.commit.operation_rows import OBJECT_BUCKET, OperationRow, StagedAction
from catalog.delta.store import Store
from catalog.model import from_micros
from catalog.objects.changes import Changes, put_from
from catalog.objects.model import Node, StoredObject
from catalog.schema.names import literal

_COLUMNS = "key, revision, fingerprint, datasource, digest, payload"


@dataclass(frozen=True)
class Objects:
    """All objects at one version, the commit that changed one last, and what waits for its epoch.

    An operation with objects that becomes ready changes the guard too, so whoever expects that
    knows all of them. `highest` is the revision of the guard: no object ever had a higher one.
    """

    version: int
    nodes: Mapping[str, Node]
    commit_ids: Mapping[str, str]
    created: Mapping[str, datetime]
    guard: str | None
    ready: tuple[OperationRow, ...] = ()
    highest: int = 0


@dataclass(frozen=True)
class StagedObject:
    """A row that an operation has staged for an object."""

    key: str
    operation: str
    part: int
    action: StagedAction
    changes: Changes


def all_objects(store: Store, version: int) -> Objects:
    """All objects at a version: who links to whom can only be known from all of them."""
    rows = store.session.sql(
        f"SELECT kind, state, commit_id, unix_micros(published_at) AS published_micros, {_COLUMNS} "
        f"FROM {store.pinned(version)} WHERE kind IN ('object', 'guard', 'operation') "
        # Conjuncts of their own, so that the first prune partitions.
        f"AND (kind = 'operation' OR bucket = {OBJECT_BUCKET}) "
        "AND (kind <> 'operation' OR state = 'ready')"
    ).collect()
    return objects_of([row.asDict() for row in rows], version)


def objects_of(rows: Sequence[Mapping[str, Any]], version: int) -> Objects:
    """All objects from rows of the kinds `object` and `guard`, and what is ready to change them."""
    objects = [row for row in rows if row["kind"] == "object"]
    guard = next((row for row in rows if row["kind"] == "guard"), None)
    return Objects(
        version,
        {row["key"]: _node(row) for row in objects},
        {row["key"]: row["commit_id"] for row in objects},
        {row["key"]: from_micros(row["published_micros"]) for row in objects},
        None if guard is None else guard["commit_id"],
        tuple(OperationRow.of(row) for row in rows if row["kind"] == "operation"),
        0 if guard is None else guard["revision"],
    )


def _node(row: Mapping[str, Any]) -> Node:
    return Node.from_payload(
        row["payload"],
        key=row["key"],
        revision=row["revision"],
        fingerprint=row["fingerprint"],
        datasource=row["datasource"],
        digest=row["digest"],
    )


def staged_objects(store: Store, version: int) -> list[StagedObject]:
    """Everything that operations have staged for objects, whatever became of them."""
    rows = store.session.sql(
        "SELECT key, operation, part, action, payload, fingerprint, datasource "
        f"FROM {store.pinned(version)} WHERE kind = 'staged' AND target = 'object' "
        f"AND bucket = {OBJECT_BUCKET}"
    ).collect()
    return [
        StagedObject(
            row["key"], row["operation"], row["part"], StagedAction(row["action"]), _changes(row)
        )
        for row in rows
    ]


def _changes(row: Any) -> Changes:
    if row["action"] == StagedAction.PUT:
        put = put_from(row["key"], row["payload"], row["fingerprint"], row["datasource"])
        return Changes({row["key"]: put})
    return Changes({}, frozenset({row["key"]} if row["action"] == StagedAction.REMOVE else ()))


def stored_objects(store: Store, version: int, condition: str) -> list[StoredObject]:
    """The objects that fulfil a condition at a version, in the order of their keys."""
    rows = store.session.sql(
        f"SELECT {_COLUMNS}, commit_id, changed_by, unix_micros(published_at) AS published, "
        f"unix_micros(changed_at) AS changed FROM {store.pinned(version)} "
        f"WHERE kind = 'object' AND bucket = {OBJECT_BUCKET} AND ({condition}) ORDER BY key"
    ).collect()
    return [
        StoredObject.from_payload(
            row["payload"],
            key=row["key"],
            revision=row["revision"],
            fingerprint=row["fingerprint"],
            datasource=row["datasource"],
            digest=row["digest"],
            commit_id=row["commit_id"],
            published_at=from_micros(row["published"]),
            changed_at=from_micros(row["changed"]),
            changed_by=row["changed_by"],
        )
        for row in rows
    ]


def of_key(key: str) -> str:
    """The condition for one object."""
    return f"key = {literal(key)}"


def of_type(type: str) -> str:
    """The condition for the objects of one type."""
    return f"startswith(key, {literal(type + '/')})"
