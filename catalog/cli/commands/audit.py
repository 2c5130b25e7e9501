"""strata audit: who changed what and when; and poll, which follows the changes."""

from __future__ import annotations

from argparse import ArgumentTypeError
from dataclasses import replace
from datetime import UTC, datetime
from time import sleep

from pyspark.sql import functions as F

from catalog.cli.arguments import argument, natural, positive, seconds, window_end
from catalog.cli.command import Answer, Work, answer_of, change, command, fetch, table_of
from catalog.delta.runs import COLUMNS
from catalog.errors import InvalidInput
from catalog.model import Kind

_LAST = "last"
_REPLACED = (
    "The table was replaced, by a restore or a new one. Its versions begin again; this is all that "
    "it holds."
)
_CHANGES = ("version", "change", "kind", "key", "fingerprint", "num_rows")
_WINDOW = (
    argument("since", "what changed after this version", type=natural),
    argument("until", "up to this version (default: the newest)", nargs="?", type=natural),
)


@command(
    "audit history",
    "show who changed what and why, newest first",
    argument(
        "key",
        "only changes of a segment id, fingerprint, object key or setting; of a datasource "
        "with its segments, or of an operation with its rows",
        nargs="?",
    ),
    argument("--kind", "only changes of such rows", choices=Kind),
    *(
        argument(name, f"only {what}, such as 12 or 7d", type=window_end)
        for name, what in (("--since", "from then on"), ("--until", "up to then"))
    ),
    # Not --actor, which is the caller.
    argument("--by", "only changes by this actor", metavar="ACTOR"),
    limit=20,
    details=(
        "Without KEY and --kind it lists commits, with every caller of each; with one of them the\n"
        "rows that were changed, each with its possible callers. It reads the log and, for\n"
        "versions that the log no longer has, the audit table; what neither has is a gap."
    ),
    example="orders/2024-01-01 --since 30d",
)
def audit_history(work: Work) -> Answer:
    given = work.arguments
    frame = work.catalog.audit.history(
        given.limit + 1,
        key=given.key,
        kind=given.kind,
        since=given.since,
        until=given.until,
        actor=given.by,
    )
    commits = given.key is None and given.kind is None
    shown = ("actors", "reasons") if commits else ("change", "kind", "key", "actors")
    table = fetch(frame, given.limit, ("version", "timestamp", "verb", *shown))
    return Answer(tables={"commits" if commits else "changes": table})


@command(
    "audit changes",
    "list what was added, removed and changed between two versions",
    *_WINDOW,
    limit=100,
    details="strata poll does the same and keeps running.",
    example="12 20",
)
def audit_changes(work: Work) -> Answer:
    changes = work.catalog.audit.changes(work.arguments.since, work.arguments.until)
    shown = changes.orderBy("version", "kind", "key")
    return Answer(tables={"changes": fetch(shown, work.arguments.limit, _CHANGES)})


@command(
    "audit growth",
    "show how many segments, rows and schemas each version added or removed",
    *_WINDOW,
    limit=100,
    example="0",
)
def audit_growth(work: Work) -> Answer:
    growth = work.catalog.audit.growth(work.arguments.since, work.arguments.until).orderBy(
        "version"
    )
    return Answer(tables={"growth": fetch(growth, work.arguments.limit)})


@command(
    "audit runs",
    "list runs of jobs and recorded commands, newest first",
    limit=20,
    example="--limit 50 --output json",
)
def audit_runs(work: Work) -> Answer:
    names = [column.name for column in COLUMNS]  # `strata tasks list` shows the columns of tasks
    frame = work.catalog.audit.runs().orderBy(F.desc("started_at")).select(*names)
    brief = ("job", "status", "started_at", "ended_at", "version_after", "error_condition")
    return Answer(tables={"runs": fetch(frame, work.arguments.limit, brief)})


@change(
    "audit roll",
    "copy the history into the audit table, before the log drops it",
    dry_run=True,
    details="maintain does so too. It may be stopped and run again, also by two at once.",
    example="--dry-run",
)
def audit_roll(work: Work) -> Answer:
    report = work.catalog.audit.roll(dry_run=work.arguments.dry_run, **work.call)
    return answer_of(report, tables={"gaps": table_of(report.gaps, ("first", "last", "what"))})


# --- poll -----------------------------------------------------------------------------------------


def _since(text: str) -> int | str:
    if text == _LAST or text.isdecimal():
        return text if text == _LAST else int(text)
    raise ArgumentTypeError(f"{text!r} is neither a version nor {_LAST!r}")


@command(
    "poll",
    "print what changed, and follow",
    argument(
        "--since",
        "what changed after this version, or after the actor's last recorded poll "
        "(default: the newest, so that only new changes are shown)",
        type=_since,
        metavar="VERSION|last",
    ),
    argument(
        "--every",
        "keep polling at this interval (default: the setting poll.interval, initially none)",
        type=seconds,
    ),
    argument("--polls", "with --every, stop after this many", type=positive),
    limit=100,
    details="With --output json each poll is a line. Ctrl-C ends it with exit code 130.",
    example="--since 12 --every 30s",
    long=False,
)
def poll(work: Work) -> Answer:
    every, polls = work.arguments.every, work.arguments.polls
    if every is None:
        every = work.catalog.settings.get("poll.interval")
    version, table = _first(work), work.catalog.table_id
    done, replaced = 0, False
    while True:
        answer, version = _changes_since(work, version)
        if replaced:
            facts = {**answer.facts, "replaced": True}
            answer = replace(answer, facts=facts, note=_REPLACED)
        done += 1
        if every is None or done == polls:
            return answer
        work.tell(answer)
        sleep(every)
        while (found := work.catalog.table_id) is None:
            sleep(every)  # it is gone, or a restore fills it
        replaced = found != table
        if replaced:
            version, table = 0, found


def _first(work: Work) -> int:
    since = work.arguments.since
    if since is None:
        return work.catalog.version
    if since != _LAST:
        return int(since)
    # What a poll has shown, not the newest version when it ended: that may have been later.
    row = (
        work.catalog.audit.runs()
        .where("job = 'poll' AND figures['reached'] IS NOT NULL")
        .where(F.col("actor") == F.lit(work.catalog.actor))
        .agg(F.expr("max_by(figures['reached'], seen_at) AS reached"))
        .collect()[0]
    )
    if row["reached"] is None:
        raise InvalidInput(
            f"No poll was recorded for {work.catalog.actor} yet; give a version with --since.",
            since=since,
        )
    return int(row["reached"])


def _changes_since(work: Work, before: int) -> tuple[Answer, int]:
    """What changed since a version, and the version that was reached."""
    after = work.catalog.version
    changes = work.catalog.audit.changes(before, after)
    counted = changes.where("kind = 'segment'").groupBy("change").count().collect()
    by_change = {row["change"]: row["count"] for row in counted}
    counts = {name: by_change.get(name, 0) for name in ("added", "removed", "changed")}
    oldest = changes.agg(F.unix_micros(F.min("changed_at")).alias("micros")).collect()[0]["micros"]
    lag = 0.0 if oldest is None else datetime.now(UTC).timestamp() - oldest / 1e6
    shown = changes.orderBy("version", "kind", "key")
    return Answer(
        facts={"before": before, "after": after, **counts},
        tables={"changes": fetch(shown, work.arguments.limit, _CHANGES)},
        figures={
            **counts,
            "polls": 1,
            "reached": after,
            "poll_lag_versions": after - before,
            "poll_lag_seconds": max(0.0, lag),
        },
    ), after
