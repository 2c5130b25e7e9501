"""Sorted arrays from 128-bit segment keys to schema numbers and row counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]

NO_SCHEMA = -1
NO_ROWS = -1

# Spark computes the same pair: xxhash64(id) and xxhash64('strata', id), where the hash of the
# first argument is the seed for the second.
SALT = "strata"
_SEED = 42
_SALTED = xxhash.xxh64_intdigest(SALT.encode(), seed=_SEED)
KEY_COLUMNS = ("xxhash64(key) AS k1", f"xxhash64('{SALT}', key) AS k2")


def key_of(segment_id: str) -> tuple[int, int]:
    """The 128-bit key of one segment, as two signed 64-bit numbers."""
    data = segment_id.encode()
    return _signed(xxhash.xxh64_intdigest(data, _SEED)), _signed(
        xxhash.xxh64_intdigest(data, _SALTED)
    )


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number


def keys_of(segment_ids: Iterable[str | None]) -> tuple[Int64s, Int64s]:
    """The keys of many segments; a null has the key of the empty id, which no segment has."""
    digest = xxhash.xxh64_intdigest
    data = [(segment_id or "").encode() for segment_id in segment_ids]
    first = np.fromiter((digest(d, _SEED) for d in data), np.uint64, len(data))
    second = np.fromiter((digest(d, _SALTED) for d in data), np.uint64, len(data))
    return first.view(np.int64), second.view(np.int64)


@dataclass(frozen=True, eq=False)
class Index:
    """One entry a segment in four parallel arrays, 28 bytes each, sorted by key; never changed."""

    k1: Int64s
    k2: Int64s
    schema: Int32s
    rows: Int64s

    @classmethod
    def of(cls, k1: Any, k2: Any, schema: Any, rows: Any) -> Index:
        """An index of entries in any order."""
        k1, k2 = np.asarray(k1, np.int64), np.asarray(k2, np.int64)
        order = np.lexsort((k2, k1))
        return cls(
            k1[order],
            k2[order],
            np.asarray(schema, np.int32)[order],
            np.asarray(rows, np.int64)[order],
        )

    @classmethod
    def empty(cls) -> Index:
        return cls.of([], [], [], [])

    def __len__(self) -> int:
        return len(self.k1)

    @property
    def nbytes(self) -> int:
        return self.k1.nbytes + self.k2.nbytes + self.schema.nbytes + self.rows.nbytes

    def find(self, k1: Int64s, k2: Int64s) -> Int64s:
        """The place of each key, or -1."""
        size = len(self.k1)
        if size == 0:
            return np.full(len(k1), -1, np.int64)
        place = np.searchsorted(self.k1, k1)
        found = np.full(len(k1), -1, np.int64)
        asking = np.arange(len(k1))
        # Almost always one round; more only where two ids share their first 64 bits.
        while len(asking):
            inside = place < size
            asking, place = asking[inside], place[inside]
            same = self.k1[place] == k1[asking]
            asking, place = asking[same], place[same]
            hit = self.k2[place] == k2[asking]
            found[asking[hit]] = place[hit]
            asking, place = asking[~hit], place[~hit] + 1
        return found

    def find_one(self, k1: int, k2: int) -> int:
        """The place of one key, or -1."""
        place = int(self.k1.searchsorted(k1))
        while place < len(self.k1) and self.k1[place] == k1:
            if self.k2[place] == k2:
                return place
            place += 1
        return -1

    def without(self, k1: Int64s, k2: Int64s) -> Index:
        """The index less these keys."""
        place = self.find(k1, k2)
        place = place[place >= 0]
        if not len(place):
            return self
        return Index(
            np.delete(self.k1, place),
            np.delete(self.k2, place),
            np.delete(self.schema, place),
            np.delete(self.rows, place),
        )

    def plus(self, other: Index) -> Index:
        """The index with the entries of another, whose keys it does not have."""
        if not len(other):
            return self
        place = np.searchsorted(self.k1, other.k1)
        # Keys that share their first half are ordered by the second.
        for i in (
            np.flatnonzero(self.k1[np.minimum(place, len(self) - 1)] == other.k1)
            if len(self)
            else ()
        ):
            while (
                place[i] < len(self)
                and self.k1[place[i]] == other.k1[i]
                and self.k2[place[i]] < other.k2[i]
            ):
                place[i] += 1
        return Index(
            np.insert(self.k1, place, other.k1),
            np.insert(self.k2, place, other.k2),
            np.insert(self.schema, place, other.schema),
            np.insert(self.rows, place, other.rows),
        )
