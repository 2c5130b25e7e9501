"""Spark with two plain Delta tables and a MERGE into each: what most would write themselves."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from catalog.delta.failures import Failure, classify
from catalog.delta.session import own_session, release, tune, tuning
from tests.benchmarks.peers.store import (
    ANSWER_COLUMNS,
    POLLED_COLUMNS,
    SCHEMA_COLUMNS,
    SEGMENT_COLUMNS,
    Connection,
    Peer,
    answered,
    retried,
    schemas_in,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES = {
    "schemas": "fingerprint STRING NOT NULL, payload STRING NOT NULL",
    "segments": "segment_id STRING NOT NULL, datasource STRING NOT NULL, "
    "fingerprint STRING NOT NULL, num_rows BIGINT NOT NULL",
}
TRIES = 10

# Above it statements get the settings for large ones. The number is chosen, as Strata's is.
BULK = 10_000


class TwoMerges(Peer):
    name = "Spark, two MERGEs"
    atomic = "no"
    # Hadoop's local file system closes files without a sync.
    durable = "page cache"

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._folder = Path()

    def missing(self) -> str | None:
        return None

    def version(self) -> str:
        return f"delta-spark {metadata.version('delta-spark')}, Spark {self._spark.version}"

    def start(self, folder: Path) -> None:
        self._folder = folder
        for name, columns in TABLES.items():
            self._spark.sql(
                f"CREATE TABLE delta.`{folder / name}` ({columns}) USING delta "
                "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
            )

    def stop(self) -> None:
        pass

    def connect(self) -> TwoMergesConnection:
        return TwoMergesConnection(self._spark, self._folder)


class TwoMergesConnection(Connection):
    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        # Writes have the settings that Strata has found to be quick, so that only the work differs.
        self._writing = own_session(spark)
        self._tuning = tuning(spark)
        self._folder = folder

    def publish(self, rows: pa.Table) -> None:
        tune(self._writing, self._tuning.large if rows.num_rows > BULK else self._tuning.small)
        # Schemas first: a segment never points at one that is not there yet.
        self._merge("schemas", schemas_in(rows), "fingerprint")
        self._merge("segments", rows.select(SEGMENT_COLUMNS), "segment_id")

    def _merge(self, table: str, rows: pa.Table, key: str) -> None:
        source = self._writing.createDataFrame(rows)

        def run() -> None:
            from delta.tables import DeltaTable

            (
                DeltaTable.forPath(self._writing, str(self._folder / table))
                .alias("t")
                .merge(source.alias("s"), f"t.{key} = s.{key}")
                .whenNotMatchedInsertAll()
                .execute()
            )

        # Any two MERGEs into one table conflict: each has read what the other adds to.
        retried(run, lambda error: classify(error) is Failure.CONFLICT, TRIES)

    def load(self) -> int:
        self._table("schemas").select(SCHEMA_COLUMNS).toArrow()
        return self._table("segments").select(POLLED_COLUMNS).toArrow().num_rows

    def position(self) -> Any:
        return self._version("schemas"), self._version("segments")

    def changes(self, position: Any) -> tuple[Any, int]:
        until = self.position()
        self._changed("schemas", SCHEMA_COLUMNS, position[0], until[0])
        return until, self._changed("segments", POLLED_COLUMNS, position[1], until[1])

    def lookup(self, ids: Sequence[str]) -> list[str | None]:
        asked = self._spark.createDataFrame(pa.table({"segment_id": pa.array(ids, pa.string())}))
        found = self._table("segments").join(asked, "segment_id", "left_semi")
        return answered(ids, found.select(ANSWER_COLUMNS).toArrow())

    def duplicates(self) -> int:
        return self._table("schemas").groupBy("fingerprint").count().where("count > 1").count()

    def segments(self) -> int:
        return self._table("segments").count()

    def settle(self) -> None:
        table = f"delta.`{self._folder / 'segments'}`"
        self._spark.sql(f"OPTIMIZE {table} ZORDER BY (segment_id)")

    def close(self) -> None:
        release(self._writing)

    def _table(self, name: str) -> DataFrame:
        return self._spark.read.format("delta").load(str(self._folder / name))

    def _version(self, name: str) -> int:
        history = self._spark.sql(f"DESCRIBE HISTORY delta.`{self._folder / name}` LIMIT 1")
        return int(history.collect()[0]["version"])

    def _changed(self, name: str, columns: Sequence[str], after: int, until: int) -> int:
        if after == until:
            return 0
        feed = (
            self._spark.read.format("delta")
            .option("readChangeFeed", "true")
            .option("startingVersion", after + 1)
            .option("endingVersion", until)
            .load(str(self._folder / name))
        )
        return feed.select(*columns, "_change_type").toArrow().num_rows
