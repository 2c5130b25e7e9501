"""DDL read and written without Spark."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from catalog.errors import InvalidSchema
from catalog.schema.ddl import parse_ddl, parse_type, print_ddl

from .strategies import ddl_schemas, schemas


def refused_at(text: str) -> int | None:
    try:
        parse_ddl(text)
    except InvalidSchema as error:
        return int(error.values["position"])
    return None


@given(ddl_schemas)
def test_what_is_printed_is_read_back(struct: StructType) -> None:
    assert parse_ddl(print_ddl(struct)).jsonValue() == struct.jsonValue()


@given(schemas)
def test_only_nullability_of_elements_and_values_is_lost(struct: StructType) -> None:
    text = print_ddl(struct)
    assert print_ddl(parse_ddl(text)) == text


@given(st.text(max_size=60) | st.text("a<>(),:`'\"\\ \n-/*.!int array struct", max_size=60))
def test_any_text_is_read_or_refused_by_name(text: str) -> None:
    position = refused_at(text)
    assert position is None or 1 <= position <= len(text) + 1


@pytest.mark.parametrize(
    "text",
    [
        "a INT, b STRING NOT NULL",
        "a int,b string not null",
        "a: int, b: string not null",
        "struct<a:int,b:string not null>",
        " STRUCT < a : INT , b STRING NOT NULL > ",
        "a int /* one */, -- two\n b string ! null",
        "`a` int, `b` string not null",
        "IDENTIFIER('a') int, b string not null",
    ],
)
def test_one_schema_can_be_written_in_many_ways(text: str) -> None:
    expected = StructType([StructField("a", IntegerType()), StructField("b", StringType(), False)])
    assert parse_ddl(text) == expected


@pytest.mark.parametrize(
    ("literal", "comment"),
    [
        ("'x'", "x"),
        ('"x"', "x"),
        ("''", ""),
        ("'it''s'", "it's"),
        ("'it\\'s'", "it's"),
        ("'say \"\"'", 'say ""'),
        ('"say """', 'say "'),
        ("'a' 'b'", "ab"),
        (r"'\n\t\\\0\Z'", "\n\t\\\0\x1a"),
        (r"'\%\_\q'", r"\%\_q"),
        (r"'\u00e9\U0001F600\101'", "é😀A"),
        (r"'\uD83D\uDE00'", "😀"),
        (r"R'a\nb'", r"a\nb"),
        ("'two\nlines'", "two\nlines"),
    ],
)
def test_comments_are_unescaped_as_spark_does(literal: str, comment: str) -> None:
    assert parse_ddl(f"a INT COMMENT {literal}").fields[0].metadata == {"comment": comment}


@pytest.mark.parametrize(
    "name",
    ["struct", "array", "map", "interval", "not", "null", "comment", "select", "1a", "x", "r"],
)
def test_keywords_are_names_where_a_name_is_expected(name: str) -> None:
    assert parse_ddl(f"{name} int") == StructType([StructField(name, IntegerType())])


def test_names_that_spark_would_misread_are_printed_in_backquotes() -> None:
    struct = StructType([StructField(n, IntegerType()) for n in ("ok_1", "1a", "a b", "ü", "b`q")])
    assert print_ddl(struct) == "ok_1 INT, `1a` INT, `a b` INT, `ü` INT, `b``q` INT"


def test_ddl_reads_well() -> None:
    text = (
        "id BIGINT NOT NULL COMMENT 'it\\'s', "
        "m MAP<STRING, ARRAY<STRUCT<x: DECIMAL(10,2) NOT NULL, y: INTERVAL DAY TO SECOND>>>, "
        "c STRING COLLATE de_CI"
    )
    assert print_ddl(parse_ddl(text)) == text


def test_sixty_four_levels_are_read_and_one_more_is_refused() -> None:
    def deep(levels: int) -> str:
        return "a " + "array<" * levels + "int" + ">" * levels

    assert print_ddl(parse_ddl(deep(64))).count("ARRAY") == 64
    with pytest.raises(InvalidSchema, match="nested deeper than 64"):
        parse_ddl(deep(65))
    with pytest.raises(InvalidSchema, match="nested deeper than 64"):
        parse_ddl(deep(100_000))


@pytest.mark.parametrize(
    "text",
    [
        "a INT COMMENT '" + "x" * 200_000,
        "a INT COMMENT '" + "\\'" * 100_000,
        "a INT COMMENT " + "''" * 100_000 + "'",
        "`" + "``" * 100_000,
        "/*" * 100_000,
        "a" * 200_000,
        "a " + "b" * 200_000,
        "a STRING COLLATE " + "b_" * 100_000,
        "a -- " + "\\" * 200_000,
        "1" * 200_000 + "L",
        "a decimal(" + "9" * 200_000 + ")",
    ],
)
def test_hostile_text_is_refused_with_a_short_message(text: str) -> None:
    # A tokenizer that went back over these texts would not end before the test's time is up.
    with pytest.raises(InvalidSchema) as refused:
        parse_ddl(text)
    assert len(str(refused.value)) < 300


def test_one_type_is_read_on_its_own() -> None:
    assert parse_type("decimal( 10 , 2 )").simpleString() == "decimal(10,2)"
    with pytest.raises(InvalidSchema, match="position 5"):
        parse_type("int int")
