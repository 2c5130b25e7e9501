"""The word that makes a page about the catalog."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from catalog.cli.answer import Answer
from catalog.cli.command import Access, Command, Work
from catalog.cli.options import positive
from catalog.errors import InvalidInput
from catalog.report.content import collect
from catalog.report.page import render
from catalog.settings.model import default_of


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--html", type=Path, required=True, metavar="FILE", help="where to write it"
    )
    parser.add_argument(
        "--versions",
        type=positive,
        help="show the growth over at most so many versions (default: the setting "
        f"report.versions, {default_of('report.versions')} at first)",
    )


def _report(work: Work) -> Answer:
    file: Path = work.arguments.html
    if not file.absolute().parent.is_dir():
        raise InvalidInput(f"There is no directory for the report {file}.", file=str(file))
    versions = work.arguments.versions or work.catalog.settings.get("report.versions")
    report = collect(work.catalog, versions, work.progress)
    page = render(report)
    try:
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"The report cannot be written to {file}: {error}.") from error
    return Answer(
        facts={"file": str(file), "bytes": len(page.encode()), **report.facts()},
    )


REPORT = Command(
    name="report",
    summary="write a page about the catalog: growth, schemas, runs, problems",
    details="One HTML file that needs nothing else, for a browser or a mail.",
    example="report --html report.html",
    access=Access.READ,
    arguments=_arguments,
    work=_report,
)
