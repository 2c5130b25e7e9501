"""Our DDL parser against Spark's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructType

from catalog.errors import InvalidSchema
from catalog.schema.ddl import parse_ddl, print_ddl

VECTORS = Path(__file__).parents[1] / "unit" / "schema" / "vectors.json"

ACCEPTED = [
    "",
    "struct<>",
    "a int",
    "a INT, b STRING NOT NULL COMMENT 'x'",
    "a: int, b: string",
    "a :int",
    "struct<a:int, b string not null>",
    " STRUCT < a : INT > ",
    "a boolean, b tinyint, c byte, d smallint, e short, f int, g integer, h bigint, i long",
    "a float, b real, c double, d binary, e date, f void, g variant",
    "a decimal, b dec, c numeric, d decimal(5), e decimal( 5 , 2 ), f numeric(38,38)",
    "a string, b char(5), c character(0), d varchar(2147483647)",
    "a string collate utf8_lcase, b string collate UTF8_BINARY",
    "a string collate unicode_ai_ci, b string collate UNICODE_CS_AS",
    "a string collate de_rtrim_ai, b string collate sr_cyrl_srb_ai, c string collate EN_usa",
    "a string collate system.builtin.UNICODE, b string collate `UNICODE`",
    "a array<string collate UNICODE>, b map<string collate UNICODE, array<string collate en>>",
    "a struct<b string collate UNICODE>",
    "a timestamp, b timestamp_ltz, c timestamp_ntz",
    "a timestamp without time zone, b timestamp with local time zone",
    "a time, b time(0), c time(6), d time(3) without time zone",
    "a interval",
    "a interval year, b interval month, c interval year to month",
    "a interval day, b interval day to hour, c interval day to minute, d interval day to second",
    "a interval hour, b interval hour to minute, c interval minute to second, d interval second",
    "a interval year to month not null comment 'c'",
    "a geometry(4326), b geometry(any), c geometry(0), d geography(4326), e geography(ANY)",
    "a array<int>, b array<array<array<int>>>",
    "a map<int,array<struct<b:map<int,int>>>>",
    "a struct<>, b struct < > comment 'x'",
    "a struct<b:int,c string not null comment 'x'>",
    "a struct<`b:c`:int, `d e` string>",
    "a array < int > not null",
    "a struct<interval: interval day, day: interval>",
    "a struct<b date, date date>",
    "struct struct<struct:struct<a:int>>",
    "comment string comment 'x'",
    "collate string collate UTF8_LCASE",
    "select int, from int, not int, null int, table int, interval int, array int, map int",
    "identifier int, x int, r int, timestamp date",
    "IDENTIFIER('x') int",
    "1a int, 1e int, 1e5l int, _a int",
    "`a``b` int, `a.b` int, ` ` int, `é` int, `` string",
    "a int ! null",
    "a int -- c",
    "a int -- c\n, b int",
    "a int -- c \\\n still , b int",
    "a /* x /* y */ z */ int",
    "a\tint,\n b\u3000int",
    'a int comment "dq"',
    "a int comment ''",
    "a int comment 'it''s' , b int comment \"say \"\"\"",
    "a int comment 'a' 'b' \"c\"",
    r"a int comment 'a\'b\nc\t\0\Z\%\_\q\\'",
    r"a int comment '\u00e9\U0001F600\101\uD83D\uDE00'",
    r"a int comment '\u12\777\177\08'",
    r"a int comment r'a\nb', b int comment R" + r'"a\nb"',
    "a int comment 'two\nlines'",
    "a int comment 'x' /* c */ 'y'",
    "a int, A int, a string",
]

REFUSED = [
    "a",
    "a,b",
    ",",
    "a int,",
    "a int,,b int",
    "a int b int",
    "(a int)",
    "a int;",
    "a: : int",
    "a::int",
    "struct<a:int> not null",
    "struct<a:int>,b int",
    "a intt",
    "a bool",
    "a text",
    "a `int`",
    "a int(5)",
    "a string(5)",
    "a double precision",
    "a timestamp(3)",
    "a timestamp with time zone",
    "a time(7)",
    "a decimal()",
    "a decimal(39)",
    "a decimal(38,39)",
    "a decimal(5,-2)",
    "a decimal(5,2,1)",
    "a decimal(99999999999)",
    "a char",
    "a varchar",
    "a geometry",
    "a geometry(9999)",
    "a geography(3857)",
    "a string collate foo",
    "a string collate UNICODE_CI_CS",
    "a string collate UTF8_BINARY_CI",
    "a string collate builtin.UNICODE",
    "a string collate 'UNICODE'",
    "a interval week",
    "a interval day to day",
    "a interval month to year",
    "a array",
    "a array<>",
    "a array<int",
    "a array<int>>",
    "a array<int not null>",
    "a map<int>",
    "a map<int,int,int>",
    "a struct<b::int>",
    "a struct<b:int,>",
    "a int null",
    "a int not",
    "a int default 3",
    "a int comment",
    "a int comment x",
    "a int comment 'x",
    "a int comment 'x' not null",
    "a int /* unclosed",
    "a /*+ hint */ int",
    "`a int",
    '"a" int',
    "a-b int",
    "a.b int",
    "a$b int",
    "é int",
    "1 int",
    "1L int",
    "1e5 int",
    "3bd int",
    "a\u200bint",
    "\ufeffa int",
]


def pinned() -> list[str]:
    return [each["ddl"] for each in json.loads(VECTORS.read_text("utf-8")) if "ddl" in each]


def document(kind: DataType) -> object:
    return json.loads(kind.json())


@pytest.mark.parametrize("text", [*ACCEPTED, *pinned()])
def test_both_read_the_same_schema(spark: SparkSession, text: str) -> None:
    assert document(parse_ddl(text)) == document(StructType.fromDDL(text))


@pytest.mark.parametrize("text", [*ACCEPTED, *pinned()])
def test_spark_reads_what_we_print(spark: SparkSession, text: str) -> None:
    ours = parse_ddl(text)
    assert document(StructType.fromDDL(print_ddl(ours))) == document(ours)


@pytest.mark.parametrize("text", REFUSED)
def test_both_refuse_malformed_text(spark: SparkSession, text: str) -> None:
    # pyspark passes some of the JVM's errors on as they are.
    with pytest.raises((PySparkException, Py4JError)):
        StructType.fromDDL(text)
    with pytest.raises(InvalidSchema):
        parse_ddl(text)
