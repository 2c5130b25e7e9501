"""Objects inside operations: what several of them make of all objects, and what each must claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from hashlib import sha256

from catalog.commit.operation_rows import OBJECT_BUCKET, OperationRow
from catalog.commit.rows import RowSet
from catalog.delta.changes import RowChange
from catalog.errors import CatalogError, RuleViolation
from catalog.model import Kind, micros
from catalog.objects.changes import Changes, united
from catalog.objects.declared import Types
from catalog.objects.judging import changed, completed_by
from catalog.objects.model import Node
from catalog.objects.reading import Objects, StagedObject
from catalog.objects.state import Difference, applied_in_order, difference


def identity(origin: str, key: str) -> str:
    """The id of an object that a commit or an operation creates: the same however often."""
    return sha256(f"{origin}/{key}".encode()).hexdigest()[:32]


def _identities(operation: OperationRow) -> Callable[[str], str]:
    """The ids of what an operation creates: the same whoever applies it.

    The id of an operation that was forgotten can be used again; the moment tells the two apart.
    """
    return partial(identity, f"{operation.id}/{micros(operation.opened_at)}")


def changes_by_part(staged: Iterable[StagedObject], operation: str) -> dict[int, Changes]:
    """What each part of an operation changes."""
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
    nodes: Mapping[str, Node], staged: Sequence[StagedObject], operations: Iterable[OperationRow]
) -> dict[str, Node]:
    """All objects once these operations are applied, in this order.

    Rules are not asked: what is ready was judged, and nothing may keep it from being applied.
    """
    # Operations declare no types, so the same hold for all of them.
    complete = partial(completed_by, Types.among(nodes))
    return applied_in_order(
        nodes,
        [(_identities(each), united(changes_by_part(staged, each.id))) for each in operations],
        complete,
    )


def check_in_order(
    nodes: Mapping[str, Node],
    staged: Sequence[StagedObject],
    operations: Iterable[OperationRow],
    own: str | None = None,
) -> None:
    """Refuses what would keep operations that wait for their epochs from being applied.

    After each of them all rules must hold, in their order: an advance can stop anywhere. What the
    operation with the id `own` breaks itself is raised as it is.
    """
    types = Types.among(nodes)
    for each in operations:
        changes = completed_by(types, nodes, united(changes_by_part(staged, each.id)))
        try:
            nodes = changed(nodes, changes, _identities(each), touch=True)
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


def write_objects(
    rows: RowSet,
    before: Objects,
    nodes: Mapping[str, Node],
    published: Mapping[str, datetime] | None = None,
) -> Difference:
    """Adds the rows that lead from the objects that were read to others.

    `published` says when objects were first published whose rows are new and that are not: they
    were renamed, or come back.
    """
    found = difference(before.nodes, nodes)
    written = {**found.inserted, **found.updated}
    highest = max((node.revision for node in written.values()), default=0)
    rows.guard(before.guard, change=True, rise=max(1, highest - before.highest))
    for key, node in written.items():
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
