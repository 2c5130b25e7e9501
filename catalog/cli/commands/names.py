"""The words that show named schemas: named, versions, named-schema, still-works."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TYPE_CHECKING

from catalog.cli.answer import Answer, Table, fetch
from catalog.cli.command import Access, Command, Work
from catalog.cli.commands.naming import reasons_table
from catalog.cli.options import add_as_of, add_limit, positive
from catalog.names.keys import reference

if TYPE_CHECKING:
    from catalog.names.model import NamedSchema

# --- named ----------------------------------------------------------------------------------------


def _named_arguments(parser: ArgumentParser) -> None:
    add_as_of(parser)
    add_limit(parser)


def _named(work: Work) -> Answer:
    arguments = work.arguments
    frame = work.catalog.named_schemas(arguments.as_of).orderBy("name")
    brief = ("name", "mode", "current_version", "last_breaking", "fingerprint", "changed_at")
    return Answer(tables={"named_schemas": fetch(frame.drop("commit_id"), arguments.limit, brief)})


NAMES_LIST = Command(
    name="names list",
    summary="list named schemas",
    details="strata names versions lists the versions of one, strata names get shows one of them.",
    example="names list --limit 20",
    access=Access.READ,
    arguments=_named_arguments,
    work=_named,
)

# --- versions -------------------------------------------------------------------------------------


def _versions_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the name")
    add_as_of(parser)
    add_limit(parser)


def _versions(work: Work) -> Answer:
    arguments, catalog = work.arguments, work.catalog
    current = catalog.named_schema(arguments.name, as_of=arguments.as_of)
    frame = catalog.schema_versions(arguments.name, arguments.as_of).orderBy("version")
    brief = ("version", "fingerprint", "breaking", "forced", "merged", "registered_by", "ddl")
    return Answer(
        facts={
            "mode": str(current.mode),
            "current": current.current,
            "last_breaking": current.last_breaking,
        },
        tables={"versions": fetch(frame.drop("name", "commit_id"), arguments.limit, brief)},
    )


NAMES_VERSIONS = Command(
    name="names versions",
    summary="list the versions of a named schema",
    details="Those before `last_breaking` have data that cannot be read in the current schema.",
    example="names versions orders",
    access=Access.READ,
    arguments=_versions_arguments,
    work=_versions,
)

# --- named-schema ---------------------------------------------------------------------------------


def _show_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME[@VERSION]", help="the name; orders@3 is version 3")
    add_as_of(parser)


def _show(work: Work) -> Answer:
    arguments, catalog = work.arguments, work.catalog
    name, number = reference(arguments.name) or (arguments.name, None)
    return shown_named(catalog.named_schema(name, number, arguments.as_of))


def shown_named(found: NamedSchema) -> Answer:
    """A version of a named schema with all that is known of it."""
    dropped = tuple((path, each.type, each.since) for path, each in found.dropped.items())
    return Answer(
        facts={
            "name": found.name,
            "version": found.version,
            "fingerprint": found.fingerprint,
            "ddl": found.schema.ddl,
            "mode": str(found.mode),
            "current": found.current,
            "last_breaking": found.last_breaking,
            "compatible": found.compatible,
            "forced": found.forced,
            "base": found.base,
            "merged": found.merged,
            "note": found.note,
            "registered_at": found.registered_at,
            "registered_by": found.registered_by,
            "commit_id": found.commit_id,
        },
        tables={
            **reasons_table(found.reasons),
            **({"dropped": Table(("path", "type", "since"), dropped)} if dropped else {}),
        },
    )


NAMES_GET = Command(
    name="names get",
    summary="show a version of a named schema",
    details="Without a number, or with @current, it is the newest one.",
    example="names get orders@3",
    access=Access.READ,
    arguments=_show_arguments,
    work=_show,
)

# --- still-works ----------------------------------------------------------------------------------


def _still_works_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the name")
    parser.add_argument("version", metavar="VERSION", type=positive, help="the number of a version")
    add_as_of(parser)


def _still_works(work: Work) -> Answer:
    arguments = work.arguments
    answer = work.catalog.still_works(arguments.name, arguments.version, arguments.as_of)
    rows = tuple(
        (number, each.path, each.kind, each.why)
        for number, reasons in answer.breaking.items()
        for each in reasons
    )
    return Answer(
        facts={
            "works": answer.works,
            "version": answer.version,
            "current": answer.current,
            "last_breaking": answer.last_breaking,
            "compatible": answer.compatibility.verdict,
        },
        tables={"breaking": Table(("version", "path", "kind", "why"), rows)} if rows else {},
        found=not answer.works,
    )


NAMES_STILL_WORKS = Command(
    name="names still-works",
    summary="say whether data of a version can be read in the current one",
    details=(
        "It can if no later version is a breaking one; otherwise the exit code is 1. `compatible`\n"
        "compares the two directly: with full or forward, readers that stay with the version can\n"
        "read new data, too."
    ),
    example="names still-works orders 3",
    access=Access.READ,
    arguments=_still_works_arguments,
    work=_still_works,
)
