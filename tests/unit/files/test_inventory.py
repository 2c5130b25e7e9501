"""Files compared with segments: new, changed, missing or in conflict."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from catalog.errors import InvalidSegment
from catalog.files.deltalog import Part, TableLog
from catalog.files.footer import Footer, ReadFooters, slices
from catalog.files.inventory import (
    KnownFile,
    ListedFile,
    as_published,
    compare_files,
    compare_segments,
    partitions_of,
    segments_of,
)
from catalog.files.paths import Pattern, Place, address_of, authority_of
from catalog.files.storage import Files
from catalog.model import Segment, micros
from catalog.schema import Schema

PATTERN = Pattern.parse("/data/orders/**/*.parquet")


def listed(name: str, size: int = 10, modified: int = 100) -> ListedFile:
    return ListedFile(f"file:/data/orders/{name}", size, modified)


def known(segment_id: str, location: str, **given: Any) -> KnownFile:
    fields: dict[str, Any] = {
        "size_bytes": 10,
        "changed_micros": 200,
        "commit_id": "c1",
        "digest": "d1",
        "complete": True,
    }
    return KnownFile(segment_id, location, **fields | given)


def test_a_file_of_no_segment_is_new_under_its_path_below_the_root() -> None:
    found = compare_files("orders", PATTERN, [listed("2024/1.parquet")], [])
    assert list(found.new) == ["orders/2024/1.parquet"]


def test_a_file_belongs_to_the_segment_with_its_location_whatever_its_id_and_spelling() -> None:
    segment = known("orders/first", "/data/orders/1.parquet")
    found = compare_files("orders", PATTERN, [listed("1.parquet")], [segment])
    assert (dict(found.new), found.unchanged, found.missing) == ({}, 1, ())


def test_a_file_of_another_size_or_written_later_has_changed() -> None:
    files = [listed("1.parquet", size=11), listed("2.parquet", modified=201), listed("3.parquet")]
    segments = [known(f"orders/{n}", f"/data/orders/{n}.parquet") for n in (1, 2, 3)]
    found = compare_files("orders", PATTERN, files, segments)
    assert (list(found.changed), found.unchanged) == (["orders/1", "orders/2"], 1)
    assert found.touched == {"orders/2"}
    assert list(found.before) == ["orders/1", "orders/2"]
    assert found.found == 3


def test_a_segment_whose_size_was_not_told_is_not_taken_for_changed() -> None:
    segment = known("orders/1", "/data/orders/1.parquet", size_bytes=None)
    assert not compare_files("orders", PATTERN, [listed("1.parquet")], [segment]).changed


def test_a_segment_that_waits_is_left_to_the_backfill() -> None:
    segment = known("orders/1", "/data/orders/1.parquet", complete=False, size_bytes=99)
    found = compare_files("orders", PATTERN, [listed("1.parquet")], [segment])
    assert (found.waiting, dict(found.changed), found.missing) == (1, {}, ())


def test_only_segments_that_the_pattern_fits_can_be_missing() -> None:
    segments = [
        known("orders/2", "/data/orders/2.parquet"),
        known("orders/1", "parquet.`/data/orders/x/1.parquet`"),
        known("orders/orc", "/data/orders/3.orc"),
        known("orders/empty", "/data/orders/4.parquet", size_bytes=0),
        known("orders/else", "/data/other/1.parquet"),
    ]
    found = compare_files("orders", PATTERN, [listed("9.parquet")], segments)
    assert [each.segment_id for each in found.missing] == ["orders/1", "orders/2"]


@pytest.mark.parametrize(
    ("pattern", "listed_path", "location"),
    [
        ("s3://live/data/*.parquet", "s3://live/data/1.parquet", "s3://archive/data/9.parquet"),
        ("s3://live/data/*.parquet", "s3://live/data/1.parquet", "/data/9.parquet"),
        ("s3://live/data/*.parquet", "s3://live/data/1.parquet", "file:/data/9.parquet"),
        ("/data/*.parquet", "hdfs://nn/data/1.parquet", "file:/data/9.parquet"),
        ("/data/*.parquet", "file:/data/day.parquet/part-0.parquet", "/data/day.parquet"),
        ("/data", "file:/data/day=1/p.parquet", "parquet.`/data/day=1`"),
        ("/data/**/*.csv", "file:/data/x.csv/part-0", "/data/x.csv"),
        ("/data", "file:/data/1.parquet", "delta.`/data/t`"),
        ("/data", "file:/data/1.parquet", "/data/t.delta@v3"),
    ],
)
def test_data_that_may_be_there_is_never_missing(
    pattern: str, listed_path: str, location: str
) -> None:
    files = [ListedFile(listed_path, 10, 100)]
    found = compare_files("orders", Pattern.parse(pattern), files, [known("orders/a", location)])
    assert found.missing == ()


@pytest.mark.parametrize(
    ("pattern", "root", "spelled"),
    [
        ("s3a://b/data/*.parquet", "s3a://b/data", "s3://b/data"),
        ("s3://b/data/*.parquet", "s3://b/data", "s3n://b/data"),
        ("/Volumes/m/d/*.parquet", "dbfs:/Volumes/m/d", "/Volumes/m/d"),
        ("/Volumes/m/d/*.parquet", "dbfs:/Volumes/m/d", "file:/Volumes/m/d"),
        ("dbfs:/Volumes/m/d/*.parquet", "dbfs:/Volumes/m/d", "/Volumes/m/d"),
        ("/data/*.parquet", "file:/data", "/data"),
        ("/data/*.parquet", "file:///data", "file:/data"),
        ("file:/data/*.parquet", "file:/data", "/data"),
        ("/data/*.parquet", "hdfs://nn/data", "/data"),
        ("/data/*.parquet", "dbfs:/data", "/data"),
    ],
)
def test_a_file_is_found_and_missed_however_its_location_is_spelled(
    pattern: str, root: str, spelled: str
) -> None:
    files = [ListedFile(f"{root}/1.parquet", 10, 100)]
    segments = [known(f"orders/{n}", f"{spelled}/{n}.parquet") for n in (1, 2)]
    found = compare_files("orders", Pattern.parse(pattern), files, segments)
    assert (found.unchanged, dict(found.new), dict(found.taken)) == (1, {}, {})
    assert [each.segment_id for each in found.missing] == ["orders/2"]


def test_nothing_is_missing_where_nothing_is_listed() -> None:
    found = compare_files("orders", PATTERN, [], [known("orders/1", "/data/orders/1.parquet")])
    assert (found.found, found.missing) == (0, ())


def test_files_that_the_pattern_does_not_fit_are_listed_and_left() -> None:
    found = compare_files("orders", PATTERN, [listed("1.parquet"), listed("notes.txt")], [])
    assert (list(found.new), found.found) == (["orders/1.parquet"], 1)


@pytest.mark.parametrize(
    ("path", "authority"),
    [
        ("/data", None),
        ("data/x", None),
        ("file:/data", ""),
        ("file:///data", ""),
        ("file://host/data", "file://host"),
        ("dbfs:/Volumes/a", ""),
        ("dbfs:/Volumesque/a", "dbfs:"),
        ("S3A://b/x", "s3://b"),
        ("hdfs:///x", "hdfs:"),
        ("abfss://c@account/x", "abfss://c@account"),
    ],
)
def test_scheme_and_host_have_one_spelling(path: str, authority: str | None) -> None:
    assert authority_of(path) == authority


def test_the_version_of_a_table_is_part_of_its_address() -> None:
    assert address_of(Place("s3n://b//t/", "delta", 3)) == "s3://b/t@v3"


def test_an_id_that_belongs_to_a_segment_elsewhere_is_taken() -> None:
    segment = known("orders/1.parquet", "/data/elsewhere/1.parquet")
    found = compare_files("orders", PATTERN, [listed("1.parquet")], [segment])
    assert (list(found.taken), dict(found.new), found.missing) == (["orders/1.parquet"], {}, ())


def test_partitions_of_a_table_are_compared_by_all_that_the_log_says() -> None:
    made = {
        name: Segment(name, "a INT", 1, 10, f"delta.`/t/{name.partition('/')[2]}`")
        for name in ("t/d=1", "t/d=2", "t/d=3", "t/d=4")
    }
    there = [
        known("t/d=1", "delta.`/t/d=1`", digest=made["t/d=1"].digest),
        known("t/d=2", "delta.`/t/d=2`"),
        known("t/d=3", "delta.`/t/d=3`", complete=False),
        known("t/d=9", "delta.`/t/d=9`"),
        known("t/other", "delta.`/u/d=9`"),
    ]
    found = compare_segments("/t", made, there)
    assert (list(found.new), list(found.changed)) == (["t/d=4"], ["t/d=2"])
    assert (found.unchanged, found.waiting) == (1, 1)
    assert [each.segment_id for each in found.missing] == ["t/d=9"]
    assert not found.taken


def test_a_table_is_the_same_however_its_root_is_spelled() -> None:
    made = {"t/d=1": Segment("t/d=1", "a INT", 1, 10, "delta.`file:/t/d=1`")}
    before = Segment("t/d=1", "a INT", 1, 10, "delta.`/t/d=1`")
    there = [
        known("t/d=1", "delta.`/t/d=1`", digest=before.digest),
        known("t/d=2", "delta.`/t/d=2`"),
        known("t/nested", "delta.`/t/nested`"),
        known("t/beside", "delta.`/table/d=1`"),
    ]
    found = compare_segments("file:/t", made, there)
    assert (found.unchanged, dict(found.taken), dict(found.changed)) == (1, {}, {})
    assert [each.segment_id for each in found.missing] == ["t/d=2"]


def test_a_partition_with_an_interval_has_not_changed_by_that() -> None:
    day = datetime(2024, 1, 1, tzinfo=UTC)
    made = Segment("t/d=1", "a INT", 1, 10, "delta.`/t/d=1`")
    before = Segment("t/d=1", "a INT", 1, 10, "delta.`/t/d=1`", starts_at=day)
    there = known("t/d=1", "delta.`/t/d=1`", digest=before.digest, starts_micros=micros(day))
    assert compare_segments("/t", {made.id: made}, [there]).unchanged == 1
    assert as_published(made, there) == before


def test_another_version_of_a_table_is_a_change() -> None:
    made = Segment("t/d=1", "a INT", 1, 10, "delta.`/t/d=1@v2`")
    before = Segment("t/d=1", "a INT", 1, 10, "delta.`/t/d=1`")
    there = known("t/d=1", "delta.`/t/d=1`", digest=before.digest)
    assert list(compare_segments("/t", {made.id: made}, [there]).changed) == ["t/d=1"]
    assert as_published(made, there).location == "delta.`/t/d=1@v2`"


@pytest.mark.parametrize("moment", [253_402_300_800_000_000, -62_135_596_800_000_001, 2**63 - 1])
def test_an_interval_that_python_cannot_hold_is_refused_and_not_lost(moment: int) -> None:
    made = Segment("t/d=1", "a INT", 1, 10, "delta.`/t/d=1`")
    there = known("t/d=1", "delta.`/t/d=1`", digest=made.digest, ends_micros=moment)
    assert list(compare_segments("/t", {made.id: made}, [there]).changed) == ["t/d=1"]
    with pytest.raises(InvalidSegment, match="t/d=1 has an interval outside"):
        as_published(made, there)


def test_an_empty_table_without_partitions_is_a_segment_and_one_with_partitions_is_none() -> None:
    schema = Schema.of("a INT")
    (only,) = partitions_of("sales", TableLog("/data/t", 3, schema, False, ()), None).values()
    assert only == Segment("sales/t", schema, 0, 0, "delta.`/data/t`")
    assert partitions_of("sales", TableLog("/data/t", 3, schema, True, ()), None) == {}


def test_a_table_says_the_sum_of_the_partitions_in_a_folder() -> None:
    parts = (Part("a=1/b=1", 1, 10), Part("a=1/b=2", 2, 20), Part("a=11/b=1", 4, 40))
    table = TableLog("/t", 0, Schema.of("a INT, b INT"), True, parts)
    rows = [table.stated(folder)[1] for folder in ("", "a=1", "a=1/b=2", "a=11")]
    assert rows == [7, 3, 2, 4]


def test_a_batch_is_described_in_slices_and_each_ends_where_a_commit_is_due() -> None:
    assert list(slices(5, 4, most=3)) == [(0, 3, False), (3, 4, True), (4, 5, True)]
    assert list(slices(4, 10, most=2)) == [(0, 2, False), (2, 4, True)]
    assert list(slices(0, 10)) == []
    assert [end for _, end, _ in slices(12_000, 20_000)] == [5_000, 10_000, 12_000]


def test_a_segment_says_its_format_where_its_path_does_not_and_others_say_why_they_are_none() -> (
    None
):
    def ask(places: Sequence[Place]) -> list[Footer | str]:
        return [Footer(Schema.of("a INT"), 1, 10) if p.format else "no format" for p in places]

    places = {
        "o/1": Place("/d/1.orc", "orc"),
        "o/2": Place("/d/2", "csv"),
        "o/3": Place("/d/3", None),
        "no id": Place("/d/4.csv", "csv"),
    }
    segments, problems = segments_of(ask, places)
    assert [each.location for each in segments.values()] == ["/d/1.orc", "csv.`/d/2`"]
    assert list(problems) == ["o/3", "no id"]
    assert problems["o/3"] == "no format"


def test_a_path_that_is_no_uri_is_told_in_its_row() -> None:
    share = [(0, "s3://[b/x.parquet", "parquet"), (1, "/no/such/file.parquet", "parquet")]
    read = ReadFooters(Files(), [[], share])
    (told,) = read(iter([pa.RecordBatch.from_pydict({"id": pa.array([1])})]))
    assert told.column("number").to_pylist() == [0, 1]
    problems = told.column("problem").to_pylist()
    assert "s3://[b/x.parquet" in problems[0]
    assert "/no/such/file.parquet" in problems[1]
