"""The words for objects: put, ensure, get, objects, remove, rename."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import replace

from pyspark.sql import functions as F

from catalog.cli.answer import Answer, Table, cut, fetch
from catalog.cli.command import Access, Command, Work
from catalog.cli.commands.deciding import tried_again
from catalog.cli.commands.writing import add_why
from catalog.cli.object_lines import STDIN, read_objects
from catalog.cli.options import add_as_of, add_limit
from catalog.objects.keeper import PutResult
from catalog.objects.keys import check_type
from catalog.objects.model import StoredObject

# --- put ------------------------------------------------------------------------------------------


def _put_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "file",
        metavar=f"FILE|{STDIN}",
        help=f"a local file with one JSON object a line; {STDIN} is standard input",
    )
    add_limit(parser)
    add_why(parser)


def _put(work: Work) -> Answer:
    arguments = work.arguments
    result = work.catalog.put(
        read_objects(arguments.file), reason=arguments.reason, deadline=arguments.deadline
    )
    return shown_change(result, tried_again(work.catalog, result.retries), arguments.limit)


def shown_change(result: PutResult, tried_again: int, limit: int) -> Answer:
    """What a put or a remove did with each object."""
    changes = {
        "put": tuple(result.revisions.items()),
        "removed": tuple((key, None) for key in result.removed),
        "touched": tuple((key, None) for key in result.touched),
        "unchanged": tuple((key, None) for key in result.unchanged),
        "absent": tuple((key, None) for key in result.absent),
    }
    counts = {change: len(objects) for change, objects in changes.items()}
    rows = ((change, *each) for change, objects in changes.items() for each in objects)
    return Answer(
        facts={
            "version": result.version,
            "commit_id": result.commit_id or None,
            **counts,
            "retries": tried_again,
        },
        tables={"changes": cut(("change", "key", "revision"), rows, limit)},
        figures={**counts, "conflicts_retried": tried_again},
    )


OBJECTS_PUT = Command(
    name="objects put",
    summary="put objects, all of them or none",
    details=(
        "Each line has a key (type/path), and if wanted a body (a JSON object), links (a list of\n"
        "keys), a schema (DDL or Spark's JSON) and the datasource that the object stands for.\n"
        "What is there with the same content is left alone, so a run that failed can simply be\n"
        "run again. What links to a changed object gets a new revision too: it is touched."
    ),
    example='objects put objects.jsonl --reason "new tables"',
    access=Access.WRITE,
    arguments=_put_arguments,
    work=_put,
    recorded=True,
)

# --- ensure ---------------------------------------------------------------------------------------


def _ensure(work: Work) -> Answer:
    arguments = work.arguments
    result = work.catalog.ensure(
        read_objects(arguments.file), reason=arguments.reason, deadline=arguments.deadline
    )
    return shown_change(result, tried_again(work.catalog, result.retries), arguments.limit)


OBJECTS_ENSURE = Command(
    name="objects ensure",
    summary="create objects, or set some fields of theirs, all of them or none",
    details=(
        "The file is as for strata objects put. Of an object that is there only the fields of the body\n"
        "that a line gives are set; the others stay, and so do links, schema and datasource."
    ),
    example='objects ensure nodes.jsonl --reason "new port"',
    access=Access.WRITE,
    arguments=_put_arguments,
    work=_ensure,
    recorded=True,
)

# --- remove ---------------------------------------------------------------------------------------


def _remove_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("keys", nargs="+", metavar="KEY", help="keys: type/path")
    parser.add_argument(
        "--cascade",
        action="store_true",
        help="also remove everything below them and everything that refers to them",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    add_limit(parser)
    add_why(parser)


def _remove(work: Work) -> Answer:
    arguments = work.arguments
    result = work.catalog.remove(
        arguments.keys,
        cascade=arguments.cascade,
        dry_run=arguments.dry_run,
        reason=arguments.reason,
        deadline=arguments.deadline,
    )
    answer = shown_change(result, tried_again(work.catalog, result.retries), arguments.limit)
    return replace(answer, facts={**answer.facts, "dry_run": result.dry_run})


OBJECTS_REMOVE = Command(
    name="objects remove",
    summary="remove objects, all of them or none",
    details=(
        "Keys that are not there are counted, not an error. An object that others link to is only\n"
        "removed together with them: name them, or use --cascade."
    ),
    example='objects remove table/sales/orders index/sales/orders --reason "moved"',
    access=Access.WRITE,
    arguments=_remove_arguments,
    work=_remove,
    recorded=True,
)

# --- rename ---------------------------------------------------------------------------------------


def _rename_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="its key: type/path")
    parser.add_argument("name", metavar="NAME", help="its new name: the last part of its key")
    add_limit(parser)
    add_why(parser)


def _rename(work: Work) -> Answer:
    arguments = work.arguments
    result = work.catalog.rename(
        arguments.key, arguments.name, reason=arguments.reason, deadline=arguments.deadline
    )
    return shown_rename(result, tried_again(work.catalog, result.retries), arguments.limit)


def shown_rename(result: PutResult, tried_again: int, limit: int) -> Answer:
    """The new key of every object that has another."""
    counts = {"renamed": len(result.renamed), "touched": len(result.touched)}
    rows = ((old, new, result.revisions[new]) for old, new in result.renamed.items())
    return Answer(
        facts={
            "version": result.version,
            "commit_id": result.commit_id or None,
            **counts,
            "retries": tried_again,
        },
        tables={"renamed": cut(("key", "new_key", "revision"), rows, limit)},
        figures={**counts, "conflicts_retried": tried_again},
    )


OBJECTS_RENAME = Command(
    name="objects rename",
    summary="give an object another name",
    details=(
        "It keeps its id, and its revision goes on. Objects below it move along and references to\n"
        "it follow, as far as their types are declared, in one commit."
    ),
    example='objects rename database/sales shop --reason "one shop"',
    access=Access.WRITE,
    arguments=_rename_arguments,
    work=_rename,
    recorded=True,
)

# --- get ------------------------------------------------------------------------------------------


def _get_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="its key: type/path")
    add_as_of(parser)


def _get(work: Work) -> Answer:
    arguments, catalog = work.arguments, work.catalog
    found = catalog.get(arguments.key, arguments.as_of)
    if found.fingerprint is None:
        return shown_object(found, None)
    return shown_object(found, catalog.schema(found.fingerprint, arguments.as_of).ddl)


def shown_object(found: StoredObject, ddl: str | None) -> Answer:
    """An object with all that is known of it."""
    return Answer(
        facts={
            "key": found.key,
            "object_id": found.id,
            "revision": found.revision,
            "body": found.body,
            "datasource": found.datasource,
            "fingerprint": found.fingerprint,
            "ddl": ddl,
            "published_at": found.published_at,
            "changed_at": found.changed_at,
            "changed_by": found.changed_by,
            "commit_id": found.commit_id,
        },
        tables={"links": Table(("target", "revision"), tuple(sorted(found.links.items())))},
    )


OBJECTS_GET = Command(
    name="objects get",
    summary="show an object",
    example="objects get table/sales/orders",
    access=Access.READ,
    arguments=_get_arguments,
    work=_get,
)

# --- objects --------------------------------------------------------------------------------------


def _objects_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("type", nargs="?", metavar="TYPE", help="only those of a type")
    parser.add_argument(
        "--parent",
        metavar="KEY",
        help="only those below this object, by their declared type",
    )
    add_as_of(parser)
    add_limit(parser)


def _objects(work: Work) -> Answer:
    arguments = work.arguments
    frame = work.catalog.objects(arguments.as_of)
    if arguments.type is not None:
        frame = frame.where(F.col("type") == F.lit(check_type(arguments.type)))
    if arguments.parent is not None:
        below = work.catalog.list(arguments.type, arguments.as_of, parent=arguments.parent)
        frame = frame.where(F.col("key").isin([each.key for each in below]))
    shown = frame.orderBy("key").select(
        "key",
        "object_id",
        "revision",
        "links",
        "datasource",
        "fingerprint",
        "published_at",
        "changed_at",
        "changed_by",
    )
    brief = ("key", "revision", "datasource", "fingerprint", "changed_at", "changed_by")
    return Answer(tables={"objects": fetch(shown, arguments.limit, brief)})


OBJECTS_LIST = Command(
    name="objects list",
    summary="list objects",
    details="strata objects get shows one with its body.",
    example="objects list table --limit 20",
    access=Access.READ,
    arguments=_objects_arguments,
    work=_objects,
)
