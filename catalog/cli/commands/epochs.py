"""The words for epochs: what waits for which, and the step to one."""

from __future__ import annotations

from argparse import ArgumentParser

from catalog.cli.answer import Answer, Table, fetch
from catalog.cli.command import Access, Command, Work
from catalog.cli.commands.deciding import tried_again
from catalog.cli.commands.writing import add_why
from catalog.cli.options import add_limit, positive
from catalog.operations.applier import Advance

# --- epoch ----------------------------------------------------------------------------------------


def _epoch(work: Work) -> Answer:
    # First: an advance in between then leaves out what it applied, and nothing waits for the past.
    stable = work.catalog.stable_epoch
    ready = work.catalog.operations().where("state = 'ready'")
    row = ready.selectExpr("count(*) AS waiting", "min(epoch) AS next_epoch").collect()[0]
    shown = ready.orderBy("epoch", "changed_at", "operation_id").selectExpr(
        "epoch",
        "operation_id",
        "name",
        "owner",
        "parts",
        "claims",
        "changed_at AS ready_since",
        "age_seconds",
    )
    return Answer(
        facts={"stable": stable, "waiting": row["waiting"], "next_epoch": row["next_epoch"]},
        tables={"waiting": fetch(shown, work.arguments.limit)},
        figures={"stable": stable, "waiting": row["waiting"]},
    )


OPERATIONS_EPOCH = Command(
    name="operations epoch",
    summary="show the stable epoch, and which operations wait for which",
    details="It is 0 as long as nobody has set one. strata operations advance raises it.",
    example="operations epoch",
    access=Access.READ,
    arguments=add_limit,
    work=_epoch,
)

# --- advance --------------------------------------------------------------------------------------


def _advance_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("epoch", type=positive, metavar="EPOCH", help="the new stable epoch")
    add_why(parser)


def _advance(work: Work) -> Answer:
    arguments = work.arguments
    step = work.catalog.advance(
        arguments.epoch, reason=arguments.reason, deadline=arguments.deadline
    )
    return shown_advance(step, tried_again(work.catalog, step.retries))


def shown_advance(step: Advance, tried_again: int) -> Answer:
    """What a step of the stable epoch did."""
    return Answer(
        facts={
            "version": step.version,
            "commit_id": step.commit_id or None,
            "before": step.before,
            "stable": step.stable,
            "applied": len(step.applied),
            "retries": tried_again,
        },
        tables={"applied": Table(("operation_id",), tuple((each,) for each in step.applied))},
        figures={
            "stable": step.stable,
            "applied": len(step.applied),
            "conflicts_retried": tried_again,
        },
    )


OPERATIONS_ADVANCE = Command(
    name="operations advance",
    summary="raise the stable epoch, and publish every operation that waits for it",
    details=(
        "All of them become visible in one commit. The same epoch again changes nothing; a lower\n"
        "one is refused."
    ),
    example='operations advance 42 --reason "release 42"',
    access=Access.WRITE,
    arguments=_advance_arguments,
    work=_advance,
    recorded=True,
)
