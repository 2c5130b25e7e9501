"""One run of retention: drops the segments that exceed their rules, some archived first."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from catalog.commit.claims import claimed, claims_on
from catalog.context import Call, Context
from catalog.delta.failures import Failure, classify, first_line
from catalog.errors import CatalogError, ClaimConflict, UnknownObject
from catalog.model import DropResult, from_micros, micros
from catalog.objects.model import StoredObject
from catalog.objects.retention_rules import (
    RETENTION,
    TABLE,
    Assignment,
    RetentionAction,
    RetentionRule,
    assigned,
    databases_of,
)
from catalog.objects.store import of_type, stored_objects
from catalog.progress import Step
from catalog.retention.archive import DATASTORE, LINK, Archiver, archive_of
from catalog.retention.report import RefusedRule, Retained, RetentionFailure, RetentionReport
from catalog.retention.selection import Due, DueSegment, RetentionSearch, may_go

log = logging.getLogger(__name__)

DEFAULT_LIMIT = 100_000
# Segments in one commit; fewer where they are copied first, which takes far longer.
_BATCH = {RetentionAction.DROP: 5_000, RetentionAction.ARCHIVE: 500}
_MOST_FAILURES = 100

Drop = Callable[[Mapping[str, str]], DropResult]
# The archiver for an archive and a datasource.
Archivers = Callable[[str, str], Archiver]


@dataclass
class _Tally:
    """What became of the segments of one datasource so far."""

    datasource: str
    rule: RetentionRule
    due: Due
    archived: int = 0
    dropped: int = 0
    overtaken: int = 0
    failed: int = 0
    tried: int = 0
    failures: list[RetentionFailure] = field(default_factory=list)

    def fail(self, problems: Mapping[str, str]) -> None:
        self.failed += len(problems)
        for segment_id, reason in sorted(problems.items()):
            if len(self.failures) < _MOST_FAILURES:
                self.failures.append(RetentionFailure(segment_id, reason))

    def report(self, problem: str) -> Retained:
        due = self.due
        return Retained(
            *(self.datasource, self.rule.key, self.rule.action.value),
            *(due.segments, due.by_age, due.segments - due.by_age, due.num_rows, due.size_bytes),
            *(_moment(due.oldest), _moment(due.newest)),
            *(self.archived, self.dropped, self.overtaken, self.failed),
            failures=tuple(self.failures),
            left=due.segments - self.dropped - self.overtaken - self.failed,
            problem=problem,
        )


class Retainer:
    """Applies the rules once. It may be stopped at any point and run again, also concurrently.

    A segment is dropped only if its row is still as it was read (compare-and-swap on the commit
    id), and one to be archived only after its data was copied and listed in the manifest. An error
    in one datasource does not stop the others.
    """

    def __init__(
        self, context: Context, call: Call, buckets: int, drop: Drop, archivers: Archivers
    ) -> None:
        """Args:
        context: the open catalog.
        call: the call.
        buckets: the number of segment buckets.
        drop: drops those of the given segments that still have the given commit ids.
        archivers: makes archivers.
        """
        self._context = context
        self._call = call
        self._store = context.store
        self._buckets = buckets
        self._drop = drop
        self._archivers = archivers
        self._retries = 0

    def run(self, only: Sequence[str] | None, limit: int, dry_run: bool) -> RetentionReport:
        """Applies the rules to all datasources that have one, or to the given ones."""
        began = time.monotonic()
        # Rules and segments of one version; what changes meanwhile is left to the next run.
        version = self._store.head().version
        now = micros(self._context.environment.clock())
        types = map(of_type, (RETENTION, TABLE, DATASTORE, LINK))
        objects = stored_objects(self._store, version, " OR ".join(types))
        assignment = assigned(objects, only)
        if only is not None:
            _check_ruled(only, assignment)
        search = RetentionSearch(self._store, self._buckets, version)
        overviews = search.overviews(assignment.rules)
        reports = [
            Retained(name, "", "", problem=reason) for name, reason in assignment.troubled.items()
        ]
        for number, (name, rule) in enumerate(assignment.rules.items()):
            self._call.progress(Step("retain segments", number, len(assignment.rules)))
            overview = overviews.get(name)
            if overview is None or not may_go(rule, overview.count, overview.oldest, now):
                continue
            due = search.due(name, rule, now)
            if due is not None:
                tally = _Tally(name, rule, due)
                problem = self._apply(tally, search, version, objects, 0 if dry_run else limit)
                limit -= tally.tried
                reports.append(tally.report(problem))
        return RetentionReport(
            version,
            tuple(sorted(reports, key=lambda each: each.datasource)),
            tuple(RefusedRule(key, reason) for key, reason in sorted(assignment.refused.items())),
            dry_run,
            time.monotonic() - began,
            self._retries,
        )

    def _apply(
        self,
        tally: _Tally,
        search: RetentionSearch,
        version: int,
        objects: Sequence[StoredObject],
        limit: int,
    ) -> str:
        """Archives and drops up to `limit` segments; returns why that was given up, or ''."""
        try:
            archiver = self._archiver(tally, objects)
            self._batches(tally, search, version, archiver, min(limit, tally.due.segments))
        except Exception as error:
            if not isinstance(error, CatalogError) and classify(error) is Failure.LOST:
                raise
            problem = error.message if isinstance(error, CatalogError) else first_line(error)
            log.warning("Retention of %s was given up: %s", tally.datasource, problem)
            return problem
        return ""

    def _archiver(self, tally: _Tally, objects: Sequence[StoredObject]) -> Archiver | None:
        if tally.rule.action is not RetentionAction.ARCHIVE:
            return None
        name = tally.datasource
        databases = databases_of(objects).get(name, set())
        return self._archivers(archive_of(name, databases, objects), name)

    def _batches(
        self,
        tally: _Tally,
        search: RetentionSearch,
        version: int,
        archiver: Archiver | None,
        total: int,
    ) -> None:
        """Archives and drops batch by batch, oldest first."""
        last: DueSegment | None = None
        while tally.tried < total:
            batch = min(_BATCH[tally.rule.action], total - tally.tried)
            page = search.page(tally.due, last, batch)
            if not page:
                return
            last = page[-1]
            tally.tried += len(page)
            if archiver is not None:
                page = self._archive(archiver, self._unclaimed(page, tally), version, tally)
            self._remove({each.id: each.commit_id for each in page}, tally)
            self._context.environment.at("retain.dropped")
            self._call.progress(Step(f"retain segments of {tally.datasource}", tally.tried, total))

    def _unclaimed(self, page: list[DueSegment], tally: _Tally) -> list[DueSegment]:
        """Those that no operation claims: the others could not be dropped after copying."""
        standing = claims_on(self._store, [each.id for each in page], (), self._buckets)
        if not standing.exclusive:
            return page
        reason = claimed(standing.exclusive).message
        taken = {claim.key for claim in standing.exclusive}
        tally.fail({each.id: reason for each in page if each.id in taken})
        return [each for each in page if each.id not in taken]

    def _archive(
        self, archiver: Archiver, page: list[DueSegment], version: int, tally: _Tally
    ) -> list[DueSegment]:
        """Copies and lists segments; returns those that are in the archive now."""
        environment = self._context.environment
        copied, problems = archiver.copy(page)
        tally.fail(problems)
        environment.at("retain.copied")
        done = [each for each in page if each.id in copied]
        if done:
            caller = self._call.caller
            archiver.add_to_manifest(done, copied, version, caller, environment.clock())
        tally.archived += len(done)
        environment.at("retain.archived")
        return done

    def _remove(self, going: dict[str, str], tally: _Tally) -> None:
        """Drops segments that are unchanged; those that an operation claims by now fail."""
        while going:
            try:
                result = self._drop(going)
            except ClaimConflict as conflict:
                taken = set(conflict.values.get("keys", ())) & going.keys()
                if not taken:
                    raise
                tally.fail(dict.fromkeys(taken, conflict.message))
                for segment_id in taken:
                    del going[segment_id]
            else:
                self._retries += result.retries
                tally.dropped += result.dropped
                tally.overtaken += len(going) - result.dropped
                return


def _check_ruled(only: Sequence[str], assignment: Assignment) -> None:
    """Raises for a requested datasource that has no rule."""
    for name in only:
        if name not in assignment.ruled:
            raise UnknownObject(
                f"There is no retention rule for datasource {name}; put {RETENTION}/datasource/"
                f"{name}, or leave it out.",
                datasource=name,
            )


def _moment(at: int) -> datetime | None:
    """The time, unless Python cannot represent it."""
    try:
        return from_micros(at)
    except OverflowError:
        return None
