"""The published state of the catalog at one version; it never changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from catalog.cache.index import NO_ROWS, NO_SCHEMA, Index
from catalog.cache.keys import key_of, keys_of
from catalog.errors import InvalidInput, NotInSnapshot
from catalog.evolution.merge import Policy
from catalog.read.datasource import DatasourceSchema, Merges
from catalog.schema import Schema
from catalog.schema.canonical import resolve_prefix
from catalog.schema.model import read_stored
from catalog.words import chosen

# Schemas that are not published yet come after all others.
_NOT_YET = 1 << 62

# The stubs of pyarrow.compute know fewer array types than its functions take.
pc: Any = pyarrow.compute


@dataclass(frozen=True)
class Position:
    """The table and version of a snapshot, and the stamp of that version.

    `buckets` is the bucket count of that table; another table at the same path may have another.
    """

    table_id: str
    version: int
    stamp: str
    buckets: int = 0


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """A schema as the table stores it."""

    payload: str
    published_micros: int


@dataclass(frozen=True, slots=True)
class OverlayEntry:
    """The schema and row count of a segment that is not published with a schema."""

    schema: Schema
    num_rows: int | None


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Segments, schemas and counts at one version; picklable, so that executors can use it too.

    The position of a fingerprint in `fingerprints` is the number of the schema in the index.
    `counts` has the segments of each datasource by fingerprint. `merges` is shared with the
    snapshots before and after.
    """

    position: Position
    index: Index
    fingerprints: tuple[str, ...]
    live: Mapping[str, StoredSchema]
    retired: Mapping[str, StoredSchema]
    counts: Mapping[str, Mapping[str | None, int]]
    merges: Merges = field(default_factory=Merges, repr=False)
    _parsed: dict[str, Schema] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name != "_names"}
        return {**kept, "_parsed": {}, "merges": Merges()}

    @property
    def version(self) -> int:
        return self.position.version

    def __len__(self) -> int:
        return len(self.index)

    def fingerprint_of(self, segment_id: str) -> str | None:
        """The fingerprint of a segment's schema; none if it is published without a schema."""
        number = self.index.schema.item(self._place(segment_id))
        return None if number == NO_SCHEMA else self.fingerprints[number]

    def schema_of(self, segment_id: str) -> Schema:
        """The schema of a segment."""
        fingerprint = self.fingerprint_of(segment_id)
        if fingerprint is None:
            raise NotInSnapshot(
                f"Segment {segment_id} is published without a schema (version {self.version}).",
                segment_id=segment_id,
                version=self.version,
            )
        return self._schema(fingerprint)

    def num_rows(self, segment_id: str) -> int | None:
        """The row count of a segment; none if it is not known."""
        rows = self.index.rows.item(self._place(segment_id))
        return None if rows == NO_ROWS else rows

    def schema(self, beginning: str) -> Schema:
        """The schema with this fingerprint, or with any unique beginning of it."""
        known = self.live.keys() | self.retired.keys()
        if beginning in known:
            return self._schema(beginning)
        return self._schema(resolve_prefix(beginning, known))

    def holds(self, fingerprint: str) -> bool:
        """Whether the schema with this whole fingerprint is here."""
        return fingerprint in self.live or fingerprint in self.retired

    def find_schema(self, fingerprint: str) -> Schema | None:
        """The schema with this whole fingerprint, if it is here."""
        return self._schema(fingerprint) if self.holds(fingerprint) else None

    def lookup(self, segment_ids: Any) -> pa.Table:
        """Looks up many ids: columns found, fingerprint and num_rows, in the order of the ids.

        Takes an Arrow array, a list, a numpy array or a pandas series of strings.
        """
        if isinstance(segment_ids, str):
            raise InvalidInput(
                f"lookup takes many ids; for one write [{segment_ids!r}], or use schema_of.",
                segment_ids=segment_ids,
            )
        return self.lookup_keys(*keys_of(segment_ids))

    def lookup_keys(self, k1: Any, k2: Any) -> pa.Table:
        """Like `lookup`, for keys that Spark computed: xxhash64(id), xxhash64('strata', id)."""
        place = self.index.find(np.asarray(k1, np.int64), np.asarray(k2, np.int64))
        found = place >= 0
        if len(self.index):
            # A place of -1 is clipped to 0, and the result masked.
            schema = np.take(self.index.schema, place, mode="clip")
            rows = np.take(self.index.rows, place, mode="clip")
        else:
            schema, rows = np.zeros(len(place), np.int32), place
        codes = _masked(schema, found & (schema != NO_SCHEMA))
        return pa.table(
            {
                "found": pa.array(found),
                # The numbers are known to be in range.
                "fingerprint": pa.DictionaryArray.from_arrays(codes, self._names, safe=False),
                "num_rows": _masked(rows, found & (rows != NO_ROWS)),
            }
        )

    def knows(self, segment_id: str) -> bool:
        """Whether the segment is published with a schema."""
        place = self.index.find_one(*key_of(segment_id))
        return place >= 0 and self.index.schema.item(place) != NO_SCHEMA

    def datasources(self, overlay: Iterable[str] = ()) -> dict[str, int]:
        """The number of segments of each datasource, with those of an overlay."""
        totals = {name: sum(counts.values()) for name, counts in self.counts.items()}
        for segment_id in overlay:
            if self.index.find_one(*key_of(segment_id)) < 0:
                datasource = segment_id.partition("/")[0]
                totals[datasource] = totals.get(datasource, 0) + 1
        return totals

    def datasource_schema(
        self,
        datasource: str,
        policy: str = Policy.STRICT,
        overlay: Mapping[str, OverlayEntry] = MappingProxyType({}),
    ) -> DatasourceSchema:
        """The merge of the schemas of a datasource's segments, in the order of their publication.

        After a poll only new schemas are merged, however many segments there are. `overlay` are
        segments of the datasource that are not published with a schema yet.
        """
        counts, more = self._counts_with(self.counts.get(datasource, {}), overlay)
        if not counts:
            raise NotInSnapshot(
                f"Datasource {datasource} has no segments in the snapshot of version "
                f"{self.version}.",
                datasource=datasource,
                version=self.version,
            )
        wanted = chosen(Policy, "policy", policy)
        stamps = [
            (_NOT_YET if name in more else self._stored(name).published_micros, name)
            for name in counts
            if name is not None
        ]
        combined = self.merges.of(
            datasource, stamps, wanted, lambda name: more.get(name) or self._schema(name)
        )
        return DatasourceSchema(datasource, wanted, combined, counts)

    def _counts_with(
        self, counts: Mapping[str | None, int], overlay: Mapping[str, OverlayEntry]
    ) -> tuple[Mapping[str | None, int], dict[str, Schema]]:
        """Segments by schema with those of an overlay, and the schemas that are not published."""
        if not overlay:
            return counts, {}
        totals, more = dict(counts), dict[str, Schema]()
        for segment_id, each in overlay.items():
            place = self.index.find_one(*key_of(segment_id))
            if place >= 0 and self.index.schema.item(place) != NO_SCHEMA:
                continue
            if place >= 0:
                totals[None] -= 1
            fingerprint = each.schema.fingerprint
            totals[fingerprint] = totals.get(fingerprint, 0) + 1
            if not self.holds(fingerprint):
                more[fingerprint] = each.schema
        return {name: count for name, count in totals.items() if count}, more

    def content(self) -> dict[str, Any]:
        """Everything in which two snapshots of one version must agree, in comparable form."""
        names = np.array([*self.fingerprints, ""], dtype=object)
        order = np.lexsort((self.index.k2, self.index.k1))
        return {
            "version": self.version,
            "keys": np.stack([self.index.k1[order], self.index.k2[order]]).tolist(),
            "fingerprints": names[self.index.schema[order]].tolist(),
            "rows": self.index.rows[order].tolist(),
            "live": dict(self.live),
            "retired": dict(self.retired),
            "counts": self.counts,
        }

    @cached_property
    def _names(self) -> Any:
        """The fingerprints for Arrow; not pickled."""
        return pa.array(self.fingerprints, pa.string())

    def _place(self, segment_id: str) -> int:
        if not isinstance(segment_id, str):
            raise InvalidInput(
                f"A segment id is a string, not {segment_id!r}.", segment_id=segment_id
            )
        place = self.index.find_one(*key_of(segment_id))
        if place < 0:
            raise NotInSnapshot(
                f"Segment {segment_id} is not in the snapshot of version {self.version}.",
                segment_id=segment_id,
                version=self.version,
            )
        return place

    def _stored(self, fingerprint: str) -> StoredSchema:
        stored = self.live.get(fingerprint) or self.retired.get(fingerprint)
        if stored is None:
            raise NotInSnapshot(
                f"Schema {fingerprint} is not in the snapshot of version {self.version}.",
                fingerprint=fingerprint,
                version=self.version,
            )
        return stored

    def _schema(self, fingerprint: str) -> Schema:
        parsed = self._parsed.get(fingerprint)
        if parsed is None:
            stored = self._stored(fingerprint)
            # Two threads may both parse it; they get equal schemas.
            parsed = self._parsed[fingerprint] = read_stored(fingerprint, stored.payload)
        return parsed


def overlaid(answers: pa.Table, k1: Any, k2: Any, overlay: Mapping[str, OverlayEntry]) -> pa.Table:
    """The lookup of some keys, completed from an overlay where the snapshot has no schema."""
    if not overlay:
        return answers
    entries = list(overlay.values())
    rows = [NO_ROWS if each.num_rows is None else each.num_rows for each in entries]
    index = Index.of(*keys_of(pa.array(list(overlay), pa.string())), np.arange(len(rows)), rows)
    place = index.find(np.asarray(k1, np.int64), np.asarray(k2, np.int64))
    covered = (place >= 0) & np.asarray(pc.is_null(answers.column("fingerprint")))
    if not covered.any():
        return answers
    at = place[covered]
    fingerprints = pa.array([each.schema.fingerprint for each in entries], pa.string())
    columns = {
        "found": pa.repeat(True, len(at)),
        "fingerprint": fingerprints.take(pa.array(index.schema[at])),
        "num_rows": _masked(index.rows[at], index.rows[at] != NO_ROWS),
    }
    for name, values in columns.items():
        before = answers.column(name)
        plain = before.cast(pa.string()) if name == "fingerprint" else before
        after = pc.replace_with_mask(plain.combine_chunks(), pa.array(covered), values)
        if name == "fingerprint":
            after = after.dictionary_encode()
        answers = answers.set_column(answers.schema.get_field_index(name), name, after)
    return answers


def present_in(snapshot: Snapshot, names: Sequence[str]) -> tuple[set[str], set[str]]:
    """Which of some segments a snapshot has, and which of them with a schema."""
    if not names:
        return set(), set()
    answer = snapshot.lookup(pa.array(names, pa.string()))
    found = answer.column("found").to_pylist()
    fingerprints = answer.column("fingerprint").to_pylist()
    there = {name for name, here in zip(names, found, strict=True) if here}
    known = {name for name, one in zip(names, fingerprints, strict=True) if one is not None}
    return there, known


def _masked(numbers: Any, known: npt.NDArray[np.bool_]) -> Any:
    """An Arrow array with nulls for unknown numbers."""
    return pa.array(numbers, mask=~known)
