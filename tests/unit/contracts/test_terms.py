"""A contract and the limits of tables together, as they are stored and as they are checked."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog import Contract, Schema
from catalog.contracts.enforcement import offences_among, refused_only, violation
from catalog.contracts.model import LIMITS, NO_TERMS, TableLimit, Terms, least, limits_in
from tests.unit.builders import segment

SCHEMA = Schema.of("a INT")
CONTRACT = Contract(schema=SCHEMA, enforcement="subset", max_rows=10)
BOTH = Terms.of(CONTRACT, {"max_rows": TableLimit(5, "table/s/o")})


def read(terms: Terms) -> Terms:
    return Terms.stored(terms.digest, terms.payload(), {SCHEMA.fingerprint: SCHEMA}.__getitem__)


def test_a_contract_alone_is_stored_as_it_always_was_and_nothing_is_nothing() -> None:
    alone = Terms.of(CONTRACT)
    text = (
        f'{{"enforcement":"subset","fingerprint":"{SCHEMA.fingerprint}","max_rows":10,'
        '"mode":"none"}'
    )
    assert (alone.payload(), alone.digest) == (text, hashlib.sha256(text.encode()).hexdigest())
    assert Terms.of(None) == NO_TERMS == Terms.stored(None, None, {}.__getitem__)
    assert NO_TERMS.payload() is None
    assert not NO_TERMS.asks
    # Larger publishes of an earlier release left a digest and nothing else.
    assert not Terms.stored("left over", None, {}.__getitem__).asks


def test_limits_stand_in_the_document_beside_the_contract() -> None:
    assert BOTH.payload() == (
        f'{{"enforcement":"subset","fingerprint":"{SCHEMA.fingerprint}","max_rows":10,'
        '"mode":"none","tables":{"max_rows":{"most":5,"table":"table/s/o"}}}'
    )
    limits = Terms.of(None, BOTH.limits)
    assert limits.payload() == '{"tables":{"max_rows":{"most":5,"table":"table/s/o"}}}'
    assert len({BOTH.digest, limits.digest, Terms.of(CONTRACT).digest}) == 3


@given(
    st.none() | st.just(CONTRACT) | st.builds(Contract, max_bytes=st.integers(1, 9)),
    st.dictionaries(
        st.sampled_from(LIMITS), st.builds(TableLimit, st.integers(1, 1 << 62), st.text())
    ),
)
def test_terms_are_read_back_as_they_were_stored(contract: Contract | None, limits: Any) -> None:
    terms = Terms.of(contract, limits)
    assert read(terms) == terms
    # The order in which limits were given is not part of the text.
    assert Terms.of(contract, dict(reversed(limits.items()))).digest == terms.digest


def test_both_are_checked_and_a_breach_names_the_table() -> None:
    wide = Terms.of(CONTRACT, {**BOTH.limits, "max_columns": TableLimit(1, "table/s/p")})
    assert [str(each) for each in wide.check_size(11, None)] == [
        "11 rows, at most 10 are allowed",
        "11 rows, at most 5 are allowed by table/s/o",
    ]
    assert [each.table for each in wide.check_size(6, 1 << 40)] == ["table/s/o"]
    assert [(each.rule, each.table) for each in wide.check_schema(Schema.of("a INT, b INT"))] == [
        ("unknown", None),
        ("max_columns", "table/s/p"),
    ]
    assert wide.check_size(None, None) == wide.check_schema(None) == wide.check_size(5, 9) == ()
    assert [wide.most(name) for name in LIMITS] == [5, None, 1]
    assert NO_TERMS.most("max_rows") is None


def test_limits_of_tables_refuse_unless_the_contract_only_warns() -> None:
    limits = {"max_rows": TableLimit(5, "table/s/o")}
    given = [segment("orders/1", rows=6)]
    found = offences_among(given, {"orders": Terms.of(None, limits)})
    assert refused_only(found) == found
    error = violation(found)
    assert "at most 5 are allowed by table/s/o" in error.message
    assert error.message.endswith("the contract by contracts.set, or limits of table/s/o.")
    assert error.values["breaches"][0]["breaches"][0]["table"] == "table/s/o"
    warns = Terms.of(Contract(max_rows=9, enforcement="warn"), limits)
    (offence,) = offences_among(given, {"orders": warns})
    assert (offence.refused, len(offence.breaches)) == (False, 1)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"max_rows": 5, "max_bytes": None, "more": 3}, {"max_rows": 5}),
        ({"max_rows": True, "max_bytes": "5", "max_columns": 0}, {}),
        ({"max_rows": -1, "max_columns": 1.5}, {}),
        (None, {}),
        ([5], {}),
        ("max_rows", {}),
    ],
)
def test_what_is_no_limit_does_not_count(document: Any, expected: dict[str, int]) -> None:
    assert limits_in(document) == expected


@given(
    st.dictionaries(
        st.text(max_size=3), st.dictionaries(st.sampled_from(LIMITS), st.integers(1, 9))
    )
)
def test_the_least_of_each_limit_counts_whatever_the_order(tables: Any) -> None:
    found = least(tables.items())
    assert found == least(reversed(tables.items()))
    for name in LIMITS:
        all_given = [limits[name] for limits in tables.values() if name in limits]
        assert (found[name].most if name in found else None) == min(all_given, default=None)
        if name in found:
            assert tables[found[name].table][name] == found[name].most
