"""The words for types of objects: types, declare."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable

from catalog.cli.answer import Answer, Table
from catalog.cli.command import Access, Command, Work
from catalog.cli.commands.deciding import tried_again
from catalog.cli.commands.objects import shown_change
from catalog.cli.commands.writing import add_why
from catalog.cli.object_lines import STDIN
from catalog.cli.options import add_as_of, add_limit
from catalog.cli.type_files import BUILT_IN, read_types
from catalog.objects.types import ObjectType

# --- declare --------------------------------------------------------------------------------------


def _declare_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "file",
        metavar=f"FILE|{BUILT_IN}",
        help=f"a local file with a declaration or a list of them as JSON ({STDIN} is standard "
        f"input), or {BUILT_IN} for the types of the platform",
    )
    add_limit(parser)
    add_why(parser)


def _declare(work: Work) -> Answer:
    arguments = work.arguments
    result = work.catalog.declare(
        read_types(arguments.file), reason=arguments.reason, deadline=arguments.deadline
    )
    return shown_change(result, tried_again(work.catalog, result.retries), arguments.limit)


OBJECTS_DECLARE = Command(
    name="objects declare",
    summary="declare types of objects, all of them or none",
    details=(
        "A declaration has the name of a type, and if wanted its parent, fields, references,\n"
        "states and rules. Every later change of such objects is judged by it. Objects that are\n"
        "there get the links and defaults that it demands; if some of them break it, nothing is\n"
        f"declared. {BUILT_IN} stands for the types of databases, nodes, tables and the like."
    ),
    example='objects declare platform --reason "types for all"',
    access=Access.WRITE,
    arguments=_declare_arguments,
    work=_declare,
    recorded=True,
)

# --- types ----------------------------------------------------------------------------------------


def _types(work: Work) -> Answer:
    return shown_types(work.catalog.types(work.arguments.as_of))


def shown_types(types: Iterable[ObjectType]) -> Answer:
    """Declared types with all that they say; people see the most important of it."""
    rows = tuple(
        (
            declared.name,
            declared.parent,
            list(declared.owners),
            declared.named_by,
            sorted(declared.all_fields),
            dict(declared.references),
            list(declared.states.words) if declared.states else [],
            [[rule.kind, *rule.parameters] for rule in declared.rules],
            declared.open,
            declared.comment,
        )
        for declared in sorted(types, key=lambda declared: declared.name)
    )
    columns = (
        *("type", "parent", "owners", "named_by", "fields"),
        *("references", "states", "rules", "open", "comment"),
    )
    return Answer(tables={"types": Table(columns, rows, brief=("type", "parent", "fields"))})


OBJECTS_TYPES = Command(
    name="objects types",
    summary="list declared types of objects",
    details="strata objects get type/NAME shows a whole declaration.",
    example="objects types",
    access=Access.READ,
    arguments=add_as_of,
    work=_types,
)
