"""What benchmarks stand on: a session, a folder, catalogs of known sizes, plain tables beside."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from catalog import Catalog
from catalog.commit.rows import ENTRY
from catalog.delta.session import own_session, tune, tuning
from tests.benchmarks import data
from tests.benchmarks.scale import Scale

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Ground:
    """One run's session and folder; catalogs are built when they are first asked for."""

    def __init__(
        self, spark: SparkSession, folder: Path, scale: Scale, say: Callable[[str], None]
    ) -> None:
        self.spark = spark
        self.folder = folder
        self.scale = scale
        self.say = say
        self._names = itertools.count()
        # Ids beyond all that the catalogs were built with.
        self.fresh: Iterator[int] = data.counter(500_000_000)

    def path(self, name: str) -> str:
        """A new path in the run's folder."""
        return str(self.folder / f"{name}_{next(self._names)}")

    def catalog(self, name: str, segments: int = 0) -> Catalog:
        """A new catalog, with so many segments of `scale.schemas` schemas."""
        catalog = Catalog.open(self.spark, self.path(name), actor="bench")
        if segments and not self.scale.judged:
            catalog.publish(data.segments(0, segments, self.scale.schemas))
        elif segments:
            began = time.perf_counter()
            catalog.publish(data.frame(self.spark, 0, segments, self.scale.schemas))
            self.optimize(catalog)
            took = time.perf_counter() - began
            self.say(f"built a catalog of {segments:,} segments in {took:.0f} s")
        return catalog

    def optimize(self, catalog: Catalog) -> None:
        """Compacts the table, sorted by key within each partition."""
        self.spark.sql(f"OPTIMIZE {catalog.location.table('entries')} ZORDER BY (key)").collect()

    @cached_property
    def large(self) -> Catalog:
        """The catalog of `scale.many` segments."""
        return self.catalog("large", self.scale.many)

    @cached_property
    def small(self) -> Catalog:
        """The catalog of `scale.small` segments."""
        return self.catalog("small", self.scale.small)


class PlainTable:
    """A Delta table as people make them, written by a bare insert-only MERGE.

    Its session has the settings of the catalog's own, so that only the work differs. With `path`
    it is one more writer of a table that is there.
    """

    def __init__(
        self, ground: Ground, session: SparkSession | None = None, path: str | None = None
    ) -> None:
        self.path = path or ground.path("plain")
        self.session = session or own_session(ground.spark)
        self._tuning = tuning(ground.spark)
        if path is None:
            empty = self.session.createDataFrame(ENTRY.empty_table())
            empty.write.format("delta").save(self.path)

    def merge(self, rows: pa.Table, bulk: bool = False) -> None:
        """Inserts the rows whose keys are not there."""
        tune(self.session, self._tuning.large if bulk else self._tuning.small)
        self.session.createDataFrame(rows).createOrReplaceTempView("source")
        self.session.sql(
            f"MERGE INTO delta.`{self.path}` AS t USING source AS s "
            "ON t.kind = s.kind AND t.key = s.key WHEN NOT MATCHED THEN INSERT *"
        ).collect()


class TwoTables:
    """The usual way: schemas in one table, segments in another, one MERGE each."""

    def __init__(self, ground: Ground, like: TwoTables | None = None) -> None:
        session = own_session(ground.spark)
        self.schemas = PlainTable(ground, session, like and like.schemas.path)
        self.segments = PlainTable(ground, session, like and like.segments.path)

    def merge(self, schemas: pa.Table, segments: pa.Table) -> None:
        """Schemas first: a segment must never lead to nothing."""
        self.schemas.merge(schemas)
        self.segments.merge(segments)
