"""Publishing a DataFrame of any size: staged once, checked where it lies, merged in one commit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from catalog.commit.claims import claimed, standing_claims
from catalog.commit.committer import collision
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
    insert_missing,
    insert_or_replace,
    partitions_clause,
    with_claims,
)
from catalog.delta.writer import Executed, RefusedByCheck, Writer
from catalog.environment import Deadline, Environment
from catalog.model import Caller, Kind, Offence, OnExisting, PublishResult, micros
from catalog.progress import Progress, Step, silent
from catalog.schema.names import literal
from catalog.segments.batch import conflict
from catalog.segments.columns import normalised
from catalog.segments.group import FIRST_REFUSAL
from catalog.segments.staged import StagedBatch, check_staged, staged_offences
from catalog.segments.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger(__name__)


class FramePublisher:
    """Stages a frame, checks it there, merges it and clears it away.

    `commits` is the queue of the catalog's commits. Staging has one of its own: a long write must
    not hold up small publishes. `patience` is how long clearing away may wait for others.
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
        self._writer = writer
        self._terms = terms
        self._staging = staging
        self._patience = patience
        self._commits = commits
        self._stagings = CommitQueue()
        self._buckets = buckets
        self._environment = environment

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
                return PublishResult(self._writer.store.head().version, "", (), 0, 0)
            counted = caller.counting(segments=batch.segments)
            return self._commits.alone(
                lambda: self._publish(batch, counted, mode, deadline), deadline
            )

    @contextmanager
    def described(
        self, frame: DataFrame, deadline: Deadline, progress: Progress, verb: str
    ) -> Iterator[StagedBatch | None]:
        """The rows of a frame, checked and kept until the end; none if there are no rows."""
        rows = normalised(frame)
        name = self._environment.new_id()
        try:
            progress(Step(f"{verb}: describe and stage", 0, 3))
            self._stagings.alone(
                lambda: self._staging.write(rows, name, self._buckets, deadline), deadline
            )
            self._environment.at(f"{verb}.staged")
            progress(Step(f"{verb}: check", 1, 3))
            batch = check_staged(self._staging, name)
            if batch is not None:
                progress(Step(f"{verb}: commit", 2, 3))
            yield batch
        finally:
            self._discard(name)

    def entries(self, batch: StagedBatch, commit_id: str, actor: str) -> DataFrame:
        """The rows of a batch as a commit writes them: every schema and every segment once."""
        now = f"timestamp_micros({micros(self._environment.clock())})"
        rows = self._writer.store.session.sql(
            f"SELECT kind, bucket, key, {literal(commit_id)} AS commit_id, 1L AS revision, "
            "fingerprint, digest, datasource, num_rows, size_bytes, location, starts_at, ends_at, "
            f"CAST(NULL AS STRING) AS state, payload, {now} AS published_at, {now} AS changed_at, "
            f"{literal(actor)} AS changed_by FROM {self._staging.rows(batch.name)}"
        )
        schemas = rows.where("kind = 'schema'").dropDuplicates(["key"])
        segments = rows.where("kind = 'segment'")
        # An insert-only MERGE would insert a repeated row twice.
        return schemas.union(segments.dropDuplicates(["key"]) if batch.repeated else segments)

    def datasources(self, batch: StagedBatch) -> DataFrame:
        """The datasources of a batch: bucket and key, which is the name."""
        return self._writer.store.session.sql(
            f"SELECT DISTINCT bucket, datasource AS key FROM {self._staging.rows(batch.name)} "
            "WHERE kind = 'segment'"
        )

    def sweep(self, deadline: Deadline) -> None:
        """Clears away what others staged long ago and left."""
        self._stagings.alone(lambda: self._staging.sweep(deadline), deadline)

    def _discard(self, name: str) -> None:
        patience = self._patience()
        try:
            self._stagings.alone(lambda: self._staging.discard(name, patience), patience)
        except Exception as error:
            # What was published is published; a clean-up sweeps what is left here.
            log.warning("The staged batch %s could not be removed: %s", name, error)

    def _publish(
        self, batch: StagedBatch, caller: Caller, mode: OnExisting, deadline: Deadline
    ) -> PublishResult:
        commit_id = self._environment.new_id()
        refuse = FIRST_REFUSAL[mode]
        replacing = False
        claims = Claims()
        terms, offences = self._checked(batch, learn=False)
        while True:
            chosen = None if replacing else refuse
            try:
                executed = self._writer.commit(
                    partial(self._merge, batch, caller, chosen, claims, terms, commit_id),
                    commit_id,
                    "publish",
                    lambda: [caller],
                    deadline,
                )
            except RefusedByCheck as refusal:
                if refusal.kind == Kind.STAGED:
                    claims = self._respect(batch, claims)
                    deadline.check("a quiet moment")
                    continue
                if refusal.kind == Kind.DATASOURCE:
                    terms, offences = self._checked(batch, learn=True)
                    deadline.check("a quiet moment")
                    continue
                if refusal.kind != Kind.SEGMENT:
                    raise collision(refusal.key) from refusal
                version = self._writer.store.find_commit(commit_id)
                if version is not None:
                    # An earlier try did commit, though its answer was lost.
                    executed = Executed(version)
                    break
                if mode is OnExisting.REPLACE:
                    replacing = True
                elif refuse is Refuse.OTHER_CONTENT:
                    self._raise_conflict(batch)
                    deadline.check("a quiet moment")
                refuse = Refuse.OTHER_CONTENT
            else:
                break
        result = self._result(batch, executed, commit_id, refuse)
        return replace(result, warnings=warned(offences))

    # --- contracts --------------------------------------------------------------------------------

    def _checked(
        self, batch: StagedBatch, learn: bool
    ) -> tuple[Mapping[str, Terms], tuple[Offence, ...]]:
        """The terms that the batch was checked by, as they are if it breaks them."""
        homes = {bucket for kind, bucket in batch.partitions if kind == Kind.SEGMENT}
        terms = self._terms.learn_within(homes) if learn else self._terms.within(homes)
        offences = self.offences(batch, terms)
        if refused := refused_only(offences):
            if learn:
                raise violation(refused)
            return self._checked(batch, learn=True)
        return terms, offences

    def offences(self, batch: StagedBatch, terms: Mapping[str, Terms]) -> tuple[Offence, ...]:
        """What a batch breaks of contracts, found where it lies."""
        return staged_offences(self._staging, batch, terms, self._writer.store.session)

    # --- the statement ----------------------------------------------------------------------------

    def _merge(
        self,
        batch: StagedBatch,
        caller: Caller,
        refuse: Refuse | None,
        claims: Claims,
        terms: Mapping[str, Terms],
        commit_id: str,
        uncertain: bool,
    ) -> Statement:
        """The statement that inserts, or without anything to refuse, also replaces."""
        store = self._writer.store
        source = self.entries(batch, commit_id, caller.actor)
        now = f"timestamp_micros({micros(self._environment.clock())})"
        asked = self.datasources(batch).selectExpr(
            f"explode(array('{DATASOURCE}', '{ASKING}')) AS kind",
            "bucket",
            "key",
            f"{literal(commit_id)} AS commit_id",
            "1L AS revision",
            f"{now} AS published_at",
            f"{now} AS changed_at",
            f"{literal(caller.actor)} AS changed_by",
        )
        digests = [(name, each.digest) for name, each in terms.items() if each.digest]
        if digests:
            # What the batch was checked by: the statement refuses itself if it is otherwise.
            known = store.session.createDataFrame(digests, "key STRING, digest STRING")
            asked = asked.join(F.broadcast(known), "key", "left")
        source = source.unionByName(asked, allowMissingColumns=True)
        partitions, bounds = with_claims(batch.partitions), bounds_with_claims(batch.bounds)
        if refuse is None:
            sql = insert_or_replace(store.relation, partitions, bounds, claims, bool(digests))
        else:
            sql = insert_missing(store.relation, partitions, bounds, refuse, claims, bool(digests))
        return Statement("publish", sql, source, bulk=True)

    def _respect(self, batch: StagedBatch, claims: Claims) -> Claims:
        """Raises if an undecided operation claims some of the batch; else which are decided."""
        segments = self._writer.store.session.sql(
            f"SELECT kind AS target, bucket, key FROM {self._staging.rows(batch.name)} "
            "WHERE kind = 'segment'"
        )
        asked = self.datasources(batch).selectExpr("'datasource' AS target", "bucket", "key")
        buckets = [bucket for kind, bucket in batch.partitions if kind == Kind.SEGMENT]
        standing = standing_claims(self._writer.store, segments.union(asked), buckets)
        if standing.exclusive:
            raise claimed(standing.exclusive)
        return standing.ignoring(claims)

    def _raise_conflict(self, batch: StagedBatch) -> None:
        """Names the segments that differ; returns if they are gone again."""
        store = self._writer.store
        partitions = [p for p in batch.partitions if p[0] == Kind.SEGMENT]
        bounds = {Kind.SEGMENT.value: batch.bounds[Kind.SEGMENT.value]}
        rows = store.session.sql(
            f"SELECT t.key, count(*) OVER () AS total FROM (SELECT * FROM "
            f"{store.pinned(store.head().version)} AS t WHERE ({partitions_clause(partitions)}) "
            f"AND ({bounds_clause(bounds)})) AS t JOIN {self._staging.rows(batch.name)} AS s "
            "ON s.kind = 'segment' AND t.bucket = s.bucket AND t.key = s.key "
            f"WHERE {CONTRADICTS} ORDER BY t.key LIMIT 5"
        ).collect()
        if rows:
            raise conflict([row["key"] for row in rows], rows[0]["total"])

    def _result(
        self, batch: StagedBatch, executed: Executed, commit_id: str, refuse: Refuse
    ) -> PublishResult:
        store = self._writer.store
        inserted = replaced = 0
        if executed.version is not None and refuse is Refuse.ANY_SEGMENT and executed.counts:
            inserted = batch.segments
        elif executed.version is not None:
            figures = (
                store.changes(executed.version, executed.version)
                .where("kind = 'segment'")
                .selectExpr(
                    "count_if(_change_type = 'insert') AS inserted",
                    "count_if(_change_type = 'update_postimage') AS replaced",
                )
                .collect()[0]
            )
            inserted, replaced = figures["inserted"], figures["replaced"]
        version = executed.version if executed.version is not None else store.head().version
        return PublishResult(
            version=version,
            commit_id=commit_id if executed.version is not None else "",
            fingerprints=batch.fingerprints,
            inserted=inserted,
            existing=batch.segments - inserted - replaced,
            replaced=replaced,
            retries=executed.retries,
        )
