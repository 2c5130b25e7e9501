"""Segments to publish: ids as people write them, schemas that differ in one column."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from catalog import Schema, Segment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DATASOURCES = 40

_COLUMNS = (
    "order_id BIGINT NOT NULL, customer STRUCT<id: BIGINT, country: STRING>, "
    "items ARRAY<STRUCT<sku: STRING, price: DECIMAL(18,2)>>, at TIMESTAMP, "
)


def ddl(number: int) -> str:
    """The definition of schema `number`."""
    return f"{_COLUMNS}extra_{number} STRING"


@lru_cache(maxsize=100_000)
def schema(number: int) -> Schema:
    return Schema.of(ddl(number))


def segment_id(number: int) -> str:
    """The id of segment `number`; the SQL in `frame` gives the same."""
    day = number // 1000 % 365
    return f"orders_{number % DATASOURCES:02d}/2024-{day:03d}/part-{number:09d}.parquet"


def segment(number: int, schemas: int) -> Segment:
    return Segment(segment_id(number), schema(number % schemas), num_rows=1_000 + number % 1_000)


def segments(first: int, count: int, schemas: int) -> list[Segment]:
    return [segment(number, schemas) for number in range(first, first + count)]


def frame(spark: SparkSession, first: int, count: int, schemas: int) -> DataFrame:
    """The same segments as a frame that `Catalog.publish` takes."""
    return spark.range(first, first + count, numPartitions=max(2, count // 250_000)).selectExpr(
        f"concat('orders_', lpad(id % {DATASOURCES}, 2, '0'), '/2024-', "
        "lpad(floor(id / 1000) % 365, 3, '0'), '/part-', lpad(id, 9, '0'), '.parquet') "
        "AS segment_id",
        f"concat('{_COLUMNS}extra_', id % {schemas}, ' STRING') AS schema",
        "1000 + id % 1000 AS num_rows",
    )


def counter(start: int = 0) -> Iterator[int]:
    """Numbers that no other call has given out."""
    while True:
        yield start
        start += 1


PLAIN_ROW = pa.schema(
    [
        pa.field("segment_id", pa.string()),
        pa.field("datasource", pa.string()),
        pa.field("fingerprint", pa.string()),
        pa.field("num_rows", pa.int64()),
        pa.field("payload", pa.string()),
    ]
)


def plain_rows(first: int, count: int, schemas: int) -> pa.Table:
    """Segments with their schemas' definitions as one flat table, for stores of other makes."""
    numbers = range(first, first + count)
    ids = [segment_id(number) for number in numbers]
    used = [schema(number % schemas) for number in numbers]
    return pa.table(
        {
            "segment_id": ids,
            "datasource": [name.partition("/")[0] for name in ids],
            "fingerprint": [one.fingerprint for one in used],
            "num_rows": [1_000 + number % 1_000 for number in numbers],
            "payload": [one.payload for one in used],
        },
        schema=PLAIN_ROW,
    )


def files(folder: Path, schemas: Sequence[Schema], count: int) -> list[tuple[Path, Schema]]:
    """Small Parquet files in one folder, written once for each schema and copied."""
    folder.mkdir(parents=True)
    made = []
    for number, schema in enumerate(schemas):
        first = folder / f"{number}-0.parquet"
        pq.write_table(pa.Table.from_pylist([{}, {}], schema=schema.arrow()), first)
        for copy in range(count // len(schemas)):
            path = folder / f"{number}-{copy}.parquet"
            if copy:
                shutil.copyfile(first, path)
            made.append((path, schema))
    return made
