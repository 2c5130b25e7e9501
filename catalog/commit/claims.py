"""Operations, their parts, their claims and the stable epoch, read from the table."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from catalog.commit.operation_rows import (
    EPOCH_BUCKET,
    EpochRow,
    OperationRow,
    OperationState,
    PartRow,
    operation_bucket,
)
from catalog.commit.rows import claimable
from catalog.delta.statements import HOLD, PART_KEY, Claims, listed
from catalog.delta.store import Store
from catalog.errors import ClaimConflict, UnknownOperation
from catalog.schema.names import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# At most this many claims are read; a conflict names a few of them.
MOST_CLAIMS = 10_000
_SHOWN = 5
_OPERATION = (
    "key, state, payload, commit_id, revision, unix_micros(published_at) AS published_micros"
)


@dataclass(frozen=True)
class Claim:
    """A key that an operation has for itself, or shares."""

    target: str
    key: str
    part: int
    action: str
    operation: OperationRow

    @property
    def shared(self) -> bool:
        return self.action == HOLD


@dataclass(frozen=True)
class Standing:
    """Claims on some keys at one version: those of undecided operations, and the decided ones."""

    version: int
    claims: tuple[Claim, ...]
    decided: frozenset[str]

    @property
    def exclusive(self) -> tuple[Claim, ...]:
        return tuple(claim for claim in self.claims if not claim.shared)

    def ignoring(self, before: Claims) -> Claims:
        """The claims that a statement has to check, now that more are known to be decided."""
        return replace(before, decided=before.decided | self.decided)

    def respected(self, before: Claims) -> Claims:
        """The same; raises `ClaimConflict` if an undecided operation has a key for itself."""
        if self.exclusive:
            raise claimed(self.exclusive)
        return self.ignoring(before)


@dataclass(frozen=True)
class OperationView:
    """An operation with its parts at one version, and the stable epoch."""

    version: int
    operation: OperationRow
    parts: dict[int, PartRow]
    epoch: EpochRow

    @property
    def floor(self) -> int:
        """The lowest epoch at which it may be published."""
        return max((part.floor for part in self.parts.values()), default=0)

    @property
    def missing(self) -> tuple[int, ...]:
        """The parts that are not staged yet, as far as their number is known."""
        wanted = range(self.operation.parts or 0)
        return tuple(part for part in wanted if part not in self.parts)


def some_operations(store: Store, version: int, ids: Collection[str]) -> dict[str, OperationRow]:
    """The operations with these ids at a version, as far as they are there."""
    if not ids:
        return {}
    buckets = listed(map(operation_bucket, ids))
    return _operations(store, version, f"bucket IN ({buckets}) AND key IN ({listed(ids)})")


def operations_in(
    store: Store, version: int, states: Iterable[OperationState]
) -> dict[str, OperationRow]:
    """All operations in one of these states at a version."""
    return _operations(store, version, f"state IN ({listed(states)})")


def _operations(store: Store, version: int, condition: str) -> dict[str, OperationRow]:
    rows = store.session.sql(
        f"SELECT {_OPERATION} FROM {store.pinned(version)} WHERE kind = 'operation' AND {condition}"
    ).collect()
    return {row["key"]: OperationRow.of(row.asDict()) for row in rows}


def view_operation(store: Store, operation: str) -> OperationView:
    """An operation, its parts and the stable epoch, all at the newest version.

    Raises:
        UnknownOperation: There is none with this id.
    """
    version = store.head().version
    bucket = operation_bucket(operation)
    rows = store.session.sql(
        f"SELECT kind, part, digest, {_OPERATION} FROM {store.pinned(version)} "
        f"WHERE (kind IN ('operation', 'part') AND bucket = {bucket} "
        f"AND operation = {literal(operation)}) OR (kind = 'epoch' AND bucket = {EPOCH_BUCKET})"
    ).collect()
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_kind.setdefault(row["kind"], []).append(row.asDict())
    if "operation" not in by_kind:
        raise UnknownOperation(
            f"There is no operation {operation} at version {version}; `strata operations list` "
            "shows all.",
            operation=operation,
            version=version,
        )
    parts = sorted(by_kind.get("part", []), key=lambda row: int(row["part"]))
    return OperationView(
        version,
        OperationRow.of(by_kind["operation"][0]),
        {row["part"]: PartRow.of(row) for row in parts},
        EpochRow.of(by_kind["epoch"][0]) if "epoch" in by_kind else EpochRow(),
    )


def parts_of(store: Store, version: int, ids: Collection[str]) -> list[PartRow]:
    """All parts of these operations at a version."""
    if not ids:
        return []
    rows = store.session.sql(
        f"SELECT part, digest, payload FROM {store.pinned(version)} WHERE kind = 'part' "
        f"AND bucket IN ({listed(map(operation_bucket, ids))}) AND operation IN ({listed(ids)})"
    ).collect()
    return [PartRow.of(row.asDict()) for row in rows]


def stable_epoch(store: Store, version: int) -> EpochRow:
    """The stable epoch at a version."""
    row = store.epoch_row(version)
    return EpochRow() if row is None else EpochRow.of(row)


def standing_claims(
    store: Store, keys: DataFrame, buckets: Iterable[int], version: int | None = None
) -> Standing:
    """The claims on some keys; the frame has the columns target, bucket and key."""
    if version is None:
        version = store.head().version
    chosen = listed(buckets)
    if not chosen:
        return Standing(version, (), frozenset())
    staged = store.session.sql(
        "SELECT target, bucket, key, operation, part, action "
        f"FROM {store.pinned(version)} WHERE kind = 'staged' AND bucket IN ({chosen})"
    ).join(keys.select("target", "bucket", "key"), ["target", "bucket", "key"], "left_semi")
    holders = {row["operation"] for row in staged.select("operation").distinct().collect()}
    operations = {
        key: each
        for key, each in some_operations(store, version, holders).items()
        if not each.decided
    }
    # An operation whose row is gone was decided long ago.
    decided = frozenset(holders - operations.keys())
    if not operations:
        return Standing(version, (), decided)
    rows: Any = (
        staged.where(f"operation IN ({listed(operations)})")
        .limit(MOST_CLAIMS)
        .toArrow()
        .to_pylist()
    )
    claims = tuple(
        Claim(row["target"], row["key"], row["part"], row["action"], operations[row["operation"]])
        for row in rows
    )
    return Standing(version, claims, decided)


def claims_on(
    store: Store,
    segment_ids: Iterable[str],
    datasources: Iterable[str],
    segment_buckets: int,
    version: int | None = None,
) -> Standing:
    """The claims on some segments and datasources."""
    keys = claimable(segment_ids, datasources, segment_buckets)
    buckets: Any = keys.column("bucket").to_pylist()
    return standing_claims(store, store.session.createDataFrame(keys), buckets, version)


def staged_parts(store: Store, version: int, buckets: Iterable[int]) -> frozenset[str]:
    """The parts that have staged rows in these buckets at a version, as `operation/part`."""
    rows = store.session.sql(
        f"SELECT DISTINCT {PART_KEY} AS part_key FROM {store.pinned(version)} AS t "
        f"WHERE t.kind = 'staged' AND t.bucket IN ({listed(buckets)})"
    ).collect()
    return frozenset(row["part_key"] for row in rows)


def claimed(claims: Iterable[Claim]) -> ClaimConflict:
    """The refusal that names the holder, its lease and some of the keys."""
    held = list(claims)
    holder = held[0].operation
    names = sorted({claim.key for claim in held})
    shown = ", ".join(names[:_SHOWN]) + (
        f" and {len(names) - _SHOWN} more" if len(names) > 5 else ""
    )
    until = holder.lease_until.isoformat(timespec="seconds")
    way = (
        f"It waits for epoch {holder.epoch}: advance the stable epoch to it"
        if holder.state is OperationState.READY
        else f"Wait until it is published or aborted (its lease ends at {until}; "
        "`strata operations recover` aborts it after that)"
    )
    return ClaimConflict(
        f"{shown}: claimed by {holder}; nothing was written. {way}, or stage the change in "
        "that operation.",
        keys=tuple(names),
        operation=holder.id,
        name=holder.name,
        state=holder.state.value,
        lease_until=holder.lease_until,
        epoch=holder.epoch,
    )
