"""The commit that fills in what was not known of segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from catalog.backfill.waiting import Completion
from catalog.commit.claims import claims_on
from catalog.commit.committer import commit_until_settled
from catalog.contracts.enforcement import Inspection, KnownTerms, refused_only, violation, warned
from catalog.delta.statements import Claims, Statement, complete_segments
from catalog.delta.writer import Executed, RefusedByCheck, Writer
from catalog.environment import Deadline, Environment
from catalog.model import Caller, Kind, Offence, State
from catalog.segments.batch import batch_of, plan_group
from catalog.segments.group import source_of, written_segments

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
        self.writer = writer
        self.buckets = buckets
        self.terms = terms
        self.environment = environment

    def complete(
        self, completions: Sequence[Completion], caller: Caller, deadline: Deadline
    ) -> Completed:
        """Stores what was found, for segments that are still as they were read.

        Raises:
            ContractViolation: Some of it breaks a contract; nothing was written.
        """
        return _Completing(self, completions, caller, deadline).run()


class _NothingLeft(Exception):
    """Every segment is claimed by an operation."""


class _Completing:
    """One commit of completions, without those that operations claim."""

    def __init__(
        self,
        completer: Completer,
        completions: Sequence[Completion],
        caller: Caller,
        deadline: Deadline,
    ) -> None:
        self._writer = completer.writer
        self._store = completer.writer.store
        self._buckets = completer.buckets
        self._environment = completer.environment
        self._completions = completions
        self._caller = caller
        self._deadline = deadline
        self._commit_id = completer.environment.new_id()
        self._inspection = Inspection(completer.terms)
        self._offences: tuple[Offence, ...] = ()
        self._claims = Claims()
        self._held: set[str] = set()
        self._plan = plan_group([], {})

    def run(self) -> Completed:
        try:
            executed = commit_until_settled(
                *(self._writer, self._commit_id, VERB, self._deadline),
                plan=self._statement,
                callers=lambda: [self._caller.counting(segments=len(self._plan.segments))],
                learn=self._learn,
            )
        except _NothingLeft:
            done = Completed(self._store.head().version, frozenset())
        else:
            warned(self._offences)
            done = self._outcome(executed)
        return replace(done, claimed=frozenset(self._held))

    def _learn(self, refusal: RefusedByCheck) -> str:
        with self._deadline.not_counting():
            if refusal.kind == Kind.DATASOURCE:
                self._inspection.learn(self._plan.datasources)
                return "contracts of the same datasources"
            standing = claims_on(self._store, self._plan.segments, (), self._buckets)
        self._claims = standing.ignoring(self._claims)
        # What an operation is about to change is left to it; a later backfill looks again.
        self._held |= {claim.key for claim in standing.exclusive} & self._plan.segments.keys()
        self._completions = [e for e in self._completions if e.segment.id not in self._held]
        return "operations on the same segments"

    def _check_contracts(self) -> None:
        # One with trouble says nothing new of its segment.
        found = [each.segment for each in self._completions if each.trouble is None]
        (self._offences,) = self._inspection.offences([found], self._plan.datasources)
        if refused := refused_only(self._offences):
            raise violation(refused)

    def _statement(self, uncertain: bool) -> Statement:
        if not self._completions:
            raise _NothingLeft
        batch = batch_of((each.segment for each in self._completions), self._caller)
        self._plan = plan = plan_group([batch], {})
        if not uncertain:
            self._check_contracts()
        rows = plan.table(
            [self._caller.actor],
            *(self._buckets, self._commit_id, self._environment.clock()),
            self._inspection.digests(plan.datasources),
        )
        source = source_of(self._store, plan, _with_troubles(rows, self._completions))
        partitions, bounds = plan.partitions(self._buckets), plan.bounds()
        sql = complete_segments(self._store.relation, partitions, bounds, self._claims)
        return Statement(VERB, sql, source, bulk=plan.bulk)

    def _outcome(self, executed: Executed) -> Completed:
        store, keys = self._store, self._plan.segments.keys()
        version = executed.version
        if version is None and executed.retries:
            # An earlier attempt may have stored everything, though its answer was lost.
            version = store.find_commit(self._commit_id)
        if version is None:
            return Completed(store.head().version, frozenset(), executed.retries)
        if executed.counts.get("num_updated_rows") == len(keys):
            return Completed(version, frozenset(keys), executed.retries)
        _, stored = written_segments(store, version)
        return Completed(version, frozenset(stored), executed.retries)


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
