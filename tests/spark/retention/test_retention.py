"""Retention: what goes by the rules, what is archived first, and what stays."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Object, RetentionFailure, Segment
from catalog.cli.shell import run_job
from catalog.environment import Environment
from catalog.errors import InvalidInput, UnknownObject
from catalog.model import micros
from catalog.objects.retention_rules import RetentionRule, Scope
from catalog.retention.selection import RetentionSearch
from tests.spark.files import broken, parquet
from tests.unit.builders import segment
from tests.unit.retention.specification import Fact, plan

NOW = datetime(2024, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)
ENVIRONMENT = Environment(clock=lambda: NOW, pause=lambda attempt: 0.0)


def rule(name: str, **body: Any) -> Object:
    """A rule, of a datasource unless the name says otherwise."""
    key = f"retention/{name}" if "/" in name else f"retention/datasource/{name}"
    return Object(key, {"action": "drop", **body})


def aged(id: str, days: float, **given: Any) -> Segment:
    """A segment whose interval ended so many days ago."""
    ends_at = NOW - days * DAY
    return segment(id, starts_at=ends_at - DAY, ends_at=ends_at, **given)


def ids(catalog: Catalog) -> list[str]:
    return sorted(row["segment_id"] for row in catalog.segments().collect())


@pytest.fixture
def catalog(open_catalog: Callable[..., Catalog]) -> Catalog:
    return open_catalog(actor="tester", environment=ENVIRONMENT)


def test_segments_go_by_age_and_count_through_ordinary_drops(catalog: Catalog) -> None:
    catalog.publish(
        [
            *(aged(f"orders/{n}", n, rows=10, size_bytes=100) for n in range(6)),
            *(segment(f"visits/{n}") for n in range(4)),
            *(aged(f"clicks/{n}", 100 + n) for n in range(3)),
            aged("exempt/1", 900),
            aged("ruleless/1", 900),
            aged("troubled/1", 900),
        ]
    )
    catalog.objects.put(
        [
            rule("orders", max_age_days=3, max_segments=5),
            rule("database/web", max_segments=2),
            rule("clicks", max_age_days=1, keep_at_least=2),
            rule("exempt", max_age_days=1, enabled=False),
            rule("empty", max_age_days=1),
            rule("troubled"),
            Object("table/web/visits", datasource="visits"),
            Object("table/web/exempt", datasource="exempt"),
            Object("table/web/troubled", datasource="troubled"),
        ]
    )
    before, version = ids(catalog), catalog.version
    told = catalog.retention.apply(dry_run=True)
    assert (catalog.version, ids(catalog)) == (version, before)
    assert (told.version, told.dry_run, told.segments, told.left) == (version, True, 5, 5)
    assert [(each.key, "neither" in each.reason) for each in told.refused] == [
        ("retention/datasource/troubled", True)
    ]
    orders = next(each for each in told.datasources if each.datasource == "orders")
    assert (orders.rule, orders.action) == ("retention/datasource/orders", "drop")
    assert (orders.segments, orders.by_age, orders.by_count) == (2, 2, 0)
    assert (orders.num_rows, orders.size_bytes) == (20, 200)
    assert (orders.oldest, orders.newest) == (NOW - 5 * DAY, NOW - 4 * DAY)

    first = catalog.retention.apply(limit=1, datasources=["orders"], reason="old")
    assert (first.dropped, first.left, first.ok) == (1, 1, True)
    assert "orders/5" not in ids(catalog)  # the oldest first
    done = catalog.retention.apply(actor="night", reason="daily")
    assert {each.datasource: each.dropped for each in done.datasources} == {
        "clicks": 1,
        "orders": 1,
        "visits": 2,
    }
    assert not done.ok  # a rule is refused
    assert ids(catalog) == [
        *("clicks/0", "clicks/1", "exempt/1"),
        *("orders/0", "orders/1", "orders/2", "orders/3"),
        *("ruleless/1", "troubled/1", "visits/2", "visits/3"),
    ]
    last = catalog.audit.history(1).collect()[0]
    assert (last["verb"], last["actors"], last["reasons"]) == ("drop", ["night"], ["daily"])
    again = catalog.version
    assert catalog.retention.apply().segments == 0
    assert catalog.version == again

    rows = {row["name"]: row for row in catalog.inspect.retention_rules().collect()}
    assert (rows["orders"]["max_age_days"], rows["orders"]["max_segments"]) == (3.0, 5)
    assert (rows["web"]["scope"], rows["web"]["max_age_days"]) == ("database", None)
    assert (rows["clicks"]["keep_at_least"], rows["exempt"]["enabled"]) == (2, False)
    with pytest.raises(UnknownObject, match="no retention rule for datasource ruleless"):
        catalog.retention.apply(datasources=["orders", "ruleless"])
    with pytest.raises(InvalidInput, match="limit"):
        catalog.retention.apply(limit=0)


def test_the_search_in_the_table_finds_what_the_plan_says(catalog: Catalog) -> None:
    chance = random.Random(7)
    letters = "aä𝄞'\\% "
    names = {"".join(chance.choices(letters, k=3)) for _ in range(60)}
    moments: list[timedelta | None] = [None, *(n * DAY for n in range(6))]
    facts: list[Fact] = []
    segments: list[Segment] = []
    for name in sorted(names):
        ago = chance.choice(moments)
        ends_at = None if ago is None else NOW - ago
        segments.append(segment(f"d'ä/{name}", ends_at=ends_at))
        facts.append(
            Fact(segments[-1].id, micros(NOW), None if ends_at is None else micros(ends_at))
        )
    catalog.publish([*segments, segment("other/1")])
    store = catalog._context.store
    search = RetentionSearch(store, catalog._context.opened.segment_buckets, store.head().version)
    now = micros(NOW)
    overview = search.overviews(["d'ä", "none"])
    assert overview.keys() == {"d'ä"}
    assert (overview["d'ä"].count, overview["d'ä"].oldest) == (
        len(facts),
        min(fact.at for fact in facts),
    )
    for _ in range(6):
        age = chance.choice([None, 0.5, 2.0, 3.0])
        most = chance.choice([None, 1, 10, 40, 99] if age else [1, 10, 40, 99])
        keep = chance.choice([0, 0, 1, 15, 99])
        any_rule = RetentionRule("retention/datasource/x", Scope.DATASOURCE, "x", age, most, keep)
        expected = plan(any_rule, facts, now)
        due = search.due("d'ä", any_rule, now)
        assert (due is None) == (not expected), any_rule
        if due is None:
            continue
        found: list[str] = []
        last = None
        while page := search.page(due, last, 29):
            found += [each.id for each in page]
            last = page[-1]
        assert found == [each.id for each in expected], any_rule
        assert due.segments == len(expected)
        assert due.by_age == sum(each.why == "age" for each in expected)


# --- archives -------------------------------------------------------------------------------------


def archived_rows(spark: SparkSession, archive: Path, datasource: str) -> list[Any]:
    manifest = spark.read.parquet(f"{archive}/{datasource}/_manifest")
    return manifest.orderBy("segment_id", "commit_id").collect()


def with_archive(archive: Path) -> list[Object]:
    return [
        rule("database/sales", max_age_days=30, action="archive"),
        Object("database/sales"),
        Object("table/sales/orders", datasource="orders", links=["database/sales"]),
        Object("datastore/cold", {"location": str(archive)}),
        Object(
            "datastore_link/sales/cold",
            {"role": "archive"},
            links=["database/sales", "datastore/cold"],
        ),
    ]


class Killed(BaseException):
    """The process was killed here."""


def test_archived_data_is_copied_listed_and_only_then_dropped(
    spark: SparkSession, open_catalog: Callable[..., Catalog], tmp_path: Path
) -> None:
    lake, archive = tmp_path / "lake", tmp_path / "cold"
    file = parquet(lake / "one.parquet", "a INT, b STRING", rows=3)
    parquet(lake / "two" / "part-0.parquet", "a INT", rows=2)
    parquet(lake / "two" / "part-1.parquet", "a INT", rows=2)
    points: list[str] = []
    killed = "retain.copied"

    def at(point: str) -> None:
        points.append(point)
        if point == killed:
            raise Killed

    catalog = open_catalog(
        actor="tester", environment=Environment(clock=lambda: NOW, pause=lambda _: 0.0, at=at)
    )
    folder = f"parquet.`{lake / 'two'}`"
    catalog.publish(
        [
            aged("orders/one", 40, ddl="a INT, b STRING", rows=3, location=file, size_bytes=1),
            aged("orders/two", 50, ddl="a INT", rows=4, location=folder),
            aged("orders/new", 1, location=file),
        ]
    )
    catalog.objects.put(with_archive(archive))
    # Killed after the copy, then after the manifest: nothing is dropped, nothing is done twice.
    with pytest.raises(Killed):
        catalog.retention.apply()
    copies = {path: path.stat().st_mtime_ns for path in archive.rglob("*.parquet")}
    assert len(copies) == 3
    killed = "retain.archived"
    with pytest.raises(Killed):
        catalog.retention.apply()
    assert len(ids(catalog)) == 3
    killed = ""
    report = catalog.retention.apply(reason="archive")
    (orders,) = report.datasources
    assert (orders.archived, orders.dropped, orders.failed, report.ok) == (2, 2, 0, True)
    assert points.count("retain.dropped") == 1
    assert ids(catalog) == ["orders/new"]
    assert {path: path.stat().st_mtime_ns for path in copies} == copies
    one, two = archived_rows(spark, archive, "orders")
    assert (one["segment_id"], two["segment_id"]) == ("orders/one", "orders/two")
    assert (one["schema"], one["num_rows"], one["size_bytes"]) == ("a INT, b STRING", 3, 1)
    assert (one["archived_by"], one["archived_from"], one["files"]) == ("tester", file, 1)
    assert one["archived_bytes"] == Path(file).stat().st_size
    assert two["files"] == 2
    # The archive is read without the catalog, and the source is untouched.
    copied = spark.read.schema(two["schema"]).format(two["format"]).load(two["archived_to"])
    assert copied.count() == 4
    assert Path(file).is_file()
    assert len(list((lake / "two").iterdir())) == 2

    # The same id again is another segment, and has another place.
    catalog.publish([aged("orders/one", 40, ddl="a INT", rows=2, location=str(lake / "two"))])
    catalog.drop(["orders/one"])
    later = parquet(lake / "later.parquet", "a INT", rows=1)
    catalog.publish([aged("orders/one", 40, ddl="a INT", rows=1, location=later)])
    assert catalog.retention.apply().archived == 1
    places = [row["archived_to"] for row in archived_rows(spark, archive, "orders")]
    assert len(set(places)) == 3


@pytest.mark.stress
def test_what_cannot_be_archived_stays_and_is_told(
    catalog: Catalog, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake, archive = tmp_path / "lake", tmp_path / "cold"
    spark.range(3).write.format("delta").save(str(lake / "table"))
    good = parquet(lake / "good.parquet", rows=1)
    catalog.publish(
        [
            aged("orders/good", 40, location=good),
            aged("orders/broken", 40, location=broken(lake / "broken.parquet")),
            aged("orders/changed", 40, rows=7, location=good),
            aged("orders/gone", 40, location=str(lake / "gone.parquet")),
            aged("orders/nowhere", 40),
            aged("orders/unsaid", 40, location=str(lake / "unsaid")),
            aged("orders/table", 40, location=f"delta.`{lake / 'table'}`"),
            aged("orders/hidden", 40, location=f"parquet.`{lake / 'table'}`"),
            aged("plain/1", 40),
            aged("lost/1", 40),
        ]
    )
    catalog.objects.put(
        [
            *with_archive(archive),
            rule("plain", max_age_days=30),
            # There is no table for it, and so no database and no archive.
            rule("lost", max_age_days=30, action="archive"),
        ]
    )
    report = catalog.retention.apply()
    assert not report.ok
    lost, orders, plain = report.datasources
    assert (lost.problem[:31], lost.dropped, lost.left) == ("Segments of lost cannot be arch", 0, 1)
    assert (orders.archived, orders.dropped, orders.failed, plain.dropped) == (1, 1, 7, 1)
    reasons = {each.segment_id.partition("/")[2]: each.reason for each in orders.failures}
    for name, says in {
        "broken": "cannot be read as parquet",
        "changed": "has 1 rows, and 7 were published",
        "gone": "there is no file",
        "hidden": "is a Delta table",
        "nowhere": "has no location",
        "table": "is a Delta table",
        "unsaid": "does not say a format",
    }.items():
        assert says in reasons.pop(name)
    assert reasons == {}
    assert len(archived_rows(spark, archive, "orders")) == 1
    assert "orders/good" not in ids(catalog)
    assert len(ids(catalog)) == 8

    argv = ["--location", str(catalog.location), "--output", "json", "--datasource", "orders"]
    assert run_job("retain", argv, lambda *_: nullcontext(spark)) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["facts"]["failed"], answer["facts"]["dropped"]) == (7, 0)
    assert len(answer["tables"]["failures"]) == 7
    (run,) = catalog.audit.runs().collect()
    assert (run["job"], run["status"], run["figures"]["retention_failed"]) == ("retain", "found", 7)


# --- others at work -------------------------------------------------------------------------------


@pytest.mark.stress
def test_what_others_replaced_dropped_or_claimed_meanwhile_stays(
    open_catalog: Callable[..., Catalog], tmp_path: Path
) -> None:
    other = open_catalog(actor="other")
    file = parquet(tmp_path / "lake" / "x.parquet", rows=1)
    old = [aged(f"orders/{n}", 40, location=file) for n in range(6)]
    other.publish([*old, aged("plain/1", 40), aged("plain/2", 40)])
    other.objects.put([*with_archive(tmp_path / "cold"), rule("plain", max_age_days=1)])
    early = other.operation("before", parts=1)
    early.stage(0, drop=["orders/0"])

    reached: list[str] = []

    def meanwhile(point: str) -> None:
        reached.append(point)
        if point == "retain.archived" and reached.count(point) == 1:
            other.publish([aged("orders/1", 40, rows=1)], on_existing="replace")
            other.drop(["orders/2"])
            other.operation("late", parts=1).stage(0, drop=["orders/3"])

    catalog = open_catalog(
        environment=Environment(clock=lambda: NOW, pause=lambda _: 0.0, at=meanwhile)
    )
    report = catalog.retention.apply()
    orders, plain = report.datasources
    assert (orders.archived, orders.dropped, orders.overtaken, orders.failed) == (5, 2, 2, 2)
    assert (orders.left, plain.dropped) == (0, 2)
    assert [each.segment_id for each in orders.failures] == ["orders/0", "orders/3"]
    assert all(isinstance(each, RetentionFailure) for each in orders.failures)
    assert ["claimed by" in each.reason for each in orders.failures] == [True, True]
    assert ids(catalog) == ["orders/0", "orders/1", "orders/3"]
    early.abort()
    other.objects.put([rule("plain", max_age_days=1, enabled=False)])
    (orders,) = catalog.retention.apply(datasources=["orders"]).datasources
    assert (orders.dropped, orders.failed) == (1, 2)  # one has no location now, one is claimed
    assert ids(catalog) == ["orders/1", "orders/3"]
    verified = catalog.verify(since=0)
    assert verified.ok, verified
