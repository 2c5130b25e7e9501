"""Publishing a DataFrame of any size: staged once, checked there, merged in one commit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from catalog.commit.claims import standing_claims
from catalog.commit.committer import commit_until_settled
from catalog.contracts.enforcement import KnownTerms, refused_only, violation, warned
from catalog.contracts.model import Terms
from catalog.delta.queue import CommitQueue
from catalog.delta.statements import (
    ASKING,
    CONTRADICTS,
    DATASOURCE,
    Claims,
    Refuse,
    Statement,
    bounds_clause,
    bounds_with_claims,
    merge_segments,
    partitions_clause,
    with_claims,
)
from catalog.delta.writer import Executed, RefusedByCheck, Writer
from catalog.environment import Deadline, Environment
from catalog.model import Caller, Kind, Offence, OnExisting, PublishResult, micros
from catalog.progress import Progress, Step, silent
from catalog.schema.names import literal
from catalog.segments.batch import conflict
from catalog.segments.group import FIRST_REFUSAL, NEXT_REFUSAL
from catalog.segments.manifest import normalised
from catalog.segments.staging import StagedBatch, Staging, check_staged, staged_offences

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger(__name__)


class FramePublisher:
    """Stages a frame, checks it there, merges it and removes it from staging.

    `commits` is the queue of the catalog's commits. Staging has one of its own: a long write must
    not hold up small publishes. `patience` is how long removing may wait for others.
    """

    def __init__(
        self,
        writer: Writer,
        staging: Staging,
        commits: CommitQueue,
        buckets: int,
        terms: KnownTerms,
        patience: Callable[[], Deadline],
        environment: Environment,
    ) -> None:
        self.writer = writer
        self.store = writer.store
        self.staging = staging
        self.terms = terms
        self.environment = environment
        self._commits = commits
        self._stagings = CommitQueue()
        self._buckets = buckets
        self._patience = patience

    def publish(
        self,
        frame: DataFrame,
        caller: Caller,
        mode: OnExisting,
        deadline: Deadline,
        progress: Progress = silent,
    ) -> PublishResult:
        """Publishes all rows of a frame or none; the modes are those of `Catalog.publish`."""
        with self.described(frame, deadline, progress, "publish") as batch:
            if batch is None:
                return PublishResult(self.store.head().version, "", (), 0, 0)
            merge = _Merge(self, batch, caller.counting(segments=batch.segments), mode, deadline)
            return self._commits.alone(merge.run, deadline)

    @contextmanager
    def described(
        self, frame: DataFrame, deadline: Deadline, progress: Progress, verb: str
    ) -> Iterator[StagedBatch | None]:
        """The rows of a frame, staged and checked, until the block ends; none if it has no rows."""
        rows = normalised(frame)
        name = self.environment.new_id()
        try:
            progress(Step(f"{verb}: describe and stage", 0, 3))
            self._stagings.alone(
                lambda: self.staging.write(rows, name, self._buckets, deadline), deadline
            )
            self.environment.at(f"{verb}.staged")
            progress(Step(f"{verb}: check", 1, 3))
            batch = check_staged(self.staging, name)
            if batch is not None:
                progress(Step(f"{verb}: commit", 2, 3))
            yield batch
        finally:
            self._discard(name)

    def entries(self, batch: StagedBatch, commit_id: str, actor: str) -> DataFrame:
        """The rows of a batch as a commit writes them: every schema and every segment once."""
        now = f"timestamp_micros({micros(self.environment.clock())})"
        rows = self.store.session.sql(
            f"SELECT kind, bucket, key, {literal(commit_id)} AS commit_id, 1L AS revision, "
            "fingerprint, digest, datasource, num_rows, size_bytes, location, starts_at, ends_at, "
            f"CAST(NULL AS STRING) AS state, payload, {now} AS published_at, {now} AS changed_at, "
            f"{literal(actor)} AS changed_by FROM {self.staging.rows(batch.name)}"
        )
        schemas = rows.where("kind = 'schema'").dropDuplicates(["key"])
        segments = rows.where("kind = 'segment'")
        # An insert-only MERGE would insert a repeated row twice.
        return schemas.union(segments.dropDuplicates(["key"]) if batch.repeated else segments)

    def datasources(self, batch: StagedBatch) -> DataFrame:
        """The datasources of a batch: bucket and key, which is the name."""
        return self.store.session.sql(
            f"SELECT DISTINCT bucket, datasource AS key FROM {self.staging.rows(batch.name)} "
            "WHERE kind = 'segment'"
        )

    def offences(self, batch: StagedBatch, terms: Mapping[str, Terms]) -> tuple[Offence, ...]:
        """The breaches of contracts in a batch, found by queries on staging."""
        return staged_offences(self.staging, batch, terms, self.store.session)

    def sweep(self, deadline: Deadline) -> None:
        """Removes batches that were staged long ago and left there."""
        self._stagings.alone(lambda: self.staging.sweep(deadline), deadline)

    def _discard(self, name: str) -> None:
        patience = self._patience()
        try:
            self._stagings.alone(lambda: self.staging.discard(name, patience), patience)
        except Exception as error:
            # What was published is published; a clean-up sweeps what is left here.
            log.warning("The staged batch %s could not be removed: %s", name, error)


class _Merge:
    """The commit of one staged batch; runs in the commit thread."""

    def __init__(
        self,
        publisher: FramePublisher,
        batch: StagedBatch,
        caller: Caller,
        mode: OnExisting,
        deadline: Deadline,
    ) -> None:
        self._publisher = publisher
        self._store = publisher.store
        self._batch = batch
        self._caller = caller
        self._mode = mode
        self._deadline = deadline
        self._commit_id = publisher.environment.new_id()
        self._refuse: Refuse | None = FIRST_REFUSAL[mode]
        self._claims = Claims()
        self._terms: Mapping[str, Terms] = {}
        self._offences: tuple[Offence, ...] = ()

    def run(self) -> PublishResult:
        self._check_contracts(learn=False)
        executed = commit_until_settled(
            *(self._publisher.writer, self._commit_id, "publish", self._deadline),
            plan=self._statement,
            callers=lambda: [self._caller],
            learn=self._learn,
        )
        return self._result(executed)

    @property
    def _buckets(self) -> set[int]:
        return {bucket for kind, bucket in self._batch.partitions if kind == Kind.SEGMENT}

    def _check_contracts(self, learn: bool) -> None:
        """Checks the batch by the terms that are known, and by those in the table if it breaks one.

        Raises:
            ContractViolation: It breaks a contract as it is in the table.
        """
        known = self._publisher.terms
        self._terms = known.learn_within(self._buckets) if learn else known.within(self._buckets)
        self._offences = self._publisher.offences(self._batch, self._terms)
        if refused := refused_only(self._offences):
            if learn:
                raise violation(refused)
            self._check_contracts(learn=True)

    def _statement(self, uncertain: bool) -> Statement:
        publisher, batch, actor = self._publisher, self._batch, self._caller.actor
        now = f"timestamp_micros({micros(publisher.environment.clock())})"
        asked = publisher.datasources(batch).selectExpr(
            f"explode(array('{DATASOURCE}', '{ASKING}')) AS kind",
            "bucket",
            "key",
            f"{literal(self._commit_id)} AS commit_id",
            "1L AS revision",
            f"{now} AS published_at",
            f"{now} AS changed_at",
            f"{literal(actor)} AS changed_by",
        )
        digests = [(name, each.digest) for name, each in self._terms.items() if each.digest]
        if digests:
            # The contracts that the batch was checked by: others refuse the statement.
            known = self._store.session.createDataFrame(digests, "key STRING, digest STRING")
            asked = asked.join(F.broadcast(known), "key", "left")
        entries = publisher.entries(batch, self._commit_id, actor)
        sql = merge_segments(
            self._store.relation,
            with_claims(batch.partitions),
            bounds_with_claims(batch.bounds),
            *(self._refuse, self._claims, bool(digests)),
        )
        source = entries.unionByName(asked, allowMissingColumns=True)
        return Statement("publish", sql, source, bulk=True)

    # --- after a refusal --------------------------------------------------------------------------

    def _learn(self, refusal: RefusedByCheck) -> str | Executed | None:
        if refusal.kind == Kind.STAGED:
            self._respect_claims()
            return "a quiet moment"
        if refusal.kind == Kind.DATASOURCE:
            self._check_contracts(learn=True)
            return "a quiet moment"
        version = self._store.find_commit(self._commit_id)
        if version is not None:
            # An earlier attempt did commit, though its answer was lost.
            return Executed(version)
        refused, self._refuse = self._refuse, NEXT_REFUSAL[self._mode]
        if refused is not Refuse.OTHER_CONTENT or self._refuse is None:
            return None
        self._raise_conflict()
        return "a quiet moment"

    def _respect_claims(self) -> None:
        """Notes which operations are decided; raises if another claims some of the batch."""
        segments = self._store.session.sql(
            "SELECT kind AS target, bucket, key "
            f"FROM {self._publisher.staging.rows(self._batch.name)} WHERE kind = 'segment'"
        )
        datasources = self._publisher.datasources(self._batch)
        asked = datasources.selectExpr("'datasource' AS target", "bucket", "key")
        standing = standing_claims(self._store, segments.union(asked), self._buckets)
        self._claims = standing.respected(self._claims)

    def _raise_conflict(self) -> None:
        """Names the segments that differ; returns if they are gone again."""
        store, batch = self._store, self._batch
        partitions = [p for p in batch.partitions if p[0] == Kind.SEGMENT]
        bounds = {Kind.SEGMENT.value: batch.bounds[Kind.SEGMENT.value]}
        rows = store.session.sql(
            f"SELECT t.key, count(*) OVER () AS total FROM (SELECT * FROM "
            f"{store.pinned(store.head().version)} AS t WHERE ({partitions_clause(partitions)}) "
            f"AND ({bounds_clause(bounds)})) AS t "
            f"JOIN {self._publisher.staging.rows(batch.name)} AS s "
            "ON s.kind = 'segment' AND t.bucket = s.bucket AND t.key = s.key "
            f"WHERE {CONTRADICTS} ORDER BY t.key LIMIT 5"
        ).collect()
        if rows:
            raise conflict([row["key"] for row in rows], rows[0]["total"])

    # --- the outcome ------------------------------------------------------------------------------

    def _result(self, executed: Executed) -> PublishResult:
        store, batch, version = self._store, self._batch, executed.version
        inserted = replaced = 0
        if version is not None and self._refuse is Refuse.ANY_SEGMENT and executed.counts:
            inserted = batch.segments
        elif version is not None:
            figures = (
                store.changes(version, version)
                .where("kind = 'segment'")
                .selectExpr(
                    "count_if(_change_type = 'insert') AS inserted",
                    "count_if(_change_type = 'update_postimage') AS replaced",
                )
                .collect()[0]
            )
            inserted, replaced = figures["inserted"], figures["replaced"]
        return PublishResult(
            version=store.head().version if version is None else version,
            commit_id="" if version is None else self._commit_id,
            fingerprints=batch.fingerprints,
            inserted=inserted,
            existing=batch.segments - inserted - replaced,
            replaced=replaced,
            retries=executed.retries,
            warnings=warned(self._offences),
        )
