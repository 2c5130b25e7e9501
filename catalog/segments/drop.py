"""Dropping segments: by id, by datasource, by interval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import pyarrow as pa

from catalog.commit.claims import claimed, claims_on, staged_parts, standing_claims
from catalog.commit.operation_rows import ABSENT, AFTER, Action
from catalog.commit.rows import key_table, segment_bucket
from catalog.delta.layout import bucket_of
from catalog.delta.statements import (
    Claims,
    Statement,
    bounds_clause,
    bounds_with_claims,
    delete_keys,
    delete_where,
    partitions_clause,
    with_claims,
)
from catalog.delta.writer import Executed, RefusedByCheck, Writer
from catalog.environment import Deadline, Environment
from catalog.errors import InvalidInput
from catalog.model import Caller, DropResult, Kind, check_datasource, check_segment_id, micros
from catalog.schema.names import literal


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

    def buckets(self, buckets: int) -> Sequence[int]:
        """The buckets to look in; not for ids."""
        return range(buckets) if self.datasource is None else [bucket_of(self.datasource, buckets)]

    @property
    def of_datasource(self) -> str:
        """The condition on the datasource alone."""
        return "true" if self.datasource is None else f"t.datasource = {literal(self.datasource)}"

    @property
    def coming(self) -> str:
        """The condition on staged rows of segments that are not there, and may be any moment.

        Keys that wait for the outcome of a ready operation, and where all of a datasource is meant
        also what an operation brings to it.
        """
        whole = self.datasource is not None and self.starts_at is None and self.ends_at is None
        after = f"t.base = '{AFTER}'"
        return f"{after} OR t.action = '{Action.PUBLISH}'" if whole else after

    def where(self, buckets: int) -> str:
        """The condition on the table `t`, its partitions as literals; not for ids."""
        chosen = self.buckets(buckets)
        conditions = [f"({partitions_clause((Kind.SEGMENT.value, b) for b in chosen)})"]
        conditions.append(self.of_datasource)
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

    def __init__(self, writer: Writer, buckets: int, environment: Environment) -> None:
        self._writer = writer
        self._buckets = buckets
        self._environment = environment

    def count(self, selection: Selection) -> DropResult:
        """What a drop would do now."""
        store = self._writer.store
        version = store.head().version
        if selection.ids is None:
            store.check_buckets(self._buckets)
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
        if selection.ids is None:
            store.check_buckets(self._buckets)
        commit_id = self._environment.new_id()
        executed = self._commit(selection, commit_id, caller, deadline)
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

    def _commit(
        self, selection: Selection, commit_id: str, caller: Caller, deadline: Deadline
    ) -> Executed:
        """Commits, past operations that are decided or touch nothing of the selection."""
        harmless = Claims()
        while True:
            try:
                return self._writer.commit(
                    partial(self._statement, selection, harmless),
                    commit_id,
                    "drop",
                    lambda: [caller],
                    deadline,
                )
            except RefusedByCheck as refusal:
                harmless = self._respect(selection, harmless)
                deadline.check(f"operations that claim {refusal.key}")

    def _respect(self, selection: Selection, claims: Claims) -> Claims:
        """Raises if an undecided operation claims what would be dropped."""
        store = self._writer.store
        version = store.head().version
        if selection.ids is not None:
            standing = claims_on(store, selection.ids, (), self._buckets, version)
            harmless = claims.harmless
        else:
            buckets = selection.buckets(self._buckets)
            pinned = store.pinned(version)
            selected = store.session.sql(
                f"SELECT t.kind AS target, t.bucket, t.key FROM {pinned} AS t "
                f"WHERE {selection.where(self._buckets)} UNION ALL "
                f"SELECT t.target, t.bucket, t.key FROM {pinned} AS t "
                f"WHERE t.kind = 'staged' AND t.bucket IN ({', '.join(map(str, buckets))}) "
                f"AND ({selection.coming}) AND {selection.of_datasource}"
            )
            standing = standing_claims(store, selected, buckets, version)
            # Claimed, but not among what would be dropped; a part's rows never change.
            harmless = staged_parts(store, version, buckets)
        if standing.exclusive:
            raise claimed(standing.exclusive)
        return replace(standing.ignoring(claims), harmless=harmless)

    def _statement(self, selection: Selection, claims: Claims, uncertain: bool) -> Statement:
        store = self._writer.store
        if selection.ids is None:
            partitions = with_claims(
                (Kind.SEGMENT.value, bucket) for bucket in selection.buckets(self._buckets)
            )
            refused = (
                f"t.target = 'segment' AND (t.base <> '{ABSENT}' OR {selection.coming}) "
                f"AND {claims.standing} AND {selection.of_datasource}"
            )
            where = selection.where(self._buckets)
            return Statement("drop", delete_where(store.relation, partitions, where, refused))
        partitions, bounds = self._reach(selection.ids)
        source = store.session.createDataFrame(self._keys(selection))
        same_commit = selection.seen is not None
        sql = delete_keys(
            store.relation,
            with_claims(partitions),
            bounds_with_claims(bounds),
            same_commit,
            claims,
        )
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
        """How many of the ids were not there; that is only believed of the table that is known."""
        absent = 0 if selection.ids is None else len(selection.ids) - found
        if absent:
            self._writer.store.check_buckets(self._buckets)
        return absent
