"""The 128-bit keys of segments: two XXH64 hashes of the id, as Spark's `xxhash64` computes them.

One id is hashed by the xxhash package. Many ids of one length are hashed together in numpy, without
an object for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from catalog.errors import InvalidInput

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

# Spark computes the same pair: xxhash64(id) and xxhash64('strata', id), where the hash of the
# first argument is the seed for the second.
SALT = "strata"
_SEED = 42
_SALTED = xxhash.xxh64_intdigest(SALT.encode(), seed=_SEED)
_SEEDS = (_SEED, _SALTED)
KEY_COLUMNS = ("xxhash64(key) AS k1", f"xxhash64('{SALT}', key) AS k2")

# Limits beyond which numpy is slower than a call for each id: few ids of one length, long ids.
_FEW = 512
_LONG = 256
# Longer ids are hashed one by one anyway; and numpy sorts 16-bit numbers by radix.
_LONGEST_SORTED = 2**16 - 1


def key_of(segment_id: str) -> tuple[int, int]:
    """The key of one segment, as two signed 64-bit numbers."""
    data = segment_id.encode()
    k1 = xxhash.xxh64_intdigest(data, _SEED)
    k2 = xxhash.xxh64_intdigest(data, _SALTED)
    return (
        k1 - 0x1_0000_0000_0000_0000 if k1 > 0x7FFF_FFFF_FFFF_FFFF else k1,
        k2 - 0x1_0000_0000_0000_0000 if k2 > 0x7FFF_FFFF_FFFF_FFFF else k2,
    )


def keys_of(segment_ids: Any) -> tuple[Int64s, Int64s]:
    """The keys of many segments; a null has the key of the empty id, which no segment has.

    Takes an Arrow array of strings, or any other collection of strings.
    """
    k1, k2 = _hashes(texts_of(segment_ids)).view(np.int64)
    return k1, k2


def texts_of(segment_ids: Any) -> Any:
    """The ids as one Arrow array of large strings without nulls."""
    if isinstance(segment_ids, pa.Array | pa.ChunkedArray) and _is_text(segment_ids.type):
        texts: Any = segment_ids.cast(pa.large_string())
    else:
        texts = _converted(segment_ids)
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    return texts.fill_null("") if texts.null_count else texts


def _is_text(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        return kind.value_type in (pa.string(), pa.large_string())
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _converted(segment_ids: Any) -> Any:
    try:
        return pa.array(_listed(segment_ids), pa.large_string(), from_pandas=True)
    except (pa.ArrowException, UnicodeEncodeError) as error:
        raise InvalidInput(f"Segment ids are strings, and one of these is not: {error}.") from error


def _listed(segment_ids: Any) -> list[Any]:
    for method in ("to_pylist", "tolist"):
        if hasattr(segment_ids, method):
            listed: list[Any] = getattr(segment_ids, method)()
            return listed
    return list(segment_ids)


def _hashes(texts: Any) -> UInt64s:
    """Both hashes of each text."""
    if len(texts) < _FEW:
        return _hashed_singly(texts)
    lengths = np.diff(_offsets(texts))
    if lengths.min() == lengths.max():
        return _hashed_together(texts)
    order = np.minimum(lengths, _LONGEST_SORTED).astype(np.uint16).argsort(kind="stable")
    texts, lengths = texts.take(pa.array(order)), lengths[order]
    hashed = np.empty((len(_SEEDS), len(texts)), np.uint64)
    cuts = np.flatnonzero(np.diff(lengths)) + 1
    for begin, end in pairwise([0, *cuts.tolist(), len(texts)]):
        hashed[:, order[begin:end]] = _hashed_together(texts.slice(begin, end - begin))
    return hashed


def _hashed_together(texts: Any) -> UInt64s:
    """Both hashes of texts of one length."""
    start, end = _offsets(texts)[:2].tolist()
    if len(texts) < _FEW or end - start > _LONG:
        return _hashed_singly(texts)
    return hashes(ByteStrings(texts.buffers()[2], start, end - start, len(texts)), _SEEDS)


def _hashed_singly(texts: Any) -> UInt64s:
    data = texts.cast(pa.large_binary()).to_pylist()
    digest = xxhash.xxh64_intdigest
    return np.array([[digest(d, seed) for d in data] for seed in _SEEDS], np.uint64)


def _offsets(texts: Any) -> Int64s:
    everything = np.frombuffer(texts.buffers()[1], np.int64)
    return everything[texts.offset : texts.offset + len(texts) + 1]


# --- XXH64 of many byte strings of one length -----------------------------------------------------

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

# Intermediate results of this many strings fit into the processor's cache.
_BLOCK = 16384


@dataclass(frozen=True)
class ByteStrings:
    """Byte strings of one length, end to end in a buffer."""

    data: Any
    start: int
    width: int
    count: int

    def words(self, offset: int, kind: str) -> npt.NDArray[Any]:
        """The number at an offset of every string, without a copy."""
        return np.ndarray((self.count,), kind, self.data, self.start + offset, (self.width,))

    def stripes(self, offset: int) -> npt.NDArray[Any]:
        """The four lanes at an offset of every string, without a copy."""
        shape, steps = (_LANES, self.count), (8, self.width)
        return np.ndarray(shape, "<u8", self.data, self.start + offset, steps)

    def part(self, first: int, count: int) -> ByteStrings:
        return ByteStrings(self.data, self.start + first * self.width, self.width, count)


def hashes(rows: ByteStrings, seeds: Sequence[int]) -> UInt64s:
    """The hashes of all strings, one row of the result for each seed."""
    hashed = np.empty((len(seeds), rows.count), np.uint64)
    for first in range(0, rows.count, _BLOCK):
        block = rows.part(first, min(_BLOCK, rows.count - first))
        hashed[:, first : first + block.count] = _hash_block(block, seeds)
    return hashed


def _hash_block(rows: ByteStrings, seeds: Sequence[int]) -> UInt64s:
    if rows.width >= _STRIPE:
        hashed = _converged(_striped(rows, seeds))
    else:
        hashed = np.empty((len(seeds), rows.count), np.uint64)
        hashed[:] = _wrapped([[seed + _PRIME_5] for seed in seeds])
    hashed += np.uint64(rows.width)
    _add_tail(hashed, rows)
    _avalanche(hashed)
    return hashed


def _striped(rows: ByteStrings, seeds: Sequence[int]) -> UInt64s:
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


def _add_tail(hashed: UInt64s, rows: ByteStrings) -> None:
    """Adds the rest after the last whole stripe: words of eight bytes, of four, then bytes."""
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
