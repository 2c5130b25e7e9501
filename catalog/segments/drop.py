"""Dropping segments: by id, by datasource, by interval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa

from catalog.commit.claims import claims_on, staged_parts, standing_claims
from catalog.commit.committer import commit_until_settled
from catalog.commit.operation_rows import ABSENT, AFTER, StagedAction
from catalog.commit.rows import key_table, segment_bucket
from catalog.delta.layout import bucket_of
from catalog.delta.statements import (
    Claims,
    Statement,
    bounds_clause,
    bounds_with_claims,
    delete_keys,
    delete_where,
    listed,
    partitions_clause,
    with_claims,
)
from catalog.delta.writer import RefusedByCheck, Writer
from catalog.environment import Deadline, Environment
from catalog.errors import InvalidInput
from catalog.model import Caller, DropResult, Kind, check_datasource, check_segment_id, micros
from catalog.schema.names import literal


@dataclass(frozen=True)
class Selection:
    """Which segments to drop: either these ids, or all of a datasource and within an interval.

    With `seen`, a segment is dropped only if its row still has the commit id given there.
    """

    ids: tuple[str, ...] | None = None
    datasource: str | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    seen: Mapping[str, str] | None = None

    def buckets(self, buckets: int) -> Sequence[int]:
        """The buckets that can hold selected segments; not for ids."""
        return range(buckets) if self.datasource is None else [bucket_of(self.datasource, buckets)]

    @property
    def of_datasource(self) -> str:
        """The condition on the datasource alone."""
        return "true" if self.datasource is None else f"t.datasource = {literal(self.datasource)}"

    @property
    def coming(self) -> str:
        """The condition on staged rows of segments that are absent and may appear at any moment.

        These are keys that wait for the outcome of a ready operation and, where a whole datasource
        is dropped, what an operation adds to it.
        """
        whole = self.datasource is not None and self.starts_at is None and self.ends_at is None
        after = f"t.base = '{AFTER}'"
        return f"{after} OR t.action = '{StagedAction.PUBLISH}'" if whole else after

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
    """The segments with these ids, unless they were changed after these commits."""
    return Selection(ids=tuple(commit_ids), seen=commit_ids)


def checked_ids(argument: str, ids: Iterable[str]) -> tuple[str, ...]:
    """The ids of segments to drop, each once; `argument` is their name in errors."""
    if isinstance(ids, str):
        raise InvalidInput(
            f"drop takes a list of ids; for one segment write [{ids!r}].", **{argument: ids}
        )
    if not isinstance(ids, Iterable):
        raise InvalidInput(f"drop takes a list of ids, not {ids!r:.80}.", **{argument: ids})
    chosen = tuple(dict.fromkeys(ids))
    for segment_id in chosen:
        check_segment_id(segment_id)
    return chosen


def select(
    ids: Iterable[str] | None,
    datasource: str | None,
    starts_at: datetime | None,
    ends_at: datetime | None,
) -> Selection:
    """The selection for the arguments of a drop: ids, or a datasource and an interval."""
    by_interval = starts_at is not None or ends_at is not None
    if ids is not None:
        if datasource is not None or by_interval:
            raise InvalidInput("Drop either by ids or by datasource and interval, not by both.")
        return Selection(ids=checked_ids("ids", ids))
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
        """What a drop would do at the newest version."""
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
        """Drops what is selected, in one commit; runs in the commit thread."""
        store = self._writer.store
        if selection.ids == ():
            return DropResult(store.head().version, "", 0)
        if selection.ids is None:
            store.check_buckets(self._buckets)
        commit_id = self._environment.new_id()
        claims = Claims()

        def learn(refusal: RefusedByCheck) -> str:
            nonlocal claims
            claims = self._respect(selection, claims)
            return f"operations that claim {refusal.key}"

        executed = commit_until_settled(
            *(self._writer, commit_id, "drop", deadline),
            plan=lambda uncertain: self._statement(selection, claims),
            callers=lambda: [caller],
            learn=learn,
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
        absent = self._absent(selection, dropped)
        return DropResult(version, commit_id, dropped, absent, retries=executed.retries)

    def _respect(self, selection: Selection, claims: Claims) -> Claims:
        """The claims that can be ignored: of operations that are decided or touch nothing selected.

        Raises:
            ClaimConflict: An undecided operation claims what would be dropped.
        """
        store = self._writer.store
        version = store.head().version
        if selection.ids is not None:
            return claims_on(store, selection.ids, (), self._buckets, version).respected(claims)
        buckets = selection.buckets(self._buckets)
        pinned = store.pinned(version)
        selected = store.session.sql(
            f"SELECT t.kind AS target, t.bucket, t.key FROM {pinned} AS t "
            f"WHERE {selection.where(self._buckets)} UNION ALL "
            f"SELECT t.target, t.bucket, t.key FROM {pinned} AS t "
            f"WHERE t.kind = 'staged' AND t.bucket IN ({listed(buckets)}) "
            f"AND ({selection.coming}) AND {selection.of_datasource}"
        )
        respected = standing_claims(store, selected, buckets, version).respected(claims)
        # What is claimed and not selected; the rows of a part never change.
        return replace(respected, harmless=staged_parts(store, version, buckets))

    def _statement(self, selection: Selection, claims: Claims) -> Statement:
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
        sql = delete_keys(
            *(store.relation, with_claims(partitions), bounds_with_claims(bounds)),
            same_commit=selection.seen is not None,
            claims=claims,
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
        """How many of the ids are absent, in the table that was opened and no other."""
        absent = 0 if selection.ids is None else len(selection.ids) - found
        if absent:
            self._writer.store.check_buckets(self._buckets)
        return absent
