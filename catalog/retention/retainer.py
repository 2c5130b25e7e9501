"""One run of retention: what goes by the rules, archived where they say so, and dropped."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from catalog.commit.claims import claimed, claims_on
from catalog.context import Call, Context
from catalog.delta.failures import Failure, classify, first_line
from catalog.errors import CatalogError, ClaimConflict, UnknownObject
from catalog.model import DropResult, from_micros, micros
from catalog.objects.model import StoredObject
from catalog.objects.reading import of_type, stored_objects
from catalog.objects.retention_rules import (
    RETENTION,
    TABLE,
    Action,
    Assignment,
    Rule,
    assigned,
    databases_of,
)
from catalog.progress import Step
from catalog.retention.archiver import Archiver
from catalog.retention.archives import DATASTORE, LINK, archive_of
from catalog.retention.plan import may_go
from catalog.retention.report import RefusedRule, Retained, RetentionFailure, RetentionReport
from catalog.retention.search import Candidate, Due, Search, seen

log = logging.getLogger(__name__)

DEFAULT_LIMIT = 100_000
# So many go into one commit; and so many are copied before one, which takes far longer.
_BATCH = {Action.DROP: 5_000, Action.ARCHIVE: 500}
_MOST_TOLD = 100

Drop = Callable[[Mapping[str, str]], DropResult]
# Makes the archiver of an archive and a datasource.
Archivers = Callable[[str, str], Archiver]


@dataclass
class _Tally:
    """What has become of the segments of a datasource so far."""

    archived: int = 0
    dropped: int = 0
    overtaken: int = 0
    failed: int = 0
    tried: int = 0
    failures: list[RetentionFailure] = field(default_factory=list)

    def fail(self, problems: Mapping[str, str]) -> None:
        self.failed += len(problems)
        for segment_id, reason in sorted(problems.items()):
            if len(self.failures) < _MOST_TOLD:
                self.failures.append(RetentionFailure(segment_id, reason))


class Retainer:
    """It may be stopped at any point and run again, also by two at once.

    A segment is dropped only as it was seen; the data of one that is archived is copied, and the
    copy listed, before that. Trouble with one datasource does not stop the others.
    """

    def __init__(
        self, context: Context, call: Call, buckets: int, drop: Drop, archivers: Archivers
    ) -> None:
        """Args:
        context: the open catalog.
        call: the call that this is for.
        buckets: how many buckets the segments are in.
        drop: drops segments that are still of the commits that are given for them.
        archivers: makes what archives segments.
        """
        self._context = context
        self._call = call
        self._store = context.store
        self._buckets = buckets
        self._drop = drop
        self._archivers = archivers
        self._version = 0
        self._retries = 0

    def run(self, only: Sequence[str] | None, limit: int, dry_run: bool) -> RetentionReport:
        """Goes through the datasources that have a rule, or through those of them."""
        began = time.monotonic()
        # Rules and segments of one version; what changes meanwhile is left to the next run.
        self._version = self._store.head().version
        now = micros(self._context.environment.clock())
        objects = self._objects()
        assignment = assigned(objects, only)
        if only is not None:
            _check_ruled(only, assignment)
        search = Search(self._store, self._buckets, self._version)
        overviews = search.overviews(assignment.rules)
        reports = [
            Retained(name, "", "", problem=reason) for name, reason in assignment.troubled.items()
        ]
        left = limit
        for number, (name, rule) in enumerate(assignment.rules.items()):
            self._call.progress(Step("retain segments", number, len(assignment.rules)))
            there = overviews.get(name)
            if there is None or not may_go(rule, there.count, there.oldest, now):
                continue
            due = search.due(name, rule, now)
            if due is not None:
                report, tried = self._of_datasource(name, rule, due, search, objects, left, dry_run)
                left -= tried
                reports.append(report)
        return RetentionReport(
            self._version,
            tuple(sorted(reports, key=lambda each: each.datasource)),
            tuple(RefusedRule(key, reason) for key, reason in sorted(assignment.refused.items())),
            dry_run,
            time.monotonic() - began,
            self._retries,
        )

    def _objects(self) -> list[StoredObject]:
        types = map(of_type, (RETENTION, TABLE, DATASTORE, LINK))
        return stored_objects(self._store, self._version, " OR ".join(types))

    def _of_datasource(
        self,
        name: str,
        rule: Rule,
        due: Due,
        search: Search,
        objects: Sequence[StoredObject],
        limit: int,
        dry_run: bool,
    ) -> tuple[Retained, int]:
        """What became of a datasource, and how many of its segments were tried."""
        report = Retained(
            name,
            rule.key,
            rule.action.value,
            due.segments,
            due.by_age,
            due.segments - due.by_age,
            due.num_rows,
            due.size_bytes,
            _moment(due.oldest),
            _moment(due.newest),
        )
        tally, problem = _Tally(), ""
        try:
            archiver = self._archiver(name, rule, objects)
            if not dry_run:
                self._work(name, rule, due, search, archiver, min(limit, due.segments), tally)
        except Exception as error:
            if not isinstance(error, CatalogError) and classify(error) is Failure.LOST:
                raise
            problem = error.message if isinstance(error, CatalogError) else first_line(error)
            log.warning("Retention of %s was given up: %s", name, problem)
        done = replace(
            report,
            archived=tally.archived,
            dropped=tally.dropped,
            overtaken=tally.overtaken,
            failed=tally.failed,
            failures=tuple(tally.failures),
            left=due.segments - tally.dropped - tally.overtaken - tally.failed,
            problem=problem,
        )
        return done, tally.tried

    def _archiver(self, name: str, rule: Rule, objects: Sequence[StoredObject]) -> Archiver | None:
        if rule.action is not Action.ARCHIVE:
            return None
        databases = databases_of(objects).get(name, set())
        return self._archivers(archive_of(name, databases, objects), name)

    def _work(
        self,
        name: str,
        rule: Rule,
        due: Due,
        search: Search,
        archiver: Archiver | None,
        total: int,
        tally: _Tally,
    ) -> None:
        """Archives and drops, a batch at a time, the oldest first."""
        last: Candidate | None = None
        while tally.tried < total:
            page = search.page(due, last, min(_BATCH[rule.action], total - tally.tried))
            if not page:
                return
            last = page[-1]
            tally.tried += len(page)
            going: Sequence[Candidate] = page
            if archiver is not None:
                going = self._archive(archiver, self._unclaimed(page, tally), tally)
            self._remove(dict(seen(going)), tally)
            self._context.environment.at("retain.dropped")
            self._call.progress(Step(f"retain segments of {name}", tally.tried, total))

    def _unclaimed(self, page: Sequence[Candidate], tally: _Tally) -> list[Candidate]:
        """Those that no operation claims: copying the others would be in vain."""
        standing = claims_on(self._store, [each.id for each in page], (), self._buckets)
        if not standing.exclusive:
            return list(page)
        reason = claimed(standing.exclusive).message
        taken = {claim.key for claim in standing.exclusive}
        tally.fail({each.id: reason for each in page if each.id in taken})
        return [each for each in page if each.id not in taken]

    def _archive(
        self, archiver: Archiver, page: Sequence[Candidate], tally: _Tally
    ) -> list[Candidate]:
        """Those whose data is in the archive now, and listed there."""
        copied, problems = archiver.copy(page)
        tally.fail(problems)
        self._context.environment.at("retain.copied")
        done = [each for each in page if each.id in copied]
        if done:
            now = self._context.environment.clock()
            archiver.add_to_manifest(done, copied, self._version, self._call.caller, now)
        tally.archived += len(done)
        self._context.environment.at("retain.archived")
        return done

    def _remove(self, going: dict[str, str], tally: _Tally) -> None:
        """Drops what is still as it was seen; what operations claim by now is left to them."""
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
    """Raises for a datasource that was asked for and has no rule."""
    for name in only:
        if name not in assignment.ruled:
            raise UnknownObject(
                f"There is no retention rule for datasource {name}; put {RETENTION}/datasource/"
                f"{name}, or leave it out.",
                datasource=name,
            )


def _moment(at: int) -> datetime | None:
    """The moment, unless Python has no words for it."""
    try:
        return from_micros(at)
    except OverflowError:
        return None
