"""Going back: one ordinary commit that makes the contents of a catalog what they were."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from catalog.model import from_micros
from catalog.objects.model import Node
from catalog.objects.reading import Objects, all_objects, objects_of
from catalog.objects.state import Difference, difference
from catalog.operations.committing import Committed, Committer, Request, Settled
from catalog.operations.objects import write_objects
from catalog.operations.reading import Standing, claimed, standing_claims
from catalog.operations.rows import OBJECT_BUCKET
from catalog.operations.rowset import RowSet
from catalog.preserve.contrast import (
    Changed,
    Reach,
    carried,
    changes_of,
    claimed_keys,
    contrast,
    first_keys,
    gone_schemas,
    probes,
    reaches,
    schema_bucket_of,
)
from catalog.preserve.kinds import check_known
from catalog.preserve.objects import rolled_back
from catalog.progress import Progress, Step
from catalog.rows import schema_bucket
from catalog.table.changes import Change, plain_clash
from catalog.table.layout import bucket_of
from catalog.table.statements import DATASOURCE, Statement
from catalog.table.views import complete

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger(__name__)

ROLLBACK = "rollback"
_OBJECT = "object"
# From so many changes on, running the statement takes longer than planning it.
_BULK = 5_000
_SHOWN = 10


@dataclass(frozen=True)
class RollbackReport:
    """What a rollback did, or would do.

    Attributes:
        version: the version that it made; the newest one if there was nothing to do.
        commit_id: of that commit; empty if there was none.
        target: what was gone back to, a version or a backup.
        planned_at: the version against which that was compared.
        changes: what was done with the rows of each kind; a dry run names the first keys.
    """

    version: int
    commit_id: str
    target: str
    planned_at: int
    changes: tuple[Changed, ...] = ()
    dry_run: bool = False
    retries: int = 0

    @property
    def rows(self) -> int:
        """How many rows it changed."""
        return sum(changed.rows for changed in self.changes)

    @property
    def beside(self) -> int:
        """How many commits came in between, on other keys; they stay."""
        return max(0, self.version - self.planned_at - 1) if self.commit_id else 0


@dataclass(frozen=True)
class Past:
    """What a catalog was: all its rows, with all columns, in buckets as it has them now."""

    name: str
    rows: DataFrame


@dataclass(frozen=True)
class _Objects:
    """All objects now and as they will be."""

    now: Objects
    nodes: Mapping[str, Node]
    changed: Difference
    published_micros: Mapping[str, int]

    @property
    def written(self) -> dict[str, Node]:
        return {**self.changed.inserted, **self.changed.updated}

    @property
    def keys(self) -> set[str]:
        """Those that change, and those that they link to: nobody may take these away meanwhile."""
        changing = self.written.keys() | self.changed.deleted.keys()
        return changing | {link for node in self.written.values() for link in node.links}

    @property
    def datasources(self) -> set[str]:
        """Datasources that an object begins or ceases to stand for."""
        names: set[str | None] = set()
        for key in self.written.keys() | self.changed.deleted.keys():
            sides = [state[key] for state in (self.now.nodes, self.nodes) if key in state]
            found = {node.datasource for node in sides}
            if len(sides) < 2 or len(found) > 1:
                names |= found
        return {name for name in names if name is not None}

    @property
    def fingerprints(self) -> set[str]:
        return {node.fingerprint for node in self.written.values() if node.fingerprint is not None}


@dataclass(frozen=True)
class _Plan:
    """What has to change, compared at one version."""

    version: int
    rows: DataFrame
    gone: DataFrame
    objects: _Objects
    reaches: tuple[Reach, ...]
    schemas: int
    schema_buckets: frozenset[int]

    @property
    def changes(self) -> tuple[Changed, ...]:
        changed = self.objects.changed
        objects = Changed(
            _OBJECT, len(changed.inserted), len(changed.updated), len(changed.deleted)
        )
        every = [each.changed for each in self.reaches]
        every += [objects, Changed("schema", inserted=self.schemas)]
        return tuple(sorted((each for each in every if each.rows), key=lambda each: each.kind))


class Rollback:
    """Brings the contents of a catalog back; runs in the commit thread."""

    def __init__(self, committer: Committer, progress: Progress) -> None:
        self._committer = committer
        self._store = committer.store
        self._progress = progress

    def look(self, past: Past) -> RollbackReport:
        """What a rollback would do now, with the first keys of each kind."""
        plan = self._compare(past)
        shown = first_keys(plan.rows, [each.changed.kind for each in plan.reaches])
        changed = plan.objects.changed
        shown[_OBJECT] = tuple(
            sorted(
                (
                    *((Change.INSERT.value, key) for key in changed.inserted),
                    *((Change.UPDATE.value, key) for key in changed.updated),
                    *((Change.DELETE.value, key) for key in changed.deleted),
                ),
                key=lambda each: each[1],
            )[:_SHOWN]
        )
        gone = plan.gone.orderBy("key").limit(_SHOWN).collect() if plan.schemas else []
        shown["schema"] = tuple((Change.INSERT.value, row["key"]) for row in gone)
        changes = tuple(replace(each, first=shown[each.kind]) for each in plan.changes)
        return RollbackReport(plan.version, "", past.name, plan.version, changes, dry_run=True)

    def go_back(self, past: Past, request: Request) -> RollbackReport:
        """Commits what has to change; planned again whenever something is otherwise by then."""
        planned: list[_Plan] = []

        def plan(rows: RowSet) -> Statement:
            made = self._compare(past)
            if not made.changes:
                self._nothing_left(rows, made, planned)
            planned[:] = [made]
            return self._statement(past, made, rows)

        try:
            done = self._committer.commit(ROLLBACK, request, plan, self._figures(past, planned))
        except Settled as settled:
            done = settled.answer
        made = planned[0] if planned else None
        log.info("rollback to %s: version %d", past.name, done.version)
        return RollbackReport(
            done.version,
            done.commit_id,
            past.name,
            done.version if made is None else made.version,
            () if made is None else made.changes,
            retries=done.retries,
        )

    def _nothing_left(self, rows: RowSet, made: _Plan, planned: list[_Plan]) -> None:
        """Ends the work: everything is as it was, perhaps by a commit whose answer was lost."""
        if planned and self._store.find_commit(rows.commit_id) is not None:
            raise Settled(self._committer.lost(rows.commit_id, made.version))
        planned.clear()
        raise Settled(Committed(made.version, "", 0))

    @staticmethod
    def _figures(past: Past, planned: list[_Plan]) -> Callable[[], Mapping[str, int | str]]:
        return lambda: {
            "to": past.name,
            "rows": sum(each.rows for made in planned for each in made.changes),
        }

    # --- what differs -----------------------------------------------------------------------------

    def _compare(self, past: Past) -> _Plan:
        store = self._store
        version = store.head().version
        self._progress(Step(f"rollback: compare with {past.name}", 0, 2))
        now = store.session.sql(f"SELECT * FROM {complete(store.session, store.pinned(version))}")
        check_known(row["kind"] for row in past.rows.select("kind").distinct().collect())
        check_known(row["kind"] for row in now.select("kind").distinct().collect())
        changed = contrast(past.rows, now)
        gone = gone_schemas(past.rows, now)
        # How many went, and from which buckets: their keys may be too many to be listed.
        missing = gone.groupBy(schema_bucket_of("key").alias("bucket")).count().collect()
        objects = self._objects(past, version)
        found = tuple(reaches(changed))
        buckets = {row["bucket"] for row in missing}
        buckets |= {bucket for each in found for bucket in each.schema_buckets}
        buckets |= {schema_bucket(each) for each in objects.fingerprints}
        self._progress(Step(f"rollback: compare with {past.name}", 1, 2))
        return _Plan(
            version,
            changed,
            gone,
            objects,
            found,
            sum(row["count"] for row in missing),
            frozenset(buckets),
        )

    def _objects(self, past: Past, version: int) -> _Objects:
        rows = [
            row.asDict()
            for row in past.rows.where("kind IN ('object', 'guard')")
            .selectExpr(
                *("kind", "key", "commit_id", "revision", "fingerprint", "datasource", "digest"),
                *("payload", "unix_micros(published_at) AS published"),
            )
            .collect()
        ]
        then, now = objects_of(rows, version), all_objects(self._store, version)
        nodes = rolled_back(now.nodes, then.nodes, max(now.highest, then.highest))
        return _Objects(
            now,
            nodes,
            difference(now.nodes, nodes),
            {row["key"]: row["published"] for row in rows},
        )

    # --- the commit -------------------------------------------------------------------------------

    def _statement(self, past: Past, plan: _Plan, rows: RowSet) -> Statement:
        objects = plan.objects
        if objects.written or objects.changed.deleted:
            published = {key: from_micros(each) for key, each in objects.published_micros.items()}
            write_objects(rows, objects.now, objects.nodes, published)
        standing = self._claims(plan)
        if standing.claims:
            raise claimed(standing.claims)
        self._ask(plan, rows)
        for each in plan.reaches:
            rows.reads(each.changed.kind, each.buckets, each.low, each.high)
        if plan.schema_buckets:
            rows.reads_all("schema", plan.schema_buckets)
        more = self._store.session.createDataFrame(
            [(self._bucket(name), name) for name in sorted(objects.datasources)],
            "bucket INT, datasource STRING",
        )
        frames = [
            changes_of(plan.rows, rows),
            probes(plan.rows, more, rows),
            carried(past.rows, plan.rows, plan.gone, objects.fingerprints, rows),
        ]
        return rows.statement(
            ROLLBACK,
            self._store,
            plain_clash(standing.decided),
            frames,
            bulk=sum(each.rows for each in plan.changes) >= _BULK,
            changing=True,
        )

    def _claims(self, plan: _Plan) -> Standing:
        """Who claims what changes, even if only to have it stay: then nothing may go back."""
        objects = plan.objects
        keys = [(_OBJECT, OBJECT_BUCKET, key) for key in sorted(objects.keys)]
        keys += [(DATASOURCE, self._bucket(name), name) for name in sorted(objects.datasources)]
        frame = self._store.session.createDataFrame(keys, "target STRING, bucket INT, key STRING")
        buckets = {bucket for _, bucket, _ in keys}
        buckets |= {bucket for each in plan.reaches for bucket in each.buckets}
        wanted = claimed_keys(plan.rows).union(frame)
        return standing_claims(self._store, wanted, buckets, plan.version)

    def _ask(self, plan: _Plan, rows: RowSet) -> None:
        """Adds the rows that are refused where an operation has a claim by the time of the commit.

        Rule Z: whatever changes, or must stay, has its staged bucket read.
        """
        objects = plan.objects
        changing = objects.written.keys() | objects.changed.deleted.keys()
        for key in objects.keys - changing:
            rows.add(_OBJECT, OBJECT_BUCKET, key, Change.PROBE)
        for name in objects.datasources:
            rows.reads_all("staged", [self._bucket(name)])
        if objects.keys:
            rows.reads_all("staged", [OBJECT_BUCKET])
        for each in plan.reaches:
            rows.reads_all("staged", each.buckets)

    def _bucket(self, datasource: str) -> int:
        return bucket_of(datasource, self._committer.buckets)
