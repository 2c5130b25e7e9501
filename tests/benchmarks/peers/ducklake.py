"""DuckLake: Parquet files with a catalog in a DuckDB file, from the packaged extension."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.benchmarks.peers.store import (
    POLLED_COLUMNS,
    SCHEMA_COLUMNS,
    SEGMENT_COLUMNS,
    Connection,
    Peer,
    answered,
    schemas_in,
)

if TYPE_CHECKING:
    import duckdb

EXTENSION = "duckdb_extension_ducklake"

TABLES = (
    "CREATE TABLE lake.schemas (fingerprint VARCHAR NOT NULL, payload VARCHAR NOT NULL)",
    "CREATE TABLE lake.segments (segment_id VARCHAR NOT NULL, datasource VARCHAR NOT NULL, "
    "fingerprint VARCHAR NOT NULL, num_rows BIGINT NOT NULL)",
)

# DuckLake has no keys that it would enforce, so absence is checked by the statement. A MERGE that
# only inserts does the same and takes longer. Neither notices rows that others insert meanwhile:
# two snapshots that insert into one table are no conflict to DuckLake.
INSERT_SCHEMAS = (
    "INSERT INTO lake.schemas SELECT fingerprint, payload FROM used "
    "ANTI JOIN lake.schemas USING (fingerprint)"
)
INSERT_SEGMENTS = (
    "INSERT INTO lake.segments SELECT segment_id, datasource, fingerprint, num_rows FROM rows "
    "ANTI JOIN lake.segments USING (segment_id)"
)

# What snapshots call their changes.
ONLY_INSERTS = {"tables_inserted_into", "inlined_insert"}


class DuckLake(Peer):
    name = "DuckLake"
    atomic = "yes"
    # Seen with strace: the catalog's log is synced by each commit, the Parquet files never are. Up
    # to ten rows stand in the catalog itself.
    durable = "fsync of its catalog, page cache for files"

    def __init__(self) -> None:
        self._database: duckdb.DuckDBPyConnection | None = None

    def missing(self) -> str | None:
        for package in ("duckdb", EXTENSION):
            if importlib.util.find_spec(package) is None:
                return f"the Python package {package.replace('_', '-')} is not installed"
        if not _extension().is_file():
            return f"the packaged extension is for another version of {self.version()}"
        return None

    def version(self) -> str:
        import duckdb

        return f"duckdb {duckdb.__version__}"

    def start(self, folder: Path) -> None:
        import duckdb

        # The extension is loaded from its package: nothing is fetched, nothing kept in the home.
        self._database = database = duckdb.connect(
            config={
                "autoinstall_known_extensions": False,
                "extension_directory": str(folder / "extensions"),
            }
        )
        database.execute(f"LOAD {_literal(_extension())}")
        database.execute(
            f"ATTACH {_literal(f'ducklake:{folder}/catalog.ducklake')} AS lake "
            f"(DATA_PATH {_literal(folder / 'data')})"
        )
        for statement in TABLES:
            database.execute(statement)

    def stop(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def connect(self) -> DuckLakeConnection:
        # A DuckDB file is open in one process only, so all writers are connections of this one.
        assert self._database is not None
        return DuckLakeConnection(self._database.cursor())


class DuckLakeConnection(Connection):
    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def publish(self, rows: pa.Table) -> None:
        self._connection.register("used", schemas_in(rows))
        self._connection.register("rows", rows.select(SEGMENT_COLUMNS))
        self._connection.begin()
        try:
            self._connection.execute(INSERT_SCHEMAS)
            self._connection.execute(INSERT_SEGMENTS)
        except BaseException:
            self._connection.rollback()
            raise
        # A commit that fails has ended the transaction already.
        self._connection.commit()

    def load(self) -> int:
        self._connection.begin()
        try:
            self._read(f"SELECT {', '.join(SCHEMA_COLUMNS)} FROM lake.schemas")
            return self._read(f"SELECT {', '.join(POLLED_COLUMNS)} FROM lake.segments").num_rows
        finally:
            self._connection.rollback()

    def position(self) -> Any:
        return self._one("SELECT id FROM lake.current_snapshot()")

    def changes(self, position: Any) -> tuple[Any, int]:
        rows = self._connection.execute(
            "SELECT snapshot_id, map_keys(changes) FROM lake.snapshots() WHERE snapshot_id > ?",
            [position],
        ).fetchall()
        if not rows:
            return position, 0
        # The feed of all changes takes five times as long as that of the insertions.
        kinds = {kind for _, keys in rows for kind in keys}
        feed = "table_insertions" if kinds <= ONLY_INSERTS else "table_changes"
        until = max(number for number, _ in rows)
        between = f"{int(position) + 1}, {until}"
        self._read(f"SELECT {', '.join(SCHEMA_COLUMNS)} FROM lake.{feed}('schemas', {between})")
        changed = self._read(
            f"SELECT {', '.join(POLLED_COLUMNS)} FROM lake.{feed}('segments', {between})"
        )
        return until, changed.num_rows

    def lookup(self, ids: Sequence[str]) -> list[str | None]:
        self._connection.register("asked", pa.table({"segment_id": ids}))
        found = self._read(
            "SELECT segment_id, fingerprint FROM lake.segments SEMI JOIN asked USING (segment_id)"
        )
        return answered(ids, found)

    def duplicates(self) -> int:
        return self._read(
            "SELECT fingerprint FROM lake.schemas GROUP BY fingerprint HAVING count(*) > 1"
        ).num_rows

    def segments(self) -> int:
        return int(self._one("SELECT count(*) FROM lake.segments"))

    def settle(self) -> None:
        self._connection.execute("CALL ducklake_merge_adjacent_files('lake')")

    def close(self) -> None:
        self._connection.close()

    def _read(self, query: str) -> pa.Table:
        return self._connection.execute(query).to_arrow_table()

    def _one(self, query: str) -> Any:
        row = self._connection.execute(query).fetchone()
        assert row is not None
        return row[0]


def _extension() -> Path:
    """The file of the extension: each release of DuckDB loads its own only."""
    import duckdb

    package = importlib.util.find_spec(EXTENSION)
    assert package is not None
    assert package.origin is not None
    folder = Path(package.origin).parent / "extensions" / f"v{duckdb.__version__}"
    return folder / "ducklake.duckdb_extension"


def _literal(text: str | Path) -> str:
    return "'" + str(text).replace("'", "''") + "'"
