"""Clean-up of schemas that nothing uses: restore, purge, retire, restore.

ARCHITECTURE.md has the argument why it is correct. In short: references are looked up at a pinned
version, so a publish never makes a clean-up retry. The restore after a retirement sees a publish
that committed before the retirement; a publish that commits after it brings the schema itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
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
from catalog.delta.writer import RefusedByCheck
from catalog.errors import InvalidInput
from catalog.model import Kind, micros
from catalog.progress import Step
from catalog.schema.names import literal

log = logging.getLogger(__name__)


# A commit that touches one bucket reads and rewrites little of the table, so that publishes wait
# for it only shortly; a few changes go into one commit, whatever their buckets.
BATCH = 1_000
FEW = 100
# How each verb's changes are counted by Delta, and named in the change feed.
_CHANGED = {
    "restore": ("num_inserted_rows", "insert"),
    "purge": ("num_deleted_rows", "delete"),
    "retire": ("num_updated_rows", "update_postimage"),
}

# --- plans: no session --------------------------------------------------------------------------


@dataclass(frozen=True)
class CleanupCandidate:
    """A live or retired schema row at one version, and whether it is in use."""

    fingerprint: str
    bucket: int
    retired: bool
    commit_id: str
    published_micros: int
    changed_micros: int
    referenced: bool
    live: bool


@dataclass(frozen=True)
class CleanupChange:
    """One schema that is restored, purged or retired, and why."""

    fingerprint: str
    bucket: int
    commit_id: str
    why: str


CleanupBatch = Sequence[CleanupChange]
Changes = tuple[CleanupChange, ...]
# The statement of a batch, for a commit id.
Make = Callable[[CleanupBatch, str], Statement]


@dataclass(frozen=True)
class CleanupPlan:
    """What to do, as of one version."""

    restore: Changes = ()
    purge: Changes = ()
    retire: Changes = ()


def plan_cleanup(
    candidates: Iterable[CleanupCandidate], cutoff_micros: int, limit: int
) -> CleanupPlan:
    """Decides about each candidate; at most `limit` are purged and at most `limit` retired."""
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


def batches(changes: CleanupBatch) -> list[CleanupBatch]:
    """The changes of each commit: a few of any buckets, or up to `BATCH` of one bucket."""
    if len(changes) <= FEW:
        return [changes] if changes else []
    by_bucket: dict[int, list[CleanupChange]] = {}
    for change in changes:
        by_bucket.setdefault(change.bucket, []).append(change)
    return [
        found[start : start + BATCH]
        for _, found in sorted(by_bucket.items())
        for start in range(0, len(found), BATCH)
    ]


def _change(row: CleanupCandidate, why: str) -> CleanupChange:
    return CleanupChange(row.fingerprint, row.bucket, row.commit_id, why)


@dataclass(frozen=True)
class CleanupReport:
    """What a clean-up did, or would do."""

    version: int
    restored: Changes
    purged: Changes
    retired: Changes
    dry_run: bool = False
    retries: int = 0

    def facts(self) -> dict[str, Any]:
        return {
            "version": self.version,
            **self._counts(),
            "dry_run": self.dry_run,
            "retries": self.retries,
        }

    def figures(self) -> dict[str, float]:
        return {**self._counts(), "conflicts_retried": self.retries}

    def _counts(self) -> dict[str, int]:
        return {
            "restored": len(self.restored),
            "purged": len(self.purged),
            "retired": len(self.retired),
        }


# --- the work ------------------------------------------------------------------------------------


class Cleaner:
    """One clean-up. Every step can be repeated, also by two cleaners concurrently."""

    def __init__(self, context: Context, call: Call) -> None:
        self._context = context
        self._call = call
        self._store = context.store
        self._environment = context.environment
        self._retries = 0

    def clean(self, grace: timedelta, limit: int, dry_run: bool) -> CleanupReport:
        """Restores, purges, retires and restores; a dry run only reports."""
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
        purged = self._commit_all("purge", self._purging, plan.purge)
        self._environment.at("cleanup.purged")
        if restored or purged:
            _, plan = self._plan(cutoff, limit)
        self._environment.at("cleanup.planned")
        retired = self._retire(plan.retire, cutoff, limit)
        self._environment.at("cleanup.retired")
        if retired:
            # I3: a publish that committed just before found the live schema and wrote only its
            # segment; this brings the schema back.
            version, plan = self._plan(cutoff, limit)
            restored += self._restore(version, plan.restore)
        return CleanupReport(
            self._store.head().version, restored, purged, retired, retries=self._retries
        )

    def _plan(self, cutoff: int, limit: int) -> tuple[int, CleanupPlan]:
        version = self._store.head().version
        sql = candidates_sql(self._store.pinned(version), cutoff, limit)
        rows = self._store.session.sql(sql).toArrow().to_pylist()
        return version, plan_cleanup((CleanupCandidate(**row) for row in rows), cutoff, limit)

    def _restore(self, version: int, changes: Changes) -> Changes:
        try:
            return self._commit_all("restore", partial(self._restoring, version), changes)
        except RefusedByCheck as refusal:
            raise collision(refusal.key) from refusal

    def _restoring(self, version: int, batch: CleanupBatch, commit_id: str) -> Statement:
        store = self._store
        buckets = sorted({change.bucket for change in batch})
        now = f"timestamp_micros({micros(self._environment.clock())})"
        retired = partitions_clause((Kind.RETIRED.value, bucket) for bucket in buckets)
        rows = store.session.sql(
            f"SELECT 'schema' AS kind, bucket, key, {literal(commit_id)} AS commit_id, "
            "revision + 1 AS revision, fingerprint, digest, datasource, num_rows, size_bytes, "
            "location, starts_at, ends_at, state, payload, published_at, "
            f"{now} AS changed_at, {literal(self._call.caller.actor)} AS changed_by "
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

    def _purging(self, batch: CleanupBatch, commit_id: str) -> Statement:
        # I3: only the row that was read (compare-and-swap on its commit id). One that was retired
        # again meanwhile may be the last copy of a schema that a segment refers to.
        sql = delete_keys(
            self._store.relation,
            [(Kind.RETIRED.value, change.bucket) for change in batch],
            {Kind.RETIRED.value: _bounds(batch)},
            same_commit=True,
        )
        return Statement("purge", sql, self._keys(Kind.RETIRED, batch))

    def _retire(self, changes: Changes, cutoff: int, limit: int) -> Changes:
        """Retires in batches, and plans again if another clean-up retired one of the schemas."""
        done: list[CleanupChange] = []
        todo = batches(changes)
        while todo:
            batch = todo[0]
            self._call.progress(Step("retire", len(done), len(done) + sum(map(len, todo))))
            try:
                done += self._commit("retire", self._retiring, batch)
            except RefusedByCheck as refusal:
                log.info("Another clean-up retired %s; planning again.", refusal.key)
                self._call.deadline.check("other cleaners")
                finished = {change.fingerprint for change in done}
                _, plan = self._plan(cutoff, limit)
                todo = batches([c for c in plan.retire if c.fingerprint not in finished])
                continue
            todo = todo[1:]
            self._environment.at("cleanup.batch")
        return tuple(done)

    def _retiring(self, batch: CleanupBatch, commit_id: str) -> Statement:
        sql = retire_keys(
            self._store.relation,
            [change.bucket for change in batch],
            _bounds(batch),
            commit_id,
            micros(self._environment.clock()),
            self._call.caller.actor,
        )
        return Statement("retire", sql, self._keys(Kind.SCHEMA, batch))

    def _commit_all(self, verb: str, make: Make, changes: Changes) -> Changes:
        """Commits changes batch by batch; returns those that these commits made."""
        changed: list[CleanupChange] = []
        done = 0
        for batch in batches(changes):
            self._call.progress(Step(verb, done, len(changes)))
            changed += self._commit(verb, make, batch)
            done += len(batch)
        return tuple(changed)

    def _commit(self, verb: str, make: Make, batch: CleanupBatch) -> CleanupBatch:
        """The part of a batch that this commit changed: others may have changed the rest before."""
        executed = self._context.commit(self._call, partial(make, batch), verb)
        self._retries += executed.retries
        if executed.version is None:
            return ()
        count, change_type = _CHANGED[verb]
        if executed.counts.get(count) == len(batch):
            return batch
        feed = self._store.changes(executed.version, executed.version)
        rows = feed.where(f"_change_type = '{change_type}'").select("key").collect()
        keys = {row["key"] for row in rows}
        return [change for change in batch if change.fingerprint in keys]

    def _keys(self, kind: Kind, batch: CleanupBatch) -> Any:
        keys = {change.fingerprint: (change.bucket, change.commit_id) for change in batch}
        return self._store.session.createDataFrame(key_table(kind, keys))


def _bounds(batch: CleanupBatch) -> tuple[str, str]:
    keys = [change.fingerprint for change in batch]
    return min(keys), max(keys)


def candidates_sql(rows: str, cutoff_micros: int, limit: int) -> str:
    """The query for `CleanupCandidate` rows at one version: all retired schemas, and old orphans.

    Retired rows are few (purging keeps them so) and all needed; orphans are capped.
    """
    columns = (
        "s.key AS fingerprint, s.bucket, s.kind = 'retired' AS retired, s.commit_id, "
        "unix_micros(s.published_at) AS published_micros, "
        "unix_micros(s.changed_at) AS changed_micros"
    )
    return (
        # Every kind that is not a schema itself may refer to one.
        f"WITH used AS (SELECT DISTINCT fingerprint FROM {rows} "
        "WHERE kind NOT IN ('schema', 'retired') AND fingerprint IS NOT NULL), "
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
