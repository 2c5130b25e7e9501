"""Growing older: a catalog of an older layout is read as it is and written after an upgrade."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import pytest

from catalog import Catalog
from catalog.errors import LayoutTooNew, ReadOnly, UpgradeNeeded
from catalog.table.layout import LAYOUT, ColumnSpec, Step
from tests.unit.builders import segment

# The layout that a later release might have: one more column and one more property.
EXTRA = ColumnSpec("owner", "STRING", "Who the row belongs to; it's new")
LATER = replace(
    LAYOUT,
    number=LAYOUT.number + 1,
    columns=(*LAYOUT.columns, EXTRA),
    steps={LAYOUT.number: Step((EXTRA,), {"delta.checkpointInterval": "50"})},
)


def test_an_older_layout_is_read_and_upgraded_before_writing(
    open_catalog: Callable[..., Catalog], caplog: pytest.LogCaptureFixture
) -> None:
    open_catalog().publish([segment("orders/1")])
    with caplog.at_level(logging.WARNING):
        later = open_catalog(layout=LATER)
    assert "call upgrade()" in caplog.text
    assert later.cache().num_rows("orders/1") == 1
    with pytest.raises(UpgradeNeeded, match=r"upgrade\(\)"):
        later.publish([segment("orders/2")])
    version = later.version
    plan = later.upgrade(dry_run=True)
    assert (plan.before, plan.after, len(plan.statements)) == (1, 2, 2)
    assert later.version == version
    with pytest.raises(ReadOnly):
        open_catalog(layout=LATER, read_only=True).upgrade()
    later.upgrade()
    assert later.upgrade().statements == ()
    assert later.publish([segment("orders/2")]).inserted == 1
    detail = later._store.detail()
    assert detail.properties["delta.checkpointInterval"] == "50"
    assert "owner" in later._store.rows(later.version).columns
    with pytest.raises(LayoutTooNew):
        open_catalog()
    assert open_catalog(layout=LATER).cache().datasources() == {"orders": 2}


def test_an_upgrade_that_was_cut_short_is_finished_by_the_next(
    open_catalog: Callable[..., Catalog],
) -> None:
    catalog = open_catalog()
    first = open_catalog(layout=LATER).upgrade(dry_run=True).statements[0]
    catalog._store.session.sql(first)  # the column is there, the number is not
    later = open_catalog(layout=LATER)
    assert len(later.upgrade().statements) == 1
    assert later.publish([segment("orders/1")]).inserted == 1
