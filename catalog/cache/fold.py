"""From rows and change-feed batches to snapshots: pure functions on Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from catalog.cache.index import NO_ROWS, NO_SCHEMA, Index, Int32s, Int64s
from catalog.cache.snapshot import Position, Snapshot, StoredSchema
from catalog.model import Kind

_GONE = ("delete", "update_preimage")


@dataclass(frozen=True)
class Folded:
    """The snapshot after a batch of changes, and how many segments and schemas it touched."""

    snapshot: Snapshot
    added: int
    removed: int
    changed: int
    schemas: tuple[str, ...]


def build(position: Position, segments: pa.Table, schemas: pa.Table) -> Snapshot:
    """A snapshot from all rows of a version.

    `segments` has k1, k2, fingerprint, num_rows and datasource; `schemas` has kind, key, payload
    and published_micros.
    """
    numbers = _Numbers(())
    index = Index.of(
        _ints(segments, "k1"),
        _ints(segments, "k2"),
        numbers.of(segments.column("fingerprint")),
        _ints(segments, "num_rows"),
    )
    stored: dict[str, dict[str, StoredSchema]] = {Kind.SCHEMA: {}, Kind.RETIRED: {}}
    for row in schemas.to_pylist():
        stored[row["kind"]][row["key"]] = StoredSchema(row["payload"], row["published_micros"])
    return Snapshot(
        position,
        index,
        numbers.names,
        stored[Kind.SCHEMA],
        stored[Kind.RETIRED],
        _counted(segments),
    )


def fold(before: Snapshot, position: Position, changes: pa.Table) -> Folded:
    """The snapshot that follows from another and the change feed in between.

    `changes` has the columns of both tables of `build`, `change` and `version`. The feed has no
    order inside a version, so deletes and pre-images go first.
    """
    kinds = np.asarray(changes.column("kind").to_pylist(), dtype=object)
    is_segment = kinds == Kind.SEGMENT.value
    segment_changes = changes.filter(pa.array(is_segment, pa.bool_()))
    schema_changes = changes.filter(pa.array(~is_segment, pa.bool_()))
    index, numbers, added, removed, changed = _fold_segments(before, segment_changes)
    live, retired, touched = _fold_schemas(before, schema_changes)
    snapshot = Snapshot(
        position,
        index,
        numbers,
        live,
        retired,
        _add_counts(before.counts, segment_changes),
    )
    return Folded(snapshot, added, removed, changed, touched)


def _fold_segments(
    before: Snapshot, changes: pa.Table
) -> tuple[Index, tuple[str, ...], int, int, int]:
    if not changes.num_rows:
        return before.index, before.fingerprints, 0, 0, 0
    k1, k2 = _ints(changes, "k1"), _ints(changes, "k2")
    last = _last_of_each(changes, k1, k2)
    k1, k2 = k1[last], k2[last]
    there = _present(changes)[last]
    was_there = before.index.find(k1, k2) >= 0
    numbers = _Numbers(before.fingerprints)
    kept = changes.take(last[there])
    fresh = Index.of(
        k1[there], k2[there], numbers.of(kept.column("fingerprint")), _ints(kept, "num_rows")
    )
    index = before.index.without(k1, k2).plus(fresh)
    return (
        index,
        numbers.names,
        int(np.sum(there & ~was_there)),
        int(np.sum(~there & was_there)),
        int(np.sum(there & was_there)),
    )


def _last_of_each(changes: pa.Table, k1: Int64s, k2: Int64s) -> Int64s:
    """The row that decides for each key: the last version, and in it what came rather than went."""
    order = np.lexsort((_present(changes), _ints(changes, "version"), k2, k1))
    a, b = k1[order], k2[order]
    ends = np.ones(len(order), dtype=bool)
    ends[:-1] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
    return order[ends].astype(np.int64)


def _fold_schemas(
    before: Snapshot, changes: pa.Table
) -> tuple[Mapping[str, StoredSchema], Mapping[str, StoredSchema], tuple[str, ...]]:
    if not changes.num_rows:
        return before.live, before.retired, ()
    stored = {Kind.SCHEMA.value: dict(before.live), Kind.RETIRED.value: dict(before.retired)}
    rows = sorted(changes.to_pylist(), key=lambda r: (r["version"], r["change"] not in _GONE))
    for row in rows:
        place = stored[row["kind"]]
        if row["change"] in _GONE:
            place.pop(row["key"], None)
        else:
            place[row["key"]] = StoredSchema(row["payload"], row["published_micros"])
    touched = tuple(sorted({row["key"] for row in rows}))
    return stored[Kind.SCHEMA.value], stored[Kind.RETIRED.value], touched


def _present(changes: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    words = changes.column("change").to_pylist()
    return np.fromiter((word not in _GONE for word in words), np.bool_, len(words))


def _ints(table: pa.Table, name: str) -> Int64s:
    column: Any = table.column(name)
    missing = NO_ROWS if name == "num_rows" else 0
    return np.asarray(column.fill_null(missing).to_numpy(), np.int64)


class _Numbers:
    """Gives fingerprints their numbers; those that have one keep it."""

    def __init__(self, known: Iterable[str]) -> None:
        self._by_name = {name: number for number, name in enumerate(known)}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._by_name)

    def of(self, fingerprints: Any) -> Int32s:
        encoded = fingerprints.combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        names = encoded.dictionary.to_pylist()
        numbers = [self._by_name.setdefault(name, len(self._by_name)) for name in names]
        codes = encoded.indices.fill_null(len(numbers)).to_numpy(zero_copy_only=False)
        found: Int32s = np.asarray([*numbers, NO_SCHEMA], np.int32)[codes]
        return found


def _counted(segments: pa.Table) -> dict[tuple[str, str | None], int]:
    grouped = segments.group_by(["datasource", "fingerprint"]).aggregate([([], "count_all")])
    return {
        (row["datasource"], row["fingerprint"]): row["count_all"] for row in grouped.to_pylist()
    }


def _add_counts(
    before: Mapping[tuple[str, str | None], int], changes: pa.Table
) -> Mapping[tuple[str, str | None], int]:
    if not changes.num_rows:
        return before
    counts = dict(before)
    present = _present(changes)
    for sign, rows in ((1, present), (-1, ~present)):
        for key, count in _counted(changes.filter(pa.array(rows))).items():
            counts[key] = counts.get(key, 0) + sign * count
    return {key: count for key, count in counts.items() if count}
