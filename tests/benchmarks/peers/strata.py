"""Strata itself, behind the interface of the others."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from catalog import Catalog, Schema, Segment, Settings
from tests.benchmarks.peers.store import Connection, Peer, schemas_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from catalog.cache.cache import Cache

# Above it a frame is published, not a list. The number is chosen, not measured.
BULK = 100_000


class Strata(Peer):
    name = "Strata"
    atomic = "yes"
    # Hadoop's local file system closes files without a sync.
    durable = "page cache"
    answers = "memory"

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._folder = Path()

    def missing(self) -> str | None:
        return None

    def version(self) -> str:
        return f"strata-catalog {metadata.version('strata-catalog')}, Spark {self._spark.version}"

    def start(self, folder: Path) -> None:
        # The first connection creates the catalog.
        self._folder = folder

    def stop(self) -> None:
        pass

    def connect(self) -> StrataConnection:
        # A catalog for each connection: calls of one catalog would share a commit, and not race.
        return StrataConnection(self._spark, self._folder)


class StrataConnection(Connection):
    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._catalog = Catalog.open(spark, folder, settings=Settings(file_lock=True))
        self._cache: Cache | None = None

    def publish(self, rows: pa.Table) -> None:
        schemas = {
            one["fingerprint"]: Schema.from_payload(one["payload"])
            for one in schemas_in(rows).to_pylist()
        }
        if rows.num_rows > BULK:
            self._catalog.publish(self._spark.createDataFrame(_described(rows, schemas)))
            return
        columns = (
            rows.column(name).to_pylist() for name in ("segment_id", "fingerprint", "num_rows")
        )
        self._catalog.publish(
            [
                Segment(segment_id, schemas[fingerprint], num_rows)
                for segment_id, fingerprint, num_rows in zip(*columns, strict=True)
            ]
        )

    def load(self) -> int:
        self._cache = self._catalog.cache()
        return len(self._cache.snapshot)

    def position(self) -> Any:
        if self._cache is None:
            self.load()
        assert self._cache is not None
        return self._cache.version

    def changes(self, position: Any) -> tuple[Any, int]:
        # The cache knows where it stands.
        if self._cache is None or position != self._cache.version:
            raise ValueError(f"the cache of this connection does not stand at {position}")
        polled = self._cache.poll()
        if polled.reloaded:
            raise RuntimeError("the poll read everything anew")
        return polled.after, polled.added + polled.removed + polled.changed

    def lookup(self, ids: Sequence[str]) -> list[str | None]:
        assert self._cache is not None, "load() comes first"
        found = self._cache.lookup(ids).column("fingerprint")
        answers: list[str | None] = found.cast(pa.string()).to_pylist()
        return answers

    def duplicates(self) -> int:
        return self._catalog.schemas().groupBy("fingerprint").count().where("count > 1").count()

    def segments(self) -> int:
        return self._catalog.segments().count()

    def settle(self) -> None:
        self._spark.sql(f"OPTIMIZE {self._catalog.location.table('entries')} ZORDER BY (key)")

    def close(self) -> None:
        self._catalog.close()


def _described(rows: pa.Table, schemas: dict[str, Schema]) -> pa.Table:
    """The columns that `Catalog.publish` takes of a frame."""
    encoded = rows.column("fingerprint").combine_chunks().dictionary_encode()
    texts = [_shortest(schemas[str(one)]) for one in encoded.dictionary.to_pylist()]
    described = pa.array(texts, pa.string())
    return pa.table(
        {
            "segment_id": rows.column("segment_id"),
            "schema": described.take(encoded.indices),
            "num_rows": rows.column("num_rows"),
        }
    )


def _shortest(schema: Schema) -> str:
    """The definition as DDL where that says everything, as Spark's JSON otherwise."""
    return schema.ddl if Schema.of(schema.ddl) == schema else schema.json
