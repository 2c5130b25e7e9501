"""strata names: named schemas and their numbered versions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from catalog.cli.arguments import STDIN, argument, flag, natural, one_of, positive, text_of
from catalog.cli.command import (
    Answer,
    Table,
    Work,
    answer_of,
    change,
    command,
    facts_of,
    fetch,
    table_of,
)
from catalog.cli.schemas import HELP, schema_given, schema_in
from catalog.evolution.compatibility import Mode
from catalog.names.model import reference

if TYPE_CHECKING:
    from catalog.names.model import NamedSchema, Reason, Registered
    from catalog.schema.translation import Unsaid

_MODES = [str(mode) for mode in Mode]
_NAME = argument("name", "the name of the schema")


def _reasons(reasons: tuple[Reason, ...]) -> dict[str, Table]:
    """A table of reasons, if there are any."""
    columns = ("path", "kind", "old", "new", "why", "against")
    return {"reasons": table_of(reasons, columns)} if reasons else {}


@change(
    "names register",
    "register a schema as the next version of a name",
    argument("name", "the name: a text without a slash"),
    one_of(
        argument(
            "schema",
            f"a local file with DDL or Spark's JSON, or {HELP}",
            nargs="?",
            metavar=f"SCHEMA|FILE|{STDIN}",
        ),
        argument("--avro", "a local file with an Avro schema", metavar="FILE"),
        argument("--json-schema", "a local file with a JSON Schema", metavar="FILE"),
        required=True,
    ),
    argument("--mode", "the mode of a new name (default: backward)", choices=_MODES),
    argument(
        "--base",
        "the version that the schema was derived from; later versions are merged into it",
        type=natural,
        metavar="VERSION",
    ),
    flag("--force", "register it although the mode forbids it; this is recorded"),
    argument("--note", "a text that is stored with the version", default=""),
    dry_run=True,
    details=(
        "Registering the current schema again changes nothing. A schema that the mode of the name\n"
        "forbids after the earlier versions is refused, with a reason for each column. With\n"
        "--base the versions since that one are merged in; without it columns that the schema\n"
        "lacks are dropped. A dropped column can only be added again with the type it had."
    ),
    example='orders "id BIGINT, amount DECIMAL(12,2)" --base 3 --note "cents"',
)
def names_register(work: Work) -> Answer:
    given = work.arguments
    unsaid: tuple[Unsaid, ...] = ()
    if given.schema is not None:
        schema = schema_given(work.catalog, given.schema)
    else:
        dialect = "avro" if given.avro is not None else "json-schema"
        schema, unsaid = schema_in(dialect, text_of(given.avro or given.json_schema))
    result = work.catalog.names.register(
        given.name,
        schema,
        mode=given.mode,
        base=given.base,
        force=given.force,
        note=given.note,
        dry_run=given.dry_run,
        **work.why,
    )
    answer = shown_registration(result, work.retries(result.retries))
    return replace(answer, tables={**answer.tables, **unsaid_table(unsaid)})


def unsaid_table(unsaid: tuple[Unsaid, ...]) -> dict[str, Table]:
    """A table of what a dialect cannot say, if there is anything."""
    return {"unsaid": table_of(unsaid, ("path", "what"))} if unsaid else {}


def shown_registration(result: Registered, retries: int) -> Answer:
    """The version that was registered."""
    return answer_of(result, retries, tables=_reasons(result.reasons))


@command(
    "names get",
    "show a version of a named schema",
    argument("name", "the name; orders@3 is version 3", metavar="NAME[@VERSION]"),
    as_of=True,
    details="Without a number, or with @current, it is the newest one.",
    example="orders@3",
)
def names_get(work: Work) -> Answer:
    name, number = reference(work.arguments.name) or (work.arguments.name, None)
    return shown_named(work.catalog.names.get(name, number, work.as_of))


def shown_named(found: NamedSchema) -> Answer:
    """A version of a named schema with all that is recorded of it."""
    dropped = tuple((path, each.type, each.since) for path, each in found.dropped.items())
    return Answer(
        facts={
            **facts_of(found, "name", "version", "fingerprint"),
            "ddl": found.schema.ddl,
            "mode": str(found.mode),
            **facts_of(found, "current", "last_breaking", "compatible", "forced", "base"),
            **facts_of(found, "merged", "note", "registered_at", "registered_by", "commit_id"),
        },
        tables={
            **_reasons(found.reasons),
            **({"dropped": Table(("path", "type", "since"), dropped)} if dropped else {}),
        },
    )


@command(
    "names list",
    "list named schemas",
    as_of=True,
    limit=100,
    details="strata names versions lists the versions of one, strata names get shows one of them.",
    example="--limit 20",
)
def names_list(work: Work) -> Answer:
    frame = work.catalog.inspect.named_schemas(work.as_of).orderBy("name").drop("commit_id")
    brief = ("name", "mode", "current_version", "last_breaking", "fingerprint", "changed_at")
    return Answer(tables={"named_schemas": fetch(frame, work.arguments.limit, brief)})


@command(
    "names versions",
    "list the versions of a named schema",
    _NAME,
    as_of=True,
    limit=100,
    details="Data of versions before `last_breaking` cannot be read with the current schema.",
    example="orders",
)
def names_versions(work: Work) -> Answer:
    name = work.arguments.name
    current = work.catalog.names.get(name, as_of=work.as_of)
    frame = work.catalog.inspect.schema_versions(name, work.as_of).orderBy("version")
    brief = ("version", "fingerprint", "breaking", "forced", "merged", "registered_by", "ddl")
    shown = fetch(frame.drop("name", "commit_id"), work.arguments.limit, brief)
    return Answer(
        facts={"mode": str(current.mode), **facts_of(current, "current", "last_breaking")},
        tables={"versions": shown},
    )


@change(
    "names set-mode",
    "set which schemas may follow earlier versions of a name",
    _NAME,
    argument("mode", "how new versions must be compatible with old ones", choices=_MODES),
    details="Later registrations are checked by it; versions that are there stay as they are.",
    example="orders full_transitive",
)
def names_set_mode(work: Work) -> Answer:
    result = work.catalog.names.set_mode(work.arguments.name, work.arguments.mode, **work.why)
    return answer_of(result, work.retries(result.retries))


@command(
    "names still-works",
    "check whether data of a version can be read with the current schema",
    _NAME,
    argument("version", "the number of a version", type=positive),
    as_of=True,
    details=(
        "It can if no later version is a breaking one; otherwise the exit code is 1. `compatible`\n"
        "compares the two directly: with full or forward, readers that stay with the version can\n"
        "read new data, too."
    ),
    example="orders 3",
)
def names_still_works(work: Work) -> Answer:
    answer = work.catalog.names.still_works(work.arguments.name, work.arguments.version, work.as_of)
    rows = tuple(
        (number, each.path, each.kind, each.why)
        for number, reasons in answer.breaking.items()
        for each in reasons
    )
    return Answer(
        facts={
            **facts_of(answer, "works", "version", "current", "last_breaking"),
            "compatible": answer.compatibility.verdict,
        },
        tables={"breaking": Table(("version", "path", "kind", "why"), rows)} if rows else {},
        found=not answer.works,
    )
