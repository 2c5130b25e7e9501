"""Counts and order-free digests of rows, by which copies of them are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Content:
    """So many rows, and a digest of all their columns that does not depend on their order."""

    rows: int
    digest: str


def hash_sql(columns: Sequence[str]) -> str:
    """The hash of a row; `xxhash64` passes nulls by, so it is told where they are."""
    nulls = (f"{column} IS NULL" for column in columns)
    return f"xxhash64({', '.join((*columns, *nulls))})"


def contents(frame: DataFrame, columns: Sequence[str], kind: str = "kind") -> dict[str, Content]:
    """Counts and digests of the rows of each kind, in one scan; `kind` is an expression."""
    rows = (
        frame.selectExpr(f"{kind} AS of_kind", f"{hash_sql(columns)} AS hashed")
        .groupBy("of_kind")
        .agg(F.count("*").alias("rows"), F.bit_xor("hashed").alias("digest"))
        .collect()
    )
    return {row["of_kind"]: Content(row["rows"], f"{row['digest'] & _MASK:016x}") for row in rows}


_MASK = (1 << 64) - 1


def differences(expected: Mapping[str, Content], found: Mapping[str, Content]) -> list[str]:
    """In words, where two accounts of the same rows differ."""
    told: list[str] = []
    for kind in sorted(expected.keys() | found.keys()):
        wanted, there = expected.get(kind), found.get(kind)
        if wanted == there:
            continue
        if wanted is None or there is None or wanted.rows != there.rows:
            counts = [0 if each is None else each.rows for each in (there, wanted)]
            told.append(f"{counts[0]} rows of kind {kind} instead of {counts[1]}")
        else:
            told.append(f"the rows of kind {kind} have other contents")
    return told
