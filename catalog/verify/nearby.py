"""Few rows are read once and kept for all checks: every scan of a Delta table looks up its files
again, and a change feed those of each version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What the driver keeps without noticing; there is as much again while Spark takes it over.
FEW_ROWS = 20_000
FEW_BYTES = 16 << 20


@contextmanager
def kept_if_few(session: SparkSession, relation: str, rows: int, size: int) -> Iterator[str]:
    """A relation for FROM clauses with the same rows, which are kept if there are so few."""
    if not 0 < rows <= FEW_ROWS or size > FEW_BYTES:
        yield relation
        return
    view = f"strata_verified_{uuid4().hex}"
    kept = session.createDataFrame(session.sql(f"SELECT * FROM {relation}").toArrow())
    kept.createTempView(view)
    try:
        yield view
    finally:
        session.catalog.dropTempView(view)


def nearby(frame: DataFrame) -> DataFrame:
    """The same rows, kept if there are few of them."""
    rows = frame.limit(FEW_ROWS + 1).toArrow()
    if not 0 < rows.num_rows <= FEW_ROWS:
        return frame
    return frame.sparkSession.createDataFrame(rows)
