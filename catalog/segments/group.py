"""Group commit: the callers that wait together are served by one MERGE."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import functions as F

from catalog.commit.claims import claimed, claims_on
from catalog.commit.committer import collision
from catalog.commit.rows import (
    MISSING_DIGEST_SQL,
    datasource_table,
    entry_table,
)
from catalog.contracts.enforcement import Inspection, KnownTerms, refused_only, violation, warned
from catalog.delta.queue import Request
from catalog.delta.statements import (
    DATASOURCE,
    Claims,
    Refuse,
    Statement,
    insert_missing,
    insert_or_replace,
)
from catalog.delta.writer import Executed, RefusedByCheck, Writer
from catalog.environment import Deadline, Environment, Together
from catalog.model import Caller, Kind, Offence, OnExisting, PublishResult
from catalog.segments.batch import Batch, Known, plan_group
from catalog.segments.known import known_segments, written_segments

# What the first try of a publish refuses. By default every segment is taken to be new: so the usual
# publish knows what it inserted without a second query. A replacement is tried as an insert first,
# because a MERGE that may update rewrites files even if there is nothing to update.
FIRST_REFUSAL = {
    OnExisting.REFUSE: Refuse.ANY_SEGMENT,
    OnExisting.SKIP: Refuse.OTHER_SCHEMA,
    OnExisting.REPLACE: Refuse.OTHER_CONTENT,
}
# From so many segments on, running a statement takes longer than planning and compiling it.
BULK = 5_000
_OTHERS = "other writers of the same rows"


class PublishRequest(Request):
    """A caller that waits for its batch; requests of the default mode may share a commit."""

    def __init__(
        self, publisher: Publisher, batch: Batch, deadline: Deadline, mode: OnExisting
    ) -> None:
        super().__init__(
            publisher.run, deadline, group="publish" if mode is OnExisting.REFUSE else None
        )
        self.batch = batch
        self.mode = mode


class Publisher:
    """Publishes groups of batches."""

    def __init__(
        self, writer: Writer, buckets: int, terms: KnownTerms, environment: Environment
    ) -> None:
        self.writer = writer
        self.buckets = buckets
        self.terms = terms
        self.environment = environment

    def run(self, requests: Sequence[PublishRequest]) -> None:
        """Gives every request its outcome; one that is refused does not fail the others."""
        while waiting := [request for request in requests if not request.finished]:
            _Round(self, waiting).run()


class _Round:
    """One commit for those of a group that can share it; at least one gets its outcome."""

    def __init__(self, publisher: Publisher, requests: Sequence[PublishRequest]) -> None:
        self._writer = publisher.writer
        self._buckets = publisher.buckets
        self._environment = publisher.environment
        self._requests = requests
        self._mode = requests[0].mode
        self._commit_id = publisher.environment.new_id()
        self._deadline = Together([request.deadline for request in requests])
        self._refuse = FIRST_REFUSAL[self._mode]
        self._replacing = False
        self._claims = Claims()
        self._inspection = Inspection(publisher.terms)
        self._offences: dict[PublishRequest, tuple[Offence, ...]] = {}
        self._known: dict[str, Known] = {}
        self._known_version: int | None = None
        self._members: list[PublishRequest] = []
        self._plan = plan_group([], {})

    def run(self) -> None:
        while True:
            try:
                executed = self._writer.commit(
                    self._statement, self._commit_id, "publish", self._callers, self._deadline
                )
            except _NobodyLeft:
                return
            except RefusedByCheck as refusal:
                if refusal.kind == Kind.STAGED:
                    self._respect_claims()
                    continue
                if refusal.kind == Kind.DATASOURCE:
                    self._learn_contracts()
                    continue
                if refusal.kind != Kind.SEGMENT:
                    self._refuse_collision(refusal.key)
                    return
                if self._mode is OnExisting.REPLACE:
                    self._replacing = True
                elif self._look_up():
                    return
            else:
                self._hand_out(executed)
                return

    def _statement(self, uncertain: bool) -> Statement:
        """Plans what can be published now; called before every try."""
        if not uncertain:
            for request in self._requests:
                if request.deadline.left <= 0:
                    request.fail(request.deadline.gave_up(_OTHERS))
            self._mind_contracts()
        waiting = [request for request in self._requests if not request.finished]
        plan = plan_group([request.batch for request in waiting], self._known)
        for index, error in plan.refused.items():
            waiting[index].fail(error)
        self._members = [waiting[index] for index in plan.accepted]
        if not self._members:
            raise _NobodyLeft
        # The owners of ids are counted among the members.
        if len(self._members) < len(waiting):
            plan = plan_group([request.batch for request in self._members], self._known)
        self._plan = plan
        return self._merge()

    def _merge(self) -> Statement:
        store, plan = self._writer.store, self._plan
        members = [request.batch.caller.actor for request in self._members]
        bulk = len(plan.segments) >= BULK
        rows = entry_table(
            list(plan.segments.values()),
            [members[plan.owner[key]] for key in plan.segments],
            plan.schemas,
            self._buckets,
            self._commit_id,
            self._environment.clock(),
            digests=not bulk,
        )
        partitions, bounds = plan.partitions(self._buckets), plan.bounds()
        datasources = plan.datasources
        terms = self._inspection.digests(datasources)
        if self._replacing:
            sql = insert_or_replace(
                store.relation, partitions, bounds, self._claims, terms=bool(terms)
            )
        else:
            sql = insert_missing(
                store.relation, partitions, bounds, self._refuse, self._claims, terms=bool(terms)
            )
        asked = datasource_table(
            datasources,
            self._buckets,
            self._commit_id,
            self._environment.clock(),
            members[0],
            terms,
        )
        source = store.session.createDataFrame(pa.concat_tables([rows, asked]))
        if bulk:
            source = source.withColumn("digest", F.expr(MISSING_DIGEST_SQL))
        return Statement("publish", sql, source, bulk=bulk)

    def _callers(self) -> list[Caller]:
        return [request.batch.caller for request in self._members]

    def _refuse_collision(self, fingerprint: str) -> None:
        for request in self._members:
            if fingerprint in request.batch.schemas:
                request.fail(collision(fingerprint))

    def _respect_claims(self) -> None:
        """Fails those who want what an undecided operation claims; learns which are decided."""
        store, plan = self._writer.store, self._plan
        with self._deadline.not_counting():
            standing = claims_on(store, plan.segments, plan.datasources, self._buckets)
        self._claims = standing.ignoring(self._claims)
        for request in self._members:
            batch = request.batch
            datasources = {segment.datasource for segment in batch.segments.values()}
            in_the_way = [
                claim
                for claim in standing.exclusive
                if claim.key in (datasources if claim.target == DATASOURCE else batch.segments)
            ]
            if in_the_way:
                request.fail(claimed(in_the_way))
        self._deadline.check(_OTHERS)

    def _mind_contracts(self) -> None:
        """Fails those who break a contract."""
        if not self._inspection:
            return
        waiting = [request for request in self._requests if not request.finished]
        with self._deadline.not_counting():
            found = self._inspection.offences(
                [request.batch.segments.values() for request in waiting], self._datasources()
            )
        self._offences = dict(zip(waiting, found, strict=True))
        for request, offences in self._offences.items():
            if refused := refused_only(offences):
                request.fail(violation(refused))

    def _learn_contracts(self) -> None:
        """Reads the contracts of all who wait; their segments are checked by them next."""
        with self._deadline.not_counting():
            self._inspection.learn(self._datasources())
        self._deadline.check(_OTHERS)

    def _datasources(self) -> set[str]:
        waiting = [request.batch for request in self._requests if not request.finished]
        return {segment.datasource for batch in waiting for segment in batch.segments.values()}

    def _look_up(self) -> bool:
        """Learns which segments are there; true if they turn out to be from this very commit."""
        with self._deadline.not_counting():
            self._known, self._known_version = known_segments(
                self._writer, self._plan, self._buckets
            )
        self._refuse = Refuse.OTHER_CONTENT
        ours = (
            key in self._known and self._known[key].commit_id == self._commit_id
            for key in self._plan.segments
        )
        if not all(ours):
            return False
        # An earlier try did commit, though its answer was lost.
        version = self._writer.store.find_commit(self._commit_id) or self._known_version
        self._hand_out(Executed(version, {"num_inserted_rows": self._all_rows}))
        return True

    @property
    def _all_rows(self) -> int:
        plan = self._plan
        return len(plan.segments) + len(plan.schemas) + len(plan.datasources)

    def _hand_out(self, executed: Executed) -> None:
        inserted, replaced = self._written(executed)
        version = executed.version if executed.version is not None else self._known_version
        if version is None:
            version = self._writer.store.head().version
        for index, request in enumerate(self._members):
            mine = [key for key in request.batch.segments if self._plan.owner[key] == index]
            new = len(mine) if inserted is None else sum(key in inserted for key in mine)
            changed = sum(key in replaced for key in mine)
            request.finish(
                PublishResult(
                    version=version,
                    commit_id=self._commit_id if executed.version is not None else "",
                    fingerprints=request.batch.fingerprints,
                    inserted=new,
                    existing=len(request.batch.segments) - new - changed,
                    replaced=changed,
                    retries=executed.retries,
                    warnings=warned(self._offences.get(request, ())),
                )
            )

    def _written(self, executed: Executed) -> tuple[set[str] | None, set[str]]:
        """The ids that the commit inserted (none stands for all) and those that it replaced."""
        if executed.version is None:
            return set(), set()
        checked_new = self._refuse is Refuse.ANY_SEGMENT
        rows = executed.counts.get("num_inserted_rows")
        if rows is not None and (checked_new or rows == self._all_rows):
            return None, set()
        return written_segments(self._writer, executed.version)


class _NobodyLeft(Exception):
    """Every request of the round has its outcome."""
