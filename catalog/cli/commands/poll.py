"""The word that prints what changed, and follows."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import replace
from datetime import UTC, datetime
from time import sleep

from pyspark.sql import functions as F

from catalog.cli.answer import Answer, fetch
from catalog.cli.command import Access, Command, Work
from catalog.cli.options import positive, seconds
from catalog.errors import InvalidInput

LAST = "last"
_REPLACED = (
    "The table is another one than before, restored or created anew. Its versions begin again; "
    "this is all that it holds."
)
_BRIEF = ("version", "change", "kind", "key", "fingerprint", "num_rows")


def _since(text: str) -> int | str:
    if text == LAST or text.isdecimal():
        return text if text == LAST else int(text)
    raise ArgumentTypeError(f"{text!r} is neither a version nor {LAST!r}")


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--since",
        type=_since,
        metavar="VERSION|last",
        help="what changed after this version, or after what the actor's last recorded poll showed "
        "(default: the newest, so that only what is new is shown)",
    )
    parser.add_argument(
        "--every",
        type=seconds,
        metavar="TIME",
        help="go on, and look so often (default: the setting poll.interval, not at first)",
    )
    parser.add_argument("--polls", type=positive, help="with --every, stop after so many")
    parser.add_argument(
        "--limit", type=positive, default=100, help="list at most so many (default %(default)s)"
    )


def _poll(work: Work) -> Answer:
    every, polls = work.arguments.every, work.arguments.polls
    if every is None:
        every = work.catalog.settings.get("poll.interval")
    version, table = _first(work), work.catalog.table_id
    done, replaced = 0, False
    while True:
        answer, version = _look(work, version)
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
    if since != LAST:
        return int(since)
    # What a poll has shown, not the newest version when it ended: that may have been further on.
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


def _look(work: Work, before: int) -> tuple[Answer, int]:
    """What changed since a version, and the version that was reached."""
    after = work.catalog.version
    changes = work.catalog.audit.changes(before, after)
    counted = changes.where("kind = 'segment'").groupBy("change").count().collect()
    counts = {row["change"]: row["count"] for row in counted}
    oldest = changes.agg(F.unix_micros(F.min("changed_at")).alias("micros")).collect()[0]["micros"]
    lag = 0.0 if oldest is None else datetime.now(UTC).timestamp() - oldest / 1e6
    facts = {
        "before": before,
        "after": after,
        **{name: counts.get(name, 0) for name in ("added", "removed", "changed")},
    }
    shown = changes.orderBy("version", "kind", "key")
    return Answer(
        facts=facts,
        tables={"changes": fetch(shown, work.arguments.limit, _BRIEF)},
        figures={
            **{name: facts[name] for name in ("added", "removed", "changed")},
            "polls": 1,
            "reached": after,
            "poll_lag_versions": after - before,
            "poll_lag_seconds": max(0.0, lag),
        },
    ), after


POLL = Command(
    name="poll",
    summary="print what changed, and follow",
    details="With --output json each poll is a line. Ctrl-C ends it with exit code 130.",
    example="poll --since 12 --every 30s",
    access=Access.READ,
    arguments=_arguments,
    work=_poll,
    long=False,
)
