"""The words that decide what becomes of an operation: publish, abort, renew."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TYPE_CHECKING

from catalog.cli.answer import Answer
from catalog.cli.command import Access, Command, Work
from catalog.cli.commands.operating import named
from catalog.cli.commands.writing import add_why
from catalog.cli.named import HELP, operation_named
from catalog.cli.options import duration, positive
from catalog.commit.operation_rows import OperationState

if TYPE_CHECKING:
    from catalog.catalog import Catalog
    from catalog.operations.decision import Decision


def tried_again(catalog: Catalog, retries: int = 0) -> int:
    """Commits that a run tried again: after conflicts, and because what it had read was old."""
    return retries + catalog.operation_metrics().replans


def _add_id(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help=HELP)


# --- publish --------------------------------------------------------------------------------------


def _publish_arguments(parser: ArgumentParser) -> None:
    _add_id(parser)
    parser.add_argument(
        "--epoch",
        type=positive,
        help="let it wait until the stable epoch reaches this one, which is final (default: now)",
    )
    add_why(parser)


def _publish(work: Work) -> Answer:
    arguments = work.arguments
    decision = operation_named(work.catalog, arguments.id).publish(
        epoch=arguments.epoch, reason=arguments.reason, deadline=arguments.deadline
    )
    return shown_decision(decision, tried_again(work.catalog, decision.retries))


def shown_decision(decision: Decision, tried_again: int) -> Answer:
    """What became of an operation."""
    waits = decision.state == OperationState.READY
    return Answer(
        facts={
            "version": decision.version,
            "commit_id": decision.commit_id,
            "operation_id": decision.operation,
            "state": decision.state,
            "epoch": decision.epoch,
            "repeated": decision.repeated,
            "retries": tried_again,
        },
        figures={"conflicts_retried": tried_again},
        note=f"strata operations advance {decision.epoch} makes it visible." if waits else "",
    )


OPERATIONS_PUBLISH = Command(
    name="operations publish",
    summary="make an operation visible, now or when the stable epoch reaches one",
    details="All of it becomes visible in one commit. All parts must be staged.",
    example='operations publish 7c1e0a4b --epoch 42 --reason "release 42"',
    access=Access.WRITE,
    arguments=_publish_arguments,
    work=_publish,
    recorded=True,
)


# --- abort ----------------------------------------------------------------------------------------


def _abort_arguments(parser: ArgumentParser) -> None:
    _add_id(parser)
    add_why(parser)


def _abort(work: Work) -> Answer:
    arguments = work.arguments
    decision = operation_named(work.catalog, arguments.id).abort(
        reason=arguments.reason, deadline=arguments.deadline
    )
    return shown_decision(decision, tried_again(work.catalog, decision.retries))


OPERATIONS_ABORT = Command(
    name="operations abort",
    summary="give an operation up, and what it claims",
    details=(
        "Nothing of it was visible, and nothing will be. One that waits for an epoch cannot be\n"
        "aborted any more: undo it by another operation at the same epoch."
    ),
    example='operations abort 7c1e0a4b --reason "wrong input"',
    access=Access.WRITE,
    arguments=_abort_arguments,
    work=_abort,
    recorded=True,
)


# --- renew ----------------------------------------------------------------------------------------


def _renew_arguments(parser: ArgumentParser) -> None:
    _add_id(parser)
    parser.add_argument(
        "--lease",
        type=duration,
        metavar="TIME",
        help="how long its owner is waited for from now on (default: as long as before)",
    )
    add_why(parser)


def _renew(work: Work) -> Answer:
    arguments = work.arguments
    status = operation_named(work.catalog, arguments.id).renew(
        arguments.lease, reason=arguments.reason, deadline=arguments.deadline
    )
    again = tried_again(work.catalog)
    return Answer(
        facts={**named(status), "lease_until": status.lease_until, "retries": again},
        figures={"conflicts_retried": again},
    )


OPERATIONS_RENEW = Command(
    name="operations renew",
    summary="begin an operation's lease anew, so that no recovery aborts it",
    example="operations renew 7c1e0a4b --lease 2h",
    access=Access.WRITE,
    arguments=_renew_arguments,
    work=_renew,
    recorded=True,
)
