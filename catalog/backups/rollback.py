"""Rollback: one ordinary commit that makes the contents of a catalog what they were."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from catalog.backups.comparison import OBJECT, Comparer, Past, RollbackPlan
from catalog.backups.difference import (
    Changed,
    carried,
    changes_of,
    claimed_keys,
    first_keys,
    probes,
)
from catalog.commit.claims import Standing, claimed, standing_claims
from catalog.commit.committer import Committed, Committer, Settled
from catalog.commit.operation_rows import OBJECT_BUCKET
from catalog.commit.rows import RowSet
from catalog.context import Call
from catalog.contracts.model import Terms
from catalog.contracts.store import write_terms
from catalog.delta.changes import RowChange, plain_clash
from catalog.delta.layout import bucket_of
from catalog.delta.session import Tuning
from catalog.delta.statements import DATASOURCE, Statement
from catalog.model import Kind, from_micros
from catalog.objects.plan import check_in_order, in_order
from catalog.objects.store import staged_objects, write_objects
from catalog.progress import Progress

log = logging.getLogger(__name__)

ROLLBACK = "rollback"
SEGMENT = Kind.SEGMENT.value
_SHOWN = 10


@dataclass(frozen=True)
class RollbackReport:
    """Result of a rollback, or of its dry run.

    Attributes:
        version: the version that it made; the newest one if nothing changed.
        commit_id: id of its commit; empty if there was none.
        target: the version or backup that it went back to.
        planned_at: the version with which that was compared.
        changes: changes of each kind; with the first keys in a dry run.
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
        """The number of changed rows."""
        return sum(changed.rows for changed in self.changes)

    @property
    def beside(self) -> int:
        """The number of commits in between, on other keys; they stay."""
        return max(0, self.version - self.planned_at - 1) if self.commit_id else 0

    def facts(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "commit_id": self.commit_id or None,
            "target": self.target,
            "planned_at": self.planned_at,
            "rows": self.rows,
            "beside": self.beside,
            "dry_run": self.dry_run,
            "retries": self.retries,
        }

    def figures(self) -> dict[str, float]:
        return {"rows": self.rows, "conflicts_retried": self.retries}


class Rollback:
    """Rolls a catalog back; runs in the commit thread."""

    def __init__(self, committer: Committer, tuning: Tuning, progress: Progress) -> None:
        self._committer = committer
        self._store = committer.store
        self._comparer = Comparer(committer.store, committer.buckets, tuning, progress)

    def look(self, past: Past) -> RollbackReport:
        """A dry run, with the first keys of each kind."""
        plan = self._comparer.compare(past)
        shown = first_keys(plan.rows, [each.changed.kind for each in plan.reaches])
        changed = plan.objects.changed
        shown[OBJECT] = tuple(
            sorted(
                (
                    *((RowChange.INSERT.value, key) for key in changed.inserted),
                    *((RowChange.UPDATE.value, key) for key in changed.updated),
                    *((RowChange.DELETE.value, key) for key in changed.deleted),
                ),
                key=lambda each: each[1],
            )[:_SHOWN]
        )
        gone = plan.gone.orderBy("key").limit(_SHOWN).collect() if plan.schemas else []
        shown["schema"] = tuple((RowChange.INSERT.value, row["key"]) for row in gone)
        shown[DATASOURCE] = (
            *shown.get(DATASOURCE, ()),
            *((RowChange.UPDATE.value, row.datasource) for row in plan.unlimited),
        )[:_SHOWN]
        changes = tuple(replace(each, first=shown[each.kind]) for each in plan.changes)
        return RollbackReport(plan.version, "", past.name, plan.version, changes, dry_run=True)

    def go_back(self, past: Past, call: Call) -> RollbackReport:
        """Commits the changes, with optimistic retry: compared again after every conflict."""
        planned: list[RollbackPlan] = []

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

    def _nothing_left(self, rows: RowSet, made: RollbackPlan, planned: list[RollbackPlan]) -> None:
        """Ends the retry: nothing differs, perhaps because of a commit whose answer was lost."""
        if planned and self._store.find_commit(rows.commit_id) is not None:
            raise Settled(self._committer.lost(rows.commit_id, made.version))
        planned.clear()
        raise Settled(Committed(made.version, "", 0))

    @staticmethod
    def _figures(past: Past, planned: list[RollbackPlan]) -> Callable[[], Mapping[str, int | str]]:
        return lambda: {
            "to": past.name,
            "rows": sum(each.rows for made in planned for each in made.changes),
        }

    # --- the commit -------------------------------------------------------------------------------

    def _statement(self, past: Past, plan: RollbackPlan, rows: RowSet) -> Statement:
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
        self._probe(plan, rows)
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

    def _claims(self, plan: RollbackPlan) -> Standing:
        """Claims on rows that change, also those that only hold them: they refuse the rollback."""
        objects = plan.objects
        keys = [(OBJECT, OBJECT_BUCKET, key) for key in sorted(objects.keys)]
        keys += [(DATASOURCE, self._bucket(name), name) for name in sorted(objects.datasources)]
        frame = self._store.session.createDataFrame(keys, "target STRING, bucket INT, key STRING")
        buckets = {bucket for _, bucket, _ in keys}
        buckets |= {bucket for each in plan.reaches for bucket in each.buckets}
        wanted = claimed_keys(plan.rows).union(frame)
        return standing_claims(self._store, wanted, buckets, plan.version)

    def _probe(self, plan: RollbackPlan, rows: RowSet) -> None:
        """Adds rows that are refused if an operation has a claim by the time of the commit.

        Rule Z: the staged bucket of every row that changes, or must stay, is read.
        """
        objects = plan.objects
        changing = objects.written.keys() | objects.changed.deleted.keys()
        for key in objects.keys - changing:
            rows.add(OBJECT, OBJECT_BUCKET, key, RowChange.PROBE)
        for name in objects.datasources:
            rows.reads_all("staged", [self._bucket(name)])
        if objects.keys:
            rows.reads_all("staged", [OBJECT_BUCKET])
        for each in plan.reaches:
            rows.reads_all("staged", each.buckets)

    def _bucket(self, datasource: str) -> int:
        return bucket_of(datasource, self._committer.buckets)
