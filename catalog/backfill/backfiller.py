"""Backfill: finds segments without a schema, asks their data for it, and stores what it says."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from catalog.backfill.completing import Completed
from catalog.backfill.report import BackfillReport, Quarantined
from catalog.backfill.search import Counted, Search
from catalog.backfill.storing import Storer
from catalog.backfill.waiting import Completion, Waiting, completed, troubled
from catalog.context import Call, Context
from catalog.files.describe import slices
from catalog.files.formats import place_of
from catalog.files.splitting import Describe
from catalog.model import Caller
from catalog.progress import Step

_BEFORE_ALL = (-1, "")

Complete = Callable[[Sequence[Completion], Caller], Completed]


class Backfiller:
    """One backfill. It may be stopped at any point: what is stored is stored.

    What cannot be read or stored is put into quarantine with the reason, and the rest goes on.
    """

    def __init__(
        self,
        context: Context,
        call: Call,
        complete: Complete,
        search: Search,
        describe: Describe,
        default_format: str | None,
    ) -> None:
        """Args:
        context: the open catalog.
        call: the call that this is for.
        complete: stores what was found for a caller.
        search: finds who waits.
        describe: asks the data at some places.
        default_format: the format of locations that do not say theirs.
        """
        self._context = context
        self._call = call
        self._search = search
        self._describe = describe
        self._format = default_format
        self._storer = Storer(
            lambda completions: complete(completions, call.caller), context.environment.clock
        )
        self._began = time.monotonic()
        self._completed = 0
        self._overtaken = 0
        self._claimed = 0
        self._retries = 0
        self._quarantined: list[Quarantined] = []
        self._version = 0

    def run(self, limit: int | None, batch: int, dry_run: bool) -> BackfillReport:
        """Goes through all segments that are due, or through the first so many."""
        counted = self._search.count(self._context.environment.clock())
        self._version = counted.version
        left = counted.due if dry_run else self._work(counted, limit, batch)
        return BackfillReport(
            version=self._version,
            waiting=counted.due,
            completed=self._completed,
            overtaken=self._overtaken,
            claimed=self._claimed,
            quarantined=tuple(self._quarantined),
            resting=counted.resting,
            left=left,
            seconds=time.monotonic() - self._began,
            dry_run=dry_run,
            retries=self._retries,
        )

    def _work(self, counted: Counted, limit: int | None, batch: int) -> int:
        """Completes what is due; returns how many it was told to leave."""
        done, last = 0, _BEFORE_ALL
        # Who is put into quarantine now is not due again in this run.
        now = self._context.environment.clock()
        while done < (total := self._total(counted, limit)):
            if not done:
                self._call.progress(Step(self._told(done), done, total))
            page = self._search.page(now, last, min(batch, total - done))
            if not page:
                return 0  # others have completed or dropped the rest
            bucket, furthest = page[-1]
            last = (bucket, furthest.id)
            completions: list[Completion] = []
            # Read by several jobs, so that there is progress between two commits.
            for begin, end, _ in slices(len(page), len(page)):
                completions += self._asked([each for _, each in page[begin:end]])
                read = done + len(completions)
                self._call.progress(Step(self._told(read), read, total))
            self._store(completions)
            done += len(page)
        return counted.due - done

    def _total(self, counted: Counted, limit: int | None) -> int:
        """How many are looked at. What is claimed stays due and in its place in the order, so it
        must not use up the limit: no run would get past it."""
        return counted.due if limit is None else min(limit + self._claimed, counted.due)

    def _told(self, done: int) -> str:
        """What it does, and how fast; whoever shows it knows how long it will take."""
        if not done:
            return "backfill segments"
        return f"backfill segments, {done / (time.monotonic() - self._began):,.0f} a second"

    # --- reading ----------------------------------------------------------------------------------

    def _asked(self, waiting: Sequence[Waiting]) -> list[Completion]:
        """What the data says, or what is wrong with it."""
        places = [place_of(each.location, self._format) for each in waiting]
        outcomes = self._describe(places)
        self._context.environment.at("backfill.read")
        now = self._context.environment.clock()
        return [
            troubled(each, outcome, now)
            if isinstance(outcome, str)
            else completed(each, outcome, now)
            for each, outcome in zip(waiting, outcomes, strict=True)
        ]

    # --- storing ----------------------------------------------------------------------------------

    def _store(self, completions: Sequence[Completion]) -> None:
        tally = self._storer.store(completions)
        self._version = max(self._version, tally.version)
        self._retries += tally.retries
        self._completed += len(tally.completed)
        self._overtaken += len(tally.overtaken)
        self._claimed += len(tally.claimed)
        self._quarantined += map(_quarantined, tally.quarantined)
        self._context.environment.at("backfill.stored")


def _quarantined(completion: Completion) -> Quarantined:
    trouble = completion.trouble
    assert trouble is not None
    return Quarantined(
        completion.segment.id,
        completion.before.location,
        trouble.reason,
        trouble.attempts,
        trouble.retry_at,
    )
