"""A contract as a value: what it refuses of itself, and what breaks it, column by column."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from catalog import Breach, Contract, Schema, compatibility, judge, superior
from catalog.contracts.model import Terms
from catalog.errors import InvalidInput, InvalidSchema
from tests.unit.evolution.strategies import related

BASE = "id BIGINT NOT NULL, at DATE, place STRUCT<city: STRING, zip: INT>, tags ARRAY<STRING>"


def check_schema(contract: Contract, schema: Schema | None) -> tuple[Breach, ...]:
    return Terms.of(contract).check_schema(schema)


def check(
    contract: Contract, schema: Schema | None, num_rows: int | None, size_bytes: int | None
) -> tuple[Breach, ...]:
    found = Terms.of(contract).check_size(num_rows, size_bytes)
    return (*check_schema(contract, schema), *found)


def payload(contract: Contract) -> str:
    return Terms.of(contract).payload() or ""


def read(text: str) -> Contract | None:
    return Terms.stored(None, text, lambda _: Schema.of(BASE)).contract


def broken(segment: str, **terms: Any) -> list[tuple[str, str]]:
    """Column and rule of what a schema breaks."""
    contract = Contract(schema=BASE, **terms)
    return [(each.path, each.rule) for each in check_schema(contract, Schema.of(segment))]


SHUFFLED = "tags ARRAY<STRING>, place STRUCT<zip: INT, city: STRING>, at DATE, id BIGINT NOT NULL"
NARROW = "id INT NOT NULL, at DATE NOT NULL"
CASES: dict[str, tuple[str, list[tuple[str, str]], list[tuple[str, str]]]] = {
    "the same": (BASE, [], []),
    "another order": (SHUFFLED, [], []),
    "less and narrower": (
        NARROW,
        [],
        [("id", "type"), ("at", "nullable"), ("place", "missing"), ("tags", "missing")],
    ),
    "a column more": (
        f"{BASE}, colour STRING",
        [("colour", "unknown")],
        [("colour", "unknown")],
    ),
    "a required column less": (
        BASE.replace("id BIGINT NOT NULL, ", ""),
        [("id", "missing")],
        [("id", "missing")],
    ),
    "wider": (
        BASE.replace("zip: INT", "zip: BIGINT"),
        [("place.zip", "type")],
        [("place.zip", "type")],
    ),
    "another type": (BASE.replace("DATE", "STRING"), [("at", "type")], [("at", "type")]),
    "nullable": (
        BASE.replace("BIGINT NOT NULL", "BIGINT"),
        [("id", "nullable")],
        [("id", "nullable")],
    ),
    "another spelling": (
        BASE.replace("at DATE", "At DATE"),
        [("At", "spelling")],
        [("At", "spelling")],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_subset_and_strict_name_the_columns_that_break_them(case: str) -> None:
    segment, subset, strict = CASES[case]
    assert broken(segment, enforcement="subset") == subset
    assert broken(segment, enforcement="warn") == subset
    assert broken(segment, enforcement="strict") == strict
    assert broken(segment) == []


@pytest.mark.parametrize(
    ("mode", "rules"),
    [
        ("none", []),
        ("backward", [("id", "backward"), ("at", "backward")]),
        ("forward", []),
        ("full", [("id", "full"), ("at", "full")]),
    ],
)
def test_a_mode_is_judged_between_the_contract_and_the_segment(
    mode: str, rules: list[tuple[str, str]]
) -> None:
    assert broken(NARROW, mode=mode) == rules
    # Beside another rule it adds what that one lets pass, and says no column twice.
    assert broken(NARROW, mode=mode, enforcement="subset") == rules
    strict = broken(NARROW, mode=mode, enforcement="strict")
    assert strict == broken(NARROW, enforcement="strict")


def test_words_say_what_it_is_and_what_the_contract_says() -> None:
    segment = "id STRING, at DATE, place STRUCT<city: STRING, zip: INT>, Tags ARRAY<STRING>, x INT"
    found = check_schema(Contract(schema=BASE, enforcement="strict"), Schema.of(segment))
    assert [str(each) for each in found] == [
        "id may be null; in the contract it must not",
        "id is string; in the contract it is bigint",
        "Tags is Tags; in the contract it is tags",
        "x is not in the contract",
    ]
    (missing,) = check_schema(
        Contract(schema="a INT, b INT NOT NULL", enforcement="subset"), Schema.of("a INT")
    )
    assert str(missing) == "b is missing; in the contract it is int and must not be null"


def test_limits_are_of_one_segment_and_what_is_not_known_cannot_break_them() -> None:
    contract = Contract(max_rows=10, max_bytes=1000, max_columns=2)
    wide = Schema.of("a INT, b INT, c STRUCT<d: INT>")
    assert [each.rule for each in check(contract, wide, 11, 1001)] == [
        *("max_columns", "max_rows", "max_bytes")
    ]
    assert (
        str(check(contract, None, 1_000_000, None)[0]) == "1,000,000 rows, at most 10 are allowed"
    )
    assert check(contract, None, None, None) == ()
    assert check(contract, Schema.of("a INT, b STRUCT<c: INT, d: INT>"), 10, 1000) == ()


@given(related(2))
def test_a_subset_is_what_the_contract_is_superior_to(pair: tuple[Schema, ...]) -> None:
    contract, segment = pair
    found = check_schema(Contract(schema=contract, enforcement="subset"), segment)
    assert (not found) == superior(contract, segment)


@given(related(2))
def test_strict_is_equality_and_nothing_weaker_refuses_more(pair: tuple[Schema, ...]) -> None:
    contract, segment = pair
    strict = check_schema(Contract(schema=contract, enforcement="strict"), segment)
    assert (not strict) == (contract == segment)
    subset = check_schema(Contract(schema=contract, enforcement="subset"), segment)
    assert set(subset) <= set(strict)


@given(related(2))
def test_a_mode_alone_refuses_what_its_judgement_does(pair: tuple[Schema, ...]) -> None:
    contract, segment = pair
    for mode in ("backward", "forward", "full"):
        found = check_schema(Contract(schema=contract, mode=mode), segment)
        breaks = judge(segment, [contract], mode).breaks
        assert [each.path for each in found] == [each.change.path for each in breaks]
    assert compatibility(contract, contract).changes == ()


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({}, "says nothing"),
        ({"enforcement": "strict"}, "give it the schema"),
        ({"enforcement": "subset", "max_rows": 1}, "give it the schema"),
        ({"mode": "backward"}, "give it the schema"),
        ({"enforcement": "loud", "schema": BASE}, "enforcement must be"),
        ({"mode": "full_transitive", "schema": BASE}, "mode must be one of"),
        ({"mode": "sideways", "schema": BASE}, "mode must be one of"),
        ({"max_rows": 0}, "max_rows must be a whole number above zero"),
        ({"max_bytes": -1}, "max_bytes must be"),
        ({"max_columns": True}, "max_columns must be"),
        ({"max_rows": 1.5}, "max_rows must be"),
    ],
)
def test_a_contract_that_makes_no_sense_is_refused(terms: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        Contract(**terms)


def test_a_schema_that_is_none_is_refused_by_name() -> None:
    with pytest.raises(InvalidSchema):
        Contract(schema="nonsense")  # type: ignore[arg-type]


def test_terms_are_one_text_for_one_contract_and_read_back() -> None:
    one = Contract(schema=BASE, enforcement="subset", mode="forward", max_rows=5)
    assert payload(one) == (
        '{"enforcement":"subset","fingerprint":"'
        f'{Schema.of(BASE).fingerprint}","max_rows":5,"mode":"forward"}}'
    )
    same = Contract(Schema.of(SHUFFLED), "subset", "forward", 5)
    assert (same, payload(same)) == (one, payload(one))
    assert read(payload(one)) == one
    limits = Contract(max_bytes=7, enforcement="warn")
    assert read(payload(limits)) == limits
    assert len({payload(one), payload(limits), payload(Contract(max_bytes=7))}) == 3
    assert json.loads(payload(limits))["fingerprint"] is None
    merged = Contract(policy="widest")
    assert "policy" not in json.loads(payload(limits))
    assert read(payload(merged)) == merged
    with pytest.raises(InvalidInput, match="policy must be"):
        Contract(policy="newest")
    assert (one.refuses, limits.refuses) == (True, False)
