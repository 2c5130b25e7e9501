"""strata objects: named JSON documents with revisions and links, and the types they belong to."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from pyspark.sql import functions as F

from catalog.cli.arguments import STDIN, argument, flag, source, text_of
from catalog.cli.command import (
    Answer,
    Table,
    Work,
    answer_of,
    change,
    command,
    cut,
    facts_of,
    fetch,
)
from catalog.errors import InvalidInput
from catalog.objects.keeper import PutResult
from catalog.objects.model import Object, StoredObject, check_type
from catalog.objects.platform import PLATFORM
from catalog.objects.types import ObjectType, type_from

_FIELDS = ("key", "body", "links", "schema", "datasource")
# Names the built-in types of the platform, which need no file.
_BUILT_IN = "platform"
_KEY = argument("key", "its key: type/path")
_LINES = argument(
    "file",
    f"a local file with one JSON object per line; {STDIN} is standard input",
    metavar=f"FILE|{STDIN}",
)


@change(
    "objects put",
    "put objects, all of them or none",
    _LINES,
    limit=100,
    details=(
        "Each line has a key (type/path), and optionally a body (a JSON object), links (a list of\n"
        "keys), a schema (DDL or Spark's JSON) and the datasource that the object represents.\n"
        "Unchanged objects are skipped, so a run that failed can simply be repeated. Objects that\n"
        "link to a changed one get a new revision too: they are touched."
    ),
    example='objects.jsonl --reason "new tables"',
)
def objects_put(work: Work) -> Answer:
    result = work.catalog.objects.put(read_objects(work.arguments.file), **work.why)
    return shown_change(result, work.retries(result.retries), work.arguments.limit)


@change(
    "objects ensure",
    "create objects, or set some of their fields, all of them or none",
    _LINES,
    limit=100,
    details=(
        "The file is as for strata objects put. Of an object that exists only the fields of the\n"
        "body that a line gives are set; the others stay, and so do links, schema and datasource."
    ),
    example='nodes.jsonl --reason "new port"',
)
def objects_ensure(work: Work) -> Answer:
    result = work.catalog.objects.ensure(read_objects(work.arguments.file), **work.why)
    return shown_change(result, work.retries(result.retries), work.arguments.limit)


def shown_change(result: PutResult, retries: int, limit: int) -> Answer:
    """What happened to each object."""
    changes = {
        "put": tuple(result.revisions.items()),
        **{
            change: tuple((key, None) for key in getattr(result, change))
            for change in ("removed", "touched", "unchanged", "absent")
        },
    }
    rows = ((change, *each) for change, objects in changes.items() for each in objects)
    tables = {"changes": cut(("change", "key", "revision"), rows, limit)}
    return answer_of(result, retries, tables=tables)


@command("objects get", "show an object", _KEY, as_of=True, example="table/sales/orders")
def objects_get(work: Work) -> Answer:
    found = work.catalog.objects.get(work.arguments.key, work.as_of)
    if found.fingerprint is None:
        return shown_object(found, None)
    return shown_object(found, work.catalog.schema(found.fingerprint, work.as_of).ddl)


def shown_object(found: StoredObject, ddl: str | None) -> Answer:
    """An object with all that is recorded of it."""
    return Answer(
        facts={
            "key": found.key,
            "object_id": found.id,
            **facts_of(found, "revision", "body", "datasource", "fingerprint"),
            "ddl": ddl,
            **facts_of(found, "published_at", "changed_at", "changed_by", "commit_id"),
        },
        tables={"links": Table(("target", "revision"), tuple(sorted(found.links.items())))},
    )


@command(
    "objects list",
    "list objects",
    argument("type", "only objects of this type", nargs="?"),
    argument("--parent", "only objects below this one, by their declared type", metavar="KEY"),
    as_of=True,
    limit=100,
    details="strata objects get shows one with its body.",
    example="table --limit 20",
)
def objects_list(work: Work) -> Answer:
    given = work.arguments
    frame = work.catalog.inspect.objects(work.as_of)
    if given.type is not None:
        frame = frame.where(F.col("type") == F.lit(check_type(given.type)))
    if given.parent is not None:
        below = work.catalog.objects.list(given.type, work.as_of, parent=given.parent)
        frame = frame.where(F.col("key").isin([each.key for each in below]))
    shown = frame.orderBy("key").select(
        *("key", "object_id", "revision", "links", "datasource", "fingerprint"),
        *("published_at", "changed_at", "changed_by"),
    )
    brief = ("key", "revision", "datasource", "fingerprint", "changed_at", "changed_by")
    return Answer(tables={"objects": fetch(shown, given.limit, brief)})


@change(
    "objects remove",
    "remove objects, all of them or none",
    argument("keys", "keys: type/path", nargs="+", metavar="KEY"),
    flag("--cascade", "also remove everything below them and everything that refers to them"),
    dry_run="only show what would be removed",
    limit=100,
    details=(
        "Keys that do not exist are counted, not an error. An object that others link to is only\n"
        "removed together with them: name them, or use --cascade."
    ),
    example='table/sales/orders index/sales/orders --reason "moved"',
)
def objects_remove(work: Work) -> Answer:
    given = work.arguments
    result = work.catalog.objects.remove(
        given.keys, cascade=given.cascade, dry_run=given.dry_run, **work.why
    )
    answer = shown_change(result, work.retries(result.retries), given.limit)
    return replace(answer, facts={**answer.facts, "dry_run": result.dry_run})


@change(
    "objects rename",
    "rename an object",
    _KEY,
    argument("name", "its new name: the last part of its key"),
    limit=100,
    details=(
        "It keeps its id, and its revision is raised. Objects below it move along and references\n"
        "to it follow, as far as their types are declared, in one commit."
    ),
    example='database/sales shop --reason "one shop"',
)
def objects_rename(work: Work) -> Answer:
    result = work.catalog.objects.rename(work.arguments.key, work.arguments.name, **work.why)
    return shown_rename(result, work.retries(result.retries), work.arguments.limit)


def shown_rename(result: PutResult, retries: int, limit: int) -> Answer:
    """Old and new key of every renamed object."""
    counts = {"renamed": len(result.renamed), "touched": len(result.touched)}
    rows = ((old, new, result.revisions[new]) for old, new in result.renamed.items())
    return Answer(
        facts={**facts_of(result, "version", "commit_id"), **counts, "retries": retries},
        tables={"renamed": cut(("key", "new_key", "revision"), rows, limit)},
        figures={**counts, "conflicts_retried": retries},
    )


@change(
    "objects declare",
    "declare types of objects, all of them or none",
    argument(
        "file",
        f"a local file with a declaration or a list of them as JSON ({STDIN} is standard "
        f"input), or {_BUILT_IN} for the types of the platform",
        metavar=f"FILE|{_BUILT_IN}",
    ),
    limit=100,
    details=(
        "A declaration has the name of a type, and optionally its parent, fields, references,\n"
        "states and rules. Every later change of such objects is checked by it. Existing objects\n"
        "get the links and defaults that it requires; if some of them break it, nothing is\n"
        f"declared. {_BUILT_IN} means the types of databases, nodes, tables and the like."
    ),
    example='platform --reason "types for all"',
)
def objects_declare(work: Work) -> Answer:
    result = work.catalog.objects.declare(read_types(work.arguments.file), **work.why)
    return shown_change(result, work.retries(result.retries), work.arguments.limit)


@command(
    "objects types",
    "list declared types of objects",
    as_of=True,
    details="strata objects get type/NAME shows a whole declaration.",
)
def objects_types(work: Work) -> Answer:
    return shown_types(work.catalog.objects.types(work.as_of))


def shown_types(types: Iterable[ObjectType]) -> Answer:
    """Declared types by name, with all that they declare."""
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


# --- files of objects and of types ----------------------------------------------------------------


def read_objects(file: str) -> list[Object]:
    """The objects of a file, one JSON object per line."""
    found = list(objects_in(text_of(file), source(file)))
    if not found:
        raise InvalidInput(f"There is no object in {source(file)}; write one per line.", file=file)
    return found


def objects_in(text: str, source: str) -> Iterator[Object]:
    """The objects of a text's lines; errors name the line."""
    # Not splitlines: JSON may have other line breaks than these inside its texts.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield _object(line)
        except InvalidInput as error:
            error.add_note(f"That is line {number} of {source}; nothing was written.")
            raise


def _object(line: str) -> Object:
    try:
        document = json.loads(line, object_pairs_hook=_unique_names)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{line!r:.80} is not JSON: {error}.") from error
    if not isinstance(document, dict):
        raise InvalidInput(
            f"An object is a JSON object with {', '.join(_FIELDS)}, not {line!r:.80}."
        )
    for name in document.keys() - set(_FIELDS):
        near = difflib.get_close_matches(name, _FIELDS, 1)
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(_FIELDS)}."
        raise InvalidInput(f"An object has no {name!r:.80}: {hint}", field=name)
    if "key" not in document:
        raise InvalidInput(f"{line!r:.80} has no key, such as table/sales/orders; give it one.")
    links = document.get("links") or []
    if not isinstance(links, list):
        # `objects get` shows links with revisions, which put would take for a condition.
        raise InvalidInput(f"links is a list of keys, not {json.dumps(links)!r:.80}.", links=links)
    return Object(
        document["key"],
        document.get("body"),
        links=links,
        schema=document.get("schema"),
        datasource=document.get("datasource"),
    )


def read_types(file: str) -> tuple[ObjectType, ...]:
    """The types that a file declares, or those of the platform."""
    if file == _BUILT_IN:
        return PLATFORM
    found = types_in(text_of(file), source(file))
    if not found:
        raise InvalidInput(f"There is no declaration in {source(file)}; write one.", file=file)
    return found


def types_in(text: str, source: str) -> tuple[ObjectType, ...]:
    """The types that a document declares: one, or a list of them."""
    try:
        document = json.loads(text, object_pairs_hook=_unique_names)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{source} is not JSON: {error}.", file=source) from error
    each = document if isinstance(document, list) else [document]
    return tuple(_type(declaration, source) for declaration in each)


def _type(declaration: Any, source: str) -> ObjectType:
    if not isinstance(declaration, dict) or not isinstance(declaration.get("name"), str):
        raise InvalidInput(
            f"A declaration in {source} is a JSON object with the name of the type, such as "
            f'{{"name": "team", "fields": {{}}}}, not {json.dumps(declaration):.80}.',
            file=source,
        )
    body = {name: value for name, value in declaration.items() if name != "name"}
    return type_from(declaration["name"], body)


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """One JSON object, in which no name may occur twice: only one of the two would count."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r:.80} occurs twice in one object")
    return found
