"""The words that compare schemas and show what a datasource's segments have in common."""

from __future__ import annotations

from argparse import ArgumentParser

from catalog.cli.answer import Answer, Table
from catalog.cli.command import Access, Command, Work
from catalog.cli.options import add_as_of
from catalog.cli.sides import HELP, schema_named
from catalog.evolution.compatibility import Mode, judge
from catalog.evolution.diff import diff
from catalog.evolution.merge import Policy

# --- diff -----------------------------------------------------------------------------------------


def _diff_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("old", help=HELP)
    parser.add_argument("new", help="the same for the other side")
    parser.add_argument(
        "--mode",
        choices=[str(mode) for mode in Mode if not mode.transitive],
        default="none",
        help="end with exit code 1 unless the new schema may follow the old one in this mode",
    )
    parser.add_argument("--all", action="store_true", help="show unchanged columns too")
    add_as_of(parser)


def _diff(work: Work) -> Answer:
    arguments, catalog = work.arguments, work.catalog
    old = schema_named(catalog, arguments.old, arguments.as_of)
    new = schema_named(catalog, arguments.new, arguments.as_of)
    found = diff(old, new)
    judgement = judge(new, [old], arguments.mode)
    rows = tuple(
        (line.sign, line.path, line.old, line.new, line.notes)
        for line in found.lines
        if arguments.all or line.sign.strip()
    )
    return Answer(
        facts={
            "old": old.fingerprint,
            "new": new.fingerprint,
            "compatible": found.compatibility.verdict,
            "reordered": found.reordered,
            **({"breaks": [str(each) for each in judgement.breaks]} if judgement.breaks else {}),
        },
        tables={
            "columns": Table(("sign", "path", "old", "new", "change"), rows, tinted_by="sign"),
        },
        found=not judgement.ok,
    )


DIFF = Command(
    name="diff",
    summary="show what changed from one schema to another",
    details=(
        "`compatible` says who can read whose data: backward (readers of the new schema read old "
        "data), forward (readers of the old schema read new data), full, or none. A definition is "
        "not published by being compared."
    ),
    example='diff orders "id BIGINT, amount DECIMAL(12,2)" --mode backward',
    access=Access.READ,
    arguments=_diff_arguments,
    work=_diff,
)

# --- columns --------------------------------------------------------------------------------------


def _columns_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("datasource", help="its name")
    parser.add_argument(
        "--policy",
        choices=[str(policy) for policy in Policy],
        help="the type of a column whose types have no common one: the first, string, the latest "
        "(default: what the contract says, or strict)",
    )
    add_as_of(parser)


def _columns(work: Work) -> Answer:
    arguments = work.arguments
    found = work.catalog.datasource_schema(
        arguments.datasource, as_of=arguments.as_of, policy=arguments.policy
    )
    rows = tuple(
        (
            each.path,
            each.type,
            each.nullable,
            dict(each.types),
            len(each.fingerprints),
            each.segments,
        )
        for each in found.columns
    )
    conflicts = tuple((each.path, list(each.seen), each.kept) for each in found.conflicts)
    return Answer(
        facts={
            "fingerprint": found.schema.fingerprint if found.schema else None,
            "ddl": found.schema.ddl if found.schema else None,
            "schemas": len(found.fingerprints),
            "segments": found.segments,
            "segments_without_schema": found.segments_without_schema,
        },
        tables={
            "columns": Table(("path", "type", "nullable", "types", "schemas", "segments"), rows),
            **({"conflicts": Table(("path", "types", "kept"), conflicts)} if conflicts else {}),
        },
        found=bool(conflicts),
    )


COLUMNS = Command(
    name="columns",
    summary="show the schema that the segments of a datasource have in common",
    details=(
        "Each column with the types that it was seen with and how many segments have it. Exit code "
        "1 says that the types of a column have no common one."
    ),
    example="columns orders",
    access=Access.READ,
    arguments=_columns_arguments,
    work=_columns,
)
