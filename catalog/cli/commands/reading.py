"""The words that show what is in the catalog."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from catalog.cli.answer import Answer, Table, fetch
from catalog.cli.command import Access, Command, Work
from catalog.cli.options import add_as_of, add_limit
from catalog.delta.runs import COLUMNS
from catalog.errors import InvalidInput
from catalog.schema.names import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SHOWING = {"DESCRIBE", "DESC", "SHOW", "EXPLAIN"}


# --- segments -------------------------------------------------------------------------------------


def _segments_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--datasource", help="only those of a datasource")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--fingerprint", help="only those with this schema; a beginning will do")
    which.add_argument(
        "--without-schema",
        action="store_true",
        help="only those whose schema is not known, with what a backfill found wrong and when it "
        "tries again",
    )
    add_as_of(parser)
    add_limit(parser)


def _segments(work: Work) -> Answer:
    arguments = work.arguments
    if arguments.without_schema:
        return _without_schema(work)
    frame = _of_datasource(work, work.catalog.segments(arguments.as_of))
    if arguments.fingerprint is not None:
        frame = frame.where(F.startswith("fingerprint", F.lit(arguments.fingerprint.lower())))
    shown = frame.orderBy("segment_id").select(
        "segment_id",
        "fingerprint",
        "num_rows",
        "size_bytes",
        "location",
        "starts_at",
        "ends_at",
        "inferred",
        "revision",
        "changed_at",
        "changed_by",
    )
    brief = ("segment_id", "fingerprint", "num_rows", "size_bytes", "starts_at", "changed_at")
    return Answer(tables={"segments": fetch(shown, arguments.limit, brief)})


def _without_schema(work: Work) -> Answer:
    frame = _of_datasource(work, work.catalog.segments_without_schema(work.arguments.as_of))
    shown = frame.orderBy("segment_id").select(
        "segment_id",
        "location",
        "num_rows",
        "size_bytes",
        "published_at",
        "quarantined",
        "reason",
        "attempts",
        "failed_since",
        "retry_at",
    )
    brief = ("segment_id", "published_at", "reason", "attempts", "retry_at")
    table = fetch(shown, work.arguments.limit, brief)
    return Answer(tables={"segments_without_schema": table})


def _of_datasource(work: Work, frame: DataFrame) -> DataFrame:
    name = work.arguments.datasource
    return frame if name is None else frame.where(F.col("datasource") == F.lit(name))


SEGMENTS = Command(
    name="segments",
    summary="list segments",
    example="segments --datasource orders --limit 20",
    access=Access.READ,
    arguments=_segments_arguments,
    work=_segments,
)

# --- schemas --------------------------------------------------------------------------------------


def _schemas_arguments(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--orphans", action="store_true", help="only those that nothing uses")
    which.add_argument("--retired", action="store_true", help="those on their way out")
    which.add_argument("--datasource", help="only those that a datasource uses")
    add_as_of(parser)
    add_limit(parser)


def _schemas(work: Work) -> Answer:
    arguments, catalog = work.arguments, work.catalog
    if arguments.orphans:
        frame = catalog.orphan_schemas(arguments.as_of)
    elif arguments.retired:
        frame = catalog.retired_schemas(arguments.as_of)
    else:
        frame = catalog.schemas(arguments.as_of)
    if arguments.datasource is not None:
        used = catalog.segments(arguments.as_of).where(
            F.col("datasource") == F.lit(arguments.datasource)
        )
        frame = frame.join(used.select("fingerprint").distinct(), "fingerprint", "left_semi")
    shown = frame.orderBy("published_at", "fingerprint").select(
        "fingerprint", "num_columns", "published_at", "changed_by", "ddl"
    )
    return Answer(tables={"schemas": fetch(shown, arguments.limit)})


SCHEMAS = Command(
    name="schemas",
    summary="list schemas",
    example="schemas --orphans",
    access=Access.READ,
    arguments=_schemas_arguments,
    work=_schemas,
)

# --- schema-of ------------------------------------------------------------------------------------


def _schema_of_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("segment_ids", nargs="+", metavar="SEGMENT", help="ids: datasource/name")
    add_as_of(parser)


def _schema_of(work: Work) -> Answer:
    wanted = list(dict.fromkeys(work.arguments.segment_ids))
    asked = work.spark.createDataFrame([(name,) for name in wanted], "segment_id STRING")
    stored = work.catalog.segment_schemas(work.arguments.as_of)
    found = fetch(
        asked.join(stored, "segment_id").select("segment_id", "fingerprint", "num_rows", "ddl"),
        len(wanted),
    )
    by_id = {row[0]: row for row in found.rows}
    missing = [name for name in wanted if name not in by_id]
    rows = tuple(by_id[name] for name in wanted if name in by_id)
    return Answer(
        facts={"missing": missing} if missing else {},
        tables={"segments": Table(found.columns, rows)},
        found=bool(missing),
    )


SCHEMA_OF = Command(
    name="schema-of",
    summary="show which schema segments have",
    details="Exit code 1 says that a segment is not there.",
    example="schema-of orders/2024-01-01 orders/2024-01-02",
    access=Access.READ,
    arguments=_schema_of_arguments,
    work=_schema_of,
)

# --- datasources ----------------------------------------------------------------------------------


def _datasources_arguments(parser: ArgumentParser) -> None:
    add_as_of(parser)
    add_limit(parser)


def _datasources(work: Work) -> Answer:
    frame = work.catalog.datasources(work.arguments.as_of).orderBy("datasource")
    table = fetch(frame, work.arguments.limit)
    # A terminal has room for one column more, and few catalogs have a need of it.
    some = any(row["segments_without_schema"] for row in table.dicts())
    brief = (
        *("datasource", "num_segments", "num_schemas"),
        *(("segments_without_schema",) if some else ()),
        *("num_rows", "size_bytes", "changed_at"),
    )
    return Answer(tables={"datasources": replace(table, brief=brief)})


DATASOURCES = Command(
    name="datasources",
    summary="list datasources with their sizes",
    example="datasources --as-of 2024-01-31",
    access=Access.READ,
    arguments=_datasources_arguments,
    work=_datasources,
)

# --- runs -----------------------------------------------------------------------------------------


def _runs_arguments(parser: ArgumentParser) -> None:
    add_limit(parser, 20)


def _runs(work: Work) -> Answer:
    names = [column.name for column in COLUMNS]  # what tasks have besides, `strata tasks list` shows
    frame = work.catalog.runs().orderBy(F.desc("started_at")).select(*names)
    brief = ("job", "status", "started_at", "ended_at", "version_after", "error_condition")
    return Answer(tables={"runs": fetch(frame, work.arguments.limit, brief)})


RUNS = Command(
    name="runs",
    summary="show what jobs did, newest first",
    example="runs --limit 50 --output json",
    access=Access.READ,
    arguments=_runs_arguments,
    work=_runs,
)

# --- sql ------------------------------------------------------------------------------------------


def _sql_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("query", help="one query over the views: schemas, segments, …")
    add_limit(parser, 1000)


def _sql(work: Work) -> Answer:
    if work.catalog.location.path is not None:
        work.catalog.create_views()
        work.catalog.create_functions()
    else:
        work.spark.sql(f"USE {'.'.join(map(identifier, work.catalog.location.schema))}")
    try:
        return Answer(tables={"rows": fetch(_query(work), work.arguments.limit)})
    except PySparkException as error:
        raise InvalidInput(f"The query failed: {error}", query=work.arguments.query) from error


def _query(work: Work) -> DataFrame:
    text = work.arguments.query.strip().rstrip(";")
    if text.split(None, 1)[:1] and text.split(None, 1)[0].upper() in _SHOWING:
        return work.spark.sql(text)
    # A parenthesis can hold nothing but a query, so that nobody changes the tables from here.
    return work.spark.sql(f"SELECT * FROM (\n{text}\n)")


SQL = Command(
    name="sql",
    summary="run one query over the catalog's views",
    details="docs/sql.md lists the views with their columns, and many queries.",
    example='sql "SELECT datasource, num_segments FROM datasources ORDER BY num_segments DESC"',
    access=Access.READ,
    arguments=_sql_arguments,
    work=_sql,
)
