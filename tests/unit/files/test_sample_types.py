"""Guesses of types; tests/spark/files/test_footers.py holds the same tables against Spark."""

from __future__ import annotations

import json
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.files.sample import NOTHING, Guess, after_text, merged, of_json, spark_type
from catalog.schema.names import type_text

BIG = "9223372036854775808"
BIGGER = "9" * 38
BIGGEST = "9" * 39

# The texts of a column, and its type.
TEXTS: list[tuple[list[str], str]] = [
    *(
        ([text], kind)
        for kind, texts in {
            "int": ["1", "+1", "-1", "0001", "2147483647", "-2147483648", "00", "-0", "٣", "2024"],
            "bigint": ["2147483648", "-2147483649", "9223372036854775807", "-9223372036854775808"],
            "decimal(19,0)": [BIG, "-9223372036854775809", f"00{BIG}"],
            "decimal(38,0)": [BIGGER],
            "decimal(1,0)": ["1.", "00."],
            "double": [
                *("1.0", ".5", "-.5e3", "1e5", "1E+5", "1e400", "1d", "1f", "1.5D", " 1", "1 "),
                *("NaN", "Inf", "-Inf", "Infinity", "-Infinity", "+Infinity", BIGGEST),
            ],
            "boolean": ["true", "TRUE", "False", "tRuE"],
            "date": ["2024-01-02", "9999-12-31", "0000-01-01", "-2024-01-02", "2024-02-29"],
            "timestamp": [
                *("2024-01", "2024-1", "2024-1-2", "2024-01-02 ", "02024-01-02", "+2024-01-02"),
                *("2024-01-02 10", "2024-01-02 10:11", "2024-01-02T10:11", "2024-01-02 1:2:3"),
                *("2024-01-02 10:11:12", "2024-01-02T10:11:12.123456789", "2024-01-02T10:11:12."),
                *("2024-01-02T10:11:12Z", "2024-01-02T10:11:12.Z", "2024-01-02T10:11:12+01:00"),
                *("2024-01-02T10:11:12+0100", "2024-01-02T10:11:12-08:30:15"),
                *("2024-01-02 10:11:12 UTC", "2024-01-02 10:11:12 Europe/Berlin"),
                *("2024-01-02T10:11:12GMT+1", "99999-01-01", "10:11", "10:11:12", "T10:11:12"),
            ],
            "string": [
                *("a", "1_000", ".", "+", "-", "--1", "1-1", "1e", "e5", "1L", "0x10", "$5", "5%"),
                *("nan", "inf", "INF", "t", "yes", "true ", " true", "null", "epoch", "today"),
                *("2024-01-02T", "24-01-02", "2024-13-02", "2024-02-30", "2023-02-29"),
                *("2024/01/02", "12/31/2024", "Jan 1 2024", "2024-01-02 10:", "2024-01-02 24:00"),
                *("2024-01-02 25:11:12", "2024-01-02 10:61:12", "2024-01-02t10:11:12"),
                *("2024-01-02  10:11:12", "2024-01-02T10:11:12.123Z[UTC]", "2024-01-02 10:11 a/b"),
            ],
        }.items()
        for text in texts
    ),
    ([""], "string"),
    (["", "", "1", ""], "int"),
    (["1", "2147483648", "1"], "bigint"),
    (["1", BIG], "decimal(19,0)"),
    (["2147483648", BIG], "decimal(20,0)"),
    ([BIG, "2147483648"], "decimal(19,0)"),
    ([BIG, BIGGER], "decimal(38,0)"),
    ([BIG, "1.5"], "double"),
    (["1", "1.5"], "double"),
    (["1.5", "1"], "double"),
    (["1", "true"], "string"),
    (["true", "1"], "string"),
    (["1.5", "2024-01-02"], "string"),
    (["2024-01-02", "1.5"], "string"),
    (["2024-01-02", "2024-01-02 10:11:12"], "timestamp"),
    (["2024-01-02 10:11:12", "2024-01-02"], "timestamp"),
    # A year is a number, but after dates it is taken for one.
    (["2024-01-02", "2024"], "timestamp"),
    (["2024", "2024-01-02"], "string"),
    (["a", "1"], "string"),
    (["1", "a", "1"], "string"),
]

# The values of a member in several objects, and its type; none if it is no column.
VALUES: list[tuple[list[str], str | None]] = [
    (["null"], "string"),
    (["1"], "bigint"),
    (["-9223372036854775808"], "bigint"),
    ([BIG], "decimal(19,0)"),
    (["-9223372036854775809"], "decimal(19,0)"),
    ([BIGGER], "decimal(38,0)"),
    ([BIGGEST], "double"),
    (["1.5"], "double"),
    (["1e5"], "double"),
    (["1e400"], "double"),
    (["NaN"], "double"),
    (["-Infinity"], "double"),
    (["true"], "boolean"),
    (['"x"'], "string"),
    (['"2024-01-01"'], "string"),
    (["[]"], "array<string>"),
    (["[1]"], "array<bigint>"),
    (["[1, 1.5, null]"], "array<double>"),
    (['[1, "a"]'], "array<string>"),
    (["[[]]"], "array<array<string>>"),
    (["[1, [2]]"], "array<string>"),
    (['[{"x": 1}, {"y": [true]}]'], "array<struct<x:bigint,y:array<boolean>>>"),
    (["{}"], None),
    (["[{}]"], None),
    (['{"a": {}}'], None),
    (["null", "{}"], None),
    (['{"b": 1, "a": null}'], "struct<a:string,b:bigint>"),
    (["1", "null"], "bigint"),
    (["1", BIG], "decimal(20,0)"),
    (["1", BIGGER], "decimal(38,0)"),
    (["1", "1.5"], "double"),
    ([BIG, "1.5"], "double"),
    (["1", "true"], "string"),
    (["1", '"x"'], "string"),
    (["1", "[1]"], "string"),
    (["1", "{}"], "string"),
    (["[1]", '{"x": 1}'], "string"),
    (["[]", "[1]"], "array<bigint>"),
    (["[1]", '["a"]'], "array<string>"),
    (["{}", '{"x": 1}'], "struct<x:bigint>"),
    (['{"x": 1}', '{"x": "a", "y": 2}'], "struct<x:string,y:bigint>"),
]


def spelled(guess: Guess) -> str | None:
    kind = spark_type(guess)
    return None if kind is None else type_text(kind)


@pytest.mark.parametrize(("texts", "kind"), TEXTS, ids=str)
def test_texts_have_the_type_that_spark_gives_them(texts: list[str], kind: str) -> None:
    assert spelled(reduce(after_text, texts, NOTHING)) == kind


@pytest.mark.parametrize(("values", "kind"), VALUES, ids=str)
def test_json_values_have_the_type_that_spark_gives_them(
    values: list[str], kind: str | None
) -> None:
    guesses = [of_json(json.loads(value)) for value in values]
    assert spelled(reduce(merged, guesses, NOTHING)) == kind


@pytest.mark.parametrize("text", ["9" * 5000, "1" + "0" * 100_000, "-" * 100_000, "1:" * 50_000])
def test_long_texts_are_no_trouble(text: str) -> None:
    assert after_text(NOTHING, text) in ("double", "string")


documents = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**40), 10**40) | st.floats() | st.text(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)
guesses = documents.map(of_json)


@given(guesses, guesses, guesses)
def test_the_order_of_json_values_makes_no_difference(one: Guess, two: Guess, three: Guess) -> None:
    assert merged(one, two) == merged(two, one)
    assert merged(merged(one, two), three) == merged(one, merged(two, three))
    assert merged(one, one) == one


@given(st.lists(st.text(alphabet="0123456789+-.eT: Z", max_size=20), max_size=5))
def test_any_texts_have_a_type(texts: list[str]) -> None:
    assert spelled(reduce(after_text, texts, NOTHING)) is not None
