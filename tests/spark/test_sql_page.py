"""The page on SQL: every query finds something, the functions, and readers other than Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Contract, Segment
from catalog.delta.runs import Run, Status
from catalog.delta.session import own_session, release
from catalog.environment import Environment
from catalog.schema import Schema
from catalog.sql.audit_views import CHANGES
from catalog.sql.dictionary import RELATIONS, dictionary, entities, rewritten
from catalog.sql.functions import FUNCTIONS, create_functions
from catalog.sql.views import VIEWS
from catalog.tasks.kind import TaskKind, TaskStep, TaskWork, in_order
from tests.sessions import ROOT
from tests.spark import prepared

PAGE = (ROOT / "docs" / "sql.md").read_text()
QUERIES = dict(re.findall(r"^([^\n]+):\n\n```sql\n(.+?)```", PAGE, re.DOTALL | re.MULTILINE))
SNIPPETS = re.findall(r"<!-- tested -->\n```python\n(.+?)```", PAGE, re.DOTALL)

ORDER = "id BIGINT NOT NULL, price DECIMAL(10,2)"
NOTED = f"{ORDER}, note STRING"
ROUGH = "id BIGINT NOT NULL, price DOUBLE"
CLICK = "user STRING COMMENT 'who', items ARRAY<STRUCT<sku: STRING NOT NULL, price: INT>>"
HOSTILE = 'o\'brien/`50%` "off" \\ {view}'
NOW = datetime.now(UTC).replace(microsecond=0)


def fingerprint(ddl: str) -> str:
    return Schema.of(ddl).fingerprint


# One object for each view of a type that nothing else here has.
OTHERS = (
    *("type/note", "database/sales", "datastore/main", "datastore_link/sales/main"),
    *("shard/main/a", "replica/main/a/one", "node_type/pg", "node/n1", "retention/database/sales"),
)


def order(name: str, ddl: str, rows: int, day: int, size: int, file: str = "") -> Segment:
    return Segment(
        f"orders/{name}",
        ddl,
        rows,
        size_bytes=size,
        location=f"s3://lake/orders/{file or name}.parquet",
        starts_at=datetime(2024, 1, day, tzinfo=UTC),
        ends_at=datetime(2024, 1, day + 1, tzinfo=UTC),
    )


def fill(spark: SparkSession, location: str) -> Catalog:
    """Seven versions, most of a month ago and the last ones of this week, and operations."""
    moment = [NOW - timedelta(days=30)]
    environment = Environment(clock=lambda: moment[0])
    catalog = Catalog.open(spark, location, actor="ann", environment=environment)
    catalog.publish(
        [
            order("2024-01-01", ORDER, 1000, 1, 40_000),
            order("2024-01-02", ORDER, 1200, 2, 48_000),
            order("2024-01-05", ORDER, 900, 5, 36_000),
            Segment("returns/2024-01-01", ORDER, 10, location="s3://lake/returns/1.parquet"),
            Segment("clicks/a", CLICK, 5),
            Segment(HOSTILE, "`a b` INT", 1, location="s3://lake/odd.parquet"),
            Segment("legacy/1", "old INT", 7, location="s3://lake/legacy/1.parquet"),
            Segment("legacy/2", "older INT", 8, location="s3://lake/legacy/2.parquet"),
            Segment("o'brien/sample", "`a b` INT", location="s3://lake/odd.csv", inferred=True),
            Segment("drops/1", num_rows=3, location="s3://lake/drops/1.parquet"),
            Segment("scans/1", location="s3://lake/scans/1"),
        ],
        reason="first load",
    )
    catalog.drop(["legacy/2"], reason="wrong")
    catalog.cleanup(grace=timedelta(0), reason="tidy")  # retires the schema of legacy/2
    moment[0] = NOW - timedelta(days=2)
    with Catalog.open(
        spark, location, actor="nightly-load", run_id="run-1", environment=environment
    ) as nightly:
        nightly.publish(
            [
                order("2024-01-05", NOTED, 950, 5, 38_000),
                order("2024-01-05-late", ROUGH, 3, 5, 100, file="2024-01-05"),
            ],
            on_existing="replace",
            reason="daily load",
        )
    catalog.drop(["legacy/1"], reason="no longer kept")  # leaves an orphan
    catalog.backfill(datasources=["scans"])  # a location that does not say its format
    prepare(spark, location)
    return catalog


def prepare(spark: SparkSession, location: str) -> None:
    """Objects that link to each other, operations in all states, and named schemas."""
    table, index = "table/sales/orders", "index/sales/orders_by_id"
    reindex, swap, left, done = (digit * 32 for digit in "abcd")
    prepared.write(
        spark,
        location,
        prepared.stored(
            table, 2, body='{"owner":"ann"}', datasource="orders", fingerprint=fingerprint(ORDER)
        ),
        prepared.stored(index, 3, {table: 2}),
        prepared.stored("contract/orders", 3, {index: 3}),
        prepared.stored("table/sales/empty", datasource="empty"),
        *map(prepared.stored, OTHERS),
        prepared.stored("retention/datasource/orders", body='{"action":"drop","max_age_days":90}'),
        prepared.operation(reindex, name="reindex orders", parts=3),
        prepared.part(reindex, 0),
        prepared.part(reindex, 2),
        prepared.staged(reindex, "segment", "orders/2024-01-01", "replace", 0, num_rows=5),
        prepared.staged(reindex, "segment", "orders/2024-01-01", "replace", 2, num_rows=5),
        prepared.staged(reindex, "datasource", "orders", "hold", 0),
        prepared.operation(swap, "ready", name="swap index", epoch=4),
        prepared.part(swap),
        prepared.staged(swap, "object", index, "put", fingerprint=fingerprint(ORDER)),
        prepared.operation(
            left, name="left", parts=None, lease=timedelta(0), opened_at=NOW - timedelta(days=1)
        ),
        prepared.operation(done, "published", name="done", epoch=2),
        prepared.staged(done, "object", table, "put"),
        prepared.stable(2),
        *prepared.named("order", *map(fingerprint, (ORDER, NOTED, ROUGH)), breaking=3),
        *prepared.named("click", fingerprint(CLICK)),
        prepared.setting("cleanup.grace", "7d"),
        prepared.datasource("clicks", Contract(max_rows=1_000_000)),
    )


def record_runs(catalog: Catalog) -> None:
    began = NOW - timedelta(days=2)
    loaded = Run(
        "run-1",
        "publish",
        {"datasource": "orders"},
        "nightly-load",
        began,
        began + timedelta(seconds=40),
        Status.DONE,
        began + timedelta(seconds=40),
        version_before=3,
        version_after=4,
        figures={"inserted": 1, "replaced": 1},
    )
    gave_up = Run(
        "run-2",
        "cleanup",
        {},
        "ann",
        began,
        began,
        Status.GAVE_UP,
        began,
        error_condition="GAVE_UP",
        error_message="The deadline passed.",
    )
    lost = Run("run-3", "verify", {}, "ann", NOW - timedelta(hours=8), NOW - timedelta(hours=7))
    for run in (loaded, gave_up, lost):
        catalog.audit.record(run)

    def fail(work: TaskWork) -> dict[str, Any]:
        raise RuntimeError("no disk")

    counted = TaskStep("count", lambda work: {"counted": 2})
    with pytest.raises(RuntimeError, match="no disk"):
        catalog.tasks.run(TaskKind("inventory", in_order(counted, TaskStep("write", fail))))


@dataclass(frozen=True)
class Filled:
    """A catalog with everything that the page speaks of, and the names that its Python made."""

    spark: SparkSession
    catalog: Catalog
    names: dict[str, Any]
    answers: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)

    def run(self, title: str) -> list[tuple[Any, ...]]:
        """What a query of the page finds; each runs once."""
        if title not in self.answers:
            rows = self.spark.sql(here(QUERIES[title], self.catalog)).collect()
            self.answers[title] = [tuple(row) for row in rows]
        return self.answers[title]

    def relation(self, entity: str) -> str:
        """A view by its name, and the table that has none."""
        return f"delta.`{self.catalog.location}/entries`" if entity == "entries" else entity


def here(text: str, catalog: Catalog) -> str:
    return text.replace("/data/meta", str(catalog.location))


@pytest.fixture(scope="module")
def page(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    catalog = fill(spark, str(tmp_path_factory.mktemp("page") / "meta"))
    record_runs(catalog)
    catalog.audit.roll()
    names: dict[str, Any] = {"spark": spark, "catalog": catalog}
    for number, snippet in enumerate(SNIPPETS):
        exec(compile(here(snippet, catalog), f"sql.md snippet {number + 1}", "exec"), names)
    yield Filled(spark, catalog, names)
    names["duck"].close()
    views = (view.name for view in (*VIEWS, CHANGES))
    for view in (*views, "runs", "tasks", "audit", "segments_3", "history"):
        spark.catalog.dropTempView(view)
    for function in FUNCTIONS:
        spark.sql(f"DROP TEMPORARY FUNCTION {function.name}")
    catalog.close()


# --- the page -------------------------------------------------------------------------------------


def test_the_page_is_what_the_generator_gives() -> None:
    assert rewritten(PAGE) == PAGE
    assert dictionary() in PAGE


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="no part for the diagram"):
        rewritten("<!-- dictionary -->\n<!-- /dictionary -->\n<!-- diagram -->\n")


def test_the_page_has_queries_under_sentences_of_their_own() -> None:
    assert len(QUERIES) == PAGE.count("```sql") >= 18


@pytest.mark.parametrize("title", QUERIES)
def test_every_query_of_the_page_finds_something(page: Filled, title: str) -> None:
    assert page.run(title)


def test_queries_on_what_is_there_find_what_was_published(page: Filled) -> None:
    per_schema = page.run("Segments for each schema, those without any included")
    assert [row[1:] for row in per_schema[:1] + per_schema[-1:]] == [(ORDER, 3), ("old INT", 0)]
    widest = page.run("The widest and deepest schemas, nested columns counted")
    assert widest[0] == (fingerprint(CLICK), 4, 1, 1)
    payloads = page.run("The biggest payloads")
    assert payloads[0][0] == fingerprint(CLICK)
    assert [row[0] for row in page.run("Segments without a location")] == ["clicks/a"]
    covering = page.run("Segments of a datasource that cover a moment")
    assert [row[0] for row in covering] == ["orders/2024-01-02"]
    gaps = page.run("Gaps between the intervals of a datasource")
    assert [(row[0], *(each.astimezone(UTC).day for each in row[1:])) for row in gaps] == [
        ("orders", 3, 5)
    ]
    overlaps = page.run("Segments whose intervals overlap")
    assert [row[:2] for row in overlaps] == [("orders/2024-01-05", "orders/2024-01-05-late")]


def test_queries_on_use_name_datasources_and_columns(page: Filled) -> None:
    assert page.run("Who uses this schema") == [("orders", 2, 2200), ("returns", 1, 10)]
    shared = page.run("Schemas that several datasources share")
    assert shared == [(fingerprint(ORDER), ["orders", "returns"], 3)]
    types = page.run("Columns that have more than one type within a datasource")
    assert types == [("orders", "price", ["decimal(10,2)", "double"])]
    priced = page.run("Segments with a column of a certain name, at any depth")
    assert priced[0] == ("clicks/a", "items.element.price", "int", True)
    assert len(priced) == 6


def test_queries_on_unknown_schemas_tell_who_waits_who_failed_and_who_guessed(
    page: Filled,
) -> None:
    failed, waits = page.run("Segments without a schema, with the reason where one was looked for")
    assert waits == ("drops/1", "s3://lake/drops/1.parquet", False, None, None, None)
    assert failed[:4] == ("scans/1", "s3://lake/scans/1", True, 1)
    assert "does not say its format" in failed[4]
    datasources = page.run("How many segments of each datasource have no schema, and for how long")
    assert [row[:3] for row in datasources] == [("drops", 1, 0), ("scans", 1, 1)]
    again = page.run("Segments in quarantine that the next backfill tries again")
    assert [(row[0], row[2], row[4]) for row in again] == [("scans/1", 1, failed[4])]
    guessed = page.run("Segments whose schema is a guess, and the schema")
    assert guessed == [("o'brien/sample", "s3://lake/odd.csv", "`a b` INT")]
    title = next(each for each in QUERIES if each.startswith("Datasources in which only some"))
    assert page.run(title) == [("o'brien", 1, 1)]


def test_queries_on_objects_follow_links(page: Filled) -> None:
    table, index = "table/sales/orders", "index/sales/orders_by_id"
    (empty, orders) = page.run("Objects of a type, with something from their bodies")
    assert (empty[0], orders[:4]) == ("table/sales/empty", (table, 2, "ann", "orders"))
    assert page.run("Who links to what, with the revisions") == [
        ("contract/orders", 3, index, 3),
        (index, 3, table, 2),
    ]
    title = next(each for each in QUERIES if each.startswith("What has to get a new revision"))
    assert page.run(title) == [(index, 1), ("contract/orders", 2)]
    alone = page.run("Objects that nothing links to")
    assert {row[0] for row in alone} - set(OTHERS) == {
        "contract/orders",
        "retention/datasource/orders",
        "table/sales/empty",
    }
    counted = page.run("Tables without segments, and how many the others have")
    assert counted == [("table/sales/empty", "empty", 0), (table, "orders", 4)]


def test_queries_on_named_schemas_tell_what_broke_and_who_is_behind(page: Filled) -> None:
    assert page.run("Named schemas, and the definitions of their current versions") == [
        ("click", "backward", 1, 1, CLICK),
        ("order", "backward", 3, 3, ROUGH),
    ]
    broken = "price was retyped: neither holds the other (against version 2)"
    assert [row[:4] for row in page.run("Versions that broke, and why")] == [
        ("order", 3, [broken], True)
    ]
    title = next(each for each in QUERIES if each.startswith("Segments whose schema is an old"))
    assert page.run(title)[0] == ("orders/2024-01-01", "order", 1, 3, False)
    gone = page.run("Columns that were dropped, with the types that they had")
    assert ("order", "sum", "bigint", 2) in gone


def test_queries_on_operations_tell_who_waits_and_who_is_in_the_way(page: Filled) -> None:
    reindex, swap, left = (digit * 32 for digit in "abc")
    under_way = page.run("What is under way, the oldest first")
    assert [row[:8] for row in under_way] == [
        (left, "left", "open", 0, None, 0, None, "ann"),
        (reindex, "reindex orders", "open", 2, 3, 1, None, "ann"),
        (swap, "swap index", "ready", 1, 1, 1, 4, "ann"),
    ]
    assert under_way[0][8] >= 86_400
    held = page.run("Which operations hold up a key, and until when")
    assert [row[:5] for row in held] == [(reindex, "reindex orders", "open", "replace", False)] * 2
    assert held[0][5].astimezone(UTC) == prepared.NOW + timedelta(hours=1)
    assert page.run("What waits for which epoch") == [(4, 2, 1, ["swap index"], 1)]
    title = next(each for each in QUERIES if each.startswith("The stable epoch"))
    assert [(row[0], row[2]) for row in page.run(title)] == [(2, 1)]
    over = page.run("Operations whose lease is over, which the next recovery aborts")
    assert [row[0] for row in over] == [left]
    title = next(each for each in QUERIES if each.startswith("Operations that lack parts"))
    assert [row[:1] + row[3:5] for row in page.run(title)] == [(left, 0, None), (reindex, 2, 3)]
    title = next(each for each in QUERIES if each.startswith("Datasources that somebody is about"))
    assert page.run(title) == [("orders", "reindex orders", "replace", 2)]


def test_queries_on_changes_tell_old_from_new(page: Filled) -> None:
    new = page.run("Schemas first seen within the last seven days")
    assert {row[1] for row in new} == {NOTED, ROUGH}
    written = page.run(
        "Segments that were written more than once, because they were replaced or backfilled"
    )
    assert {row[:2] for row in written} == {("orders/2024-01-05", 2), ("scans/1", 2)}
    assert page.run("How two schemas differ") == [("note", None, "string", None, True)]
    changed = page.run("What was added, removed and changed between two versions")
    assert [(row[0], row[1], row[2], row[6]) for row in changed if row[1] == "segment"] == [
        (4, "segment", "orders/2024-01-05", "changed"),
        (4, "segment", "orders/2024-01-05-late", "added"),
        (5, "segment", "legacy/1", "removed"),
    ]
    amounts = page.run("How much changed, version by version")
    assert (1, "segment", "insert", 11) in amounts
    assert (3, "retired", "update_postimage", 1) in amounts
    gone = page.run("Segments that were there at version 3 and are not any more")
    assert gone == [("legacy/1", 7)]
    other = page.run("Segments that have another schema than at version 3")
    assert other == [("orders/2024-01-05", fingerprint(ORDER), fingerprint(NOTED), NOTED)]
    grown = page.run("How datasources grew since version 3")
    assert (grown[0], grown[-1]) == (("orders", 1, 53), ("legacy", -1, -7))


def test_queries_on_history_say_who_and_why(page: Filled) -> None:
    did = page.run("What somebody did, and why")
    assert [(row[0], row[2], row[3]) for row in did] == [(4, "publish", ["daily load"])]
    behind = page.run("The commits that last changed the segments of a datasource")
    assert [(row[0], row[1], row[3]) for row in behind] == [
        ("orders/2024-01-05", 4, ["nightly-load"]),
        ("orders/2024-01-05-late", 4, ["nightly-load"]),
        ("orders/2024-01-01", 1, ["ann"]),
        ("orders/2024-01-02", 1, ["ann"]),
    ]


def test_queries_on_changes_and_settings_say_what_happened_to_a_key(page: Filled) -> None:
    happened = page.run("What happened to a segment, also past the log")
    assert [(row[0], *row[2:5]) for row in happened] == [
        (1, "publish", ["ann"], "insert"),
        (4, "publish", ["nightly-load"], "update"),
    ]
    assert page.run("Settings that are stored")[0][:2] == ("cleanup.grace", '"7d"')


def test_queries_on_tidying_find_what_is_in_the_way(page: Filled) -> None:
    assert [row[1] for row in page.run("Orphans, which the next clean-up may retire")] == [
        "old INT"
    ]
    assert [row[1] for row in page.run("Schemas on their way out")] == ["older INT"]
    single = page.run("Schemas that only one segment of a datasource has, perhaps by mistake")
    assert [row[2] for row in single] == ["orders/2024-01-05", "orders/2024-01-05-late"]
    small = page.run("Segments that are far smaller than the others of their datasource")
    assert small == [("orders/2024-01-05-late", 100, 39_000.0)]
    claimed = page.run("Locations that more than one segment has")
    assert claimed == [
        (
            "s3://lake/orders/2024-01-05.parquet",
            ["orders/2024-01-05", "orders/2024-01-05-late"],
        )
    ]
    title = next(each for each in QUERIES if each.startswith("Rules of"))
    _, rule = page.run(title)
    assert rule[:6] == ("retention/datasource/orders", 90.0, None, 0, "drop", 4)
    still = page.run("Datasources in which nothing has changed for two weeks")
    assert [row[0] for row in still] == ["clicks", "drops", "o'brien", "returns"]


def test_queries_on_runs_tell_how_jobs_went(page: Filled) -> None:
    last = page.run("The last run of each job")
    assert [(row[0], row[1], row[3]) for row in last] == [
        ("cleanup", "gave_up", "run-2"),
        ("inventory", "queued", last[1][3]),
        ("publish", "done", "run-1"),
        ("verify", "running", "run-3"),
    ]
    wrong = page.run("Runs that went wrong within the last seven days")
    assert [row[1:5] for row in wrong] == [("cleanup", "ann", "gave_up", "GAVE_UP")]
    lost = page.run("Runs that did not end and are not heard of any more")
    assert [row[0] for row in lost] == ["run-3"]
    assert page.run("How long jobs take") == [("publish", 1, 40.0, 40)]
    counted = page.run("What runs have counted, day by day")
    assert [row[1:] for row in counted] == [
        ("inventory", "counted", 2.0),
        ("publish", "inserted", 1.0),
        ("publish", "replaced", 1.0),
    ]
    (task,) = page.run("Tasks that are not over, how far they are, and what went wrong")
    assert task[1:] == (
        *("inventory", "queued", False, "1/2", "write", None, None, "RuntimeError"),
    )
    assert [row[:4] for row in page.run("Commits of each run")] == [
        ("run-1", "publish", 4, "publish")
    ]


# --- what the page is made from -------------------------------------------------------------------


def test_views_and_tables_have_the_types_that_the_dictionary_gives(page: Filled) -> None:
    for entity in entities():
        found = page.spark.table(page.relation(entity.name)).schema
        assert [(each.name, each.dataType.simpleString()) for each in found] == [
            (column.name, column.type.lower().replace(" ", "")) for column in entity.columns
        ], entity.name


def test_keys_of_the_diagram_are_unique(page: Filled) -> None:
    counts = page.spark.sql(
        " UNION ALL ".join(
            # As structs: a row counts too if a part of its key is null.
            f"SELECT '{entity.name}', count(*), count(DISTINCT struct({', '.join(entity.key)})) "
            f"FROM {page.relation(entity.name)}"
            for entity in entities()
        )
    ).collect()
    assert {name: rows - keys for name, rows, keys in counts} == {e.name: 0 for e in entities()}
    assert all(rows > 0 for _, rows, _ in counts)


def test_references_of_the_diagram_lead_to_a_key(page: Filled) -> None:
    keys = {entity.name: entity.key for entity in entities()}
    references = [relation for relation in RELATIONS if relation.column]
    # A segment's schema may be live or retired, so each of the two alone need not have it.
    described = (
        "(SELECT fingerprint FROM schemas UNION ALL SELECT fingerprint FROM retired_schemas)"
    )
    lost = page.spark.sql(
        " UNION ALL ".join(
            f"SELECT '{r.left}', '{r.right}' FROM (SELECT * FROM {r.right} "
            # A segment may have no schema yet, and refers to none then.
            f"WHERE {r.column} IS NOT NULL) LEFT ANTI JOIN "
            f"{described if r.column == 'fingerprint' else r.left} USING ({r.column})"
            for r in references
        )
    ).collect()
    assert lost == []
    assert all((relation.column,) == keys[relation.left] for relation in references)
    assert {name for r in RELATIONS for name in (r.left, r.right)} == keys.keys()


# --- functions ------------------------------------------------------------------------------------


def test_functions_answer_for_values_and_for_columns(page: Filled) -> None:
    spark = page.spark
    create_functions(spark, page.catalog.location, "a `b`.")
    ids = ["orders/2024-01-05", "clicks/a", HOSTILE, "nobody/1", "' OR '1'='1", "%", "`", None]
    rows = (
        spark.createDataFrame([(each,) for each in ids], "segment_id STRING")
        .selectExpr(
            "segment_id",
            "schema_of(segment_id) AS ddl",
            "fingerprint_of(segment_id) AS fingerprint",
            "`a ``b``.schema_of`(segment_id) AS same",
        )
        .collect()
    )
    assert all(row["same"] == row["ddl"] for row in rows)
    known = {row["segment_id"]: (row["ddl"], row["fingerprint"]) for row in rows}
    assert known == {
        **dict.fromkeys(ids, (None, None)),
        "orders/2024-01-05": (NOTED, fingerprint(NOTED)),
        "clicks/a": (page.catalog.schema(fingerprint(CLICK)).ddl, fingerprint(CLICK)),
        HOSTILE: ("`a b` INT", fingerprint("`a b` INT")),
    }
    for function in FUNCTIONS:
        spark.sql(f"DROP TEMPORARY FUNCTION `a ``b``.{function.name}`")


def test_functions_take_a_beginning_of_a_fingerprint_and_nothing_else(page: Filled) -> None:
    whole = fingerprint(ORDER)
    good = [whole, whole[:4], whole[:4].upper()]
    bad = [whole[:3], whole + "0", "", "%%%%", "____", "' OR '1'='1", "```;", None]
    frame = page.spark.createDataFrame([(each,) for each in good + bad], "asked STRING")
    frame.createOrReplaceTempView("asked")
    found = page.spark.sql(
        "SELECT asked, s.segment_id AS found FROM asked, LATERAL segments_with(asked) AS s "
        "UNION ALL SELECT asked, c.path FROM asked, LATERAL columns_of(asked) AS c"
    ).collect()
    page.spark.catalog.dropTempView("asked")
    expected = ["id", "orders/2024-01-01", "orders/2024-01-02", "price", "returns/2024-01-01"]
    assert {
        each: sorted(row["found"] for row in found if row["asked"] == each) for each in good + bad
    } == {**dict.fromkeys(good, expected), **{each: [] for each in bad}}


def test_functions_in_a_metastore_are_persistent_described_and_follow_the_table(
    spark: SparkSession, schema_name: str
) -> None:
    catalog = Catalog.open(spark, schema_name)
    assert create_functions(spark, catalog.location, "my_") == [
        f"my_{function.name}" for function in FUNCTIONS
    ]
    catalog.publish([Segment("orders/1", ORDER, 5), Segment("it's/%`", CLICK, 6)])
    my = f"spark_catalog.{schema_name}.my_"
    # Whoever comes by the three parts of the name, from a session of their own.
    other = own_session(spark)
    row = other.sql(
        f"SELECT {my}schema_of('orders/1'), {my}fingerprint_of('it\\'s/%`'), {my}schema_of('no/1')"
    ).collect()[0]
    assert tuple(row) == (ORDER, fingerprint(CLICK), None)
    found = other.sql(f"SELECT segment_id, num_rows FROM {my}segments_with('ea42')").collect()
    assert [tuple(row) for row in found] == [("orders/1", 5)]
    paths = other.sql(f"SELECT path FROM {my}columns_of('ea42') ORDER BY path").collect()
    assert [row["path"] for row in paths] == ["id", "price"]
    release(other)
    for function in FUNCTIONS:
        described = spark.sql(f"DESCRIBE FUNCTION EXTENDED {schema_name}.my_{function.name}")
        text = "\n".join(row[0] for row in described.collect())
        assert function.comment in text
        columns = () if isinstance(function.returns, str) else function.returns
        for column in (*function.parameters, *columns):
            assert re.search(rf"{column.name} +{column.type} +'{re.escape(column.comment)}'", text)
    feed = spark.sql(f"SELECT key FROM table_changes('{schema_name}.entries', 1, 1)")
    assert feed.where("kind = 'segment'").count() == 2


def test_functions_that_are_there_stay_unless_they_are_to_be_replaced(
    spark: SparkSession, schema_name: str
) -> None:
    catalog = Catalog.open(spark, schema_name)
    spark.sql(
        f"CREATE OR REPLACE FUNCTION {schema_name}.schema_of(id STRING) RETURNS STRING "
        "RETURN 'mine'"
    )
    create_functions(spark, catalog.location, replace=False)
    assert spark.sql(f"SELECT {schema_name}.schema_of('a/1')").collect()[0][0] == "mine"
    create_functions(spark, catalog.location)
    assert spark.sql(f"SELECT {schema_name}.schema_of('a/1')").collect()[0][0] is None


# --- without Spark --------------------------------------------------------------------------------


@pytest.mark.parametrize("view", ["segments", "schemas", "datasources"])
def test_duckdb_over_delta_rs_reads_the_rows_that_spark_shows(page: Filled, view: str) -> None:
    key = next(entity.key[0] for entity in entities() if entity.name == view)
    theirs = page.names["duck"].sql(f"SELECT * FROM {view} ORDER BY {key}").to_arrow_table()
    ours = page.spark.table(view).orderBy(key).toArrow()
    assert theirs.column_names == ours.column_names
    assert theirs.num_rows > 3
    assert theirs.to_pylist() == ours.to_pylist()


def test_duckdb_answers_the_question_of_the_page(page: Filled) -> None:
    largest = page.run("The largest datasources")
    assert page.names["largest"] == [(row[0], row[3]) for row in largest]
