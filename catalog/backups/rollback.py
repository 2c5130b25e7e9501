"""Going back: one ordinary commit that makes the contents of a catalog what they were."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from catalog.backups.comparison import OBJECT, Comparer, Comparison, Past
from catalog.backups.contrast import (
    Changed,
    carried,
    changes_of,
    claimed_keys,
    first_keys,
    probes,
)
from catalog.commit.changes import Change, plain_clash
from catalog.commit.claims import Standing, claimed, standing_claims
from catalog.commit.committer import Committed, Committer, Settled
from catalog.commit.operation_rows import OBJECT_BUCKET
from catalog.commit.rowset import RowSet
from catalog.context import Call
from catalog.contracts.rows import write_terms
from catalog.contracts.terms import Terms
from catalog.delta.layout import bucket_of
from catalog.delta.session import Tuning
from catalog.delta.statements import DATASOURCE, Statement
from catalog.model import Kind, from_micros
from catalog.objects.apply import check_in_order, in_order, write_objects
from catalog.objects.reading import staged_objects
from catalog.progress import Progress

log = logging.getLogger(__name__)

ROLLBACK = "rollback"
SEGMENT = Kind.SEGMENT.value
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


class Rollback:
    """Brings the contents of a catalog back; runs in the commit thread."""

    def __init__(self, committer: Committer, tuning: Tuning, progress: Progress) -> None:
        self._committer = committer
        self._store = committer.store
        self._comparer = Comparer(committer.store, committer.buckets, tuning, progress)

    def look(self, past: Past) -> RollbackReport:
        """What a rollback would do now, with the first keys of each kind."""
        plan = self._comparer.compare(past)
        shown = first_keys(plan.rows, [each.changed.kind for each in plan.reaches])
        changed = plan.objects.changed
        shown[OBJECT] = tuple(
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
        shown[DATASOURCE] = (
            *shown.get(DATASOURCE, ()),
            *((Change.UPDATE.value, row.datasource) for row in plan.unlimited),
        )[:_SHOWN]
        changes = tuple(replace(each, first=shown[each.kind]) for each in plan.changes)
        return RollbackReport(plan.version, "", past.name, plan.version, changes, dry_run=True)

    def go_back(self, past: Past, call: Call) -> RollbackReport:
        """Commits what has to change; planned again whenever something is otherwise by then."""
        planned: list[Comparison] = []

        def plan(rows: RowSet) -> Statement:
            made = self._comparer.compare(past)
            if not made.changes:
                self._nothing_left(rows, made, planned)
            planned[:] = [made]
            return self._statement(past, made, rows)

        try:
            done = self._committer.commit(ROLLBACK, call, plan, self._figures(past, planned))
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

    def _nothing_left(self, rows: RowSet, made: Comparison, planned: list[Comparison]) -> None:
        """Ends the work: everything is as it was, perhaps by a commit whose answer was lost."""
        if planned and self._store.find_commit(rows.commit_id) is not None:
            raise Settled(self._committer.lost(rows.commit_id, made.version))
        planned.clear()
        raise Settled(Committed(made.version, "", 0))

    @staticmethod
    def _figures(past: Past, planned: list[Comparison]) -> Callable[[], Mapping[str, int | str]]:
        return lambda: {
            "to": past.name,
            "rows": sum(each.rows for made in planned for each in made.changes),
        }

    # --- the commit -------------------------------------------------------------------------------

    def _statement(self, past: Past, plan: Comparison, rows: RowSet) -> Statement:
        objects = plan.objects
        if objects.written or objects.changed.deleted:
            published = {key: from_micros(each) for key, each in objects.published_micros.items()}
            if objects.now.ready:
                staged = staged_objects(self._store, plan.version)
                check_in_order(objects.nodes, staged, in_order(objects.now.ready))
            write_objects(rows, objects.now, objects.nodes, published)
        for row in plan.unlimited:
            write_terms(rows, row, Terms.of(row.terms.contract))
        standing = self._claims(plan)
        if standing.claims:
            raise claimed(standing.claims)
        self._ask(plan, rows)
        for each in plan.reaches:
            rows.reads(each.changed.kind, each.buckets, each.low, each.high)
        if plan.schema_buckets:
            rows.reads_all("schema", plan.schema_buckets)
        unlimited = {row.datasource for row in plan.unlimited}
        more = self._store.session.createDataFrame(
            [(self._bucket(name), name) for name in sorted(objects.datasources - unlimited)],
            "bucket INT, datasource STRING",
        )
        homes = {self._bucket(name) for name in objects.datasources}
        homes |= {b for each in plan.reaches if each.changed.kind == SEGMENT for b in each.buckets}
        if homes:
            rows.reads_all(DATASOURCE, homes)
        known = self._store.session.sql(
            f"SELECT key, commit_id FROM {self._store.pinned(plan.version)} "
            f"WHERE kind = '{DATASOURCE}'"
        )
        frames = [
            changes_of(plan.rows, rows),
            probes(plan.rows, more, unlimited, known, rows),
            carried(past.rows, plan.rows, plan.gone, objects.fingerprints, rows),
        ]
        return rows.statement(
            ROLLBACK,
            self._store,
            plain_clash(standing.decided),
            frames,
            bulk=plan.bulk,
            changing=True,
        )

    def _claims(self, plan: Comparison) -> Standing:
        """Who claims what changes, even if only to have it stay: then nothing may go back."""
        objects = plan.objects
        keys = [(OBJECT, OBJECT_BUCKET, key) for key in sorted(objects.keys)]
        keys += [(DATASOURCE, self._bucket(name), name) for name in sorted(objects.datasources)]
        frame = self._store.session.createDataFrame(keys, "target STRING, bucket INT, key STRING")
        buckets = {bucket for _, bucket, _ in keys}
        buckets |= {bucket for each in plan.reaches for bucket in each.buckets}
        wanted = claimed_keys(plan.rows).union(frame)
        return standing_claims(self._store, wanted, buckets, plan.version)

    def _ask(self, plan: Comparison, rows: RowSet) -> None:
        """Adds the rows that are refused where an operation has a claim by the time of the commit.

        Rule Z: whatever changes, or must stay, has its staged bucket read.
        """
        objects = plan.objects
        changing = objects.written.keys() | objects.changed.deleted.keys()
        for key in objects.keys - changing:
            rows.add(OBJECT, OBJECT_BUCKET, key, Change.PROBE)
        for name in objects.datasources:
            rows.reads_all("staged", [self._bucket(name)])
        if objects.keys:
            rows.reads_all("staged", [OBJECT_BUCKET])
        for each in plan.reaches:
            rows.reads_all("staged", each.buckets)

    def _bucket(self, datasource: str) -> int:
        return bucket_of(datasource, self._committer.buckets)
