"""Dropping: by id, datasource and interval, each with a dry run first."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from catalog import Catalog
from tests.unit.builders import segment


def day(number: int) -> datetime:
    return datetime(2024, 1, number, tzinfo=UTC)


def publish_days(catalog: Catalog) -> None:
    catalog.publish(
        [
            segment(f"{name}/{n}", starts_at=day(n), ends_at=day(n + 1))
            for name in ("orders", "clicks")
            for n in range(1, 6)
        ]
    )


def test_drop_by_id_counts_what_was_there_and_what_was_not(catalog: Catalog) -> None:
    publish_days(catalog)
    wanted = ["orders/1", "clicks/1", "clicks/1", "orders/99"]
    dry = catalog.drop(wanted, dry_run=True)
    assert (dry.dropped, dry.absent, dry.dry_run, catalog.version) == (2, 1, True, 1)
    done = catalog.drop(wanted, reason="gone")
    assert (done.dropped, done.absent, done.version) == (2, 1, 2)
    again = catalog.drop(wanted)
    assert (again.dropped, again.absent, again.version, again.commit_id) == (0, 3, 2, "")
    assert catalog.drop([]).dropped == 0
    assert catalog.cache().datasources() == {"orders": 4, "clicks": 4}
    assert catalog.verify(since=0).ok


@pytest.mark.connect
def test_drop_by_datasource_and_by_interval_takes_what_lies_inside(catalog: Catalog) -> None:
    publish_days(catalog)
    half = datetime(2024, 1, 2, 12, tzinfo=UTC)
    assert catalog.drop(starts_at=half, ends_at=day(5), dry_run=True).dropped == 4
    assert catalog.drop(datasource="orders", starts_at=half, ends_at=day(5)).dropped == 2
    left = {row["segment_id"] for row in catalog.segments().collect()}
    assert left & {"orders/1", "orders/2", "orders/3"} == {"orders/1", "orders/2"}
    assert catalog.drop(starts_at=day(5)).dropped == 2
    assert catalog.drop(datasource="clicks").dropped == 4
    assert catalog.drop(datasource="nobody").dropped == 0
    assert catalog.cache().datasources() == {"orders": 2}
    assert catalog.verify(since=0).ok


def test_a_dropped_id_can_be_published_again_with_other_content(catalog: Catalog) -> None:
    catalog.publish([segment("orders/1")])
    catalog.drop(["orders/1"])
    assert catalog.publish([segment("orders/1", "b STRING", rows=7)]).inserted == 1
    assert catalog.cache().num_rows("orders/1") == 7
