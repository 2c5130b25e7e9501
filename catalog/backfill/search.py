"""Which segments wait for their schema, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from catalog.backfill.waiting import Waiting, waiting_of
from catalog.commit.rows import segment_bucket
from catalog.delta.store import Store
from catalog.model import micros
from catalog.schema.names import literal

# Times that Python has no words for are not accepted, but other tools may have written them.
_NO_SCHEMA = (
    "kind = 'segment' AND fingerprint IS NULL AND location IS NOT NULL "
    "AND coalesce(year(starts_at) BETWEEN 1 AND 9999, true) "
    "AND coalesce(year(ends_at) BETWEEN 1 AND 9999, true)"
)
_RETRY = "CAST(get_json_object(payload, '$.retry_micros') AS BIGINT)"
_COLUMNS = (
    "key, commit_id, num_rows, size_bytes, location, payload, "
    "unix_micros(starts_at) AS starts_at_micros, unix_micros(ends_at) AS ends_at_micros"
)


@dataclass(frozen=True)
class Counted:
    """How many segments have no schema at a version: due now, or in quarantine until later."""

    version: int
    due: int
    resting: int


class Search:
    """Looks for segments without a schema, in some datasources or in all."""

    def __init__(
        self, store: Store, buckets: int, datasources: Sequence[str] | None, everything: bool
    ) -> None:
        """With `everything` the segments in quarantine are due too."""
        self._store = store
        self._everything = everything
        self._where = _NO_SCHEMA
        if datasources is not None:
            chosen = sorted({segment_bucket(f"{name}/", buckets) for name in datasources}) or [-1]
            names = ", ".join(map(literal, datasources)) or "NULL"
            self._where += (
                f" AND bucket IN ({', '.join(map(str, chosen))}) AND datasource IN ({names})"
            )

    def count(self, now: datetime) -> Counted:
        """How many there are at the newest version."""
        version = self._store.head().version
        (row,) = self._store.session.sql(
            f"SELECT count_if({self._due(now)}) AS due, count(*) AS found "
            f"FROM {self._store.pinned(version)} WHERE {self._where}"
        ).collect()
        return Counted(version, row["due"], row["found"] - row["due"])

    def page(self, now: datetime, after: tuple[int, str], most: int) -> list[tuple[int, Waiting]]:
        """The next ones that are due, in the order of bucket and key, each with its bucket.

        One order for everybody: what a run was reading when it was killed is what the next one
        reads and stores first.
        """
        bucket, key = after
        rows = (
            self._store.session.sql(
                f"SELECT bucket, {_COLUMNS} "
                f"FROM {self._store.pinned(self._store.head().version)} "
                f"WHERE {self._where} AND {self._due(now)} AND (bucket > {int(bucket)} OR "
                f"(bucket = {int(bucket)} AND key > {literal(key)})) "
                f"ORDER BY bucket, key LIMIT {int(most)}"
            )
            .toArrow()
            .to_pylist()
        )
        return [(row["bucket"], waiting_of(row)) for row in rows]

    def named(self, segment_ids: Sequence[str], buckets: int) -> list[Waiting]:
        """Those of the given segments that have no schema."""
        chosen = sorted({segment_bucket(each, buckets) for each in segment_ids})
        rows = (
            self._store.session.sql(
                f"SELECT {_COLUMNS} FROM {self._store.pinned(self._store.head().version)} "
                f"WHERE {self._where} AND bucket IN ({', '.join(map(str, chosen))}) "
                f"AND key IN ({', '.join(map(literal, segment_ids))})"
            )
            .toArrow()
            .to_pylist()
        )
        return list(map(waiting_of, rows))

    def _due(self, now: datetime) -> str:
        if self._everything:
            return "true"
        return f"(state IS NULL OR state <> 'quarantined' OR {_RETRY} <= {micros(now)})"
