"""Where to search among sorted hashes: a table over their highest bits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from catalog.cache.keys import Int64s


@dataclass(frozen=True, eq=False)
class Directory:
    """The first place of each range of numbers, and at last how many places there are.

    A range is all numbers that share the bits above `shift`. Hashes spread evenly over the ranges,
    three to six for each, so the directory takes at most four thirds of a byte for a number.
    """

    shift: int
    starts: npt.NDArray[np.uint32]
    # The numbers are signed: the range in the middle begins with zero.
    _middle: int = field(init=False, repr=False)
    # A view gives out single numbers faster than an array.
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
        """The directory of sorted numbers that it knows, but for those gone and fresh."""
        if _shift(len(numbers)) != self.shift:
            return Directory.of(numbers)
        # Unsigned numbers may wrap around in between; the sum is right.
        moved = _starts(fresh, self.shift) - _starts(gone, self.shift)
        return Directory(self.shift, self.starts + moved)

    @property
    def nbytes(self) -> int:
        return self.starts.nbytes

    def begins(self, numbers: Int64s) -> Int64s:
        """The place at which to begin the search for each number."""
        at = _ranges(numbers, self.shift)
        return np.take(self.starts, at, mode="clip").astype(np.int64)

    def span(self, number: int) -> tuple[int, int]:
        """The places among which one number is: from the first on, and before the second."""
        at = (number >> self.shift) + self._middle
        return self._view[at], self._view[at + 1]


def _shift(size: int) -> int:
    """What leaves at least two ranges, and else at most a third as many as there are numbers."""
    return 64 - max(1, (size // 3).bit_length() - 1)


def _ranges(numbers: Int64s, shift: int) -> Int64s:
    ranges = numbers >> shift
    ranges += 1 << (63 - shift)
    return ranges


def _starts(numbers: Int64s, shift: int) -> npt.NDArray[np.uint32]:
    """How many of these numbers lie before each range, and how many there are."""
    counts = np.bincount(_ranges(numbers, shift), minlength=1 << (64 - shift))
    starts = np.zeros(len(counts) + 1, np.uint32)
    starts[1:] = np.cumsum(counts)
    return starts
