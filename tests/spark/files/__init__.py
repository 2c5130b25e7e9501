"""Data files for tests, written by pyarrow."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from catalog import Schema


def parquet(path: Path, ddl: str = "a INT", rows: int = 1) -> str:
    """A Parquet file with a schema and so many rows of nulls; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist([{}] * rows, schema=Schema.of(ddl).arrow())
    pq.write_table(table, path)
    return str(path)


def broken(path: Path) -> str:
    """A file that says it is Parquet and is not; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"PAR1 this is no footer PAR1")
    return str(path)
