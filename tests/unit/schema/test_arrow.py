"""Arrow schemas, there and back."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from pyspark.sql.types import StructType

from catalog.errors import InvalidSchema
from catalog.schema import Schema

from .strategies import arrow_schemas


@given(arrow_schemas)
def test_a_round_trip_through_arrow_keeps_the_fingerprint_and_the_comments(
    struct: StructType,
) -> None:
    schema = Schema.of(struct)
    back = Schema.of(schema.arrow())
    assert back.fingerprint == schema.fingerprint
    assert back.json == schema.json


@pytest.mark.parametrize(
    ("kind", "ddl"),
    [
        (pa.bool_(), "BOOLEAN"),
        (pa.int8(), "TINYINT"),
        (pa.int16(), "SMALLINT"),
        (pa.int32(), "INT"),
        (pa.int64(), "BIGINT"),
        (pa.float32(), "FLOAT"),
        (pa.float64(), "DOUBLE"),
        (pa.decimal128(10, 2), "DECIMAL(10,2)"),
        (pa.decimal256(38, 2), "DECIMAL(38,2)"),
        (pa.string(), "STRING"),
        (pa.large_string(), "STRING"),
        (pa.string_view(), "STRING"),
        (pa.binary(), "BINARY"),
        (pa.large_binary(), "BINARY"),
        (pa.binary_view(), "BINARY"),
        (pa.binary(16), "BINARY"),
        (pa.date32(), "DATE"),
        (pa.date64(), "DATE"),
        (pa.timestamp("s"), "TIMESTAMP_NTZ"),
        (pa.timestamp("ns", tz="Europe/Berlin"), "TIMESTAMP"),
        (pa.time32("s"), "TIME(0)"),
        (pa.time32("ms"), "TIME(3)"),
        (pa.time64("us"), "TIME(6)"),
        (pa.time64("ns"), "TIME(6)"),
        (pa.duration("ms"), "INTERVAL DAY TO SECOND"),
        (pa.null(), "VOID"),
        (pa.dictionary(pa.int32(), pa.string()), "STRING"),
        (pa.run_end_encoded(pa.int32(), pa.int64()), "BIGINT"),
        (pa.list_(pa.int32()), "ARRAY<INT>"),
        (pa.large_list(pa.int32()), "ARRAY<INT>"),
        (pa.list_(pa.int32(), 3), "ARRAY<INT>"),
        (pa.list_view(pa.int32()), "ARRAY<INT>"),
        (pa.map_(pa.string(), pa.int64()), "MAP<STRING, BIGINT>"),
        (pa.struct([pa.field("x", pa.int32(), nullable=False)]), "STRUCT<x: INT NOT NULL>"),
    ],
    ids=str,
)
def test_each_arrow_type_has_its_spark_type(kind: pa.DataType, ddl: str) -> None:
    assert Schema.of(pa.schema([pa.field("a", kind)])).ddl == f"a {ddl}"


def test_nullability_and_comments_come_from_the_fields() -> None:
    arrow = pa.schema(
        [
            pa.field("a", pa.int32(), nullable=False, metadata={"comment": "naïve", "other": "x"}),
            pa.field("b", pa.list_(pa.field("item", pa.int32(), nullable=False))),
        ]
    )
    schema = Schema.of(arrow)
    assert schema.canonical == 'strata-schema/1:struct<"a":int!,"b":array<int!>?>'
    assert schema.columns[0].comment == "naïve"


def test_a_note_of_the_type_no_longer_counts_after_a_cast() -> None:
    noted = Schema.of("a VARCHAR(10)").arrow().field("a")
    assert noted.type == pa.string()
    assert Schema.of(pa.schema([noted])).ddl == "a VARCHAR(10)"
    assert Schema.of(pa.schema([noted.with_type(pa.large_string())])).ddl == "a VARCHAR(10)"
    assert Schema.of(pa.schema([noted.with_type(pa.int64())])).ddl == "a BIGINT"
    forged = pa.field("a", pa.string(), metadata={"strata.type": "array<int"})
    assert Schema.of(pa.schema([forged])).ddl == "a STRING"


@pytest.mark.parametrize(
    "ddl",
    ["VARIANT", "INTERVAL", "INTERVAL YEAR TO MONTH", "GEOMETRY(4326)", "GEOGRAPHY(ANY)"],
)
def test_types_without_an_arrow_form_are_refused_with_their_column(ddl: str) -> None:
    with pytest.raises(InvalidSchema, match=r"column s\.x has type .* Arrow has no equal of; cast"):
        Schema.of(f"s STRUCT<x: {ddl}>").arrow()


@pytest.mark.parametrize(
    ("ddl", "column"), [("a VOID NOT NULL", "a"), ("a MAP<VOID, INT>", r"a\.key")]
)
def test_a_void_that_is_never_null_is_refused(ddl: str, column: str) -> None:
    with pytest.raises(InvalidSchema, match=rf"column {column} is void .* let it be null"):
        Schema.of(ddl).arrow()


def test_text_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(InvalidSchema, match="column a must have UTF-8 text as its comment"):
        Schema.of(pa.schema([pa.field("a", pa.int32(), metadata={b"comment": b"\xff"})]))


def test_nesting_is_bounded() -> None:
    kind: pa.DataType = pa.int32()
    for _ in range(65):
        kind = pa.list_(kind)
    with pytest.raises(InvalidSchema, match="nested deeper than 64 levels"):
        Schema.of(pa.schema([pa.field("a", kind)]))
