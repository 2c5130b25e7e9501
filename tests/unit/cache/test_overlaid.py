"""Entries of an overlay, over the lookups of a snapshot."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.cache.keys import keys_of
from catalog.cache.overlay import OverlayEntry
from catalog.cache.snapshot import overlaid
from catalog.errors import NotInSnapshot
from catalog.schema import Schema
from tests.unit.cache.test_overlay import SCHEMA, snapshot

OTHER = Schema.of("a INT, b STRING")
names = st.sampled_from([f"{d}/{n}" for d in ("orders", "clicks") for n in range(4)])


def asked(
    published: Mapping[str, str | None], overlay: Mapping[str, OverlayEntry], *ids: str
) -> dict[str, list[object]]:
    shot = snapshot(1, published)
    array = pa.array(ids, pa.string())
    return overlaid(shot.lookup(array), *keys_of(array), overlay).to_pydict()


@given(
    st.dictionaries(names, st.sampled_from([None, SCHEMA.fingerprint])),
    st.dictionaries(names, st.sampled_from([OverlayEntry(OTHER, 7), OverlayEntry(SCHEMA, None)])),
    st.lists(names, max_size=12),
)
def test_many_are_answered_as_one_by_one(
    published: dict[str, str | None], overlay: dict[str, OverlayEntry], ids: list[str]
) -> None:
    answers = asked(published, overlay, *ids)
    for place, name in enumerate(ids):
        known = published.get(name)
        found = None if known else overlay.get(name)
        fingerprint = found.schema.fingerprint if found else known
        rows = found.num_rows if found else (1 if name in published else None)
        assert (
            answers["found"][place],
            answers["fingerprint"][place],
            answers["num_rows"][place],
        ) == (
            name in published or name in overlay,
            fingerprint,
            rows,
        )


def test_the_type_of_the_answers_stays_the_same() -> None:
    shot = snapshot(1, {"orders/1": None})
    array = pa.array(["orders/1"])
    plain = shot.lookup(array)
    over = overlaid(plain, *keys_of(array), {"orders/1": OverlayEntry(OTHER, 7)})
    assert over.schema == plain.schema


def test_a_datasource_has_the_segments_beside_it_too() -> None:
    shot = snapshot(1, {"orders/1": SCHEMA.fingerprint, "orders/2": None, "orders/3": None})
    overlay = {
        "orders/2": OverlayEntry(OTHER, 5),
        "orders/open": OverlayEntry(OTHER, None),
        "orders/1": OverlayEntry(OTHER, 9),  # published meanwhile, so this no longer counts
    }
    found = shot.datasource_schema("orders", overlay=overlay)
    assert (found.segments, found.segments_without_schema) == (4, 1)
    assert found.fingerprints == (SCHEMA.fingerprint, OTHER.fingerprint)
    assert found.schema is not None
    assert found.schema.ddl == "a INT, b STRING"
    assert {column.path: column.segments for column in found.columns} == {"a": 3, "b": 2}
    assert shot.datasources(overlay) == {"orders": 4}
    alone = shot.datasource_schema("orders")
    assert (alone.segments, alone.segments_without_schema) == (3, 2)


def test_a_datasource_that_is_only_announced_has_a_schema() -> None:
    shot = snapshot(1, {})
    with pytest.raises(NotInSnapshot):
        shot.datasource_schema("orders")
    found = shot.datasource_schema("orders", overlay={"orders/open": OverlayEntry(OTHER, None)})
    assert found.schema == OTHER
