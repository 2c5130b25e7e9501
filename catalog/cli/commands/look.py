"""The commands that show segments and schemas: lists, comparisons, SQL, counts, the report."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from catalog.cli.arguments import argument, by_setting, flag, natural, one_of, positive
from catalog.cli.command import Answer, Table, Work, command, facts_of, fetch
from catalog.cli.commands.names import unsaid_table
from catalog.cli.schemas import DIALECTS, HELP, schema_named, written_in
from catalog.errors import InvalidInput
from catalog.evolution.compatibility import Mode, judge
from catalog.evolution.diff import diff as difference
from catalog.evolution.merge import Policy
from catalog.report.content import collect
from catalog.report.page import render
from catalog.schema.names import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from catalog.schema.translation import Unsaid

_DATASOURCE = argument("--datasource", "only those of a datasource")
# Columns of the lists of segments: for programs, and for terminals.
_SEGMENTS = {
    "segments": (
        *("segment_id", "fingerprint", "num_rows", "size_bytes", "location", "starts_at"),
        *("ends_at", "inferred", "revision", "changed_at", "changed_by"),
    ),
    "segments_without_schema": (
        *("segment_id", "location", "num_rows", "size_bytes", "published_at"),
        *("quarantined", "reason", "attempts", "failed_since", "retry_at"),
    ),
}
_BRIEF = {
    "segments": ("segment_id", "fingerprint", "num_rows", "size_bytes", "starts_at", "changed_at"),
    "segments_without_schema": ("segment_id", "published_at", "reason", "attempts", "retry_at"),
}
# Statements that change nothing, besides queries.
_SHOWING = {"DESCRIBE", "DESC", "SHOW", "EXPLAIN"}


@command(
    "segments",
    "list segments",
    _DATASOURCE,
    one_of(
        argument("--fingerprint", "only those with this schema; a beginning is enough"),
        flag(
            "--without-schema",
            "only those whose schema is not known, with what a backfill found wrong and when it "
            "tries again",
        ),
    ),
    as_of=True,
    limit=100,
    example="--datasource orders --limit 20",
)
def segments(work: Work) -> Answer:
    given = work.arguments
    name = "segments_without_schema" if given.without_schema else "segments"
    frame = getattr(work.catalog.inspect, name)(work.as_of)
    if given.datasource is not None:
        frame = frame.where(F.col("datasource") == F.lit(given.datasource))
    if given.fingerprint is not None:
        frame = frame.where(F.startswith("fingerprint", F.lit(given.fingerprint.lower())))
    shown = frame.orderBy("segment_id").select(*_SEGMENTS[name])
    return Answer(tables={name: fetch(shown, given.limit, _BRIEF[name])})


@command(
    "schemas",
    "list schemas",
    one_of(
        flag("--orphans", "only those that nothing uses"),
        flag("--retired", "those that a clean-up has retired and not purged yet"),
        argument("--datasource", "only those that a datasource uses"),
    ),
    as_of=True,
    limit=100,
    example="--orphans",
)
def schemas(work: Work) -> Answer:
    given, catalog = work.arguments, work.catalog
    if given.orphans:
        frame = catalog.inspect.orphan_schemas(work.as_of)
    elif given.retired:
        frame = catalog.inspect.retired_schemas(work.as_of)
    else:
        frame = catalog.schemas(work.as_of)
    if given.datasource is not None:
        used = catalog.segments(work.as_of).where(F.col("datasource") == F.lit(given.datasource))
        frame = frame.join(used.select("fingerprint").distinct(), "fingerprint", "left_semi")
    shown = frame.orderBy("published_at", "fingerprint").select(
        "fingerprint", "num_columns", "published_at", "changed_by", "ddl"
    )
    return Answer(tables={"schemas": fetch(shown, given.limit)})


@command(
    "datasources",
    "list datasources with their sizes",
    as_of=True,
    limit=100,
    example="--as-of 2024-01-31",
)
def datasources(work: Work) -> Answer:
    frame = work.catalog.datasources(work.as_of).orderBy("datasource")
    table = fetch(frame, work.arguments.limit)
    # A terminal has room for this column only where it is needed.
    some = any(row["segments_without_schema"] for row in table.dicts())
    brief = (
        *("datasource", "num_segments", "num_schemas"),
        *(("segments_without_schema",) if some else ()),
        *("num_rows", "size_bytes", "changed_at"),
    )
    return Answer(tables={"datasources": replace(table, brief=brief)})


@command(
    "schema-of",
    "show which schema segments have",
    argument("segment_ids", "ids: datasource/name", nargs="+", metavar="SEGMENT"),
    argument(
        "--as",
        "also show the schemas as Spark's JSON, JSON Schema or Avro",
        dest="dialect",
        choices=DIALECTS,
        default=DIALECTS[0],
    ),
    as_of=True,
    details=(
        "Exit code 1 says that a segment does not exist. `unsaid` lists what a dialect cannot say."
    ),
    example="orders/2024-01-01 orders/2024-01-02 --as json-schema",
)
def schema_of(work: Work) -> Answer:
    wanted = list(dict.fromkeys(work.arguments.segment_ids))
    asked = work.spark.createDataFrame([(name,) for name in wanted], "segment_id STRING")
    stored = work.catalog.inspect.segment_schemas(work.as_of)
    columns = ("segment_id", "fingerprint", "num_rows", "ddl")
    found = fetch(asked.join(stored, "segment_id").select(*columns), len(wanted))
    by_id = {row[0]: row for row in found.rows}
    missing = [name for name in wanted if name not in by_id]
    table = Table(columns, tuple(by_id[name] for name in wanted if name in by_id))
    table, unsaid = _translated(work, table)
    return Answer(
        facts={"missing": missing} if missing else {},
        tables={"segments": table, **unsaid_table(unsaid)},
        found=bool(missing),
    )


def _translated(work: Work, table: Table) -> tuple[Table, tuple[Unsaid, ...]]:
    """The table with a column for the schemas in the dialect that was asked for."""
    dialect = work.arguments.dialect
    if dialect == DIALECTS[0]:
        return table, ()
    known = {row[1] for row in table.rows if row[1] is not None}
    written = {each: written_in(dialect, work.catalog.schema(each, work.as_of)) for each in known}
    rows = tuple((*row, written[row[1]][0] if row[1] in written else None) for row in table.rows)
    unsaid = dict.fromkeys(each for _, some in written.values() for each in some)
    return Table((*table.columns, "schema"), rows, brief=("segment_id", "schema")), tuple(unsaid)


@command(
    "columns",
    "show the schema that the segments of a datasource have in common",
    argument("datasource", "its name"),
    argument(
        "--policy",
        "the type of a column whose types have no common one: the first, string, the latest "
        "(default: the policy of the contract, or strict)",
        choices=Policy,
    ),
    as_of=True,
    details=(
        "Each column with the types that it has, and how many segments have it. Exit code 1 says\n"
        "that the types of a column have no common one."
    ),
    example="orders",
)
def columns(work: Work) -> Answer:
    found = work.catalog.datasource_schema(
        work.arguments.datasource, as_of=work.as_of, policy=work.arguments.policy
    )
    rows = tuple(
        (
            *(each.path, each.type, each.nullable, dict(each.types)),
            *(len(each.fingerprints), each.segments),
        )
        for each in found.columns
    )
    conflicts = tuple((each.path, list(each.seen), each.kept) for each in found.conflicts)
    return Answer(
        facts={
            "fingerprint": found.schema.fingerprint if found.schema else None,
            "ddl": found.schema.ddl if found.schema else None,
            "schemas": len(found.fingerprints),
            **facts_of(found, "segments", "segments_without_schema"),
        },
        tables={
            "columns": Table(("path", "type", "nullable", "types", "schemas", "segments"), rows),
            **({"conflicts": Table(("path", "types", "kept"), conflicts)} if conflicts else {}),
        },
        found=bool(conflicts),
    )


@command(
    "diff",
    "show what changed from one schema to another",
    argument("old", HELP),
    argument("new", "the other schema, named in the same way"),
    argument(
        "--mode",
        "end with exit code 1 unless the new schema may follow the old one in this mode",
        choices=[str(mode) for mode in Mode if not mode.transitive],
        default="none",
    ),
    flag("--all", "show unchanged columns too"),
    as_of=True,
    details=(
        "`compatible` says who can read whose data: backward (readers of the new schema read old\n"
        "data), forward (readers of the old schema read new data), full, or none. Comparing a\n"
        "definition does not publish it."
    ),
    example='orders "id BIGINT, amount DECIMAL(12,2)" --mode backward',
)
def diff(work: Work) -> Answer:
    given = work.arguments
    old = schema_named(work.catalog, given.old, work.as_of)
    new = schema_named(work.catalog, given.new, work.as_of)
    found = difference(old, new)
    judgement = judge(new, [old], given.mode)
    rows = tuple(
        (line.sign, line.path, line.old, line.new, line.notes)
        for line in found.lines
        if given.all or line.sign.strip()
    )
    return Answer(
        facts={
            "old": old.fingerprint,
            "new": new.fingerprint,
            "compatible": found.compatibility.verdict,
            "reordered": found.reordered,
            **({"breaks": [str(each) for each in judgement.breaks]} if judgement.breaks else {}),
        },
        tables={"columns": Table(("sign", "path", "old", "new", "change"), rows, tinted_by="sign")},
        found=not judgement.ok,
    )


@command(
    "sql",
    "run one query over the catalog's views",
    argument("query", "one query over the views: schemas, segments, …"),
    limit=1000,
    details="docs/sql.md lists the views with their columns, and many queries.",
    example='"SELECT datasource, num_segments FROM datasources ORDER BY num_segments DESC"',
)
def sql(work: Work) -> Answer:
    if work.catalog.location.path is not None:
        work.catalog.inspect.create_views()
        work.catalog.inspect.create_functions()
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
    # A parenthesis can hold nothing but a query, so that no statement can change the tables.
    return work.spark.sql(f"SELECT * FROM (\n{text}\n)")


@command(
    "stats",
    "count what the catalog holds",
    argument("--version", "which one (default: the newest)", type=natural, metavar="VERSION"),
    long=False,
)
def stats(work: Work) -> Answer:
    return Answer(facts=asdict(work.catalog.stats(version=work.arguments.version)))


@command(
    "report",
    "write a page about the catalog: growth, schemas, runs, problems",
    argument("--html", "where to write it", type=Path, required=True, metavar="FILE"),
    argument(
        "--versions",
        f"show the growth over at most this many versions {by_setting('report.versions')}",
        type=positive,
    ),
    details="One HTML file that needs nothing else, for a browser or a mail.",
    example="--html report.html",
)
def report(work: Work) -> Answer:
    file: Path = work.arguments.html
    if not file.absolute().parent.is_dir():
        raise InvalidInput(f"There is no directory for the report {file}.", file=str(file))
    versions = work.arguments.versions or work.catalog.settings.get("report.versions")
    collected = collect(work.catalog, versions, work.progress)
    page = render(collected)
    try:
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"The report cannot be written to {file}: {error}.") from error
    return Answer(facts={"file": str(file), "bytes": len(page.encode()), **collected.facts()})
