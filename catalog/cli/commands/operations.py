"""strata operations: changes in several parts that become visible together, and their epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from catalog.cli.arguments import argument, by_setting, duration, flag, one_of, positive
from catalog.cli.command import (
    Answer,
    Table,
    Work,
    answer_of,
    change,
    command,
    facts_of,
    fetch,
    is_task,
)
from catalog.cli.commands.tasks import find_id, run_as_task, short_id, span
from catalog.commit.operation_rows import OperationState
from catalog.operations.applier import Advance
from catalog.operations.recovery import RecoverReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from catalog.operations.decision import Decision
    from catalog.operations.operation import Operation, OperationStatus

_ID = argument("id", "its id, or any beginning of it that no other has")
_UNDECIDED = [state.value for state in OperationState if not state.decided]


def _named(work: Work) -> Operation:
    """The operation whose id, or beginning of one, was given."""
    id = find_id("operation", work.catalog.inspect.operations(), work.arguments.id)
    return work.catalog.operations.get(id)


def _standing(operations: DataFrame) -> dict[str, int]:
    """How many operations are open, ready and expired, and how old the oldest of them is."""
    undecided = operations.where(F.col("state").isin(_UNDECIDED))
    row = undecided.selectExpr(
        "count_if(state = 'open') AS open",
        "count_if(state = 'ready') AS ready",
        "count_if(expired) AS expired",
        "coalesce(max(age_seconds), 0) AS oldest_seconds",
    ).collect()[0]
    return dict(row.asDict())


# --- list and show --------------------------------------------------------------------------------


@command(
    "operations list",
    "list operations with their parts, claims, epochs and leases",
    one_of(
        argument(
            "--state",
            "only operations in this state (default: open and ready)",
            choices=OperationState,
        ),
        flag("--all", "published and aborted ones too"),
    ),
    limit=100,
    details=(
        "An operation is open while its parts are staged, ready while it waits for its epoch, and\n"
        "published or aborted in the end. Until then nobody else can change the keys it claims.\n"
        "Open and ready ones are listed oldest first; others, with --all or --state, newest first."
    ),
    example="--state open",
)
def operations_list(work: Work) -> Answer:
    given, version = work.arguments, work.catalog.version
    frame = work.catalog.inspect.operations(version)
    figures = _standing(frame)
    if not given.all:
        states = _UNDECIDED if given.state is None else [given.state]
        frame = frame.where(F.col("state").isin(states))
    oldest_first = not given.all and given.state in (None, *_UNDECIDED)
    order = F.asc("opened_at") if oldest_first else F.desc("changed_at")
    shown = (
        frame.join(_floors(work, version), "operation_id", "left")
        .orderBy(order, "operation_id")
        .select(
            *("operation_id", "name", "state", "parts_staged", "parts", "claims", "epoch"),
            F.coalesce("floor", F.lit(0)).alias("floor"),
            *("owner", "age_seconds", "lease_until", "expired", "opened_at", "changed_at"),
        )
    )
    table = fetch(shown, given.limit)
    people = for_people(table.dicts(), datetime.now(UTC))
    return Answer(
        facts={"version": version, **figures},
        tables={"operations": replace(table, people=people)},
        figures=figures,
        note="strata operations recover aborts those whose lease is over."
        if figures["expired"]
        else "",
    )


def _floors(work: Work, version: int) -> DataFrame:
    """The lowest epoch at which each operation can be published, which the view does not have."""
    entries = work.catalog.location.table("entries")
    return work.spark.sql(
        "SELECT substring_index(key, '/', 1) AS operation_id, "
        "max(CAST(get_json_object(payload, '$.floor') AS BIGINT)) AS floor "
        f"FROM {entries} VERSION AS OF {version} WHERE kind = 'part' GROUP BY 1"
    )


def for_people(rows: Sequence[Mapping[str, Any]], now: datetime) -> Table:
    """Operations as a terminal has room for: durations instead of times."""
    shown = tuple(
        (
            short_id(row["operation_id"]),
            row["name"],
            row["state"],
            f"{row['parts_staged']}/{'?' if row['parts'] is None else row['parts']}",
            row["claims"],
            # It can only be published at the floor or later.
            row["epoch"] or (f"≥{row['floor']}" if row["floor"] else None),
            row["owner"],
            span(timedelta(seconds=row["age_seconds"])),
            _lease(row, now),
        )
        for row in rows
    )
    columns = ("id", "name", "state", "parts", "claims", "epoch", "owner", "age", "lease")
    return Table(columns, shown)


def _lease(row: Mapping[str, Any], now: datetime) -> str:
    if row["state"] != OperationState.OPEN:
        return ""  # only the lease of an open operation matters
    return "over" if row["expired"] else span(row["lease_until"] - now)


@command(
    "operations show",
    "show an operation: which parts are missing, and what it claims",
    _ID,
    limit=100,
    example="7c1e0a4b",
)
def operations_show(work: Work) -> Answer:
    status = _named(work).status()
    claims = work.catalog.inspect.claims(status.version).where(
        F.col("operation_id") == F.lit(status.id)
    )
    shown = claims.orderBy("target", "key", "part").select(
        "target", "key", "action", "shared", "part"
    )
    return shown_status(status, fetch(shown, work.arguments.limit))


def shown_status(status: OperationStatus, claims: Table) -> Answer:
    """The state of an operation, and what to do about it."""
    return Answer(
        facts={
            **_identity(status),
            "parts": status.parts,
            "staged": list(status.staged),
            "missing": list(status.missing),
            **facts_of(status, "complete", "epoch", "floor", "owner", "opened_at"),
            **facts_of(status, "lease_until", "expired"),
            "claims": status.num_claims,
        },
        tables={"claims": claims},
        note=_advice(status),
    )


def _identity(status: OperationStatus) -> dict[str, Any]:
    return {
        "version": status.version,
        "operation_id": status.id,
        "name": status.name,
        "state": status.state,
    }


def _advice(status: OperationStatus) -> str:
    if status.state == OperationState.READY:
        return (
            f"It waits for epoch {status.epoch}: "
            f"strata operations advance {status.epoch} publishes it."
        )
    if status.state != OperationState.OPEN:
        return ""
    if status.expired:
        return "Its lease is over: strata operations recover aborts it, unless its owner renews it."
    if status.complete:
        return "All parts are staged, so it can be published."
    return "" if status.parts is not None else "Its number of parts is not known yet."


# --- publish, abort, renew ------------------------------------------------------------------------


@change(
    "operations publish",
    "publish an operation, now or when the stable epoch reaches one",
    _ID,
    argument(
        "--epoch",
        "let it wait until the stable epoch reaches this one, which is final (default: now)",
        type=positive,
    ),
    details="All of it becomes visible in one commit. All parts must be staged.",
    example='7c1e0a4b --epoch 42 --reason "release 42"',
)
def operations_publish(work: Work) -> Answer:
    decision = _named(work).publish(epoch=work.arguments.epoch, **work.why)
    return shown_decision(decision, work.retries(decision.retries))


def shown_decision(decision: Decision, retries: int) -> Answer:
    """The state of an operation after a decision."""
    waits = decision.state == OperationState.READY
    return answer_of(
        decision,
        retries,
        note=f"strata operations advance {decision.epoch} makes it visible." if waits else "",
    )


@change(
    "operations abort",
    "abort an operation, and release what it claims",
    _ID,
    details=(
        "Nothing of it was visible, and nothing will be. One that waits for an epoch cannot be\n"
        "aborted any more: undo it by another operation at the same epoch."
    ),
    example='7c1e0a4b --reason "wrong input"',
)
def operations_abort(work: Work) -> Answer:
    decision = _named(work).abort(**work.why)
    return shown_decision(decision, work.retries(decision.retries))


@change(
    "operations renew",
    "renew the lease of an operation, so that no recovery aborts it",
    _ID,
    argument(
        "--lease",
        "how long the lease lasts from now on (default: as long as before)",
        type=duration,
    ),
    example="7c1e0a4b --lease 2h",
)
def operations_renew(work: Work) -> Answer:
    status = _named(work).renew(work.arguments.lease, **work.why)
    retries = work.retries()
    return Answer(
        facts={**_identity(status), "lease_until": status.lease_until, "retries": retries},
        figures={"conflicts_retried": retries},
    )


# --- epochs ---------------------------------------------------------------------------------------


@command(
    "operations epoch",
    "show the stable epoch, and which operations wait for which",
    limit=100,
    details="It is 0 until one is set. strata operations advance raises it.",
)
def operations_epoch(work: Work) -> Answer:
    # Read first: an advance in between publishes operations, so that none waits for the past.
    stable = work.catalog.operations.stable_epoch
    ready = work.catalog.inspect.operations().where("state = 'ready'")
    row = ready.selectExpr("count(*) AS waiting", "min(epoch) AS next_epoch").collect()[0]
    shown = ready.orderBy("epoch", "changed_at", "operation_id").selectExpr(
        *("epoch", "operation_id", "name", "owner", "parts", "claims"),
        *("changed_at AS ready_since", "age_seconds"),
    )
    return Answer(
        facts={"stable": stable, "waiting": row["waiting"], "next_epoch": row["next_epoch"]},
        tables={"waiting": fetch(shown, work.arguments.limit)},
        figures={"stable": stable, "waiting": row["waiting"]},
    )


@change(
    "operations advance",
    "raise the stable epoch, and publish every operation that waits for it",
    argument("epoch", "the new stable epoch", type=positive),
    details=(
        "All of them become visible in one commit. The same epoch again changes nothing; a lower\n"
        "one is refused."
    ),
    example='42 --reason "release 42"',
)
def operations_advance(work: Work) -> Answer:
    step = work.catalog.operations.advance(work.arguments.epoch, **work.why)
    return shown_advance(step, work.retries(step.retries))


def shown_advance(step: Advance, retries: int) -> Answer:
    """The operations that an advance published."""
    applied = Table(("operation_id",), tuple((each,) for each in step.applied))
    return answer_of(step, retries, tables={"applied": applied})


# --- recover --------------------------------------------------------------------------------------


@change(
    "operations recover",
    "abort operations whose lease is over, and remove what decided ones staged",
    argument(
        "--keep",
        f"how long the outcome of an operation stays recorded {by_setting('recover.keep')}",
        type=duration,
    ),
    dry_run=True,
    as_task=True,
    details=(
        "Only open operations are aborted; those that wait for an epoch are never touched. It may\n"
        "be stopped and run again at any time, also by two processes at once and while owners\n"
        "work: an operation is decided once."
    ),
    example="--dry-run",
    job="recover",
)
def operations_recover(work: Work) -> Answer:
    given, catalog = work.arguments, work.catalog
    if is_task(given):
        return run_as_task(work, "recover", keep_seconds=given.keep)
    report = catalog.operations.recover(keep=given.keep, dry_run=given.dry_run, **work.call)
    return shown_recovery(report, _standing(catalog.inspect.operations()), work.retries())


def shown_recovery(report: RecoverReport, left: Mapping[str, int], retries: int) -> Answer:
    """What a recovery did, and how many operations are still open or ready."""
    rows = [("aborted", row.id, row.name, row.owner, row.lease_until) for row in report.aborted]
    others = {"decided": report.decided, "swept": report.swept, "forgotten": report.forgotten}
    rest = ((what, each, None, None, None) for what, ids in others.items() for each in ids)
    columns = ("change", "operation_id", "name", "owner", "lease_until")
    return Answer(
        facts={**report.facts(), **left, "retries": retries},
        tables={"changes": Table(columns, (*rows, *rest))},
        figures={**report.figures(), **left, "conflicts_retried": retries},
    )
