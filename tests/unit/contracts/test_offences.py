"""Segments beside the contracts of their datasources."""

from __future__ import annotations

import logging

import pytest

from catalog import Contract, Schema
from catalog.contracts.enforcement import (
    offences_among,
    offences_of,
    reasons_of,
    refused_only,
    violation,
    warned,
)
from catalog.contracts.model import Terms
from catalog.contracts.store import Group
from catalog.model import Offence
from tests.unit.builders import segment

SUBSET = Contract(schema="a INT", enforcement="subset", max_rows=10)
TERMS = {"orders": Terms("d", SUBSET), "empty": Terms("left over", None)}


def group(fingerprint: str | None, **given: object) -> Group:
    values = {
        "segments": 4,
        "beyond": 0,
        "num_rows": 1,
        "most_rows": "orders/1",
        "size_bytes": None,
        "most_bytes": None,
        "example": "orders/0",
        **given,
    }
    return Group("orders", fingerprint, **values)  # type: ignore[arg-type]


def test_segments_are_grouped_by_what_is_wrong_with_them() -> None:
    given = [
        segment("orders/1", "a INT"),
        segment("orders/2", "b INT"),
        segment("orders/3", "b INT", rows=20),
        segment("orders/4", "a INT", rows=11),
        segment("orders/5", "b INT"),
        segment("orders/6", None, rows=12, location="/x"),
        segment("orders/7", None, rows=None, location="/x"),
        segment("empty/1", "b INT", rows=99),
        segment("other/1", "b INT", rows=99),
    ]
    found = offences_among(given, TERMS)
    a, b = (Schema.of(ddl).fingerprint for ddl in ("a INT", "b INT"))
    told = {(e.fingerprint, e.segment_ids, tuple(x.rule for x in e.breaches)) for e in found}
    assert told == {
        (None, ("orders/6",), ("max_rows",)),
        (a, ("orders/4",), ("max_rows",)),
        (b, ("orders/2", "orders/5"), ("unknown",)),
        (b, ("orders/3",), ("unknown", "max_rows")),
    }
    assert refused_only(found) == found
    assert offences_among(given, {}) == ()
    assert offences_among(given, {"empty": TERMS["empty"]}) == ()


def test_groups_count_those_whose_schema_is_wrong_or_those_beyond_a_limit() -> None:
    good, bad = Schema.of("a INT"), Schema.of("b INT")
    schemas = {each.fingerprint: each for each in (good, bad)}
    groups = [
        group(good.fingerprint),
        group(good.fingerprint, beyond=2, num_rows=30),
        group(bad.fingerprint, beyond=1, num_rows=20),
        group(None, segments=1),
    ]
    found = offences_of(groups, TERMS, schemas)
    told = {(each.fingerprint, each.segments, each.segment_ids) for each in found}
    assert told == {
        (good.fingerprint, 2, ("orders/1",)),
        (bad.fingerprint, 4, ("orders/1",)),
    }
    assert offences_of(groups, {"other": TERMS["orders"]}, schemas) == ()


def test_a_refusal_says_of_each_schema_what_is_wrong_with_it() -> None:
    found = offences_among([segment(f"orders/{n}", f"b{n} INT") for n in range(5)], TERMS)
    error = violation(found)
    assert "and 2 more schemas" in error.message
    assert error.values["datasource"] == "orders"
    assert set(error.values["segment_ids"]) == {f"orders/{n}" for n in range(5)}
    first = error.values["breaches"][0]
    assert set(first) == {"datasource", "fingerprint", "segments", "segment_ids", "breaches"}
    assert reasons_of(error)["orders/3"] == (
        "breaks the contract of orders: b3 is not in the contract"
    )


def test_what_only_warns_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    terms = {"orders": Terms("d", Contract(schema="a INT", enforcement="warn", max_rows=1))}
    found = offences_among([segment("orders/1", "b INT", rows=5)], terms)
    assert refused_only(found) == ()
    with caplog.at_level(logging.WARNING):
        assert warned(found) == found
    assert "b is not in the contract; 5 rows, at most 1 are allowed" in caplog.text
    assert warned([Offence("orders", None, (), 1)]) == ()
