"""The report as it is collected from a catalog; how it looks is tested in a browser."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Segment
from catalog.report.content import collect
from catalog.report.page import render
from tests.unit.builders import segment


@pytest.mark.stress
def test_a_report_counts_what_is_there_and_how_it_came_about(
    spark: SparkSession, catalog: Catalog
) -> None:
    evil = "<script>alert(1)</script>"
    catalog.publish(
        [
            segment("orders/1", "a INT", 10, size_bytes=100),
            segment("orders/2", "a INT", 20),
            segment("clicks/1", "a INT", 5),
            segment(f"{evil}/1", "b STRING", 1),
        ],
        reason=evil,
    )
    catalog.publish([segment("orders/2", "c INT", 7)], on_existing="replace")
    catalog.publish([segment("gone/1", "d INT")])
    catalog.drop(["gone/1"])
    catalog.cleanup(grace=timedelta(0))
    catalog.publish([segment("gone/2", "e INT")])
    catalog.drop(["gone/2"])
    # One that nobody has asked yet, and one whose location does not say its format.
    catalog.publish([Segment("late/1", location="/x.csv"), Segment("odd/1", location="/x")])
    catalog.backfill(datasources=["odd"])
    report = collect(catalog)

    totals = report.totals
    assert (totals.segments, totals.rows, totals.size_bytes) == (6, 23, 100)
    assert (totals.schemas, totals.datasources, totals.orphans, totals.retired) == (4, 5, 1, 1)
    assert (totals.segments_without_schema, totals.segments_quarantined) == (2, 1)
    assert [(line.segment_id, line.quarantined, line.attempts) for line in report.waiting] == [
        ("odd/1", True, 1),
        ("late/1", False, None),
    ]
    assert "does not say its format" in (report.waiting[0].reason or "")
    grown = {point.version: point for point in report.growth}
    assert (grown[1].segments, grown[1].rows, grown[1].schemas) == (4, 36, 2)
    assert (grown[2].segments, grown[2].rows, grown[2].schemas) == (4, 23, 3)
    last = report.growth[-1]
    assert (last.segments, last.rows, last.schemas) == (6, 23, 4)
    largest = report.datasources[0]
    assert (largest.datasource, largest.segments, len(largest.fingerprints)) == ("orders", 2, 2)
    shared = report.schemas[0]
    assert (shared.ddl, shared.segments, shared.datasources) == ("a INT", 2, 2)
    assert {(line.ddl, line.state) for line in report.unused} == {
        ("d INT", "retired"),
        ("e INT", "orphan"),
    }
    commits = {line.version: line for line in report.commits}
    assert (commits[1].verb, commits[1].added, commits[1].reasons) == ("publish", 4, (evil,))
    assert (report.problems, report.verified) == ((), f"version {catalog.version}")

    page = render(report)
    assert evil not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page

    # What was written by other means is named, and a short reach begins where it was told.
    spark.sql(
        f"UPDATE {catalog.location.table('entries')} SET num_rows = 99 WHERE key = 'orders/1'"
    ).collect()
    short = collect(catalog, versions=2)
    assert [problem.promise for problem in short.problems] == ["I5"]
    assert short.growth[-1].rows == 23 - 10 + 99
    assert len(short.growth) <= 2
    assert short.growth[0].segments == 6


@pytest.mark.stress
def test_the_growth_reaches_back_as_far_as_changes_can_be_read(catalog: Catalog) -> None:
    catalog.publish([segment("orders/1")])
    for number in range(2, 8):
        catalog.publish([segment(f"orders/{number}")])
    catalog.maintain(retain=timedelta(0), cut_off_pollers=True)
    catalog.publish([segment("orders/8")])
    report = collect(catalog)
    assert [point.segments for point in report.growth] == [8]
    assert report.totals.segments == 8


def test_an_empty_catalog_has_a_report_too(catalog: Catalog) -> None:
    report = collect(catalog)
    assert (report.growth, report.totals.segments, report.problems) == ((), 0, ())
    assert "<html" in render(report)
