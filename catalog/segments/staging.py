"""The staging table: a frame is written to it once, checked there, and merged from there.

A frame that is read twice may differ the second time, and its session may have settings that
change what a write does. Rows of a Delta table, unlike files, can be removed by SQL on any storage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.commit.committer import collision
from catalog.commit.rows import STAGED_DIGEST_SQL
from catalog.contracts.enforcement import offences_of
from catalog.contracts.model import Terms
from catalog.contracts.store import group_segments
from catalog.delta.layout import TABLE_PROPERTY, properties_sql
from catalog.delta.location import Location, TableLock
from catalog.delta.session import Tuning, release, tune
from catalog.delta.statements import Bounds, Partition, listed
from catalog.delta.store import Store
from catalog.delta.tables import create_table, ours_exists
from catalog.delta.writer import Writer
from catalog.environment import Deadline, Environment
from catalog.errors import DuplicateSegment, InvalidSegment
from catalog.model import Kind, Offence
from catalog.schema import Schema
from catalog.schema.names import literal
from catalog.segments.described import INVALID, STAGED_DDL, Describe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

STAGING = "staging"

# A batch that was staged longer ago than this was left behind.
_LEFT = "INTERVAL 2 DAYS"

_DDL = f"batch STRING, staged_at TIMESTAMP, digest STRING, {STAGED_DDL}"
_PROPERTIES = {
    TABLE_PROPERTY: STAGING,
    "delta.checkpointInterval": "100",
    "delta.dataSkippingNumIndexedCols": "0",
    "delta.setTransactionRetentionDuration": "interval 7 days",
}


class Staging:
    """Batches of rows on their way into the catalog; each is removed when it is merged."""

    def __init__(
        self,
        open_session: Callable[[], SparkSession],
        location: Location,
        lock: TableLock,
        tuning: Tuning,
    ) -> None:
        self._open_session = open_session
        self._location = location
        self._relation = location.table(STAGING)
        self._lock = lock
        self._tuning = tuning

    @cached_property
    def _session(self) -> SparkSession:
        """A session of its own: its statements are large, while commits may be small."""
        session = self._open_session()
        tune(session, self._tuning.large)
        return session

    def writer(self, environment: Environment) -> Writer | None:
        """A writer for maintenance of the table, if there is one."""
        if not ours_exists(self._session, self._relation, STAGING):
            return None
        store = Store(self._session, self._location, STAGING)
        return Writer(store, self._lock, environment, self._tuning)

    def close(self) -> None:
        """Ends the session, if one was opened."""
        if "_session" in self.__dict__:
            release(self._session)

    @staticmethod
    def lock_file_of(entries: Path | None) -> TableLock:
        """The lock for the staging table of a catalog whose table is at a local path."""
        return TableLock.of(None if entries is None else entries.parent / STAGING)

    def write(self, frame: DataFrame, batch: str, buckets: int, deadline: Deadline) -> None:
        """Describes the frame's rows on the executors, and stores them as a batch."""
        rows = frame.mapInArrow(Describe(buckets), STAGED_DDL).selectExpr(
            f"{literal(batch)} AS batch",
            "current_timestamp() AS staged_at",
            "CASE kind WHEN 'schema' THEN schema_digest "
            f"WHEN 'segment' THEN {STAGED_DIGEST_SQL} END AS digest",
            "*",
        )
        # Options of the write win over settings of the frame's session; without them a txnAppId
        # that was left there would make Delta skip the write.
        writer = (
            rows.write.format("delta")
            .mode("append")
            .option("txnAppId", batch)
            .option("txnVersion", "1")
            .option("userMetadata", "")
        )
        with self._lock.held(deadline), deadline.not_counting():
            create_table(
                self._session,
                f"CREATE TABLE IF NOT EXISTS {self._relation} ({_DDL}) USING DELTA "
                f"PARTITIONED BY (batch) TBLPROPERTIES ({properties_sql(_PROPERTIES)})",
                self._relation,
            )
            if self._location.path is not None:
                writer.save(f"{self._location.path}/{STAGING}")
            else:
                writer.saveAsTable(self._relation)

    def discard(self, batch: str, deadline: Deadline) -> None:
        """Removes a batch; its files go with the next VACUUM."""
        with self._lock.held(deadline), deadline.not_counting():
            self._session.sql(f"DELETE FROM {self._relation} WHERE batch = {literal(batch)}")

    def sweep(self, deadline: Deadline) -> int:
        """Removes batches that were left behind; returns the number of their rows."""
        with self._lock.held(deadline), deadline.not_counting():
            if not ours_exists(self._session, self._relation, STAGING):
                return 0
            rows = self._session.sql(
                f"DELETE FROM {self._relation} WHERE staged_at < current_timestamp() - {_LEFT}"
            ).collect()
        return max(0, int(rows[0]["num_affected_rows"]))

    def rows(self, batch: str) -> str:
        """A batch, for a FROM clause."""
        return f"(SELECT * FROM {self._relation} WHERE batch = {literal(batch)})"

    def figures(self, batch: str, kinds: Iterable[str]) -> dict[str, Row]:
        """For each kind: number of rows, lowest and highest key, buckets."""
        # Filters rather than groups: a grouped minimum of strings would sort all rows.
        columns = ", ".join(
            f"struct(count_if({this}) AS rows, min(key) FILTER (WHERE {this}) AS low, "
            f"max(key) FILTER (WHERE {this}) AS high, "
            f"collect_set(bucket) FILTER (WHERE {this}) AS buckets) AS {kind}"
            for kind, this in ((kind, f"kind = {literal(kind)}") for kind in kinds)
        )
        (row,) = self.query(batch, f"SELECT {columns} FROM {{rows}}")
        return row.asDict()

    def repeats(self, batch: str) -> tuple[int, tuple[str, ...]]:
        """The number of rows that repeat a segment id, and some ids whose rows differ."""
        # Most batches repeat nothing, and hashes show that at a fraction of the cost of the keys.
        (row,) = self.query(
            batch,
            "SELECT count_if(times > 1) AS suspects FROM (SELECT count(*) AS times FROM {rows} "
            "WHERE kind = 'segment' GROUP BY xxhash64(key))",
        )
        if not row["suspects"]:
            return 0, ()
        rows = self.query(
            batch,
            "SELECT key, sum(times - 1) OVER () AS more, contents FROM (SELECT key, count(*) AS "
            "times, count(DISTINCT digest) AS contents FROM {rows} "
            "WHERE kind = 'segment' GROUP BY key HAVING times > 1) "
            "ORDER BY contents DESC, key LIMIT 5",
        )
        differing = tuple(row["key"] for row in rows if row["contents"] > 1)
        return (rows[0]["more"] if rows else 0), differing

    def schemas(self, batch: str, fingerprints: Iterable[str]) -> dict[str, Schema]:
        """The schemas with these fingerprints, which segments of a batch use."""
        names = listed(fingerprints)
        if not names:
            return {}
        rows = self.query(
            batch,
            "SELECT key, min(payload) AS payload FROM {rows} "
            f"WHERE kind = 'schema' AND key IN ({names}) GROUP BY key",
        )
        return {row["key"]: Schema.from_payload(row["payload"]) for row in rows}

    def query(self, batch: str, text: str) -> list[Row]:
        """The rows of a small query, in which `{rows}` is the batch."""
        return self._session.sql(text.replace("{rows}", self.rows(batch))).collect()


@dataclass(frozen=True)
class StagedBatch:
    """A batch that was staged and checked, with what a statement needs to know of it."""

    name: str
    segments: int
    repeated: bool
    partitions: frozenset[Partition]
    bounds: Bounds
    fingerprints: tuple[str, ...]


def check_staged(staging: Staging, name: str) -> StagedBatch | None:
    """Checks a staged batch; nothing if it is empty, an error if a row breaks a rule."""
    kinds = (Kind.SEGMENT.value, Kind.SCHEMA.value)
    figures = staging.figures(name, (*kinds, INVALID))
    if figures[INVALID]["rows"]:
        raise _invalid(figures[INVALID]["rows"], staging, name)
    segments = figures[Kind.SEGMENT.value]["rows"]
    if not segments:
        return None
    repeated, differing = staging.repeats(name)
    if differing:
        raise DuplicateSegment(
            f"The frame holds segment ids more than once with different content, such as "
            f"{', '.join(differing)}; give each once.",
            segment_ids=differing,
        )
    schemas = staging.query(
        name,
        "SELECT key, count(DISTINCT digest) AS contents FROM {rows} WHERE kind = 'schema' "
        "GROUP BY key ORDER BY key",
    )
    for row in schemas:
        if row["contents"] > 1:
            raise collision(row["key"])
    return StagedBatch(
        name=name,
        segments=segments - repeated,
        repeated=repeated > 0,
        partitions=frozenset((kind, b) for kind in kinds for b in figures[kind]["buckets"]),
        # Segments whose schemas are not known bring none.
        bounds={
            kind: (figures[kind]["low"], figures[kind]["high"])
            for kind in kinds
            if figures[kind]["rows"]
        },
        fingerprints=tuple(row["key"] for row in schemas),
    )


def staged_offences(
    staging: Staging, batch: StagedBatch, terms: Mapping[str, Terms], session: SparkSession
) -> tuple[Offence, ...]:
    """The breaches of terms in a batch, by the schemas and the largest of its segments."""
    limiting = {name: each for name, each in terms.items() if each.asks}
    if not limiting:
        return ()
    rows = session.sql(f"SELECT * FROM {staging.rows(batch.name)} WHERE kind = 'segment'")
    groups = group_segments(rows.dropDuplicates(["key"]) if batch.repeated else rows, limiting)
    used = {each.fingerprint for each in groups if each.fingerprint is not None}
    return offences_of(groups, limiting, staging.schemas(batch.name, used))


def _invalid(count: int, staging: Staging, name: str) -> InvalidSegment:
    rows = staging.query(
        name, "SELECT key, payload FROM {rows} WHERE kind = 'invalid' ORDER BY key LIMIT 5"
    )
    examples = "; ".join(f"{row['key']!r} {row['payload']}" for row in rows)
    return InvalidSegment(
        f"{count} rows of the frame break a rule and nothing was written: {examples}.",
        count=count,
        segment_ids=tuple(row["key"] for row in rows),
    )
