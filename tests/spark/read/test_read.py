"""Reading datasources: rows are those of the files, whatever their schemas and formats."""

from __future__ import annotations

import random
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog import Catalog, Schema, Segment, upgrade
from catalog.errors import (
    InvalidInput,
    NotInSnapshot,
    SchemaConflict,
    UnknownSchema,
    Unreadable,
    WouldLose,
)
from catalog.files.paths import place_of
from catalog.read.scan import Piece, check_places

V1 = "id BIGINT, amount INT, note STRING"
V2 = "id BIGINT, amount BIGINT, at DATE"
V3 = "id BIGINT, lines ARRAY<STRUCT<sku: STRING, qty: INT>>, note STRING"
V4 = "lines ARRAY<STRUCT<qty: BIGINT, sku: STRING, tax: DOUBLE>>, id BIGINT"


def rows_of(spark: SparkSession, ddl: str, first: int, count: int) -> DataFrame:
    """Rows that follow from their numbers."""
    values = {
        "int": "CAST(n * 7 AS INT)",
        "bigint": "n * 1000003",
        "string": "concat('s', n)",
        "date": "date_add(DATE'2026-01-01', CAST(n AS INT))",
        "double": "n / 3D",
        "array<struct<sku:string,qty:int>>":
            "array(named_struct('sku', concat('k', n), 'qty', CAST(n AS INT)), NULL)",
        "array<struct<qty:bigint,sku:string,tax:double>>":
            "array(named_struct('qty', n, 'sku', concat('k', n), 'tax', n / 7D))",
    }  # fmt: skip
    columns = [c for c in Schema.of(ddl).columns if not c.depth]
    made = (
        "n AS id" if c.name == "id" else f"IF(n % 5 = 4, NULL, {values[c.type]}) AS {c.name}"
        for c in columns
    )
    return spark.range(first, first + count).withColumnRenamed("id", "n").selectExpr(*made)


def write(
    spark: SparkSession, folder: Path, name: str, ddl: str, first: int, form: str = "parquet"
) -> Segment:
    """A segment of ten rows in one file or table, not yet published."""
    target = folder / f"{name}.{form}"
    frame = rows_of(spark, ddl, first, 10).coalesce(1)
    frame.write.format(form).options(**({"header": "true"} if form == "csv" else {})).save(
        str(target)
    )
    return Segment(f"{folder.name}/{name}", Schema.of(ddl), 10, location=str(target))


@pytest.fixture
def orders(spark: SparkSession, tmp_path: Path) -> Path:
    folder = tmp_path / "orders"
    folder.mkdir()
    return folder


@pytest.mark.connect
def test_segments_of_several_schemas_are_one_frame_at_one_version(
    spark: SparkSession, catalog: Catalog, orders: Path
) -> None:
    catalog.publish([write(spark, orders, "a", V1, 0)])
    before = catalog.version
    for name, ddl, first in (("b", V2, 10), ("c", V3, 20), ("d", V4, 30)):
        catalog.publish([write(spark, orders, name, ddl, first)])
    read = catalog.read("orders", segment_id="segment")
    assert read.columns == ["id", "amount", "note", "at", "lines", "segment"]
    assert [field.dataType.simpleString() for field in read.schema] == [
        "bigint",
        "bigint",
        "string",
        "date",
        "array<struct<sku:string,qty:bigint,tax:double>>",
        "string",
    ]
    rows = {row["id"]: row.asDict(recursive=True) for row in read.collect()}
    assert sorted(rows) == list(range(40))
    assert rows[1] == {
        "id": 1, "amount": 7, "note": "s1", "at": None, "lines": None, "segment": "orders/a",
    }  # fmt: skip
    assert rows[11]["amount"] == 11 * 1000003
    assert rows[21]["lines"] == [{"sku": "k21", "qty": 21, "tax": None}, None]
    assert rows[31]["lines"] == [{"sku": "k31", "qty": 31, "tax": 31 / 7}]
    assert rows[34]["lines"] is None

    # The frame stays where it was made, and an earlier version is still there.
    catalog.drop(["orders/b"])
    assert read.count() == 40
    assert catalog.read("orders", as_of=before).count() == 10
    assert catalog.read("orders").count() == 30
    assert catalog.read("orders", as_of=before).columns == ["id", "amount", "note"]


def test_the_rows_are_those_of_the_files_for_three_datasources_with_twenty_schemas_each(
    catalog: Catalog, tmp_path: Path
) -> None:
    rng = random.Random(11)
    chains = [["tinyint", "smallint", "int", "bigint"], ["float", "double"], ["string"]]
    segments: dict[str, list[Segment]] = {"alpha": [], "beta": [], "gamma": []}
    for name, published in segments.items():
        (tmp_path / name).mkdir()
        for version in range(20):
            # Columns come and go, and widen as versions go on.
            columns = {"id": "bigint"}
            for number in sorted(rng.sample(range(8), rng.randint(3, 7))):
                chain = chains[number % 3]
                columns[f"c{number}"] = chain[version * len(chain) // 20]
            schema = Schema.of(", ".join(f"{each} {kind}" for each, kind in columns.items()))
            values = {"string": "s{}".format, "float": float, "double": (1 / 3).__mul__}
            table = pa.table(
                {
                    each: [
                        values.get(kind, int)(n % 100) for n in range(version * 3, version * 3 + 3)
                    ]
                    for each, kind in columns.items()
                },
                schema.arrow(),
            )
            path = tmp_path / name / f"{version}.parquet"
            pq.write_table(table, path)
            published.append(Segment(f"{name}/{version}", schema, 3, location=str(path)))
    catalog.publish([segment for published in segments.values() for segment in published])
    assert len({s.schema.fingerprint for each in segments.values() for s in each}) >= 55
    for name, published in segments.items():
        read = catalog.read(name)
        target = Schema.of(read.schema).arrow()
        assert read.columns[0] == "id"
        by_hand = pa.concat_tables([_by_hand(segment, target) for segment in published])
        found = read.toArrow().cast(target)
        key = [(column, "ascending") for column in target.names]
        assert found.sort_by(key).equals(by_hand.sort_by(key))
        assert found.num_rows == 60


def _by_hand(segment: Segment, target: pa.Schema) -> pa.Table:
    """The file by itself, cast column by column."""
    assert segment.location is not None
    table = pq.read_table(segment.location)
    nothing = pa.nulls(table.num_rows)
    return pa.table(
        [
            (table[field.name] if field.name in table.column_names else nothing).cast(field.type)
            for field in target
        ],
        schema=target,
    )


def test_an_older_or_narrower_schema_is_given_where_nothing_is_lost(
    spark: SparkSession, catalog: Catalog, orders: Path
) -> None:
    old, new = write(spark, orders, "a", V1, 0), write(spark, orders, "b", V2, 10)
    catalog.publish([old, new])
    assert catalog.read("orders", schema="id BIGINT, at DATE").count() == 20
    by_name = catalog.read("orders", schema=new.schema.fingerprint[:8])
    assert by_name.columns == ["id", "amount", "at"]
    with pytest.raises(WouldLose, match="amount is bigint, whose values may not fit int") as raised:
        catalog.read("orders", schema=old.schema)
    assert raised.value.values["fingerprint"] == new.schema.fingerprint
    nulled = catalog.read("orders", schema=old.schema, on_loss="null")
    assert nulled.where("id >= 10 AND amount IS NOT NULL").count() == 0
    assert nulled.where("id < 10 AND amount IS NOT NULL").count() == 8
    assert catalog.read("orders", schema=old.schema, where="name = 'a'").count() == 10
    with pytest.raises(UnknownSchema):
        catalog.read("orders", schema="0123456789abcdef0123456789abcdef")


def test_types_without_a_common_one_are_refused_or_read_as_told(
    spark: SparkSession, catalog: Catalog, orders: Path
) -> None:
    catalog.publish([write(spark, orders, "a", "id BIGINT, amount INT", 0)])
    catalog.publish([write(spark, orders, "b", "id BIGINT, amount STRING", 10)])
    with pytest.raises(SchemaConflict, match="amount: int and string"):
        catalog.read("orders")
    assert catalog.read("orders", schema="id BIGINT").count() == 20
    widest = catalog.read("orders", policy="widest")
    assert {row["id"]: row["amount"] for row in widest.collect()}[1] == "7"
    assert dict(catalog.read("orders", policy="latest").dtypes)["amount"] == "string"


@pytest.mark.parametrize("form", ["orc", "json", "csv", "delta"])
def test_other_formats_give_the_same_rows(
    spark: SparkSession, catalog: Catalog, orders: Path, form: str
) -> None:
    flat = "at DATE, id BIGINT, amount BIGINT"
    catalog.publish([write(spark, orders, "a", V1, 0, form), write(spark, orders, "p", V1, 20)])
    catalog.publish([write(spark, orders, "b", flat, 10, form)])
    read = catalog.read("orders", segment_id="segment").orderBy("id").collect()
    assert [row["id"] for row in read] == list(range(30))
    assert [row["segment"] for row in read] == [f"orders/{n}" for n in "abp" for _ in range(10)]
    assert read[1]["note"] == read[21]["note"].replace("s21", "s1") == "s1"
    assert read[11].asDict() == {
        "id": 11, "amount": 11 * 1000003, "note": None, "at": read[11]["at"], "segment": "orders/b",
    }  # fmt: skip
    assert read[11]["at"].isoformat() == "2026-01-12"


def test_columns_of_text_files_are_never_mixed_up(
    spark: SparkSession, catalog: Catalog, orders: Path
) -> None:
    segment = write(spark, orders, "a", "id BIGINT, amount INT, more INT", 0, "csv")
    # The same schema to the catalog, but not the order in which the file has its columns.
    swapped = Segment(
        segment.id, Schema.of("id BIGINT, more INT, amount INT"), 10, location=segment.location
    )
    catalog.publish([swapped])
    with pytest.raises(Exception, match="CSV header"):
        catalog.read("orders").collect()


def test_a_delta_table_is_read_at_the_version_that_its_location_names(
    spark: SparkSession, catalog: Catalog, orders: Path
) -> None:
    path = str(orders / "t")
    rows_of(spark, "id BIGINT, amount INT", 0, 5).write.format("delta").save(path)
    more = rows_of(spark, "id BIGINT, amount INT, note STRING", 5, 5)
    more.write.format("delta").mode("append").option("mergeSchema", "true").save(path)
    schema = Schema.of("id BIGINT, amount INT")
    catalog.publish([Segment("orders/a", schema, 5, location=f"delta.`{path}@v0`")])
    assert catalog.read("orders").count() == 5

    # Columns inside may stand in another order in the table than in the catalog.
    inner = str(orders / "inner.delta")
    spark.sql("SELECT named_struct('x', 1, 'y', 'p') AS s").write.format("delta").save(inner)
    swapped = Schema.of("s STRUCT<y: VARCHAR(3), x: INT>")
    catalog.publish([Segment("inner/a", swapped, 1, location=inner)])
    found = catalog.read("inner", segment_id="id").collect()
    assert [row.asDict(recursive=True) for row in found] == [
        {"s": {"y": "p", "x": 1}, "id": "inner/a"}
    ]

    wrong = Schema.of("id BIGINT, amount STRING")
    catalog.publish([Segment("orders/a", wrong, 5, location=f"{path}@v0")], on_existing="replace")
    with pytest.raises(Unreadable, match="has amount as int, and its segment was published with"):
        catalog.read("orders", format="delta")


def test_filters_and_columns_reach_the_files(
    spark: SparkSession, catalog: Catalog, orders: Path
) -> None:
    catalog.publish([write(spark, orders, "a", V1, 0), write(spark, orders, "b", V2, 10)])
    read = catalog.read("orders").where("amount > 35 AND id >= 3").select("id")
    plan = explained(read)
    assert plan.count("FileScan parquet") == 2  # the two types of `amount`
    assert "ReadSchema: struct<id:bigint,amount:int>" in plan
    assert "ReadSchema: struct<id:bigint,amount:bigint>" in plan
    assert plan.count("GreaterThan(amount,35)") == 2
    assert plan.count("GreaterThanOrEqual(id,3)") == 2
    assert sorted(row["id"] for row in read.collect()) == [
        6,
        7,
        8,
        *(10, 11, 12, 13, 15, 16, 17, 18),
    ]


def test_schemas_that_agree_share_a_scan_and_one_job_reads_all(
    spark: SparkSession, catalog: Catalog, orders: Path
) -> None:
    segments = [
        write(spark, orders, f"s{n}", f"id BIGINT, c{n} INT, amount INT", n * 10) for n in range(6)
    ]
    catalog.publish(segments)
    read = catalog.read("orders", segment_id="segment")
    assert explained(read).count("FileScan parquet") == 1
    rows = read.groupBy("segment").agg(
        F.count("*").alias("rows"), *(F.count(f"c{n}").alias(f"c{n}") for n in range(6))
    )
    found = {row["segment"]: row.asDict() for row in rows.collect()}
    assert {name: row["rows"] for name, row in found.items()} == {s.id: 10 for s in segments}
    assert all(
        found[f"orders/s{n}"][f"c{m}"] == (8 if n == m else 0) for n in range(6) for m in range(6)
    )


def explained(frame: DataFrame) -> str:
    import contextlib
    import io

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        frame.explain("simple")
    return out.getvalue()


def test_segments_are_chosen_by_interval_or_by_a_condition(
    spark: SparkSession, catalog: Catalog, orders: Path
) -> None:
    def day(number: int) -> datetime:
        return datetime(2026, 3, number, tzinfo=UTC)

    segments = [write(spark, orders, f"d{n}", V1, n * 10) for n in (1, 2, 3)]
    catalog.publish(
        [
            Segment(s.id, s.schema, 10, location=s.location, starts_at=day(n), ends_at=day(n + 1))
            for n, s in enumerate(segments[:2], 1)
        ]
        + segments[2:]
    )
    read = {
        "all": catalog.read("orders"),
        "first and without interval": catalog.read("orders", where=(day(1), day(2))),
        "both and without": catalog.read(
            "orders", where=(day(1).replace(hour=23), day(2).replace(hour=1))
        ),
        "condition": catalog.read("orders", where="starts_at >= TIMESTAMP'2026-03-02T00:00:00Z'"),
        "column": catalog.read("orders", where=F.col("name") == "d3"),
        "none": catalog.read("orders", where="name = 'nothing'", segment_id="segment"),
    }
    assert {name: frame.count() for name, frame in read.items()} == {
        "all": 30,
        "first and without interval": 20,
        "both and without": 30,
        "condition": 10,
        "column": 10,
        "none": 0,
    }
    assert read["none"].columns == ["id", "amount", "note", "segment"]
    for wrong in ((day(2), day(1)), (datetime(2026, 1, 1), day(1)), (day(1),)):
        with pytest.raises(InvalidInput, match="two times with a time zone"):
            catalog.read("orders", where=wrong)  # type: ignore[arg-type]


def test_odd_paths_and_folders_lead_to_their_segments(
    spark: SparkSession, catalog: Catalog, orders: Path
) -> None:
    names = ["a b", "50%41", "x+y", "ü*[a]?", "k=v", "{c,d}", "e#f"]
    segments = []
    for number, name in enumerate(names):
        data = write(spark, orders / name, f"part-{number}", V1, number * 10)
        locations = [
            f"file:{data.location}",
            f"parquet.`{data.location}`",
            f"file://{data.location}",
        ]
        location = locations[number % 3]
        segments.append(Segment(f"orders/{number}", data.schema, 10, location=location))
    # One that is not as deep as the others and does not say its format.
    rows_of(spark, V1, 70, 10).write.parquet(str(orders / "plain"))
    segments.append(Segment("orders/7", Schema.of(V1), 10, location=str(orders / "plain") + "/"))
    catalog.publish(segments)
    read = catalog.read("orders", segment_id="segment", format="parquet")
    rows = read.select("id", "segment").collect()
    assert len(rows) == 80
    assert {(row["id"] // 10, row["segment"]) for row in rows} == {
        (n, f"orders/{n}") for n in range(8)
    }


def test_folders_are_read_to_the_bottom_and_their_names_are_no_columns(
    spark: SparkSession, catalog: Catalog, orders: Path
) -> None:
    schema = Schema.of("id BIGINT, amount INT")
    rows_of(spark, "id BIGINT, amount INT, note STRING", 0, 10).write.partitionBy("note").parquet(
        str(orders / "parts")
    )
    for number, below in enumerate(("", "2024/01", "k=v")):
        data = rows_of(spark, schema.ddl, 10 + 10 * number, 10)
        data.write.parquet(str(orders / "deep" / below / "x.parquet"))
    plain = write(spark, orders, "plain", schema.ddl, 40)
    catalog.publish(
        [
            Segment("orders/parts", schema, 10, location=str(orders / "parts")),
            Segment("orders/deep", schema, 30, location=str(orders / "deep")),
            plain,
        ]
    )
    read = catalog.read("orders", format="parquet", segment_id="segment")
    assert read.columns == ["id", "amount", "segment"]
    counts = {row["segment"]: row["count"] for row in read.groupBy("segment").count().collect()}
    assert counts == {"orders/parts": 10, "orders/deep": 30, "orders/plain": 10}


@pytest.mark.parametrize(
    ("one", "other", "problem"),
    [
        ("/d/a.parquet", "file:/d/a.parquet", "have one location"),
        ("/d/a.parquet", "file:///d//a.parquet/", "have one location"),
        ("/d/x", "/d/x/a.parquet", "one inside the other"),
        ("s3://b/d", "s3://b/d/e/f.parquet", "one inside the other"),
        ("/d/a.parquet", "/d/_b.parquet", "begin with _"),
    ],
)
def test_locations_whose_rows_would_be_read_twice_or_not_at_all_are_refused(
    one: str, other: str, problem: str
) -> None:
    pieces = [Piece(f"o/{n}", "f", place_of(path)) for n, path in enumerate((one, other))]
    for given in (pieces, pieces[::-1]):
        with pytest.raises(Unreadable, match=problem):
            check_places(given)


def test_locations_of_different_places_are_not_confused() -> None:
    paths = ["/d/a.parquet", "/d/a.parquet2", "s3://b/d/a.parquet", "s3://c/d/a.parquet", "/d/ab/c"]
    check_places([Piece(f"o/{n}", "f", place_of(path)) for n, path in enumerate(paths)])
    versions = [Piece(f"o/{n}", "f", place_of(f"/d/t.delta@v{n}")) for n in range(2)]
    check_places(versions)


def test_a_file_that_is_gone_is_an_error_whatever_the_session_says(
    spark: SparkSession, catalog: Catalog, orders: Path
) -> None:
    catalog.publish([write(spark, orders, name, V1, n) for n, name in enumerate("ab")])
    read = catalog.read("orders")
    shutil.rmtree(orders / "b.parquet")
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        with pytest.raises(Exception, match=r"b\.parquet"):
            read.collect()
        with pytest.raises(Exception, match=r"b\.parquet"):
            catalog.read("orders").collect()
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")


def test_a_table_of_the_name_of_a_struct_does_not_get_in_the_way(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 1 AS id, named_struct('id', 2) AS orders").alias("orders")
    done = upgrade(frame, "id INT, orders STRUCT<id: BIGINT, more: INT>")
    assert done.collect()[0].asDict(recursive=True) == {"id": 1, "orders": {"id": 2, "more": None}}


def test_what_cannot_be_read_is_named(spark: SparkSession, catalog: Catalog, orders: Path) -> None:
    with pytest.raises(NotInSnapshot, match="orders"):
        catalog.read("orders")
    schema = Schema.of("a INT")
    catalog.publish([Segment("orders/a", schema, 1)])
    with pytest.raises(Unreadable, match="orders/a cannot be read: published without a location"):
        catalog.read("orders")
    catalog.publish([Segment("orders/a", schema, 1, location="/data/x.bin")], on_existing="replace")
    with pytest.raises(Unreadable, match="does not say which format"):
        catalog.read("orders")
    with pytest.raises(Unreadable, match="has the format avro"):
        catalog.read("orders", format="avro")
    with pytest.raises(InvalidInput, match="on_loss"):
        catalog.read("orders", on_loss="guess")
    catalog.publish(
        [Segment("orders/a", schema, 1, location="/data/a.parquet"),
         Segment("orders/b", schema, 1, location="/data/a.parquet")], on_existing="replace",
    )  # fmt: skip
    with pytest.raises(Unreadable, match="orders/a and orders/b have one location"):
        catalog.read("orders")
    with pytest.raises(NotInSnapshot, match="ordrs"):
        catalog.read("ordrs", schema="a INT")
    with pytest.raises(NotInSnapshot, match="ordrs"):
        catalog.read("ordrs", schema="a INT", where="name = 'a'")
    with pytest.raises(InvalidInput, match="column A of its own"):
        catalog.read("orders", segment_id="A", where="name = 'a'")


def test_text_of_limited_length_is_read_and_nullability_inside_does_not_matter(
    spark: SparkSession, catalog: Catalog, orders: Path
) -> None:
    strict = pa.schema([
        pa.field("c", pa.string(), metadata={"strata.type": "char(3)"}),
        pa.field("v", pa.string(), metadata={"strata.type": "varchar(5)"}),
        pa.field("s", pa.struct([pa.field("x", pa.int32(), nullable=False)]), nullable=False),
    ])  # fmt: skip
    loose = pa.schema([
        pa.field("v", pa.string(), metadata={"strata.type": "varchar(9)"}),
        pa.field("c", pa.string(), metadata={"strata.type": "char(3)"}),
        pa.field("s", pa.struct([("x", pa.int32())])),
    ])  # fmt: skip
    rows = {
        "a": pa.table([["ab ", "b  "], ["12345", None], [{"x": 1}, {"x": 2}]], schema=strict),
        "b": pa.table([["123456789"], ["abc"], [None]], schema=loose),
    }
    for name, table in rows.items():
        path = orders / f"{name}.parquet"
        pq.write_table(table, path)
        schema = Schema.of(table.schema)
        catalog.publish([Segment(f"orders/{name}", schema, len(table), location=str(path))])
    # A target with one more column inside makes the struct anew: what was null stays null.
    target = "c STRING, v VARCHAR(9), s STRUCT<x: INT, y: INT>"
    read = catalog.read("orders", schema=target).orderBy("c").collect()
    assert [row.asDict(recursive=True) for row in read] == [
        {"c": "ab ", "v": "12345", "s": {"x": 1, "y": None}},
        {"c": "abc", "v": "123456789", "s": None},
        {"c": "b  ", "v": None, "s": {"x": 2, "y": None}},
    ]
    with pytest.raises(WouldLose, match=r"v is varchar\(9\)"):
        catalog.read("orders", schema="v VARCHAR(5)")
    nulled = catalog.read("orders", schema="v VARCHAR(5)", on_loss="null").orderBy("v").collect()
    assert [row["v"] for row in nulled] == [None, None, "12345"]


@pytest.mark.stress
def test_a_schema_that_is_gone_by_now_is_read_from_the_version_that_had_it(
    spark: SparkSession, catalog: Catalog, location: str, orders: Path
) -> None:
    from datetime import timedelta

    catalog.publish([write(spark, orders, "a", V1, 0), write(spark, orders, "b", V2, 10)])
    before = catalog.version
    catalog.drop(["orders/b"])
    for _ in range(2):
        catalog.cleanup(grace=timedelta(0))
    with Catalog.open(spark, location) as fresh:
        with pytest.raises(UnknownSchema):
            fresh.schema(Schema.of(V2).fingerprint)
        assert fresh.read("orders", as_of=before).count() == 20
        assert fresh.read("orders", as_of=before, schema="id BIGINT").count() == 20
    assert catalog.verify(since=0).ok
