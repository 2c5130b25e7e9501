"""The column dictionary and the entity diagram of a page, made from what the tables are made from.

    python -m catalog.sql.dictionary docs/sql.md

writes both into the page, between the markers that it has for them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from catalog.delta import audit_log as audit
from catalog.delta import layout, runs
from catalog.delta.layout import ColumnSpec, View
from catalog.delta.location import ENTRIES
from catalog.delta.runs import TASKS_VIEW
from catalog.sql.audit_views import CHANGES
from catalog.sql.functions import FUNCTIONS, Function
from catalog.sql.platform_views import PLATFORM_VIEWS
from catalog.sql.views import VIEWS


@dataclass(frozen=True)
class Entity:
    """A view or table as a reader sees it."""

    name: str
    comment: str
    columns: tuple[ColumnSpec, ...]
    key: tuple[str, ...]


@dataclass(frozen=True)
class Relation:
    """How rows of two entities belong together; `column`, if given, refers to the left one's key.

    The shape is Mermaid's: how many of the left, a line, how many of the right.
    """

    left: str
    shape: str
    right: str
    label: str
    column: str = ""


# A column of a view has the type that the table has under this name, or one of these.
TYPES = {
    **{column.name: column.type for column in (*runs.ALL_COLUMNS, *layout.COLUMNS)},
    "task_id": "STRING",
    "steps_done": "INT",
    "seconds_left": "BIGINT",
    "segment_id": "STRING",
    "name": "STRING",
    "ddl": "STRING",
    "num_columns": "INT",
    "path": "STRING",
    "position": "INT",
    "depth": "INT",
    "type": "STRING",
    "types": "ARRAY<STRING>",
    "nullable": "BOOLEAN",
    "comment": "STRING",
    "retired": "BOOLEAN",
    "retired_at": "TIMESTAMP",
    "num_segments": "BIGINT",
    "num_schemas": "BIGINT",
    "segments_without_schema": "BIGINT",
    "inferred": "BOOLEAN",
    "quarantined": "BOOLEAN",
    "reason": "STRING",
    "attempts": "INT",
    "failed_since": "TIMESTAMP",
    "retry_at": "TIMESTAMP",
    "mode": "STRING",
    "current_version": "INT",
    "last_breaking": "INT",
    "dropped": "MAP<STRING, STRUCT<type: STRING, since: INT>>",
    "compatible": "BOOLEAN",
    "breaking": "BOOLEAN",
    "reasons": "ARRAY<STRING>",
    "forced": "BOOLEAN",
    "merged": "BOOLEAN",
    "note": "STRING",
    "registered_at": "TIMESTAMP",
    "registered_by": "STRING",
    "object_id": "STRING",
    "body": "STRING",
    "links": "MAP<STRING, BIGINT>",
    "target_revision": "BIGINT",
    "operation_id": "STRING",
    "parts": "INT",
    "parts_staged": "BIGINT",
    "claims": "BIGINT",
    "epoch": "BIGINT",
    "owner": "STRING",
    "lease_until": "TIMESTAMP",
    "expired": "BOOLEAN",
    "age_seconds": "BIGINT",
    "opened_at": "TIMESTAMP",
    "shared": "BOOLEAN",
    "waiting": "BIGINT",
    "enforcement": "STRING",
    "policy": "STRING",
    "max_rows": "BIGINT",
    "max_bytes": "BIGINT",
    "max_columns": "BIGINT",
    "value": "STRING",
    "version": "BIGINT",
    "rolled": "BOOLEAN",
    "verb": "STRING",
    "actors": "ARRAY<STRING>",
    **{column.name: column.type for column in audit.CHANGE_COLUMNS},
    "scope": "STRING",
    "max_age_days": "DOUBLE",
    "max_segments": "BIGINT",
    "keep_at_least": "BIGINT",
    "enabled": "BOOLEAN",
}

_KEYS = {
    "tasks": ("task_id",),
    "schemas": ("fingerprint",),
    "schema_columns": ("fingerprint", "path"),
    "segments": ("segment_id",),
    "segments_without_schema": ("segment_id",),
    "segment_schemas": ("segment_id",),
    "datasources": ("datasource",),
    "datasource_columns": ("datasource", "path"),
    "orphan_schemas": ("fingerprint",),
    "retired_schemas": ("fingerprint",),
    "named_schemas": ("name",),
    "schema_versions": ("name", "version"),
    "objects": ("key",),
    "object_links": ("key", "target"),
    "operations": ("operation_id",),
    "claims": ("target", "key", "operation_id", "part"),
    "stable_epoch": ("epoch",),
    "contracts": ("datasource",),
    "settings": ("name",),
    "changes": ("version", "kind", "key", "target", "operation", "part"),
    "retention_rules": ("key",),
}

RELATIONS = (
    Relation("datasources", "||--|{", "segments", "has", "datasource"),
    Relation("datasources", "||--o{", "datasource_columns", "has", "datasource"),
    Relation("schemas", "|o--o{", "segments", "describes", "fingerprint"),
    Relation("retired_schemas", "|o--o{", "segments", "describes until restored", "fingerprint"),
    Relation("schemas", "||--|{", "schema_columns", "has", "fingerprint"),
    Relation("schemas", "||--o|", "orphan_schemas", "is, if nothing refers to it", "fingerprint"),
    Relation(
        "segments", "||--o|", "segments_without_schema", "is, until it has a schema", "segment_id"
    ),
    Relation("segments", "||--||", "segment_schemas", "with its definition", "segment_id"),
    Relation("named_schemas", "||--|{", "schema_versions", "has", "name"),
    Relation("schemas", "||--o{", "schema_versions", "describes", "fingerprint"),
    Relation("schemas", "|o--o{", "objects", "describes", "fingerprint"),
    Relation("objects", "||--o{", "object_links", "holds", "key"),
    *(Relation("objects", "||--o|", view.name, "is", "key") for view in PLATFORM_VIEWS),
    Relation("objects", "||--o|", "retention_rules", "is, if it is a rule", "key"),
    Relation("operations", "||--o{", "claims", "has, until it is decided", "operation_id"),
    Relation("datasources", "|o--o|", "contracts", "has", "datasource"),
    Relation("schemas", "|o--o{", "contracts", "is asked for by", "fingerprint"),
    Relation("stable_epoch", "||..o{", "operations", "publishes, when it reaches their epochs"),
    Relation("entries", "||..o|", "schemas", "kind is schema"),
    Relation("entries", "||..o|", "retired_schemas", "kind is retired"),
    Relation("entries", "||..o|", "segments", "kind is segment"),
    Relation("entries", "||..o|", "named_schemas", "kind is named"),
    Relation("entries", "||..o|", "schema_versions", "kind is version"),
    Relation("entries", "||..o|", "objects", "kind is object"),
    Relation("entries", "||..o|", "operations", "kind is operation"),
    Relation("entries", "||..o|", "claims", "kind is staged"),
    Relation("entries", "|o..||", "stable_epoch", "kind is epoch"),
    Relation("entries", "||..o|", "contracts", "kind is datasource"),
    Relation("entries", "||..o|", "settings", "kind is setting"),
    Relation("entries", "||..o{", "changes", "was changed"),
    Relation("audit", "||..||", "changes", "is, if it is rolled and of a key"),
    Relation("runs", "|o..o{", "entries", "commits"),
    Relation("runs", "||..o|", "tasks", "has an attempt"),
)


def entities() -> tuple[Entity, ...]:
    """The views in the order in which they are made, then the tables."""
    return (
        *(_entity(view) for view in (*VIEWS, CHANGES)),
        Entity(
            ENTRIES,
            "The table behind the views: schemas, retired schemas, segments, named schemas and "
            "their versions, objects, and operations with their parts and staged changes, one row "
            "each",
            layout.COLUMNS,
            # The last three tell staged changes of one row apart.
            ("kind", "key", "target", "operation", "part"),
        ),
        Entity(
            audit.AUDIT,
            "Commits and changed keys that were rolled out of the log, and gaps, one row each; the "
            "table is there once the history was rolled",
            audit.COLUMNS,
            ("version", "record", "kind", "key", "target", "operation", "part"),
        ),
        Entity(
            runs.RUNS,
            "Runs of jobs, one row each; the table is there once a job has run",
            runs.ALL_COLUMNS,
            ("run_id",),
        ),
        _entity(TASKS_VIEW),
    )


def _entity(view: View) -> Entity:
    columns = tuple(
        ColumnSpec(name, view.types.get(name) or TYPES[name], text)
        for name, text in view.columns.items()
    )
    return Entity(view.name, view.comment, columns, _KEYS.get(view.name, ("key",)))


# --- Markdown -------------------------------------------------------------------------------------


def dictionary() -> str:
    """Every view, table and function with its columns, as Markdown."""
    shown = [_section(e.name, e.comment, _table("column", e.columns)) for e in entities()]
    return "\n".join(shown + [_function(function) for function in FUNCTIONS])


def _function(function: Function) -> str:
    names = ", ".join(parameter.name for parameter in function.parameters)
    taken = _table("parameter", function.parameters)
    if isinstance(function.returns, str):
        given = f"Returns `{function.returns}`.\n"
    else:
        given = "Returns rows:\n\n" + _table("column", function.returns)
    return _section(f"{function.name}({names})", function.comment, taken, given)


def _section(title: str, comment: str, *parts: str) -> str:
    return "\n".join([f"### {title}\n", f"{comment}.\n", *parts])


def _table(first: str, columns: Iterable[ColumnSpec]) -> str:
    rows = "".join(f"| {c.name} | `{c.type}` | {c.comment} |\n" for c in columns)
    return f"| {first} | type | meaning |\n|---|---|---|\n{rows}"


# --- Mermaid --------------------------------------------------------------------------------------


def diagram() -> str:
    """The entities with their keys and relations, as a Mermaid diagram in Markdown."""
    lines = [f'    {r.left} {r.shape} {r.right} : "{r.label}"' for r in RELATIONS]
    for entity in entities():
        lines += [f"    {entity.name} {{", *_attributes(entity), "    }"]
    return "\n".join(["```mermaid", "erDiagram", *lines, "```", ""])


def _attributes(entity: Entity) -> list[str]:
    foreign = {r.column for r in RELATIONS if r.right == entity.name}
    marks = {
        column.name: ["PK"] * (column.name in entity.key) + ["FK"] * (column.name in foreign)
        for column in entity.columns
    }
    return [
        f"        {column.type} {column.name} {', '.join(marks[column.name])}"
        for column in entity.columns
        if marks[column.name]
    ]


# --- pages ----------------------------------------------------------------------------------------

_PARTS = {"dictionary": dictionary, "diagram": diagram}


def rewritten(page: str) -> str:
    """The page with the parts between its markers made anew."""
    for name, make in _PARTS.items():
        before, begin, rest = page.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- /{name} -->")
        if not end:
            raise ValueError(
                f"The page has no part for the {name}; put <!-- {name} --> and <!-- /{name} --> "
                "on lines of their own."
            )
        page = f"{before}{begin}\n{make()}\n{end}{after}"
    return page


def main(pages: Sequence[str]) -> int:
    """Rewrites these pages in place."""
    for page in map(Path, pages):
        page.write_text(rewritten(page.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
