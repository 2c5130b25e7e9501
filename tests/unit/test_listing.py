"""Files beside segments: what is new, changed, missing or in the way."""

from __future__ import annotations

from typing import Any

from catalog.files.listing import Known, ListedFile, compare_files, compare_segments
from catalog.files.patterns import Pattern
from catalog.model import Segment

PATTERN = Pattern.parse("/data/orders/**/*.parquet")


def listed(name: str, size: int = 10, modified: int = 100) -> ListedFile:
    return ListedFile(f"file:/data/orders/{name}", size, modified)


def known(segment_id: str, location: str, **given: Any) -> Known:
    fields: dict[str, Any] = {
        "size_bytes": 10,
        "changed_micros": 200,
        "commit_id": "c1",
        "digest": "d1",
        "complete": True,
    }
    return Known(segment_id, location, **fields | given)


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
        known("orders/else", "/data/other/1.parquet"),
    ]
    found = compare_files("orders", PATTERN, [listed("9.parquet")], segments)
    assert [each.segment_id for each in found.missing] == ["orders/1", "orders/2"]


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
