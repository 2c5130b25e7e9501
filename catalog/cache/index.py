"""Sorted arrays from 128-bit segment keys to schema numbers and row counts, with a directory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from catalog.cache.keys import Int64s

Int32s = npt.NDArray[np.int32]

NO_SCHEMA = -1
NO_ROWS = -1

# Intermediate results for this many keys fit into the processor's cache.
_BLOCK = 16384
# After this many steps from the start that the directory gives, a binary search is faster.
_STEPS = 8


@dataclass(frozen=True, eq=False)
class Index:
    """One entry per segment in four parallel arrays sorted by key; immutable.

    An entry takes 28 bytes, and its share of the directory four thirds of a byte at most.
    """

    k1: Int64s
    k2: Int64s
    schema: Int32s
    rows: Int64s
    directory: Directory = field(repr=False)
    # Of k1 and k2: reading single numbers is faster from a view than from an array.
    _views: tuple[memoryview, memoryview] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for array in self._arrays:
            array.setflags(write=False)
        k1, k2, *_ = self._arrays
        object.__setattr__(self, "_views", (memoryview(k1), memoryview(k2)))

    def __reduce__(self) -> tuple[Any, ...]:
        # Views cannot be pickled, and building a directory is faster than shipping it.
        return _indexed, self._arrays

    @classmethod
    def of(cls, k1: Any, k2: Any, schema: Any, rows: Any) -> Index:
        """An index of entries in any order, no two with one key."""
        k1, k2 = np.asarray(k1, np.int64), np.asarray(k2, np.int64)
        schema, rows = np.asarray(schema, np.int32), np.asarray(rows, np.int64)
        order = _order(k1, k2)
        return _indexed(*(np.take(array, order, mode="clip") for array in (k1, k2, schema, rows)))

    @classmethod
    def empty(cls) -> Index:
        return cls.of([], [], [], [])

    def __len__(self) -> int:
        return len(self.k1)

    @property
    def nbytes(self) -> int:
        arrays = self.k1.nbytes + self.k2.nbytes + self.schema.nbytes + self.rows.nbytes
        return arrays + self.directory.nbytes

    @property
    def _arrays(self) -> tuple[Any, ...]:
        return self.k1, self.k2, self.schema, self.rows

    def find(self, k1: Int64s, k2: Int64s) -> Int64s:
        """The place of each key, or -1."""
        found = np.full(len(k1), -1, np.int64)
        if len(self):
            for begin in range(0, len(k1), _BLOCK):
                block = slice(begin, begin + _BLOCK)
                found[block] = self._find_block(k1[block], k2[block])
        return found

    def find_one(self, k1: int, k2: int) -> int:
        """The place of one key, or -1."""
        first, second = self._views
        begin, end = self.directory.span(k1)
        place = bisect_left(first, k1, begin, end)
        if place == end or first[place] != k1:
            return -1
        if second[place] == k2:
            return place
        # Keys that share their first half are ordered by the second.
        end = bisect_right(first, k1, place, end)
        place = bisect_left(second, k2, place, end)
        return place if place < end and second[place] == k2 else -1

    def changed(self, gone: Int64s, fresh: Index) -> Index:
        """The index without the entries at some places, with those of another index.

        No key may then occur twice.
        """
        if not len(gone) and not len(fresh):
            return self
        if not len(self):
            return fresh
        gone = np.unique(gone)
        before = self._first_not_below(fresh)
        before -= np.searchsorted(gone, before)
        room = before + np.arange(len(fresh))
        source = self._sources(gone, before, room)
        k1, k2, schema, rows = (
            _filled(np.take(old, source, mode="clip"), room, new)
            for old, new in zip(self._arrays, fresh._arrays, strict=True)
        )
        directory = self.directory.changed(self.k1[gone], fresh.k1, k1)
        return Index(k1, k2, schema, rows, directory)

    def _sources(self, gone: Int64s, before: Int64s, room: Int64s) -> Int64s:
        """The old entry for each new place, without those gone; undefined for the fresh places
        (`room`)."""
        # A walk over the entries that skips those gone and waits at fresh places. It is longer by
        # one, since entries gone at the end are skipped after the last place.
        steps = np.ones(len(self) - len(gone) + len(room) + 1, np.int64)
        steps[0] = 0
        steps[room] -= 1
        left = gone - np.arange(len(gone))
        np.add.at(steps, left + np.searchsorted(before, left, "right"), 1)
        return np.cumsum(steps, out=steps)[:-1]

    def _find_block(self, k1: Int64s, k2: Int64s) -> Int64s:
        place = self._first_halves_not_below(k1)
        same = np.take(self.k1, place, mode="clip") == k1
        hit = np.take(self.k2, place, mode="clip") == k2
        hit &= same
        found = np.where(hit, place, -1)
        # Almost never: two ids that share their first 64 bits.
        for i in np.flatnonzero(same & ~hit).tolist():
            found[i] = self.find_one(int(k1[i]), int(k2[i]))
        return found

    def _first_halves_not_below(self, k1: Int64s) -> Int64s:
        """The first place with this or a greater first half; the last place if there is none."""
        # With the greatest number as upper bound no search leaves the array.
        k1 = np.minimum(k1, self.k1[-1])
        place = self.directory.begins(k1)
        # Three steps for all keys cost less than selecting those that need them.
        for _ in range(3):
            place += np.take(self.k1, place, mode="clip") < k1
        behind = np.flatnonzero(np.take(self.k1, place, mode="clip") < k1)
        for _ in range(_STEPS):
            if not len(behind):
                return place
            place[behind] += 1
            behind = behind[self.k1[place[behind]] < k1[behind]]
        place[behind] = np.searchsorted(self.k1, k1[behind])
        return place

    def _first_not_below(self, other: Index) -> Int64s:
        """The first place with the key of each other entry or a greater one; the length if none."""
        place = np.searchsorted(self.k1, other.k1)
        at = np.minimum(place, len(self) - 1)
        shared = (self.k1[at] == other.k1) & (self.k2[at] < other.k2)
        for i in np.flatnonzero(shared).tolist():
            end = np.searchsorted(self.k1, other.k1[i], "right")
            place[i] += np.searchsorted(self.k2[place[i] : end], other.k2[i])
        return place


def _indexed(k1: Int64s, k2: Int64s, schema: Int32s, rows: Int64s) -> Index:
    """An index of sorted entries."""
    return Index(k1, k2, schema, rows, Directory.of(k1))


def _filled(array: Any, room: Int64s, values: Any) -> Any:
    array[room] = values
    return array


def _order(k1: Int64s, k2: Int64s) -> Int64s:
    """The order by key."""
    size = len(k1)
    # Sorting numbers is much faster than sorting places: the places take the lowest bits.
    low = (1 << max(size - 1, 0).bit_length()) - 1
    packed = k1 & ~low
    packed |= np.arange(size)
    packed.sort()
    order = packed & low
    # Neighbours that differ only in the lowest bits are still to be ordered.
    packed &= ~low
    twins = packed[1:] == packed[:-1]
    tied = np.zeros(size, bool)
    tied[1:] |= twins
    tied[:-1] |= twins
    mixed = order[tied]
    order[tied] = mixed[np.lexsort((k2[mixed], k1[mixed]))]
    return order


# --- the directory --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Directory:
    """A table over the highest bits of sorted hashes: the first place of each range of numbers,
    and finally the number of places.

    A range is all numbers that share the bits above `shift`. Hashes spread evenly over the ranges,
    three to six for each, so the directory takes at most four thirds of a byte for a number.
    """

    shift: int
    starts: npt.NDArray[np.uint32]
    # The numbers are signed: the range in the middle begins with zero.
    _middle: int = field(init=False, repr=False)
    # Reading single numbers is faster from a view than from an array.
    _view: memoryview = field(init=False, repr=False)

    def __post_init__(self) -> None:
        starts: Any = self.starts
        starts.setflags(write=False)
        object.__setattr__(self, "_middle", len(starts) // 2)
        object.__setattr__(self, "_view", memoryview(starts))

    @classmethod
    def of(cls, numbers: Int64s) -> Directory:
        """The directory of sorted numbers."""
        shift = _shift(len(numbers))
        return cls(shift, _starts(numbers, shift))

    def changed(self, gone: Int64s, fresh: Int64s, numbers: Int64s) -> Directory:
        """The directory of its numbers without those gone and with the fresh ones."""
        if _shift(len(numbers)) != self.shift:
            return Directory.of(numbers)
        # The difference of unsigned numbers may wrap around; the sum is right.
        moved = _starts(fresh, self.shift) - _starts(gone, self.shift)
        return Directory(self.shift, self.starts + moved)

    @property
    def nbytes(self) -> int:
        return self.starts.nbytes

    def begins(self, numbers: Int64s) -> Int64s:
        """The place at which the search for each number starts."""
        at = _ranges(numbers, self.shift)
        return np.take(self.starts, at, mode="clip").astype(np.int64)

    def span(self, number: int) -> tuple[int, int]:
        """The range of places of one number: start, and end (exclusive)."""
        at = (number >> self.shift) + self._middle
        return self._view[at], self._view[at + 1]


def _shift(size: int) -> int:
    """The shift for at least two ranges, and otherwise at most a third as many as numbers."""
    return 64 - max(1, (size // 3).bit_length() - 1)


def _ranges(numbers: Int64s, shift: int) -> Int64s:
    ranges = numbers >> shift
    ranges += 1 << (63 - shift)
    return ranges


def _starts(numbers: Int64s, shift: int) -> npt.NDArray[np.uint32]:
    """The count of numbers before each range, and of all."""
    counts = np.bincount(_ranges(numbers, shift), minlength=1 << (64 - shift))
    starts = np.zeros(len(counts) + 1, np.uint32)
    starts[1:] = np.cumsum(counts)
    return starts
