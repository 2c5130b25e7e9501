"""The commit that completes segments; one that fails is split until the failing one is alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from catalog.backfill.model import Completion, troubled
from catalog.commit.claims import claims_on
from catalog.commit.committer import commit_until_settled
from catalog.contracts.enforcement import (
    Inspection,
    KnownTerms,
    reasons_of,
    refused_only,
    violation,
    warned,
)
from catalog.delta.failures import Failure, classify, first_line
from catalog.delta.statements import Claims, Statement, complete_segments
from catalog.delta.writer import Executed, RefusedByCheck, Writer
from catalog.environment import Deadline, Environment
from catalog.errors import CatalogError, ContractViolation, FingerprintCollision
from catalog.model import Caller, Kind, Offence, State
from catalog.segments.batch import batch_of, plan_group
from catalog.segments.group import source_of, written_segments

log = logging.getLogger(__name__)

VERB = "backfill"


@dataclass(frozen=True)
class Completed:
    """The outcome of a commit of completions.

    Attributes:
        version: one at which every segment that is neither stored nor claimed is known to be gone,
            replaced, or to have a schema from others.
        stored: ids of the segments that were stored.
        retries: commits that were retried because another came first.
        claimed: ids of those that an operation claims; they wait as before.
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
        """Stores completions of segments whose rows are still of the commits that were read.

        Raises:
            ContractViolation: Some break a contract; nothing was written.
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
        # An operation is about to change these; a later backfill reads them again.
        self._held |= {claim.key for claim in standing.exclusive} & self._plan.segments.keys()
        self._completions = [e for e in self._completions if e.segment.id not in self._held]
        return "operations on the same segments"

    def _check_contracts(self) -> None:
        # One with trouble adds nothing to its segment.
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
    """The rows with the troubles of some, and the commit id that each segment was read with."""
    by_key = {each.segment.id: each for each in completions}
    table: dict[str, Any] = rows.select(["key", "state", "payload"]).to_pydict()
    found = [by_key.get(key) for key in table["key"]]
    for number, each in enumerate(found):
        if each is not None and each.trouble is not None:
            table["state"][number] = State.QUARANTINED.value
            table["payload"][number] = each.trouble.payload()
    for name in ("state", "payload"):
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, name, pa.array(table[name], pa.string()))
    seen = [None if each is None else each.seen for each in found]
    return rows.append_column("seen", pa.array(seen, pa.string()))


# --- splitting ------------------------------------------------------------------------------------

Commit = Callable[[Sequence[Completion]], Completed]


@dataclass
class Tally:
    """The outcome of each of some completions.

    Attributes:
        version: the last version that was reached.
        completed: those whose schema was stored.
        overtaken: those whose segments others dropped, replaced or completed meanwhile.
        claimed: those that an operation claims: they wait as before.
        quarantined: those that were stored with their trouble.
        retries: commits that were retried because another came first.
    """

    version: int = 0
    completed: list[Completion] = field(default_factory=list)
    overtaken: list[Completion] = field(default_factory=list)
    claimed: list[Completion] = field(default_factory=list)
    quarantined: list[Completion] = field(default_factory=list)
    retries: int = 0


class Storer:
    """Stores completions in one commit, or in as many as it takes to isolate those that fail."""

    def __init__(self, commit: Commit, clock: Callable[[], datetime]) -> None:
        self._commit = commit
        self._clock = clock

    def store(self, completions: Sequence[Completion]) -> Tally:
        """The outcome of each; raises errors that can be retried, and those that no completion
        causes. Earlier commits of the call stay."""
        tally = Tally()
        self._store(completions, tally)
        return tally

    def _store(self, completions: Sequence[Completion], tally: Tally) -> None:
        if not completions:
            return
        try:
            done = self._commit(completions)
        except FingerprintCollision as error:
            wrong = error.values["fingerprint"]
            self._store([e for e in completions if e.segment.fingerprint != wrong], tally)
            broken = [e for e in completions if e.segment.fingerprint == wrong]
            self._quarantine(broken, error, tally)
        except ContractViolation as error:
            reasons = reasons_of(error)
            self._store([e for e in completions if e.segment.id not in reasons], tally)
            now = self._clock()
            broken = [e for e in completions if e.segment.id in reasons]
            self._store([troubled(e.before, reasons[e.segment.id], now) for e in broken], tally)
        except Exception as error:
            lost = classify(error) is Failure.LOST
            again = error.retryable if isinstance(error, CatalogError) else lost
            if again or (len(completions) == 1 and completions[0].trouble is not None):
                raise
            log.warning("Storing what was found for %d failed: %s", len(completions), error)
            if len(completions) == 1:
                self._quarantine(completions, error, tally)
                return
            middle = len(completions) // 2
            self._store(completions[:middle], tally)
            self._store(completions[middle:], tally)
        else:
            _count(completions, done, tally)

    def _quarantine(
        self, completions: Iterable[Completion], error: Exception, tally: Tally
    ) -> None:
        now = self._clock()
        reason = error.message if isinstance(error, CatalogError) else first_line(error)
        self._store([troubled(each.before, reason, now) for each in completions], tally)


def _count(completions: Sequence[Completion], done: Completed, tally: Tally) -> None:
    tally.version = max(tally.version, done.version)
    tally.retries += done.retries
    for each in completions:
        if each.segment.id in done.claimed:
            tally.claimed.append(each)
        elif each.segment.id not in done.stored:
            tally.overtaken.append(each)
        elif each.trouble is None:
            tally.completed.append(each)
        else:
            tally.quarantined.append(each)
