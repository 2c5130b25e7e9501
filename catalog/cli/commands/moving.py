"""The word for another number of buckets: rebucket."""

from __future__ import annotations

from argparse import ArgumentParser

from catalog.cli.answer import Answer
from catalog.cli.as_task import add_lease, run_as_task
from catalog.cli.command import Access, Command, Work
from catalog.cli.commands.writing import add_why
from catalog.cli.options import positive


def _rebucket_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("target", metavar="TARGET", help="where the new catalog is to be")
    parser.add_argument(
        "segment_buckets",
        type=positive,
        metavar="NUMBER",
        help="among how many buckets segments are spread there",
    )
    parser.add_argument(
        "--through", required=True, metavar="PATH", help="where the backup goes in between"
    )
    add_lease(parser)
    add_why(parser)
    parser.set_defaults(as_task=True)  # its row is that of the run


def _rebucket(work: Work) -> Answer:
    arguments = work.arguments
    return run_as_task(
        work,
        "rebucket",
        path=arguments.through,
        target=arguments.target,
        segment_buckets=arguments.segment_buckets,
    )


BACKUPS_REBUCKET = Command(
    name="backups rebucket",
    summary="bring the catalog to another location with another number of buckets",
    details=(
        "A task: a backup, its restore to the new location, and a verification of that. Stop the\n"
        "writers before; the old catalog stays as it is. Exit code 1 says that somebody has\n"
        "changed it since the backup (versions_since), or that the new one breaks a promise."
    ),
    example="backups rebucket /data/meta2 64 --through /backups/move",
    access=Access.WRITE,
    arguments=_rebucket_arguments,
    work=_rebucket,
    recorded=True,
)
