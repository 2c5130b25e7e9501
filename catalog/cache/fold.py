"""Builds snapshots from rows, and from change-feed batches: pure functions on Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from catalog.cache.index import NO_ROWS, NO_SCHEMA, Index, Int32s
from catalog.cache.keys import Int64s
from catalog.cache.snapshot import Position, Snapshot, StoredSchema
from catalog.model import Kind

_GONE = ("delete", "update_preimage")


@dataclass(frozen=True)
class Folded:
    """The snapshot after a batch of changes, with counts of segments, and changed schemas."""

    snapshot: Snapshot
    added: int
    removed: int
    changed: int
    schemas: tuple[str, ...]


def build(position: Position, segments: pa.Table, schemas: pa.Table) -> Snapshot:
    """The snapshot of all rows of a version.

    `segments` has k1, k2, fingerprint, num_rows and datasource; `schemas` has kind, key, payload
    and published_micros.
    """
    numbers = _Numbers(())
    fingerprints = _encoded(segments.column("fingerprint"))
    index = Index.of(
        _ints(segments, "k1"),
        _ints(segments, "k2"),
        numbers.of(fingerprints),
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
        _by_datasource(_counted(_encoded(segments.column("datasource")), fingerprints, 1)),
    )


def fold(before: Snapshot, position: Position, changes: pa.Table) -> Folded:
    """The snapshot after another one and the change feed since.

    `changes` has the columns of both tables of `build`, `change` and `version`. The feed has no
    order inside a version, so deletes and pre-images go first.
    """
    of_segments = _among(changes.column("kind"), [Kind.SEGMENT.value])
    segment_changes = changes.filter(pa.array(of_segments))
    schema_changes = changes.filter(pa.array(~of_segments))
    index, numbers, added, removed, changed = _fold_segments(before, segment_changes)
    live, retired, touched = _fold_schemas(before, schema_changes)
    snapshot = Snapshot(
        position,
        index,
        numbers,
        live,
        retired,
        _add_counts(before.counts, segment_changes),
        before.merges,
    )
    return Folded(snapshot, added, removed, changed, touched)


def _fold_segments(
    before: Snapshot, changes: pa.Table
) -> tuple[Index, tuple[str, ...], int, int, int]:
    if not changes.num_rows:
        return before.index, before.fingerprints, 0, 0, 0
    last = _last_of_each(changes)
    k1, k2 = _ints(changes, "k1")[last], _ints(changes, "k2")[last]
    there = _came(changes)[last]
    place = before.index.find(k1, k2)
    was_there = place >= 0
    numbers = _Numbers(before.fingerprints)
    kept = changes.take(last[there])
    fresh = Index.of(
        k1[there],
        k2[there],
        numbers.of(_encoded(kept.column("fingerprint"))),
        _ints(kept, "num_rows"),
    )
    index = before.index.changed(place[was_there], fresh)
    return (
        index,
        numbers.names,
        int(np.sum(there & ~was_there)),
        int(np.sum(~there & was_there)),
        int(np.sum(there & was_there)),
    )


def _last_of_each(changes: pa.Table) -> Int64s:
    """The decisive row of each key: of its last version, an insert or post-image if any."""
    k1, k2 = _ints(changes, "k1"), _ints(changes, "k2")
    order = np.lexsort((_came(changes), _ints(changes, "version"), k2, k1))
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


def _came(changes: pa.Table) -> npt.NDArray[np.bool_]:
    return ~_among(changes.column("change"), list(_GONE))


def _among(column: Any, words: list[str]) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = pc.is_in(column, value_set=pa.array(words)).to_numpy()
    return found


def _ints(table: pa.Table, name: str) -> Int64s:
    column: Any = table.column(name)
    missing = NO_ROWS if name == "num_rows" else 0
    return np.asarray(column.fill_null(missing).to_numpy(), np.int64)


def _encoded(column: Any) -> Any:
    """A column as one Arrow dictionary array."""
    return column.dictionary_encode().unify_dictionaries().combine_chunks()


class _Numbers:
    """Numbers for fingerprints; those that have one keep it."""

    def __init__(self, known: Iterable[str]) -> None:
        self._by_name = {name: number for number, name in enumerate(known)}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._by_name)

    def of(self, fingerprints: Any) -> Int32s:
        """The numbers of encoded fingerprints."""
        names = fingerprints.dictionary.to_pylist()
        numbers = [self._by_name.setdefault(name, len(self._by_name)) for name in names]
        codes = fingerprints.indices.fill_null(len(numbers)).to_numpy()
        found: Int32s = np.take(np.asarray([*numbers, NO_SCHEMA], np.int32), codes, mode="clip")
        return found


def _counted(
    datasources: Any, fingerprints: Any, each: npt.ArrayLike
) -> dict[tuple[str, str | None], int]:
    """The sums of `each` by datasource and fingerprint, both encoded."""
    each = np.broadcast_to(np.asarray(each, np.int64), len(fingerprints))
    # Index -1, the last name of both lists, is that of nulls.
    codes = [column.indices.fill_null(-1) for column in (datasources, fingerprints)]
    sources, names = ([*c.dictionary.to_pylist(), None] for c in (datasources, fingerprints))
    table = pa.table([*codes, pa.array(each)], ["d", "f", "n"])
    sums: Any = table.group_by(["d", "f"]).aggregate([("n", "sum")]).to_pydict()
    triples = zip(sums["d"], sums["f"], sums["n_sum"], strict=True)
    return {(sources[d], names[f]): n for d, f, n in triples}


def _by_datasource(sums: Mapping[tuple[str, str | None], int]) -> dict[str, dict[str | None, int]]:
    counts: dict[str, dict[str | None, int]] = {}
    for (datasource, fingerprint), count in sums.items():
        counts.setdefault(datasource, {})[fingerprint] = count
    return counts


def _add_counts(
    before: Mapping[str, Mapping[str | None, int]], changes: pa.Table
) -> Mapping[str, Mapping[str | None, int]]:
    """The counts after some changes; other datasources share theirs with the snapshot before."""
    if not changes.num_rows:
        return before
    signs = np.where(_came(changes), 1, -1)
    sums = _counted(
        _encoded(changes.column("datasource")), _encoded(changes.column("fingerprint")), signs
    )
    counts = dict(before)
    for datasource, added in _by_datasource(sums).items():
        totals = dict(counts.get(datasource, {}))
        for fingerprint, count in added.items():
            totals[fingerprint] = totals.get(fingerprint, 0) + count
        kept = {fingerprint: total for fingerprint, total in totals.items() if total}
        counts.pop(datasource, None)
        if kept:
            counts[datasource] = kept
    return counts
