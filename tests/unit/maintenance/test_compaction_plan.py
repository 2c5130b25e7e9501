"""What maintenance decides without a session: which partitions, which retention."""

from __future__ import annotations

from datetime import timedelta

import pytest

from catalog.delta.upkeep import PartitionFiles, interval_sql, parse_interval
from catalog.errors import InvalidInput, RetentionTooShort
from catalog.maintenance.compaction import check_retention, plan_compactions

DAY = timedelta(days=1)


def test_partitions_with_many_more_files_than_they_need_are_compacted_worst_first() -> None:
    few = PartitionFiles("segment", 1, files=4, bytes=400)
    many = PartitionFiles("segment", 2, files=5, bytes=400)
    most = PartitionFiles("schema", 3, files=50, bytes=400)
    large = PartitionFiles("segment", 4, files=12, bytes=10 * 100)  # needs ten of a hundred bytes
    larger = PartitionFiles("segment", 5, files=14, bytes=10 * 100)
    found = plan_compactions([few, many, most, large, larger], file_bytes=100, surplus=4)
    assert found == [most, larger]
    assert plan_compactions([few, many], file_bytes=1000, surplus=4) == [many]
    assert plan_compactions([]) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("interval 7 days", 7 * DAY),
        ("7 days", 7 * DAY),
        ("INTERVAL 1 week", 7 * DAY),
        ("interval 1 day 12 hours", 1.5 * DAY),
        ("interval 0 seconds", timedelta(0)),
        (interval_sql(timedelta(hours=36)), 1.5 * DAY),
    ],
)
def test_the_retention_of_a_table_is_understood(text: str, expected: timedelta) -> None:
    assert parse_interval(text) == expected


@pytest.mark.parametrize("text", ["", "interval", "seven days", "1 month", "7 days or so"])
def test_a_retention_that_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="not an interval"):
        parse_interval(text)


def test_a_retention_that_would_cut_pollers_off_is_refused_unless_allowed() -> None:
    check_retention(7 * DAY, 7 * DAY, cut_off=False, locked=False)
    check_retention(DAY, 7 * DAY, cut_off=True, locked=False)
    check_retention(DAY, timedelta(hours=3), cut_off=False, locked=False)
    check_retention(timedelta(0), DAY, cut_off=True, locked=True)
    with pytest.raises(RetentionTooShort, match="load everything anew") as refusal:
        check_retention(DAY, 7 * DAY, cut_off=False, locked=True)
    assert refusal.value.values == {"retention": DAY, "poller_lag": 7 * DAY}


@pytest.mark.parametrize(("retention", "lag"), [(-DAY, DAY), (DAY, -DAY)])
def test_a_negative_time_is_refused_even_if_pollers_may_be_cut_off(
    retention: timedelta, lag: timedelta
) -> None:
    with pytest.raises(InvalidInput, match="negative"):
        check_retention(retention, lag, cut_off=True, locked=True)


def test_files_of_writers_elsewhere_that_have_not_committed_yet_are_kept() -> None:
    with pytest.raises(RetentionTooShort, match="not committed yet"):
        check_retention(timedelta(hours=23), timedelta(0), cut_off=True, locked=False)
