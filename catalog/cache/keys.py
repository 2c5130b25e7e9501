"""The 128-bit keys of segments: two hashes of the id, which Spark computes alike."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from catalog.cache import xxh64
from catalog.errors import InvalidInput

Int64s = npt.NDArray[np.int64]

# Spark computes the same pair: xxhash64(id) and xxhash64('strata', id), where the hash of the
# first argument is the seed for the second.
SALT = "strata"
_SEED = 42
_SALTED = xxhash.xxh64_intdigest(SALT.encode(), seed=_SEED)
_SEEDS = (_SEED, _SALTED)
KEY_COLUMNS = ("xxhash64(key) AS k1", f"xxhash64('{SALT}', key) AS k2")

# Where numpy is slower than a call for each id: too few ids of one length, or long ones.
_FEW = 512
_LONG = 256
# Longer ids need not be sorted by length; and numpy sorts 16-bit numbers by radix.
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

    Takes an Arrow array of strings, and whatever else holds or yields strings.
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


def _hashes(texts: Any) -> xxh64.UInt64s:
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


def _hashed_together(texts: Any) -> xxh64.UInt64s:
    """Both hashes of texts that are equally long."""
    start, end = _offsets(texts)[:2].tolist()
    if len(texts) < _FEW or end - start > _LONG:
        return _hashed_singly(texts)
    return xxh64.hashes(xxh64.Rows(texts.buffers()[2], start, end - start, len(texts)), _SEEDS)


def _hashed_singly(texts: Any) -> xxh64.UInt64s:
    data = texts.cast(pa.large_binary()).to_pylist()
    digest = xxhash.xxh64_intdigest
    return np.array([[digest(d, seed) for d in data] for seed in _SEEDS], np.uint64)


def _offsets(texts: Any) -> Int64s:
    everything = np.frombuffer(texts.buffers()[1], np.int64)
    return everything[texts.offset : texts.offset + len(texts) + 1]
