"""Backfill: finds segments without a schema, reads the footers of their data, stores them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from catalog.backfill.completer import Completed, Storer
from catalog.backfill.model import (
    BackfillReport,
    Completion,
    Quarantined,
    Waiting,
    completed,
    troubled,
    waiting_of,
)
from catalog.commit.rows import segment_bucket
from catalog.context import Call, Context
from catalog.delta.store import Store
from catalog.files.footer import Describe, slices
from catalog.files.paths import place_of
from catalog.model import Caller, micros
from catalog.progress import Step
from catalog.schema.names import literal

# Times that Python cannot hold are not accepted, but other tools may have written them.
_NO_SCHEMA = (
    "kind = 'segment' AND fingerprint IS NULL AND location IS NOT NULL "
    "AND coalesce(year(starts_at) BETWEEN 1 AND 9999, true) "
    "AND coalesce(year(ends_at) BETWEEN 1 AND 9999, true)"
)
_RETRY = "CAST(get_json_object(payload, '$.retry_micros') AS BIGINT)"
_COLUMNS = (
    "bucket, key, commit_id, num_rows, size_bytes, location, payload, "
    "unix_micros(starts_at) AS starts_at_micros, unix_micros(ends_at) AS ends_at_micros"
)


@dataclass(frozen=True)
class Counted:
    """The numbers of segments without a schema at a version: due, or in quarantine until later."""

    version: int
    due: int
    resting: int


class WaitingSearch:
    """Finds segments without a schema, in some datasources or in all."""

    def __init__(
        self, store: Store, buckets: int, datasources: Sequence[str] | None, everything: bool
    ) -> None:
        """With `everything` the segments in quarantine are due too."""
        self._store = store
        self._everything = everything
        self._where = _NO_SCHEMA
        if datasources is not None:
            chosen = sorted({segment_bucket(f"{name}/", buckets) for name in datasources}) or [-1]
            names = ", ".join(map(literal, datasources)) or "NULL"
            self._where += (
                f" AND bucket IN ({', '.join(map(str, chosen))}) AND datasource IN ({names})"
            )

    def count(self, now: datetime) -> Counted:
        """Their numbers at the newest version."""
        version = self._store.head().version
        (row,) = self._store.session.sql(
            f"SELECT count_if({self._due(now)}) AS due, count(*) AS found "
            f"FROM {self._store.pinned(version)} WHERE {self._where}"
        ).collect()
        return Counted(version, row["due"], row["found"] - row["due"])

    def page(self, now: datetime, after: tuple[int, str], most: int) -> list[tuple[int, Waiting]]:
        """The next segments that are due, in the order of bucket and key, each with its bucket.

        All runs have one order: the next one begins with what a killed run was reading.
        """
        bucket, key = after
        rows = self._rows(
            f"{self._due(now)} AND (bucket > {int(bucket)} OR (bucket = {int(bucket)} "
            f"AND key > {literal(key)})) ORDER BY bucket, key LIMIT {int(most)}"
        )
        return [(row["bucket"], waiting_of(row)) for row in rows]

    def named(self, segment_ids: Sequence[str], buckets: int) -> list[Waiting]:
        """Those of the given segments that have no schema."""
        chosen = sorted({segment_bucket(each, buckets) for each in segment_ids})
        rows = self._rows(
            f"bucket IN ({', '.join(map(str, chosen))}) "
            f"AND key IN ({', '.join(map(literal, segment_ids))})"
        )
        return list(map(waiting_of, rows))

    def _rows(self, condition: str) -> list[dict[str, Any]]:
        newest = self._store.pinned(self._store.head().version)
        sql = f"SELECT {_COLUMNS} FROM {newest} WHERE {self._where} AND {condition}"
        return self._store.session.sql(sql).toArrow().to_pylist()

    def _due(self, now: datetime) -> str:
        if self._everything:
            return "true"
        return f"(state IS NULL OR state <> 'quarantined' OR {_RETRY} <= {micros(now)})"


_BEFORE_ALL = (-1, "")

Complete = Callable[[Sequence[Completion], Caller], Completed]


class Backfiller:
    """One backfill; it may be stopped at any point, and what it has stored stays.

    A segment that cannot be read or stored is put into quarantine with the reason.
    """

    def __init__(
        self,
        context: Context,
        call: Call,
        complete: Complete,
        search: WaitingSearch,
        describe: Describe,
        default_format: str | None,
    ) -> None:
        """Args:
        context: the open catalog.
        call: the call of the user.
        complete: stores completions in the name of a caller.
        search: finds segments without a schema.
        describe: reads the footers of the data at some places.
        default_format: the format of locations that do not give theirs.
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
        self._done = BackfillReport(version=0, waiting=0)

    def run(self, limit: int | None, batch: int, dry_run: bool) -> BackfillReport:
        """Completes all segments that are due, or the first `limit` of them."""
        counted = self._search.count(self._context.environment.clock())
        self._done = BackfillReport(
            counted.version, counted.due, resting=counted.resting, dry_run=dry_run
        )
        left = counted.due if dry_run else self._work(counted.due, limit, batch)
        return replace(self._done, left=left, seconds=time.monotonic() - self._began)

    def _work(self, due: int, limit: int | None, batch: int) -> int:
        """Completes what is due; returns how many the limit leaves."""
        done, last = 0, _BEFORE_ALL
        # A segment that is put into quarantine now is not due again in this run.
        now = self._context.environment.clock()
        while done < (total := self._total(due, limit)):
            if not done:
                self._call.progress(Step("backfill segments", 0, total))
            page = self._search.page(now, last, min(batch, total - done))
            if not page:
                return 0  # others have completed or dropped the rest
            bucket, furthest = page[-1]
            last = (bucket, furthest.id)
            completions: list[Completion] = []
            # Read by several jobs, so that there is progress between two commits.
            for begin, end, _ in slices(len(page), len(page)):
                completions += self._described([each for _, each in page[begin:end]])
                read = done + len(completions)
                speed = read / (time.monotonic() - self._began)
                self._call.progress(Step(f"backfill segments, {speed:,.0f} a second", read, total))
            self._store(completions)
            done += len(page)
        return due - done

    def _total(self, due: int, limit: int | None) -> int:
        """The number of segments to read. What is claimed stays due and in its place in the order,
        so it must not use up the limit: no run would get past it."""
        return due if limit is None else min(limit + self._done.claimed, due)

    def _described(self, waiting: Sequence[Waiting]) -> list[Completion]:
        """The segments with the footers of their data, or with their troubles."""
        outcomes = self._describe([place_of(each.location, self._format) for each in waiting])
        self._context.environment.at("backfill.read")
        now = self._context.environment.clock()
        return [
            troubled(each, outcome, now)
            if isinstance(outcome, str)
            else completed(each, outcome, now)
            for each, outcome in zip(waiting, outcomes, strict=True)
        ]

    def _store(self, completions: Sequence[Completion]) -> None:
        tally, done = self._storer.store(completions), self._done
        self._done = replace(
            done,
            version=max(done.version, tally.version),
            retries=done.retries + tally.retries,
            completed=done.completed + len(tally.completed),
            overtaken=done.overtaken + len(tally.overtaken),
            claimed=done.claimed + len(tally.claimed),
            quarantined=(*done.quarantined, *map(_quarantined, tally.quarantined)),
        )
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
