"""The words that change named schemas: register, set-mode."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.cli.answer import Answer, Table
from catalog.cli.command import Access, Command, Work
from catalog.cli.commands.deciding import tried_again
from catalog.cli.commands.writing import add_why
from catalog.cli.options import natural
from catalog.cli.sides import HELP, schema_named
from catalog.errors import InvalidInput
from catalog.evolution.compatibility import Mode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from catalog.catalog import Catalog
    from catalog.names.model import Reason, Registered
    from catalog.schema import Schema

STDIN = "-"
_MODES = [str(mode) for mode in Mode]
_REASON = ("path", "kind", "old", "new", "why", "against")


def reasons_table(reasons: tuple[Reason, ...]) -> Mapping[str, Table]:
    """A table of reasons, if there are any."""
    rows = tuple(tuple(asdict(each)[name] for name in _REASON) for each in reasons)
    return {"reasons": Table(_REASON, rows)} if rows else {}


# --- register -------------------------------------------------------------------------------------


def _register_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the name: a text without a slash")
    parser.add_argument(
        "schema", metavar=f"SCHEMA|FILE|{STDIN}", help=f"a local file with DDL or JSON, or {HELP}"
    )
    parser.add_argument(
        "--mode", choices=_MODES, help="for a name that is not there yet (default: backward)"
    )
    parser.add_argument(
        "--base",
        type=natural,
        metavar="VERSION",
        help="the version that the schema was made from; what came since is merged into it",
    )
    parser.add_argument(
        "--force", action="store_true", help="register it though it may not follow; is recorded"
    )
    parser.add_argument("--note", default="", help="a text that is kept with the version")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    add_why(parser)


def _register(work: Work) -> Answer:
    arguments, catalog = work.arguments, work.catalog
    result = catalog.register(
        arguments.name,
        _given(catalog, arguments.schema),
        mode=arguments.mode,
        base=arguments.base,
        force=arguments.force,
        note=arguments.note,
        dry_run=arguments.dry_run,
        reason=arguments.reason,
        deadline=arguments.deadline,
    )
    return shown_registration(result, tried_again(catalog, result.retries))


def _given(catalog: Catalog, text: str) -> Schema | str:
    """A schema as it is named on the command line, or the text of a file."""
    try:
        if text == STDIN:
            return sys.stdin.buffer.read().decode("utf-8-sig")
        if os.path.isfile(text):  # unlike Path, it takes a long definition for no file
            return Path(text).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{text:.80} cannot be read: {error}.", file=text) from error
    return schema_named(catalog, text)


def shown_registration(result: Registered, tried_again: int) -> Answer:
    """What a registration did."""
    return Answer(
        facts={
            "name": result.name,
            "version": result.version,
            "fingerprint": result.fingerprint,
            "compatible": result.compatible,
            "breaking": result.breaking,
            "forced": result.forced,
            "merged": result.merged,
            "repeated": result.repeated,
            "version_of_table": result.version_of_table,
            "commit_id": result.commit_id or None,
            "dry_run": result.dry_run,
            "retries": tried_again,
        },
        tables=reasons_table(result.reasons),
        figures={
            "registered": int(not (result.repeated or result.dry_run)),
            "conflicts_retried": tried_again,
        },
    )


NAMES_REGISTER = Command(
    name="names register",
    summary="make a schema the next version of a name",
    details=(
        "The schema that is current already is no change. One that may not follow the versions\n"
        "before it, by the mode of the name, is refused with a reason for each column. With\n"
        "--base what others registered since that version is merged in; without it columns that\n"
        "the schema lacks are dropped. A column that was dropped comes back only as what it was."
    ),
    example='names register orders "id BIGINT, amount DECIMAL(12,2)" --base 3 --note "cents"',
    access=Access.WRITE,
    arguments=_register_arguments,
    work=_register,
    recorded=True,
)

# --- set-mode -------------------------------------------------------------------------------------


def _set_mode_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the name")
    parser.add_argument("mode", choices=_MODES, help="how new versions must get on with old ones")
    add_why(parser)


def _set_mode(work: Work) -> Answer:
    arguments, catalog = work.arguments, work.catalog
    result = catalog.set_mode(
        arguments.name, arguments.mode, reason=arguments.reason, deadline=arguments.deadline
    )
    again = tried_again(catalog, result.retries)
    return Answer(
        facts={
            "name": result.name,
            "before": str(result.before),
            "mode": str(result.mode),
            "version_of_table": result.version_of_table,
            "commit_id": result.commit_id or None,
            "retries": again,
        },
        figures={"conflicts_retried": again},
    )


NAMES_SET_MODE = Command(
    name="names set-mode",
    summary="change what may follow what under a name",
    details="Later registrations are judged by it; versions that are there stay as they are.",
    example="names set-mode orders full_transitive",
    access=Access.WRITE,
    arguments=_set_mode_arguments,
    work=_set_mode,
    recorded=True,
)
