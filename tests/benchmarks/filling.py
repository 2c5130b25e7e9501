"""Schemas that nobody published: reading footers, and filling a catalog with what they say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

from catalog import Segment
from catalog.files.footer import read_footer, read_footers
from catalog.files.paths import place_of
from catalog.files.storage import Files
from tests.benchmarks import data
from tests.benchmarks.evolving import wide
from tests.benchmarks.ground import Ground
from tests.benchmarks.measure import interleave, ready
from tests.benchmarks.report import Figure, at_least, quicker, slower

_SCHEMAS = 20


def _files(ground: Ground) -> list[str]:
    count = 20_000 if ground.scale.judged else 100
    schemas = [wide(20, number) for number in range(_SCHEMAS)]
    return [str(path) for path, _ in data.files(Path(ground.path("footers")), schemas, count)]


def footers(ground: Ground) -> list[Figure]:
    """Footers of many files by the executors, against a loop in one process."""
    paths = _files(ground)
    places, files = [place_of(path) for path in paths], Files()

    def alone() -> object:
        return [read_footer(path, "parquet", files) for path in paths]

    def bare() -> object:
        opened = (pq.ParquetFile(path) for path in paths)
        return [(file.schema_arrow, file.metadata.num_rows) for file in opened]

    times = interleave(
        {
            "ours": ready(lambda: read_footers(ground.spark, places, files)),
            "loop": ready(alone),
            "bare": ready(bare),
        },
        ground.scale.few_rounds * 2,
        ground.scale.warm(),
    )
    name = f"footers of {len(paths):,} files in a second"
    rate = len(paths) / times["ours"].median
    plain = quicker(name, times["ours"], times["bare"], at_least(1.6), "a plain pyarrow loop")
    ground.say(f"{rate:,.0f} footers a second on the executors")
    same = "our own reading in one loop, seconds"
    return [plain, slower(name, times["ours"], times["loop"], None, same)]


def backfill(ground: Ground) -> list[Figure]:
    """Finding and storing the schemas of many segments, against one look by Spark at the files."""
    paths = _files(ground)
    segments = [Segment(f"files/{number}", location=path) for number, path in enumerate(paths)]
    spark = ground.spark

    def prepare() -> Callable[[], object]:
        catalog = ground.catalog("backfill")
        catalog.publish(segments)
        return catalog.backfill

    def merge_schema() -> object:
        return spark.read.option("mergeSchema", "true").parquet(*paths).schema

    times = interleave(
        {"ours": prepare, "mergeSchema": ready(merge_schema)},
        ground.scale.few_rounds,
        ground.scale.warm(),
    )
    name = f"backfill of {len(paths):,} segments"
    against = "mergeSchema on the same files"
    return [slower(name, times["ours"], times["mergeSchema"], None, against)]
