"""The words that show operations: which there are, and how one stands."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from catalog.cli.answer import Answer, Table, fetch
from catalog.cli.command import Access, Command, Work
from catalog.cli.named import HELP, operation_named
from catalog.cli.options import add_limit
from catalog.commit.operation_rows import OperationState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from catalog.operations.operation import OperationStatus

SHORT = 8
RANDOM = 32
_UNDECIDED = [state.value for state in OperationState if not state.decided]


def standing(operations: DataFrame) -> dict[str, int]:
    """How many operations are not decided, how many of them were left, and how old one is."""
    undecided = operations.where(F.col("state").isin(_UNDECIDED))
    row = undecided.selectExpr(
        "count_if(state = 'open') AS open",
        "count_if(state = 'ready') AS ready",
        "count_if(expired) AS expired",
        "coalesce(max(age_seconds), 0) AS oldest_seconds",
    ).collect()[0]
    return dict(row.asDict())


# --- operations -----------------------------------------------------------------------------------


def _operations_arguments(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--state",
        choices=[state.value for state in OperationState],
        help="only those in this state (default: open and ready)",
    )
    which.add_argument("--all", action="store_true", help="published and aborted ones too")
    add_limit(parser)


def _operations(work: Work) -> Answer:
    arguments, catalog = work.arguments, work.catalog
    version = catalog.version
    frame = catalog.operations(version)
    figures = standing(frame)
    if not arguments.all:
        states = _UNDECIDED if arguments.state is None else [arguments.state]
        frame = frame.where(F.col("state").isin(states))
    oldest_first = not arguments.all and arguments.state in (None, *_UNDECIDED)
    order = F.asc("opened_at") if oldest_first else F.desc("changed_at")
    shown = (
        frame.join(_floors(work, version), "operation_id", "left")
        .orderBy(order, "operation_id")
        .select(
            "operation_id",
            "name",
            "state",
            "parts_staged",
            "parts",
            "claims",
            "epoch",
            F.coalesce("floor", F.lit(0)).alias("floor"),
            "owner",
            "age_seconds",
            "lease_until",
            "expired",
            "opened_at",
            "changed_at",
        )
    )
    table = fetch(shown, arguments.limit)
    people = for_people(table.dicts(), datetime.now(UTC))
    return Answer(
        facts={"version": version, **figures},
        tables={"operations": replace(table, people=people)},
        figures=figures,
        note="strata operations recover aborts those whose lease is over." if figures["expired"] else "",
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
    """Operations as a terminal has room for: spans of time in place of moments."""
    shown = tuple(
        (
            _beginning(row["operation_id"]),
            row["name"],
            row["state"],
            f"{row['parts_staged']}/{'?' if row['parts'] is None else row['parts']}",
            row["claims"],
            # It can only be published at the floor or later, if it was not yet.
            row["epoch"] or (f"≥{row['floor']}" if row["floor"] else None),
            row["owner"],
            span(timedelta(seconds=row["age_seconds"])),
            _lease(row, now),
        )
        for row in rows
    )
    columns = ("id", "name", "state", "parts", "claims", "epoch", "owner", "age", "lease")
    return Table(columns, shown)


def _beginning(id: str) -> str:
    """As much of a random id as is hardly ever that of two; one that somebody chose stays whole."""
    return f"{id[:SHORT]}…" if len(id) == RANDOM else id


def _lease(row: Mapping[str, Any], now: datetime) -> str:
    if row["state"] != OperationState.OPEN:
        return ""  # only an open operation can be left
    return "over" if row["expired"] else span(row["lease_until"] - now)


def span(time: timedelta) -> str:
    """A span of time in its largest unit, rounded down."""
    seconds = max(0, int(time.total_seconds()))
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


OPERATIONS_LIST = Command(
    name="operations list",
    summary="list operations with their parts, claims, epochs and leases",
    details=(
        "An operation is open while its parts are staged, ready while it waits for its epoch, and\n"
        "published or aborted in the end. Until then nobody else changes the keys that it claims.\n"
        "Those that are not decided are listed, oldest first; others are by --all or --state,\n"
        "newest first."
    ),
    example="operations list --state open",
    access=Access.READ,
    arguments=_operations_arguments,
    work=_operations,
)

# --- operation show -------------------------------------------------------------------------------


def _show_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help=HELP)
    add_limit(parser)


def _show(work: Work) -> Answer:
    status = operation_named(work.catalog, work.arguments.id).status()
    claims = work.catalog.claims(status.version).where(F.col("operation_id") == F.lit(status.id))
    shown = claims.orderBy("target", "key", "part").select(
        "target", "key", "action", "shared", "part"
    )
    return shown_status(status, fetch(shown, work.arguments.limit))


def shown_status(status: OperationStatus, claims: Table) -> Answer:
    """How an operation stands, and what to do about it."""
    return Answer(
        facts={
            **named(status),
            "parts": status.parts,
            "staged": list(status.staged),
            "missing": list(status.missing),
            "complete": status.complete,
            "epoch": status.epoch,
            "floor": status.floor,
            "owner": status.owner,
            "opened_at": status.opened_at,
            "lease_until": status.lease_until,
            "expired": status.expired,
            "claims": status.num_claims,
        },
        tables={"claims": claims},
        note=_advice(status),
    )


def named(status: OperationStatus) -> dict[str, Any]:
    """Which operation it is, and at which version it stands so."""
    return {
        "version": status.version,
        "operation_id": status.id,
        "name": status.name,
        "state": status.state,
    }


def _advice(status: OperationStatus) -> str:
    if status.state == OperationState.READY:
        return f"It waits for epoch {status.epoch}: strata operations advance {status.epoch} publishes it."
    if status.state != OperationState.OPEN:
        return ""
    if status.expired:
        return "Its lease is over: strata operations recover aborts it, unless its owner renews it."
    if status.complete:
        return "All parts are staged, so it can be published."
    return "" if status.parts is not None else "Its number of parts is not known yet."


OPERATIONS_SHOW = Command(
    name="operations show",
    summary="show an operation: which parts are missing, and what it claims",
    example="operations show 7c1e0a4b",
    access=Access.READ,
    arguments=_show_arguments,
    work=_show,
)
