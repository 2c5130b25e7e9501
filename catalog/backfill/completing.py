"""The commit that fills in what was not known of segments."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from catalog.backfill.waiting import Completion
from catalog.commit.claims import claims_on
from catalog.commit.committer import collision
from catalog.commit.rows import MISSING_DIGEST_SQL, datasource_table, entry_table
from catalog.contracts.enforcement import Inspection, KnownTerms, refused_only, violation, warned
from catalog.delta.statements import Claims, Statement, complete_segments
from catalog.delta.writer import Executed, RefusedByCheck, Writer
from catalog.environment import Deadline, Environment
from catalog.model import Caller, Kind, State
from catalog.segments.batch import GroupPlan, batch_of, plan_group
from catalog.segments.group import BULK
from catalog.segments.known import written_segments

VERB = "backfill"


@dataclass(frozen=True)
class Completed:
    """What became of some completions.

    Attributes:
        version: one at which every segment that is neither stored nor claimed is known to be gone,
            replaced, or to have a schema from somebody else.
        stored: those that were stored.
        retries: commits that were tried again because another came first.
        claimed: those that an operation claims. Nothing is decided about them: they wait as before.
    """

    version: int
    stored: frozenset[str]
    retries: int = 0
    claimed: frozenset[str] = frozenset()


class Completer:
    """Stores completions, each call in one commit; runs in the commit thread."""

    def __init__(
        self, writer: Writer, buckets: int, terms: KnownTerms, environment: Environment
    ) -> None:
        self._writer = writer
        self._buckets = buckets
        self._terms = terms
        self._environment = environment

    def complete(
        self, completions: Sequence[Completion], caller: Caller, deadline: Deadline
    ) -> Completed:
        """Stores what was found, for segments that are still as they were seen.

        Raises:
            ContractViolation: Some of it breaks a contract; nothing was written.
        """
        claims = Claims()
        held: set[str] = set()
        inspection = Inspection(self._terms)
        while completions:
            batch = batch_of((each.segment for each in completions), caller)
            plan = plan_group([batch], {})
            # One with trouble says nothing new of its segment.
            found = [each.segment for each in completions if each.trouble is None]
            (offences,) = inspection.offences([found], plan.datasources)
            if refused := refused_only(offences):
                raise violation(refused)
            terms = inspection.digests(plan.datasources)
            commit_id = self._environment.new_id()
            make = partial(self._statement, plan, completions, caller, claims, terms, commit_id)
            try:
                executed = self._writer.commit(
                    make, commit_id, VERB, partial(_only, batch.caller), deadline
                )
            except RefusedByCheck as refusal:
                if refusal.kind == Kind.DATASOURCE:
                    deadline.check("contracts of the same datasources")
                    inspection.learn(plan.datasources)
                    continue
                if refusal.kind != Kind.STAGED:
                    raise collision(refusal.key) from refusal
                deadline.check("operations on the same segments")
                standing = claims_on(self._writer.store, plan.segments, (), self._buckets)
                claims = standing.ignoring(claims)
                # What an operation is about to change is left to it; a later backfill looks again.
                held |= {claim.key for claim in standing.exclusive} & plan.segments.keys()
                completions = [each for each in completions if each.segment.id not in held]
            else:
                warned(offences)
                done = self._outcome(executed, commit_id, batch.segments.keys())
                return replace(done, claimed=frozenset(held))
        return Completed(self._writer.store.head().version, frozenset(), claimed=frozenset(held))

    def _statement(
        self,
        plan: GroupPlan,
        completions: Sequence[Completion],
        caller: Caller,
        claims: Claims,
        terms: Mapping[str, str],
        commit_id: str,
        uncertain: bool,
    ) -> Statement:
        store = self._writer.store
        bulk = len(plan.segments) >= BULK
        rows = entry_table(
            list(plan.segments.values()),
            [caller.actor] * len(plan.segments),
            plan.schemas,
            self._buckets,
            commit_id,
            self._environment.clock(),
            digests=not bulk,
        )
        asked = datasource_table(
            plan.datasources,
            self._buckets,
            commit_id,
            self._environment.clock(),
            caller.actor,
            terms,
        )
        both = _with_troubles(pa.concat_tables([rows, asked]), completions)
        source = store.session.createDataFrame(both)
        if bulk:
            source = source.withColumn("digest", F.expr(MISSING_DIGEST_SQL))
        sql = complete_segments(
            store.relation, plan.partitions(self._buckets), plan.bounds(), claims
        )
        return Statement(VERB, sql, source, bulk=bulk)

    def _outcome(self, executed: Executed, commit_id: str, keys: Collection[str]) -> Completed:
        store = self._writer.store
        version = executed.version
        if version is None and executed.retries:
            # An earlier try may have stored everything, though its answer was lost.
            version = store.find_commit(commit_id)
        if version is None:
            return Completed(store.head().version, frozenset(), executed.retries)
        if executed.counts.get("num_updated_rows") == len(keys):
            return Completed(version, frozenset(keys), executed.retries)
        _, stored = written_segments(self._writer, version)
        return Completed(version, frozenset(stored), executed.retries)


def _only(caller: Caller) -> list[Caller]:
    return [caller]


def _with_troubles(rows: pa.Table, completions: Sequence[Completion]) -> pa.Table:
    """The rows with what is wrong with some of them, and how each was seen."""
    by_key = {each.segment.id: each for each in completions}
    keys: Any = rows.column("key").to_pylist()
    found = [by_key.get(key) for key in keys]
    troubles = [None if each is None else each.trouble for each in found]
    columns = {
        "state": [
            state if trouble is None else State.QUARANTINED.value
            for state, trouble in zip(rows.column("state").to_pylist(), troubles, strict=True)
        ],
        "payload": [
            payload if trouble is None else trouble.payload()
            for payload, trouble in zip(rows.column("payload").to_pylist(), troubles, strict=True)
        ],
    }
    for name, values in columns.items():
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, name, pa.array(values, pa.string()))
    seen = [None if each is None else each.seen for each in found]
    return rows.append_column("seen", pa.array(seen, pa.string()))
