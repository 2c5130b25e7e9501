"""delta-rs: two Delta tables without Spark, a MERGE into each."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tests.benchmarks.peers.store import (
    ANSWER_COLUMNS,
    POLLED_COLUMNS,
    SCHEMA_COLUMNS,
    SCHEMAS,
    SEGMENT_COLUMNS,
    SEGMENTS,
    Connection,
    Peer,
    answered,
    retried,
    schemas_in,
)

if TYPE_CHECKING:
    from deltalake import DeltaTable


class DeltaRs(Peer):
    """Takes part as it comes, or with a loop of its own around each MERGE.

    The retries that are built in repeat a commit that lost the race for a version; they give up
    when the other commit added rows to a table that this one has read, as every MERGE has.
    """

    atomic = "no"
    # Seen with strace: files are written under another name and renamed, never synced.
    durable = "page cache"

    def __init__(self, tries: int = 1) -> None:
        self.name = "delta-rs" if tries == 1 else f"delta-rs, up to {tries} tries"
        self._tries = tries
        self._folder = Path()

    def missing(self) -> str | None:
        if importlib.util.find_spec("deltalake") is None:
            return "the Python package deltalake is not installed"
        return None

    def version(self) -> str:
        return f"deltalake {metadata.version('deltalake')}"

    def start(self, folder: Path) -> None:
        from deltalake import DeltaTable

        self._folder = folder
        feed = {"delta.enableChangeDataFeed": "true"}
        for name, schema in (("schemas", SCHEMAS), ("segments", SEGMENTS)):
            DeltaTable.create(str(folder / name), schema, configuration=feed)

    def stop(self) -> None:
        pass

    def connect(self) -> DeltaRsConnection:
        return DeltaRsConnection(self._folder, self._tries)


class DeltaRsConnection(Connection):
    def __init__(self, folder: Path, tries: int) -> None:
        from deltalake import DeltaTable

        self._schemas = DeltaTable(str(folder / "schemas"))
        self._segments = DeltaTable(str(folder / "segments"))
        self._tries = tries

    def publish(self, rows: pa.Table) -> None:
        # Schemas first: a segment never points at one that is not there yet.
        self._merge(self._schemas, schemas_in(rows), "fingerprint")
        self._merge(self._segments, rows.select(SEGMENT_COLUMNS), "segment_id")

    def _merge(self, table: DeltaTable, source: pa.Table, key: str) -> None:
        from deltalake.exceptions import CommitFailedError

        def run() -> None:
            table.update_incremental()
            (
                table.merge(source, f"t.{key} = s.{key}", source_alias="s", target_alias="t")
                .when_not_matched_insert_all()
                .execute()
            )

        retried(run, lambda error: isinstance(error, CommitFailedError), self._tries)

    def load(self) -> int:
        self._read(self._schemas, SCHEMA_COLUMNS)
        return self._read(self._segments, POLLED_COLUMNS).num_rows

    def position(self) -> Any:
        self._schemas.update_incremental()
        self._segments.update_incremental()
        return self._schemas.version(), self._segments.version()

    def changes(self, position: Any) -> tuple[Any, int]:
        until = self.position()
        _changed(self._schemas, position[0], until[0], SCHEMA_COLUMNS)
        return until, _changed(self._segments, position[1], until[1], POLLED_COLUMNS)

    def lookup(self, ids: Sequence[str]) -> list[str | None]:
        # A query takes no Arrow table to join with, and with 100,000 literals the process ended
        # without a message. So both columns are read, which took less time than pyarrow's filter.
        table = _plain(self._read(self._segments, ANSWER_COLUMNS))
        asked = pa.array(ids, pa.string())
        return answered(ids, table.filter(pc.is_in(table.column("segment_id"), asked)))

    def duplicates(self) -> int:
        table = _plain(self._read(self._schemas, ["fingerprint"]))
        return sum(count > 1 for count in Counter(table.column("fingerprint").to_pylist()).values())

    def segments(self) -> int:
        self._segments.update_incremental()
        return int(self._segments.count())

    def settle(self) -> None:
        self._segments.update_incremental()
        self._segments.optimize.z_order(["segment_id"])

    def close(self) -> None:
        pass

    def _read(self, table: DeltaTable, columns: Sequence[str]) -> pa.Table:
        from deltalake import QueryBuilder

        table.update_incremental()
        query = QueryBuilder().register("t", table)
        return pa.table(query.execute(f"SELECT {', '.join(columns)} FROM t").read_all())


def _changed(table: DeltaTable, after: int, until: int, columns: Sequence[str]) -> int:
    if after == until:
        return 0
    feed = table.load_cdf(after + 1, until, columns=[*columns, "_change_type"])
    return pa.table(feed.read_all()).num_rows


def _plain(table: pa.Table) -> pa.Table:
    """Strings in place of string views, which pyarrow cannot filter."""
    return table.cast(pa.schema([(name, pa.string()) for name in table.column_names]))
