"""Tables inside operations: the schemas that they name, and the limits that they give."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from catalog.commit.operation_rows import Action, OperationRow, OperationState
from catalog.commit.rowset import RowSet
from catalog.contracts.enforcement import offences_of, refused_only, violation
from catalog.contracts.model import NO_TERMS, TableLimits, Terms
from catalog.contracts.store import group_segments, read_datasources
from catalog.delta.layout import bucket_of
from catalog.delta.store import Store
from catalog.model import Kind
from catalog.objects.changes import StagedObject
from catalog.objects.model import ObjectNode
from catalog.objects.plan import after, in_order
from catalog.objects.platform import changed_limits, limits_of
from catalog.objects.store import all_objects, check_schemas, staged_objects
from catalog.operations.locking import StagedClaim
from catalog.schema.names import literal


def check_tables(
    store: Store,
    buckets: int,
    version: int,
    nodes: Mapping[str, ObjectNode],
    staged: Sequence[StagedObject],
    operation: OperationRow,
) -> None:
    """Refuses an operation whose tables name schemas that are not there, or limit its segments.

    `nodes` are all objects before it. What it stages was checked by the terms that were there; its
    own tables give others, in whatever order its parts came.

    Raises:
        RuleViolation: A schema is not there.
        ContractViolation: Segments of the operation break the limits of its own tables.
    """
    later = after(nodes, staged, [operation])
    check_schemas(store, version, nodes, later)
    limits = changed_limits(nodes, later)
    if any(limits.values()):
        _check_segments(store, buckets, version, operation.id, limits)


def _check_segments(
    store: Store, buckets: int, version: int, operation: str, limits: Mapping[str, TableLimits]
) -> None:
    terms = {
        row.datasource: Terms.of(row.terms.contract, limits[row.datasource])
        for row in read_datasources(store, buckets, limits, version)
    }
    homes = ", ".join(str(home) for home in sorted({bucket_of(name, buckets) for name in limits}))
    segments = store.session.sql(
        f"SELECT * FROM {store.pinned(version)} WHERE kind = 'staged' AND bucket IN ({homes}) "
        f"AND target = 'segment' AND operation = {literal(operation)} "
        f"AND action IN ('{Action.PUBLISH}', '{Action.REPLACE}')"
    )
    groups = group_segments(segments, terms)
    schemas = store.schemas_of({each.fingerprint for each in groups}, version)
    if refused := refused_only(offences_of(groups, terms, schemas)):
        raise violation(refused)


def terms_to_come(
    store: Store,
    version: int,
    rows: RowSet,
    terms: Mapping[str, Terms],
    claims: Iterable[StagedClaim],
    undecided: Mapping[str, OperationRow],
    wanted: Collection[str],
) -> dict[str, Terms]:
    """The terms of datasources once the operations that wait for their epochs have been applied.

    `terms` are those of now. A part that is staged comes after what is ready, and is checked only
    once. The guard is expected: nobody may declare the type of tables meanwhile.
    """
    ready = {each.id for each in undecided.values() if each.state is OperationState.READY}
    moving = {
        each.key for each in claims if each.action == Action.CLAIM and each.operation in ready
    }
    if not moving & set(wanted):
        return dict(terms)
    objects = all_objects(store, version)
    if not any(row["kind"] == Kind.GUARD for row in rows.rows):
        rows.guard(objects.guard, change=False)
    staged = staged_objects(store, version)
    limits = limits_of(after(objects.nodes, staged, in_order(objects.ready)))
    later = {
        name: Terms.of(terms.get(name, NO_TERMS).contract, limits.get(name, {}))
        for name in moving & set(wanted)
    }
    return {**terms, **later}
