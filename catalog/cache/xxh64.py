"""XXH64 of many equally long byte strings at once, in numpy; Spark's `xxhash64` is the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

UInt64s = npt.NDArray[np.uint64]

# The names and the steps are those of the XXH64 specification.
_PRIME_1 = 11400714785074694791
_PRIME_2 = 14029467366897019727
_PRIME_3 = 1609587929392839161
_PRIME_4 = 9650029242287828579
_PRIME_5 = 2870177450012600261
_P1, _P2, _P3, _P4, _P5 = map(np.uint64, (_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5))
_STRIPE = 32
_LANES = 4
_CONVERGENCE = np.array([[1], [7], [12], [18]], np.uint64)

# Intermediate results of this many strings stay in the processor's own memory.
_BLOCK = 16384


@dataclass(frozen=True)
class Rows:
    """Byte strings of one length that lie end to end in a buffer."""

    data: Any
    start: int
    width: int
    count: int

    def words(self, offset: int, kind: str) -> npt.NDArray[Any]:
        """The number that every string has at an offset, without a copy."""
        return np.ndarray((self.count,), kind, self.data, self.start + offset, (self.width,))

    def stripes(self, offset: int) -> npt.NDArray[Any]:
        """The four lanes that every string has at an offset, without a copy."""
        shape, steps = (_LANES, self.count), (8, self.width)
        return np.ndarray(shape, "<u8", self.data, self.start + offset, steps)

    def part(self, first: int, count: int) -> Rows:
        return Rows(self.data, self.start + first * self.width, self.width, count)


def hashes(rows: Rows, seeds: Sequence[int]) -> UInt64s:
    """The hashes of all strings, one row of the result for each seed."""
    hashed = np.empty((len(seeds), rows.count), np.uint64)
    for first in range(0, rows.count, _BLOCK):
        block = rows.part(first, min(_BLOCK, rows.count - first))
        hashed[:, first : first + block.count] = _hash_block(block, seeds)
    return hashed


def _hash_block(rows: Rows, seeds: Sequence[int]) -> UInt64s:
    if rows.width >= _STRIPE:
        hashed = _converged(_striped(rows, seeds))
    else:
        hashed = np.empty((len(seeds), rows.count), np.uint64)
        hashed[:] = _wrapped([[seed + _PRIME_5] for seed in seeds])
    hashed += np.uint64(rows.width)
    _add_tail(hashed, rows)
    _avalanche(hashed)
    return hashed


def _striped(rows: Rows, seeds: Sequence[int]) -> UInt64s:
    """The four accumulators of each seed after all whole stripes."""
    lanes = np.empty((_LANES, rows.count), np.uint64)
    state = np.empty((len(seeds), _LANES, rows.count), np.uint64)
    state[:] = _wrapped(
        [[[s + _PRIME_1 + _PRIME_2], [s + _PRIME_2], [s], [s - _PRIME_1]] for s in seeds]
    )
    for offset in range(0, rows.width - _STRIPE + 1, _STRIPE):
        lanes[:] = rows.stripes(offset)
        lanes *= _P2  # The same for all seeds.
        state += lanes
        _rotate(state, np.uint64(31))
        state *= _P1
    return state


def _converged(state: UInt64s) -> UInt64s:
    turned = state.copy()
    _rotate(turned, _CONVERGENCE)
    hashed: UInt64s = np.add.reduce(turned, axis=1)
    _mix(state)
    for lane in range(_LANES):
        hashed ^= state[:, lane]
        hashed *= _P1
        hashed += _P4
    return hashed


def _add_tail(hashed: UInt64s, rows: Rows) -> None:
    """Adds what follows the last whole stripe: words of eight bytes, then four, then single."""
    offset = rows.width // _STRIPE * _STRIPE
    word = np.empty(rows.count, np.uint64)
    while offset + 8 <= rows.width:
        word[:] = rows.words(offset, "<u8")
        _mix(word)
        hashed ^= word
        _rotate(hashed, np.uint64(27))
        hashed *= _P1
        hashed += _P4
        offset += 8
    if offset + 4 <= rows.width:
        word[:] = rows.words(offset, "<u4")
        word *= _P1
        hashed ^= word
        _rotate(hashed, np.uint64(23))
        hashed *= _P2
        hashed += _P3
        offset += 4
    for rest in range(offset, rows.width):
        word[:] = rows.words(rest, "u1")
        word *= _P5
        hashed ^= word
        _rotate(hashed, np.uint64(11))
        hashed *= _P1


def _avalanche(hashed: UInt64s) -> None:
    hashed ^= hashed >> np.uint64(33)
    hashed *= _P2
    hashed ^= hashed >> np.uint64(29)
    hashed *= _P3
    hashed ^= hashed >> np.uint64(32)


def _mix(words: UInt64s) -> None:
    words *= _P2
    _rotate(words, np.uint64(31))
    words *= _P1


def _rotate(words: UInt64s, by: np.uint64 | UInt64s) -> None:
    high = words << by
    words >>= np.uint64(64) - by
    words |= high


def _wrapped(numbers: Any) -> UInt64s:
    """Python's integers modulo 2**64."""
    wrapped: UInt64s = (np.array(numbers, object) % 2**64).astype(np.uint64)
    return wrapped
