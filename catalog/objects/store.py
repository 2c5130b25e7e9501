"""The rows of objects: read at a version, staged by operations, and written by a commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from catalog.commit.operation_rows import OBJECT_BUCKET, OperationRow, StagedAction
from catalog.commit.rows import RowSet
from catalog.delta.changes import RowChange
from catalog.delta.store import Store
from catalog.model import Kind, from_micros
from catalog.names.store import known_versions
from catalog.objects.changes import (
    Changes,
    Difference,
    Nodes,
    StagedObject,
    difference,
    put_from,
)
from catalog.objects.declarations import Types
from catalog.objects.model import Keyed, ObjectNode, StoredObject
from catalog.objects.platform import missing_schemas, named_schemas
from catalog.objects.rules import refuse
from catalog.schema.names import literal

_COLUMNS = ("key", "revision", "fingerprint", "datasource", "digest", "payload")
_SELECTED = ", ".join(_COLUMNS)


@dataclass(frozen=True)
class Objects:
    """All objects at one version, and the operations with objects that wait for their epochs.

    `guard` is the commit that changed an object last, or made such an operation ready: a commit
    that expects it has seen all of them. `highest` is the revision of the guard: no object ever
    had a higher one.
    """

    version: int
    nodes: Nodes
    commit_ids: Mapping[str, str]
    created: Mapping[str, datetime]
    guard: str | None
    ready: tuple[OperationRow, ...] = ()
    highest: int = 0


def all_objects(store: Store, version: int) -> Objects:
    """All objects at a version: the links to an object can only be known from all of them."""
    rows = store.session.sql(
        f"SELECT kind, state, commit_id, unix_micros(published_at) AS published_micros, "
        f"{_SELECTED} FROM {store.pinned(version)} "
        "WHERE kind IN ('object', 'guard', 'operation') "
        # Separate conjuncts, so that the first prunes partitions.
        f"AND (kind = 'operation' OR bucket = {OBJECT_BUCKET}) "
        "AND (kind <> 'operation' OR state = 'ready')"
    ).collect()
    return objects_of([row.asDict() for row in rows], version)


def objects_of(rows: Sequence[Mapping[str, Any]], version: int) -> Objects:
    """All objects from rows of the kinds `object`, `guard` and `operation`."""
    objects = [row for row in rows if row["kind"] == "object"]
    guard = next((row for row in rows if row["kind"] == "guard"), None)
    return Objects(
        version,
        {row["key"]: ObjectNode.from_payload(**_columns(row)) for row in objects},
        {row["key"]: row["commit_id"] for row in objects},
        {row["key"]: from_micros(row["published_micros"]) for row in objects},
        None if guard is None else guard["commit_id"],
        tuple(OperationRow.of(row) for row in rows if row["kind"] == "operation"),
        0 if guard is None else guard["revision"],
    )


def _columns(row: Any) -> dict[str, Any]:
    return {name: row[name] for name in _COLUMNS}


def staged_objects(store: Store, version: int) -> list[StagedObject]:
    """All rows that operations have staged for objects, decided operations included."""
    rows = store.session.sql(
        "SELECT key, operation, part, action, payload, fingerprint, datasource "
        f"FROM {store.pinned(version)} WHERE kind = 'staged' AND target = 'object' "
        f"AND bucket = {OBJECT_BUCKET}"
    ).collect()
    return [
        StagedObject(
            row["key"],
            row["operation"],
            row["part"],
            StagedAction(row["action"]),
            _staged_changes(row),
        )
        for row in rows
    ]


def _staged_changes(row: Any) -> Changes:
    if row["action"] == StagedAction.PUT:
        put = put_from(row["key"], row["payload"], row["fingerprint"], row["datasource"])
        return Changes({put.key: put})
    return Changes({}, frozenset({row["key"]} if row["action"] == StagedAction.REMOVE else ()))


def stored_objects(store: Store, version: int, condition: str) -> list[StoredObject]:
    """The objects that meet a condition at a version, in the order of their keys."""
    rows = store.session.sql(
        f"SELECT {_SELECTED}, commit_id, changed_by, unix_micros(published_at) AS published, "
        f"unix_micros(changed_at) AS changed FROM {store.pinned(version)} "
        f"WHERE kind = 'object' AND bucket = {OBJECT_BUCKET} AND ({condition}) ORDER BY key"
    ).collect()
    return [
        StoredObject.from_payload(
            **_columns(row),
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


def check_schemas(
    store: Store, version: int, before: Mapping[str, Keyed], after: Mapping[str, Keyed]
) -> None:
    """Refuses tables that name a schema which does not exist.

    Names and versions are never removed, so the answer at the version of a plan holds for its
    commit.
    """
    wanted = named_schemas(Types.among(after), after, before)
    names = {name for name, _ in wanted.values()}
    refuse(missing_schemas(wanted, known_versions(store.session, store.pinned(version), names)))


def write_objects(
    rows: RowSet,
    before: Objects,
    nodes: Nodes,
    published: Mapping[str, datetime] | None = None,
) -> Difference:
    """Adds the rows that lead from the objects that were read to others.

    `published` has the first publication of objects whose rows are new although they are not:
    those that were renamed or restored.
    """
    found = difference(before.nodes, nodes)
    highest = max((node.revision for node in found.written.values()), default=0)
    rows.guard(before.guard, change=True, rise=max(1, highest - before.highest))
    for key, node in found.written.items():
        old = before.nodes.get(key)
        fresh = old is None or key in found.recreated
        rows.add(
            Kind.OBJECT,
            OBJECT_BUCKET,
            key,
            RowChange.INSERT if old is None else RowChange.UPDATE,
            seen=before.commit_ids.get(key),
            fresh=fresh,
            revision=node.revision if old is None or fresh else node.revision - old.revision,
            fingerprint=node.fingerprint,
            datasource=node.datasource,
            digest=node.digest,
            payload=node.payload(),
            published_at=(published or {}).get(key, rows.now),
        )
    for key in found.deleted:
        rows.add(Kind.OBJECT, OBJECT_BUCKET, key, RowChange.DELETE, seen=before.commit_ids[key])
    return found
