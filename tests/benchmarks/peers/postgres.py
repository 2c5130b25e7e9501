"""PostgreSQL: a server of its own on loopback, from the packages of the system."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as csv

from tests.benchmarks.peers import server
from tests.benchmarks.peers.store import (
    POLLED_COLUMNS,
    SCHEMA_COLUMNS,
    SEGMENT_COLUMNS,
    Connection,
    Peer,
    schemas_in,
)

if TYPE_CHECKING:
    import psycopg

# fsync and synchronous_commit stay on, as they are by default. The rest is what everybody sets who
# has more than the 256 MB that the defaults are meant for.
SETTINGS = {
    "shared_buffers": "1GB",
    "work_mem": "64MB",
    "maintenance_work_mem": "256MB",
    "max_wal_size": "4GB",
    "random_page_cost": "1.1",
    "jit": "off",
}

# xid is the transaction that wrote the row. Its order is not the order of commits, and a sequence
# would have the same fault: a row with a smaller number may become visible after one with a larger
# number has been polled. So a poll ends before the oldest transaction that is still running.
# There is no foreign key: with one, a bulk publish takes nearly twice as long, and the others have
# none.
TABLES = """
CREATE TABLE schemas (
    fingerprint text PRIMARY KEY,
    payload     text NOT NULL,
    xid         xid8 NOT NULL DEFAULT pg_current_xact_id()
);
CREATE TABLE segments (
    segment_id  text PRIMARY KEY,
    datasource  text NOT NULL,
    fingerprint text NOT NULL,
    num_rows    bigint NOT NULL,
    xid         xid8 NOT NULL DEFAULT pg_current_xact_id()
);
CREATE INDEX ON schemas (xid);
CREATE INDEX ON segments (xid);
"""

# Rows are inserted in the order of their keys: two writers that wait for each other's keys in
# different orders would be a deadlock. Arrays travel in binary (%b): as text, every quote in a
# definition is escaped, which takes fifty times as long.
INSERT_SCHEMAS = """
INSERT INTO schemas (fingerprint, payload)
SELECT * FROM unnest(%(fingerprints)b::text[], %(payloads)b::text[]) ORDER BY 1
ON CONFLICT DO NOTHING
"""
PUBLISH = f"""
WITH used AS ({INSERT_SCHEMAS})
INSERT INTO segments (segment_id, datasource, fingerprint, num_rows)
SELECT * FROM unnest(%(segment_id)b::text[], %(datasource)b::text[], %(fingerprint)b::text[],
                     %(num_rows)b::bigint[]) ORDER BY 1
ON CONFLICT DO NOTHING
"""
STAGE = """
CREATE TEMP TABLE staged (segment_id text, datasource text, fingerprint text, num_rows bigint)
ON COMMIT DELETE ROWS
"""
MERGE_STAGED = f"""
INSERT INTO segments ({", ".join(SEGMENT_COLUMNS)})
SELECT {", ".join(SEGMENT_COLUMNS)} FROM staged ORDER BY segment_id ON CONFLICT DO NOTHING
"""

BETWEEN = "WHERE xid >= %s::xid8 AND xid < %s::xid8"

# From here on COPY: it is about even with arrays here, and quicker at 100,000.
BULK = 5_000


class PostgreSQL(Peer):
    name = "PostgreSQL"
    atomic = "yes"
    durable = "fsync"

    def __init__(self) -> None:
        self._server: server.Server | None = None

    def missing(self) -> str | None:
        if importlib.util.find_spec("psycopg") is None:
            return "the Python package psycopg is not installed"
        return server.lacking()

    def version(self) -> str:
        return server.version()

    def start(self, folder: Path) -> None:
        self._server = server.Server(folder, SETTINGS)
        self._server.start()
        with _connect(self._server.conninfo) as connection:
            connection.execute(TABLES, prepare=False)

    def stop(self) -> None:
        running, self._server = self._server, None
        if running is not None:
            running.stop()

    def connect(self) -> PostgreSQLConnection:
        assert self._server is not None
        return PostgreSQLConnection(_connect(self._server.conninfo))


class PostgreSQLConnection(Connection):
    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        connection.execute(STAGE)

    def publish(self, rows: pa.Table) -> None:
        used = schemas_in(rows)
        schemas = {
            "fingerprints": used.column("fingerprint").to_pylist(),
            "payloads": used.column("payload").to_pylist(),
        }
        segments = rows.select(SEGMENT_COLUMNS)
        if rows.num_rows < BULK:
            # One statement is one transaction and one round trip.
            self._connection.execute(PUBLISH, {**schemas, **segments.to_pydict()})
            return
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.execute(INSERT_SCHEMAS, schemas)
            columns = ", ".join(SEGMENT_COLUMNS)
            with cursor.copy(f"COPY staged ({columns}) FROM STDIN (FORMAT csv)") as copy:
                copy.write(_as_csv(segments))
            cursor.execute(MERGE_STAGED)

    def load(self) -> int:
        with self._connection.transaction():
            # Both tables as of one moment.
            self._connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            self._read("schemas", SCHEMA_COLUMNS)
            return self._read("segments", POLLED_COLUMNS).num_rows

    def position(self) -> Any:
        query = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text"
        return self._one(query)

    def changes(self, position: Any) -> tuple[Any, int]:
        # What is older than the oldest running transaction is final: later statements see it too.
        until = self.position()
        self._read("schemas", SCHEMA_COLUMNS, BETWEEN, position, until)
        return until, self._read("segments", POLLED_COLUMNS, BETWEEN, position, until).num_rows

    def lookup(self, ids: Sequence[str]) -> list[str | None]:
        query = "SELECT segment_id, fingerprint FROM segments WHERE segment_id = ANY(%b::text[])"
        with self._connection.cursor(binary=True) as cursor:
            found: dict[str, str] = dict(cursor.execute(query, [list(ids)]).fetchall())
        return [found.get(one) for one in ids]

    def duplicates(self) -> int:
        # The key forbids them; counted all the same.
        twice = "SELECT fingerprint FROM schemas GROUP BY fingerprint HAVING count(*) > 1"
        return int(self._one(f"SELECT count(*) FROM ({twice}) AS twice"))

    def segments(self) -> int:
        return int(self._one("SELECT count(*) FROM segments"))

    def settle(self) -> None:
        # Autovacuum does it within a minute or two.
        self._connection.execute("VACUUM (ANALYZE) schemas, segments")

    def close(self) -> None:
        self._connection.close()

    def _read(
        self, table: str, columns: Sequence[str], condition: str = "", *values: Any
    ) -> pa.Table:
        # One row of arrays: a row for each segment takes the client longer, by SELECT and more so
        # by psycopg's COPY.
        arrays = ", ".join(f"coalesce(array_agg({column}), '{{}}')" for column in columns)
        query = f"SELECT {arrays} FROM {table} {condition}"
        with self._connection.cursor(binary=True) as cursor:
            row = cursor.execute(query, values).fetchone()
        assert row is not None
        return pa.table(dict(zip(columns, row, strict=True)))

    def _one(self, query: str) -> Any:
        row = self._connection.execute(query).fetchone()
        assert row is not None
        return row[0]


def _connect(conninfo: str) -> psycopg.Connection:
    import psycopg

    # Statements are prepared at once, as a service that runs for days has them.
    return psycopg.connect(conninfo, autocommit=True, prepare_threshold=0)


def _as_csv(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    csv.write_csv(table, sink, csv.WriteOptions(include_header=False))
    return sink.getvalue()
