"""What is known beside a snapshot, laid over its answers to many questions at once (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from catalog.cache.index import NO_ROWS, Index
from catalog.cache.keys import keys_of
from catalog.cache.places import Found

# The stubs of pyarrow.compute know fewer array types than its functions take.
pc: Any = pyarrow.compute


def laid_over(answers: pa.Table, k1: Any, k2: Any, beside: Mapping[str, Found]) -> pa.Table:
    """The answers of a snapshot for some keys, with those that are known beside it.

    What the snapshot knows itself stays: it is further on.
    """
    if not beside:
        return answers
    names = list(beside)
    founds = [beside[name] for name in names]
    rows = [NO_ROWS if each.num_rows is None else each.num_rows for each in founds]
    index = Index.of(*keys_of(pa.array(names, pa.string())), np.arange(len(names)), rows)
    place = index.find(np.asarray(k1, np.int64), np.asarray(k2, np.int64))
    unknown = np.asarray(pc.is_null(answers.column("fingerprint")))
    covered = (place >= 0) & unknown
    if not covered.any():
        return answers
    at = place[covered]
    mask = pa.array(covered)
    fingerprints = pa.array([each.schema.fingerprint for each in founds], pa.string())
    numbers = index.rows[at]
    columns = {
        "found": pa.repeat(True, len(at)),
        "fingerprint": fingerprints.take(pa.array(index.schema[at])),
        "num_rows": pa.array(numbers, mask=numbers == NO_ROWS),
    }
    for name, values in columns.items():
        before = answers.column(name)
        plain = before.cast(pa.string()) if name == "fingerprint" else before
        after = pc.replace_with_mask(plain.combine_chunks(), mask, values)
        if name == "fingerprint":
            after = after.dictionary_encode()
        answers = answers.set_column(answers.schema.get_field_index(name), name, after)
    return answers
