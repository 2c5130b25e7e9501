"""Upkeep of a Delta table: files by partition, OPTIMIZE, VACUUM, and how long files are kept."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from datetime import timedelta

from catalog.delta.layout import properties_sql
from catalog.delta.session import USER_METADATA, tune
from catalog.delta.statements import Partition, Statement
from catalog.delta.store import Store
from catalog.delta.writer import Writer, user_metadata
from catalog.environment import Deadline
from catalog.errors import InvalidInput
from catalog.model import Caller
from catalog.schema.names import literal

log = logging.getLogger(__name__)

# A publish reads the files of its buckets whose key ranges its ids fall into. Small enough to read
# quickly, large enough that a million segments need few of them.
FILE_BYTES = 32 * 1024 * 1024

_RETENTION = "delta.deletedFileRetentionDuration"
_LOG_RETENTION = "delta.logRetentionDuration"
_DEFAULTS = {_RETENTION: "interval 7 days", _LOG_RETENTION: "interval 30 days"}
_MAX_FILE = "spark.databricks.delta.optimize.maxFileSize"
_INTERVAL = re.compile(r"(\d+)\s+(week|day|hour|minute|second)s?", re.IGNORECASE)

# --- files ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PartitionFiles:
    """How many files a partition has, and their total size."""

    kind: str
    bucket: int
    files: int
    bytes: int


def partition_files(store: Store) -> list[PartitionFiles]:
    """The files of each partition at the newest version."""
    rows = store.session.sql(
        "SELECT kind, bucket, count(*) AS files, sum(size) AS bytes FROM (SELECT DISTINCT "
        "kind, bucket, _metadata.file_path AS path, _metadata.file_size AS size "
        f"FROM {store.pinned(store.head().version)}) GROUP BY kind, bucket"
    ).collect()
    return [PartitionFiles(**row.asDict()) for row in rows]


def optimize(store: Store, partition: Partition | None = None) -> Statement:
    """Compacts the table, or one partition sorted by key; sets the file size of the session."""
    tune(store.session, {_MAX_FILE: str(FILE_BYTES)})
    sql = f"OPTIMIZE {store.relation}"
    if partition is not None:
        kind, bucket = partition
        sql += f" WHERE kind = {literal(kind)} AND bucket = {int(bucket)} ZORDER BY (key)"
    return Statement("optimize", lambda _: sql, bulk=True)


def vacuum(store: Store) -> Statement:
    """Removes files that no version within the retention needs."""
    return Statement("vacuum", lambda _: f"VACUUM {store.relation}", bulk=True)


def vacuumed_files(store: Store, before: int) -> int | None:
    """How many files the last VACUUM after a version removed; none if Delta does not say."""
    for row in store.history(10).collect():
        if row["operation"] == "VACUUM END" and row["version"] > before:
            text = (row["operationMetrics"] or {}).get("numDeletedFiles")
            return None if text is None else int(text)
    return None


def removable_files(store: Store) -> int:
    """How many files a VACUUM would remove; Delta lists at most a thousand."""
    return store.session.sql(f"VACUUM {store.relation} DRY RUN").count()


# --- retention ------------------------------------------------------------------------------------


def retention_of(store: Store) -> timedelta:
    """How long the table keeps files that were removed."""
    return _intervals(store)[_RETENTION]


def set_retention(
    writer: Writer, retention: timedelta, commit_id: str, caller: Caller, deadline: Deadline
) -> None:
    """Keeps removed files so long from now on; runs in the commit thread."""
    store, found = writer.store, _intervals(writer.store)
    # Delta refuses to vacuum a table whose log is kept for less time than its files.
    properties = {
        _RETENTION: interval_sql(retention),
        _LOG_RETENTION: interval_sql(max(retention, found[_LOG_RETENTION])),
    }
    log.info("Files are kept for %s from now on, not %s.", retention, found[_RETENTION])
    with writer.lock.held(deadline), deadline.not_counting():
        conf = store.session.conf
        conf.set(USER_METADATA, user_metadata(commit_id, "set-retention", [caller]))
        try:
            store.session.sql(
                f"ALTER TABLE {store.relation} SET TBLPROPERTIES ({properties_sql(properties)})"
            )
        finally:
            conf.unset(USER_METADATA)


def _intervals(store: Store) -> dict[str, timedelta]:
    properties = {**_DEFAULTS, **store.detail().properties}
    return {name: parse_interval(properties[name]) for name in _DEFAULTS}


def parse_interval(text: str) -> timedelta:
    """The time of a property such as `interval 7 days`."""
    rest = text.strip().lower().removeprefix("interval").strip()
    parts = _INTERVAL.findall(rest)
    if not parts or _INTERVAL.sub("", rest).strip():
        raise InvalidInput(
            f"{text!r} is not an interval of weeks, days, hours, minutes or seconds.", interval=text
        )
    return sum((timedelta(**{f"{unit}s": int(n)}) for n, unit in parts), timedelta())


def interval_sql(time: timedelta) -> str:
    """The property text of a time, in whole seconds."""
    return f"interval {int(time.total_seconds())} seconds"
