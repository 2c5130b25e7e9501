"""Group commit: segments of the callers that wait at the same time are published by one MERGE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from catalog.commit.claims import claimed, claims_on
from catalog.commit.committer import collision, commit_until_settled
from catalog.commit.rows import MISSING_DIGEST_SQL, key_table, segment_bucket
from catalog.contracts.enforcement import Inspection, KnownTerms, refused_only, violation, warned
from catalog.delta.queue import CommitRequest
from catalog.delta.statements import (
    DATASOURCE,
    Claims,
    Refuse,
    Statement,
    bounds_clause,
    merge_segments,
    partitions_clause,
)
from catalog.delta.store import Store
from catalog.delta.writer import Executed, RefusedByCheck, Writer
from catalog.environment import Deadline, Environment, Together
from catalog.errors import FingerprintCollision
from catalog.model import Caller, Kind, Offence, OnExisting, PublishResult
from catalog.segments.batch import Batch, GroupPlan, KnownSegment, plan_group

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# What the first attempt of a publish refuses. By default every segment is taken to be new: so the
# usual publish knows what it inserted without a second query. A replacement is tried as an insert
# first, because a MERGE that may update rewrites files even if there is nothing to update.
FIRST_REFUSAL = {
    OnExisting.REFUSE: Refuse.ANY_SEGMENT,
    OnExisting.SKIP: Refuse.OTHER_SCHEMA,
    OnExisting.REPLACE: Refuse.OTHER_CONTENT,
}
# And the attempts after segments were found there; none also replaces them.
NEXT_REFUSAL = {
    OnExisting.REFUSE: Refuse.OTHER_CONTENT,
    OnExisting.SKIP: Refuse.OTHER_CONTENT,
    OnExisting.REPLACE: None,
}
_OTHERS = "other writers of the same rows"


class PublishRequest(CommitRequest):
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
        self._store = publisher.writer.store
        self._buckets = publisher.buckets
        self._environment = publisher.environment
        self._requests = requests
        self._mode = requests[0].mode
        self._commit_id = publisher.environment.new_id()
        self._deadline = Together([request.deadline for request in requests])
        self._refuse: Refuse | None = FIRST_REFUSAL[self._mode]
        self._claims = Claims()
        self._inspection = Inspection(publisher.terms)
        self._offences: dict[PublishRequest, tuple[Offence, ...]] = {}
        self._known: dict[str, KnownSegment] = {}
        self._known_version: int | None = None
        self._members: list[PublishRequest] = []
        self._plan = plan_group([], {})

    def run(self) -> None:
        try:
            executed = commit_until_settled(
                *(self._writer, self._commit_id, "publish", self._deadline),
                plan=self._statement,
                callers=self._callers,
                learn=self._learn,
            )
        except _NobodyLeft:
            return
        except FingerprintCollision as error:
            fingerprint = error.values["fingerprint"]
            for request in self._members:
                if fingerprint in request.batch.schemas:
                    request.fail(collision(fingerprint))
            return
        self._hand_out(executed)

    # --- the plan ---------------------------------------------------------------------------------

    @property
    def _waiting(self) -> list[PublishRequest]:
        return [request for request in self._requests if not request.finished]

    def _callers(self) -> list[Caller]:
        return [request.batch.caller for request in self._members]

    def _statement(self, uncertain: bool) -> Statement:
        """Plans what can be published now; called before every attempt."""
        if not uncertain:
            for request in self._requests:
                if request.deadline.left <= 0:
                    request.fail(request.deadline.gave_up(_OTHERS))
            self._check_contracts()
        waiting = self._waiting
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
        terms = self._inspection.digests(plan.datasources)
        actors = [request.batch.caller.actor for request in self._members]
        now = self._environment.clock()
        rows = plan.table(actors, self._buckets, self._commit_id, now, terms)
        sql = merge_segments(
            *(self._store.relation, plan.partitions(self._buckets), plan.bounds()),
            *(self._refuse, self._claims, bool(terms)),
        )
        return Statement("publish", sql, source_of(self._store, plan, rows), bulk=plan.bulk)

    def _check_contracts(self) -> None:
        """Fails the requests that break a contract."""
        if not self._inspection:
            return
        waiting = self._waiting
        with self._deadline.not_counting():
            found = self._inspection.offences(
                [request.batch.segments.values() for request in waiting], self._datasources()
            )
        self._offences = dict(zip(waiting, found, strict=True))
        for request, offences in self._offences.items():
            if refused := refused_only(offences):
                request.fail(violation(refused))

    def _datasources(self) -> set[str]:
        return {name for request in self._waiting for name in request.batch.datasources}

    # --- after a refusal --------------------------------------------------------------------------

    def _learn(self, refusal: RefusedByCheck) -> str | Executed | None:
        with self._deadline.not_counting():
            if refusal.kind == Kind.SEGMENT:
                self._refuse = NEXT_REFUSAL[self._mode]
                return None if self._mode is OnExisting.REPLACE else self._look_up()
            if refusal.kind == Kind.STAGED:
                self._respect_claims()
            else:
                self._inspection.learn(self._datasources())
        return _OTHERS

    def _look_up(self) -> Executed | None:
        """Reads which segments are there; the outcome if all of them are from this very commit."""
        self._known, version = known_segments(self._store, self._plan, self._buckets)
        self._known_version = version
        ours = (
            key in self._known and self._known[key].commit_id == self._commit_id
            for key in self._plan.segments
        )
        if not all(ours):
            return None
        # An earlier attempt did commit, though its answer was lost.
        version = self._store.find_commit(self._commit_id) or version
        return Executed(version, {"num_inserted_rows": self._all_rows})

    def _respect_claims(self) -> None:
        """Fails the requests for what an undecided operation claims; notes which are decided."""
        plan = self._plan
        standing = claims_on(self._store, plan.segments, plan.datasources, self._buckets)
        self._claims = standing.ignoring(self._claims)
        for request in self._members:
            batch = request.batch
            conflicting = [
                claim
                for claim in standing.exclusive
                if claim.key
                in (batch.datasources if claim.target == DATASOURCE else batch.segments)
            ]
            if conflicting:
                request.fail(claimed(conflicting))

    # --- outcomes ---------------------------------------------------------------------------------

    @property
    def _all_rows(self) -> int:
        plan = self._plan
        return len(plan.segments) + len(plan.schemas) + len(plan.datasources)

    def _hand_out(self, executed: Executed) -> None:
        inserted, replaced = self._written(executed)
        version = executed.version if executed.version is not None else self._known_version
        if version is None:
            version = self._store.head().version
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
        """The ids that the commit inserted (none represents all) and those that it replaced."""
        if executed.version is None:
            return set(), set()
        rows = executed.counts.get("num_inserted_rows")
        if rows is not None and (self._refuse is Refuse.ANY_SEGMENT or rows == self._all_rows):
            return None, set()
        return written_segments(self._store, executed.version)


class _NobodyLeft(Exception):
    """Every request of the round has its outcome."""


def source_of(store: Store, plan: GroupPlan, rows: pa.Table) -> DataFrame:
    """The rows of a plan as the source of a statement, with the digests that they lack."""
    frame = store.session.createDataFrame(rows)
    return frame.withColumn("digest", F.expr(MISSING_DIGEST_SQL)) if plan.bulk else frame


def known_segments(
    store: Store, plan: GroupPlan, buckets: int
) -> tuple[dict[str, KnownSegment], int]:
    """The rows of the plan's segments that are in the table, at a version that is returned too."""
    version = store.head().version
    keys = {key: (segment_bucket(key, buckets), None) for key in plan.segments}
    wanted = store.session.createDataFrame(key_table(Kind.SEGMENT, keys)).select("bucket", "key")
    partitions = [p for p in plan.partitions(buckets) if p[0] == Kind.SEGMENT]
    bounds = {Kind.SEGMENT.value: plan.bounds()[Kind.SEGMENT.value]}
    found = (
        store.session.sql(
            "SELECT bucket, key, digest, commit_id, num_rows, size_bytes, location, "
            "unix_micros(starts_at) AS starts_micros, unix_micros(ends_at) AS ends_micros "
            f"FROM {store.pinned(version)} AS t "
            f"WHERE ({partitions_clause(partitions)}) AND ({bounds_clause(bounds)})"
        )
        .join(wanted, ["bucket", "key"], "left_semi")
        .drop("bucket")
        .toArrow()
        .to_pylist()
    )
    return {row.pop("key"): KnownSegment(**row) for row in found}, version


def written_segments(store: Store, version: int) -> tuple[set[str], set[str]]:
    """The segment ids that the commit of a version inserted and replaced, from the change feed."""
    changes = (
        store.changes(version, version)
        .where("kind = 'segment' AND _change_type IN ('insert', 'update_postimage')")
        .select("key", "_change_type")
        .toArrow()
        .to_pylist()
    )
    inserted = {row["key"] for row in changes if row["_change_type"] == "insert"}
    return inserted, {row["key"] for row in changes} - inserted
