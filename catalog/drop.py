"""Dropping segments: by id, by datasource, by interval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from catalog.errors import InvalidInput
from catalog.model import Caller, DropResult, Kind, check_datasource, check_segment_id, micros
from catalog.rows import key_table, segment_bucket
from catalog.table.layout import bucket_of
from catalog.table.location import literal
from catalog.table.statements import Statement, bounds_clause, delete_keys, partitions_clause
from catalog.table.writer import Writer
from catalog.waiting import Deadline, Surroundings


@dataclass(frozen=True)
class Selection:
    """Which segments to drop: either these ids, or all of a datasource and within an interval.

    With `seen`, an id is dropped only if its row is still of the commit that is given for it.
    """

    ids: tuple[str, ...] | None = None
    datasource: str | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    seen: Mapping[str, str] | None = None

    def where(self, buckets: int) -> str:
        """The condition on the table `t`, its partitions as literals; not for ids."""
        chosen = (
            range(buckets) if self.datasource is None else [bucket_of(self.datasource, buckets)]
        )
        conditions = [f"({partitions_clause((Kind.SEGMENT.value, b) for b in chosen)})"]
        if self.datasource is not None:
            conditions.append(f"t.datasource = {literal(self.datasource)}")
        if self.starts_at is not None:
            conditions.append(f"t.starts_at >= timestamp_micros({micros(self.starts_at)})")
        if self.ends_at is not None:
            conditions.append(f"t.ends_at <= timestamp_micros({micros(self.ends_at)})")
        return " AND ".join(conditions)


def as_seen(commit_ids: Mapping[str, str]) -> Selection:
    """The segments with these ids, as long as nobody has changed them since."""
    return Selection(ids=tuple(commit_ids), seen=commit_ids)


def select(
    ids: Iterable[str] | None,
    datasource: str | None,
    starts_at: datetime | None,
    ends_at: datetime | None,
) -> Selection:
    """Checks what a caller asked for; it must say something, and one thing only."""
    by_interval = starts_at is not None or ends_at is not None
    if ids is not None:
        if datasource is not None or by_interval:
            raise InvalidInput("Drop either by ids or by datasource and interval, not by both.")
        if isinstance(ids, str):
            raise InvalidInput(
                f"drop takes a list of ids; for one segment write [{ids!r}].", ids=ids
            )
        chosen = tuple(dict.fromkeys(ids))
        for segment_id in chosen:
            check_segment_id(segment_id)
        return Selection(ids=chosen)
    if datasource is None and not by_interval:
        raise InvalidInput("Say what to drop: ids, a datasource, or an interval.")
    if datasource is not None:
        check_datasource(datasource)
    for name, moment in (("starts_at", starts_at), ("ends_at", ends_at)):
        if moment is not None and moment.tzinfo is None:
            raise InvalidInput(f"{name} {moment!r} has no time zone; give one.", **{name: moment})
    if starts_at is not None and ends_at is not None and not starts_at < ends_at:
        raise InvalidInput(
            f"The interval starts at {starts_at.isoformat()}, which is not before its end "
            f"{ends_at.isoformat()}.",
            starts_at=starts_at,
            ends_at=ends_at,
        )
    return Selection(None, datasource, starts_at, ends_at)


class Dropper:
    """Drops segments, each call in one commit."""

    def __init__(self, writer: Writer, buckets: int, surroundings: Surroundings) -> None:
        self._writer = writer
        self._buckets = buckets
        self._surroundings = surroundings

    def count(self, selection: Selection) -> DropResult:
        """What a drop would do now."""
        store = self._writer.store
        version = store.head().version
        if selection.ids is None:
            rows = store.session.sql(
                f"SELECT count(*) AS n FROM {store.pinned(version)} AS t "
                f"WHERE {selection.where(self._buckets)}"
            )
        elif not selection.ids:
            return DropResult(version, "", 0, dry_run=True)
        else:
            partitions, bounds = self._reach(selection.ids)
            wanted = store.session.createDataFrame(self._keys(selection))
            rows = (
                store.session.sql(
                    f"SELECT bucket, key FROM {store.pinned(version)} AS t "
                    f"WHERE ({partitions_clause(partitions)}) AND ({bounds_clause(bounds)})"
                )
                .join(wanted, ["bucket", "key"], "left_semi")
                .selectExpr("count(*) AS n")
            )
        found = int(rows.collect()[0]["n"])
        return DropResult(version, "", found, self._absent(selection, found), dry_run=True)

    def drop(self, selection: Selection, caller: Caller, deadline: Deadline) -> DropResult:
        """Runs in the commit thread."""
        store = self._writer.store
        if selection.ids == ():
            return DropResult(store.head().version, "", 0)
        commit_id = self._surroundings.new_id()
        executed = self._writer.commit(
            lambda _: self._statement(selection),
            commit_id,
            "drop",
            lambda: [caller],
            deadline,
        )
        if executed.version is None:
            dropped, version, commit_id = 0, store.head().version, ""
        else:
            version = executed.version
            dropped = executed.counts.get("num_affected_rows", -1)
            if dropped < 0:
                # Delta does not count what it removes as whole files, nor after a lost answer.
                feed = store.changes(version, version)
                dropped = feed.where("kind = 'segment' AND _change_type = 'delete'").count()
        return DropResult(
            version,
            commit_id,
            dropped,
            self._absent(selection, dropped),
            retries=executed.retries,
        )

    def _statement(self, selection: Selection) -> Statement:
        store = self._writer.store
        if selection.ids is None:
            where = selection.where(self._buckets)
            return Statement("drop", lambda _: f"DELETE FROM {store.relation} AS t WHERE {where}")
        partitions, bounds = self._reach(selection.ids)
        source = store.session.createDataFrame(self._keys(selection))
        same_commit = selection.seen is not None
        sql = delete_keys(store.relation, partitions, bounds, same_commit)
        return Statement("drop", sql, source)

    def _keys(self, selection: Selection) -> pa.Table:
        seen = selection.seen or {}
        keys = {
            key: (segment_bucket(key, self._buckets), seen.get(key)) for key in selection.ids or ()
        }
        return key_table(Kind.SEGMENT, keys)

    def _reach(
        self, ids: tuple[str, ...]
    ) -> tuple[set[tuple[str, int]], dict[str, tuple[str, str]]]:
        partitions = {(Kind.SEGMENT.value, segment_bucket(key, self._buckets)) for key in ids}
        return partitions, {Kind.SEGMENT.value: (min(ids), max(ids))}

    def _absent(self, selection: Selection, found: int) -> int:
        return 0 if selection.ids is None else len(selection.ids) - found
