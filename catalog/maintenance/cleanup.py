"""Cleaning up schemas that nothing uses: restore, purge, retire, restore.

Why it is right is argued in ARCHITECTURE.md. In short: references are looked for at a pinned
version, so a publish never makes the cleaner retry. A publish that commits before a retirement is
seen by the restore that follows it; one that commits after it carries the schema itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from catalog.commit.committer import collision
from catalog.commit.rows import key_table
from catalog.context import Call, Context
from catalog.delta.statements import (
    Refuse,
    Statement,
    delete_keys,
    insert_missing,
    partitions_clause,
    retire_keys,
)
from catalog.delta.writer import Executed, RefusedByCheck
from catalog.errors import InvalidInput
from catalog.model import Kind, micros
from catalog.progress import Step
from catalog.schema.names import literal

log = logging.getLogger(__name__)


# A commit that touches one bucket reads and rewrites little of the table, so that publishes which
# wait for it wait shortly; a few changes go into one commit wherever they are.
BATCH = 1_000
FEW = 100

# --- plans: no session --------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """A schema row that something may have to be done with, as one version shows it."""

    fingerprint: str
    bucket: int
    retired: bool
    commit_id: str
    published_micros: int
    changed_micros: int
    referenced: bool
    live: bool


@dataclass(frozen=True)
class Change:
    """What is done with one schema, and why."""

    fingerprint: str
    bucket: int
    commit_id: str
    why: str


@dataclass(frozen=True)
class CleanupPlan:
    """What a version calls for."""

    restore: tuple[Change, ...] = ()
    purge: tuple[Change, ...] = ()
    retire: tuple[Change, ...] = ()


def plan_cleanup(candidates: Iterable[Candidate], cutoff_micros: int, limit: int) -> CleanupPlan:
    """Decides for each candidate; at most `limit` are purged and at most `limit` retired."""
    rows = sorted(candidates, key=lambda c: (c.fingerprint, c.retired))
    has_retired = {c.fingerprint for c in rows if c.retired}
    restore, purge, retire = [], [], []
    for row in rows:
        if row.retired and row.referenced and not row.live:
            restore.append(_change(row, "something refers to it"))
        elif row.retired and row.changed_micros <= cutoff_micros:
            why = "it is live again" if row.live else "nothing refers to it since it was retired"
            purge.append(_change(row, why))
        elif (
            not row.retired
            and not row.referenced
            and row.published_micros <= cutoff_micros
            and row.fingerprint not in has_retired
        ):
            retire.append(_change(row, "nothing refers to it"))
    return CleanupPlan(tuple(restore), tuple(purge[:limit]), tuple(retire[:limit]))


def batches(changes: Sequence[Change]) -> list[Sequence[Change]]:
    """What goes into one commit each: a few changes, or up to `BATCH` of one bucket."""
    if len(changes) <= FEW:
        return [changes] if changes else []
    by_bucket: dict[int, list[Change]] = {}
    for change in changes:
        by_bucket.setdefault(change.bucket, []).append(change)
    return [
        found[start : start + BATCH]
        for _, found in sorted(by_bucket.items())
        for start in range(0, len(found), BATCH)
    ]


def _change(row: Candidate, why: str) -> Change:
    return Change(row.fingerprint, row.bucket, row.commit_id, why)


@dataclass(frozen=True)
class CleanupReport:
    """What a clean-up did, or would do."""

    version: int
    restored: tuple[Change, ...]
    purged: tuple[Change, ...]
    retired: tuple[Change, ...]
    dry_run: bool = False
    retries: int = 0


# --- the work ------------------------------------------------------------------------------------


class Cleaner:
    """One clean-up. Every step can be run again, by anyone, at once, also by two cleaners."""

    def __init__(self, context: Context, call: Call) -> None:
        self._context = context
        self._call = call
        self._store = context.store
        self._environment = context.environment
        self._caller = call.caller
        self._progress = call.progress
        self._retries = 0

    def clean(self, grace: timedelta, limit: int, dry_run: bool) -> CleanupReport:
        """Restore, purge, retire, restore; or only what would be done."""
        if grace < timedelta(0):
            raise InvalidInput(f"grace must not be negative, not {grace!r}.", grace=grace)
        if limit < 1:
            raise InvalidInput(f"limit must be at least 1, not {limit!r}.", limit=limit)
        cutoff = micros(self._environment.clock() - grace)
        version, plan = self._plan(cutoff, limit)
        if dry_run:
            return CleanupReport(version, plan.restore, plan.purge, plan.retire, dry_run=True)
        restored = self._restore(version, plan.restore)
        self._environment.at("cleanup.restored")
        purged = self._purge(plan.purge)
        self._environment.at("cleanup.purged")
        if restored or purged:
            _, plan = self._plan(cutoff, limit)
        self._environment.at("cleanup.planned")
        retired = self._retire(plan.retire, cutoff, limit)
        self._environment.at("cleanup.retired")
        if retired:
            # I3: a publish that committed just before found the schema there and wrote only its
            # segment; this brings the schema back.
            version, plan = self._plan(cutoff, limit)
            restored += self._restore(version, plan.restore)
        return CleanupReport(
            self._store.head().version, restored, purged, retired, retries=self._retries
        )

    def _plan(self, cutoff: int, limit: int) -> tuple[int, CleanupPlan]:
        version = self._store.head().version
        rows = self._store.session.sql(
            candidates_sql(self._store.pinned(version), cutoff, limit)
        ).toArrow()
        return version, plan_cleanup((Candidate(**row) for row in rows.to_pylist()), cutoff, limit)

    def _told(self, what: str, todo: Sequence[Sequence[Change]]) -> Iterator[Sequence[Change]]:
        """Goes through the batches and says how far it has come."""
        done, total = 0, sum(map(len, todo))
        for batch in todo:
            self._progress(Step(what, done, total))
            yield batch
            done += len(batch)

    def _commit(self, make: Callable[[str], Statement], verb: str) -> Executed:
        executed = self._context.commit(self._call, make, verb)
        self._retries += executed.retries
        return executed

    def _restore(self, version: int, changes: Sequence[Change]) -> tuple[Change, ...]:
        done: list[Change] = []
        for batch in self._told("restore", batches(changes)):
            try:
                executed = self._commit(partial(self._restoring, version, batch), "restore")
            except RefusedByCheck as refusal:
                raise collision(refusal.key) from refusal
            done += self._done(executed, batch, "num_inserted_rows", "insert")
        return tuple(done)

    def _restoring(self, version: int, batch: Sequence[Change], commit_id: str) -> Statement:
        store = self._store
        buckets = sorted({change.bucket for change in batch})
        now = f"timestamp_micros({micros(self._environment.clock())})"
        retired = partitions_clause((Kind.RETIRED.value, bucket) for bucket in buckets)
        rows = store.session.sql(
            f"SELECT 'schema' AS kind, bucket, key, {literal(commit_id)} AS commit_id, "
            "revision + 1 AS revision, fingerprint, digest, datasource, num_rows, size_bytes, "
            "location, starts_at, ends_at, state, payload, published_at, "
            f"{now} AS changed_at, {literal(self._caller.actor)} AS changed_by "
            f"FROM {store.pinned(version)} AS t WHERE {retired}"
        ).join(
            self._keys(Kind.RETIRED, batch).select("bucket", "key"), ["bucket", "key"], "left_semi"
        )
        sql = insert_missing(
            store.relation,
            [(Kind.SCHEMA.value, bucket) for bucket in buckets],
            {Kind.SCHEMA.value: _bounds(batch)},
            Refuse.OTHER_CONTENT,
        )
        return Statement("restore", sql, rows)

    def _purge(self, changes: Sequence[Change]) -> tuple[Change, ...]:
        done: list[Change] = []
        for batch in self._told("purge", batches(changes)):
            executed = self._commit(partial(self._purging, batch), "purge")
            done += self._done(executed, batch, "num_deleted_rows", "delete")
        return tuple(done)

    def _purging(self, batch: Sequence[Change], commit_id: str) -> Statement:
        # I3: only the row that was seen. One that was retired again meanwhile may be the last copy
        # of a schema that a segment refers to.
        sql = delete_keys(
            self._store.relation,
            [(Kind.RETIRED.value, change.bucket) for change in batch],
            {Kind.RETIRED.value: _bounds(batch)},
            same_commit=True,
        )
        return Statement("purge", sql, self._keys(Kind.RETIRED, batch))

    def _retire(self, changes: Sequence[Change], cutoff: int, limit: int) -> tuple[Change, ...]:
        """Retires in batches, and plans again if another cleaner has been at the same schemas."""
        done: list[Change] = []
        todo = batches(changes)
        while todo:
            batch = todo[0]
            self._progress(Step("retire", len(done), len(done) + sum(map(len, todo))))
            try:
                executed = self._commit(partial(self._retiring, batch), "retire")
            except RefusedByCheck as refusal:
                log.info("%s was retired by somebody else; planning again.", refusal.key)
                self._call.deadline.check("other cleaners")
                finished = {change.fingerprint for change in done}
                _, plan = self._plan(cutoff, limit)
                todo = batches([c for c in plan.retire if c.fingerprint not in finished])
                continue
            done += self._done(executed, batch, "num_updated_rows", "update_postimage")
            todo = todo[1:]
            self._environment.at("cleanup.batch")
        return tuple(done)

    def _retiring(self, batch: Sequence[Change], commit_id: str) -> Statement:
        sql = retire_keys(
            self._store.relation,
            [change.bucket for change in batch],
            _bounds(batch),
            commit_id,
            micros(self._environment.clock()),
            self._caller.actor,
        )
        return Statement("retire", sql, self._keys(Kind.SCHEMA, batch))

    def _done(
        self, executed: Executed, batch: Sequence[Change], count: str, change_type: str
    ) -> Sequence[Change]:
        """What of a batch was really changed: others may have been quicker with the rest."""
        if executed.version is None:
            return ()
        if executed.counts.get(count) == len(batch):
            return batch
        feed = self._store.changes(executed.version, executed.version)
        rows = feed.where(f"_change_type = '{change_type}'").select("key").collect()
        keys = {row["key"] for row in rows}
        return [change for change in batch if change.fingerprint in keys]

    def _keys(self, kind: Kind, batch: Sequence[Change]) -> Any:
        keys = {change.fingerprint: (change.bucket, change.commit_id) for change in batch}
        return self._store.session.createDataFrame(key_table(kind, keys))


def _bounds(batch: Sequence[Change]) -> tuple[str, str]:
    keys = [change.fingerprint for change in batch]
    return min(keys), max(keys)


# Every kind that is not a schema itself may refer to one.
REFERENCES_SQL = (
    "SELECT DISTINCT fingerprint FROM {rows} "
    "WHERE kind NOT IN ('schema', 'retired') AND fingerprint IS NOT NULL"
)


def candidates_sql(rows: str, cutoff_micros: int, limit: int) -> str:
    """The query for `Candidate` rows at one version: all retired schemas, and old orphans.

    Retired rows are few (purging keeps them so) and all needed; orphans are capped.
    """
    columns = (
        "s.key AS fingerprint, s.bucket, s.kind = 'retired' AS retired, s.commit_id, "
        "unix_micros(s.published_at) AS published_micros, "
        "unix_micros(s.changed_at) AS changed_micros"
    )
    references = REFERENCES_SQL.format(rows=rows)
    return (
        f"WITH used AS ({references}), "
        f"retired AS (SELECT * FROM {rows} WHERE kind = 'retired'), "
        f"live AS (SELECT * FROM {rows} WHERE kind = 'schema') "
        f"(SELECT {columns}, u.fingerprint IS NOT NULL AS referenced, l.key IS NOT NULL AS live "
        "FROM retired AS s LEFT JOIN used AS u ON s.key = u.fingerprint "
        "LEFT JOIN live AS l ON s.key = l.key) UNION ALL "
        f"(SELECT {columns}, false AS referenced, true AS live "
        "FROM live AS s LEFT ANTI JOIN used AS u ON s.key = u.fingerprint "
        "LEFT ANTI JOIN retired AS r ON s.key = r.key "
        f"WHERE unix_micros(s.published_at) <= {int(cutoff_micros)} "
        f"ORDER BY s.key LIMIT {int(limit)})"
    )
