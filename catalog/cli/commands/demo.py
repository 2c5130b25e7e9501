"""The word for newcomers: a small catalog, and every verb once."""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser
from pathlib import Path

from catalog.cli.answer import Answer
from catalog.cli.command import Access, Command, Work
from catalog.errors import InvalidInput


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--directory",
        type=Path,
        help="where to keep the catalog and its files (default: a temporary directory)",
    )


def _demo(work: Work) -> Answer:
    from catalog.cli.tour import tour

    directory: Path | None = work.arguments.directory
    if directory is None:
        with tempfile.TemporaryDirectory(prefix="strata-demo-") as temporary:
            tour(work.spark, Path(temporary))
        return Answer()
    if directory.exists() and any(directory.iterdir()):
        raise InvalidInput(
            f"{directory} is not empty; the demo needs a directory of its own.",
            directory=str(directory),
        )
    tour(work.spark, directory)
    return Answer(facts={"location": str(directory / "meta")})


DEMO = Command(
    name="demo",
    summary="build a small catalog and show every step",
    example="demo --directory ./demo",
    access=Access.NONE,
    arguments=_arguments,
    work=_demo,
    long=False,
)
