"""The functions that SQL users see, over the same queries as the views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.delta.layout import ColumnSpec
from catalog.delta.location import ENTRIES, Location
from catalog.schema.canonical import MIN_DIGITS
from catalog.schema.names import identifier, literal
from catalog.sql import views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Function:
    """A function: what it takes, what it returns, and its body over the query of a view.

    In the body `{view}` is that query and `{self}` the function, which qualifies its parameters. A
    function that returns columns instead of a type is called in a FROM clause.
    """

    name: str
    comment: str
    parameters: tuple[ColumnSpec, ...]
    returns: str | tuple[ColumnSpec, ...]
    view: str
    body: str


def _columns(view: str, **types: str) -> tuple[ColumnSpec, ...]:
    comments = views.BY_NAME[view].columns
    return tuple(ColumnSpec(name, type, comments[name]) for name, type in types.items())


_SEGMENT = (ColumnSpec("segment_id", "STRING", "Id of a segment: datasource/name"),)
_BEGINNING = (
    ColumnSpec(
        "fingerprint",
        "STRING",
        f"A fingerprint or the beginning of some, from {MIN_DIGITS} digits on",
    ),
)
_SEGMENTS_WITH = _columns(
    "segments",
    segment_id="STRING",
    datasource="STRING",
    fingerprint="STRING",
    num_rows="BIGINT",
    size_bytes="BIGINT",
    location="STRING",
)
_COLUMNS_OF = _columns(
    "schema_columns",
    fingerprint="STRING",
    path="STRING",
    name="STRING",
    position="INT",
    depth="INT",
    type="STRING",
    nullable="BOOLEAN",
    comment="STRING",
)


def _of_segment(column: str) -> str:
    # Aggregated, because Spark has to see that a subquery for each row of a query gives one value.
    return f"SELECT max(v.{column}) FROM {{view}} AS v WHERE v.segment_id = {{self}}.segment_id"


def _with_beginning(columns: tuple[ColumnSpec, ...]) -> str:
    return (
        f"SELECT {', '.join(f'v.{column.name}' for column in columns)} FROM {{view}} AS v "
        f"WHERE length({{self}}.fingerprint) >= {MIN_DIGITS} "
        "AND startswith(v.fingerprint, lower({self}.fingerprint))"
    )


FUNCTIONS = (
    Function(
        "schema_of",
        "The schema of a segment as Spark DDL; null if there is no such segment",
        _SEGMENT,
        "STRING",
        "segment_schemas",
        _of_segment("ddl"),
    ),
    Function(
        "fingerprint_of",
        "The fingerprint of a segment's schema; null if there is no such segment",
        _SEGMENT,
        "STRING",
        "segments",
        _of_segment("fingerprint"),
    ),
    Function(
        "segments_with",
        "Segments whose schema has this fingerprint, or one that begins so",
        _BEGINNING,
        _SEGMENTS_WITH,
        "segments",
        _with_beginning(_SEGMENTS_WITH),
    ),
    Function(
        "columns_of",
        "Columns of the live schemas with this fingerprint, or one that begins so",
        _BEGINNING,
        _COLUMNS_OF,
        "schema_columns",
        _with_beginning(_COLUMNS_OF),
    ),
)


def create_functions(
    session: SparkSession, location: Location, prefix: str = "", replace: bool = True
) -> list[str]:
    """Creates the functions: persistent ones in a metastore, temporary ones for a path."""
    for function in FUNCTIONS:
        session.sql(_statement(function, location, prefix, replace))
    return [prefix + function.name for function in FUNCTIONS]


def _statement(function: Function, location: Location, prefix: str, replace: bool) -> str:
    own = identifier(prefix + function.name)
    name = ".".join([*map(identifier, location.schema), own])
    # Spark has no IF NOT EXISTS for temporary functions; they are the session's own anyway.
    if location.path is not None:
        create = f"CREATE OR REPLACE TEMPORARY FUNCTION {own}"
    elif replace:
        create = f"CREATE OR REPLACE FUNCTION {name}"
    else:
        create = f"CREATE FUNCTION IF NOT EXISTS {name}"
    returns = function.returns
    if not isinstance(returns, str):
        returns = f"TABLE({_declared(returns)})"
    # No view is named: a persistent function may not refer to a temporary one.
    view = f"({views.query(function.view, location.table(ENTRIES))})"
    return (
        f"{create}({_declared(function.parameters)}) RETURNS {returns} "
        f"COMMENT {literal(function.comment)} RETURN {function.body.format(self=own, view=view)}"
    )


def _declared(columns: tuple[ColumnSpec, ...]) -> str:
    return ", ".join(f"{c.name} {c.type} COMMENT {literal(c.comment)}" for c in columns)
