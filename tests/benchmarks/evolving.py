"""Schemas as values, the schema of a datasource, and reading one: cost follows schemas."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from catalog import Catalog, Schema, Segment, compatibility, merge
from tests.benchmarks import data
from tests.benchmarks.ground import Ground
from tests.benchmarks.measure import Work, interleave, ready
from tests.benchmarks.report import Figure, at_most, slower

_KINDS = ("INT", "STRING", "DOUBLE", "TIMESTAMP", "DECIMAL(18, 2)")


def wide(columns: int, first: int = 0) -> Schema:
    """A schema of so many columns, from the column with this number on."""
    names = range(first, first + columns)
    return Schema.of(", ".join(f"column_{n} {_KINDS[n % len(_KINDS)]}" for n in names))


def merging(ground: Ground) -> list[Figure]:
    """Merging many schemas, each with one column more and one less than the last.

    Arrow, whose code is compiled, takes the names at the top level only and reports no conflicts.
    """
    count = ground.scale.schemas
    schemas = [wide(200, number) for number in range(count)]
    arrow = [schema.arrow() for schema in schemas]

    def unify() -> object:
        return cast(Any, pa).unify_schemas(arrow, promote_options="permissive")

    times = interleave(
        {"ours": ready(lambda: merge(*schemas)), "arrow": ready(unify)},
        ground.scale.few_rounds,
        ground.scale.warm(),
    )
    name = f"merge of {count:,} schemas of 200 columns"
    return [slower(name, times["ours"], times["arrow"], None, "pyarrow.unify_schemas")]


def comparing(ground: Ground) -> list[Figure]:
    """Compatibility of two wide schemas, against parsing their definitions."""
    old, new = wide(1_000), wide(1_000, 20)

    def parse() -> object:
        return old.struct(), new.struct()

    times = interleave(
        {"ours": ready(lambda: compatibility(old, new)), "parse": ready(parse)},
        ground.scale.rounds,
        ground.scale.warm(),
    )
    name = "compatibility of 1,000-column schemas"
    return [slower(name, times["ours"], times["parse"], at_most(3), "reading both definitions")]


def datasource(ground: Ground) -> list[Figure]:
    """One more segment: the poll that brings it and the schema with its columns, at two sizes."""

    def after_one_more(catalog: Catalog) -> Work:
        cache = catalog.cache()
        cache.datasource_schema("orders_00")

        def prepare() -> Callable[[], object]:
            number = next(ground.fresh) * data.DATASOURCES
            catalog.publish([data.segment(number, ground.scale.schemas)])

            def follow() -> object:
                cache.poll()
                return cache.datasource_schema("orders_00").columns

            return follow

        return prepare

    times = interleave(
        {"large": after_one_more(ground.large), "small": after_one_more(ground.small)},
        ground.scale.few_rounds * 2,
        ground.scale.warm(),
    )
    name = f"poll and datasource schema after one segment, {ground.scale.many:,} in the catalog"
    against = f"{ground.scale.small:,} in it"
    return [slower(name, times["large"], times["small"], at_most(1.5), against)]


def reading(ground: Ground) -> list[Figure]:
    """Planning a read of many files, against Spark, which opens each of them."""
    schemas = min(50, ground.scale.schemas)
    count = 10_000 if ground.scale.judged else 100
    folder = Path(ground.path("files"))
    segments = _files(folder, schemas, count)
    catalog = ground.catalog("read")
    catalog.publish(segments)
    paths = [str(segment.location) for segment in segments]
    spark = ground.spark

    def merge_schema(*where: str) -> Callable[[], object]:
        return lambda: spark.read.option("mergeSchema", "true").parquet(*where).schema

    known = catalog.read("wide").schema
    times = interleave(
        {
            "ours": ready(lambda: catalog.read("wide").schema),
            "bare": ready(lambda: spark.read.schema(known).parquet(*paths).schema),
            "files": ready(merge_schema(*paths)),
            "folder": ready(merge_schema(str(folder))),
        },
        2 * ground.scale.few_rounds,
        ground.scale.warm(),
    )
    name = f"planning a read of {count:,} files of {schemas} schemas"
    return [
        slower(name, times["ours"], times["files"], at_most(0.2), "mergeSchema on these files"),
        slower(name, times["ours"], times["folder"], at_most(0.2), "mergeSchema on their folder"),
        slower(name, times["ours"], times["bare"], None, "naming them with a schema at hand"),
    ]


def _files(folder: Path, schemas: int, count: int) -> list[Segment]:
    """Segments of small files in one folder."""
    return [
        Segment(f"wide/{path.stem}", schema, 2, location=str(path))
        for path, schema in data.files(folder, [wide(200, n) for n in range(schemas)], count)
    ]
