"""What is refused, and what the message says."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimeType,
    UserDefinedType,
)

from catalog.errors import InvalidInput, InvalidSchema
from catalog.schema import Schema


class Point(UserDefinedType):
    """A user-defined type, which no other reader could make sense of."""

    @classmethod
    def sqlType(cls) -> DataType:
        return IntegerType()


class Odd(IntegerType):
    """A subclass that may mean anything."""


def column(kind: DataType, name: str = "a", **given: Any) -> StructType:
    return StructType([StructField(name, kind, **given)])


def nested(levels: int) -> StructType:
    kind: DataType = IntegerType()
    for _ in range(levels):
        kind = StructType([StructField("s", kind)])
    return column(kind)


def doubling(levels: int) -> StructType:
    # A leaf of another type would keep pyspark itself busy for ever.
    kind: DataType = DateType()
    for _ in range(levels):
        kind = MapType(kind, kind)
    return column(kind)


def json_field(**changes: Any) -> dict[str, Any]:
    field = {"name": "a", "type": "integer", "nullable": True, "metadata": {}} | changes
    return {"type": "struct", "fields": [field]}


BAD_DDL = [
    ("", "at least one column"),
    ("struct<>", "at least one column"),
    ("  -- nothing", "at least one column"),
    ("a", "expected a type, found 'end of text'"),
    ("int", "expected a type"),
    ("a INT,", "position 7, the end: expected a column name"),
    ("a INT b INT", "position 7, near 'b INT': expected a comma or the end"),
    ("a INTT", "'INTT' is not known; did you mean int?"),
    ("a uuid", "'uuid' is not known"),
    ("a `int`", "expected a type"),
    ("a ARRAY", "expected '<'"),
    ("a ARRAY<INT", "expected '>'"),
    ("a ARRAY<INT>>", "found '>'"),
    ("a ARRAY<INT NOT NULL>", "expected '>', found 'NOT'"),
    ("a MAP<INT>", "the type of the values"),
    ("a STRUCT<b: INT", "expected a comma or '>'"),
    ("a INT NOT", "expected NULL after NOT"),
    ("a INT NULL", "expected a comma or the end"),
    ("a INT COMMENT x", "expected text in quotes"),
    ("a INT COMMENT 'x", "quote is not closed"),
    ("a INT COMMENT '\\U00110000'", "not a character"),
    ("a INT COMMENT '\\uD800'", "column a cannot be kept"),
    ("`a INT", "quote is not closed"),
    ("a INT /* x", "comment is not closed"),
    ("a-b INT", "backquotes"),
    ("a.b INT", "expected a type, found '.'"),
    ("größe INT", "write 'größe' in backquotes"),
    ("1 INT", "expected a column name"),
    ("IDENTIFIER('a.b') INT", "IDENTIFIER() must hold one name"),
    ("a DECIMAL(39)", "precision 39 must be between 1 and 38"),
    ("a DECIMAL(0)", "precision 0 must be between 1 and 38"),
    ("a DECIMAL(5,6)", "scale 6 must be between 0 and the precision 5"),
    ("a DECIMAL(5,-1)", "'-' is not expected"),
    ("a DECIMAL(99999999999)", "too large"),
    ("a CHAR", "'(' and a length"),
    ("a VARCHAR(2147483648)", "length 2147483648 must be between"),
    ("a VARCHAR(3) COLLATE UNICODE", "only STRING can have a collation"),
    ("a STRING COLLATE klingon", "collation 'klingon' is not known"),
    ("a TIME(7)", "time precision 7 must be between 0 and 6"),
    ("a INTERVAL SECOND TO DAY", "a unit smaller than SECOND"),
    ("a GEOMETRY(1)", "SRID 1 is not one"),
    ("a INT, A INT", "column A differs from a only in case"),
    ("a INT, a STRING", "column a differs from a"),
    ("s STRUCT<x: INT, X: INT>", "column s.X differs from s.x"),
    ("m MAP<INT, ARRAY<STRUCT<`p.q`: INT, `P.Q`: INT>>>", "m.value.element.`P.Q`"),
    ("straße INT, `STRASSE` INT", "write 'straße' in backquotes"),
    ("`straße` INT, STRASSE INT", "column STRASSE differs from `straße`"),
    ("`` INT", "column `` has an empty name"),
    ("a STRUCT<``: INT>", "column a.`` has an empty name"),
    ("`a\x07b` INT", "column `a\\x07b` has a control character"),
    ("`a\x85b` INT", "control character"),
    (f"`{'x' * 256}` INT", "name of 256 characters; use at most 255"),
    ("a " + "struct<b:" * 65 + "int" + ">" * 65, "nested deeper than 64 levels"),
]

BAD_STRUCT = [
    (StructType([]), "at least one column"),
    (column(IntegerType(), name="a\ud800"), "half a surrogate pair"),
    (column(DecimalType(39, 0)), "column a: decimal precision 39"),
    (column(DecimalType(5, -2)), "column a: decimal scale -2"),
    (column(ArrayType(CharType(-1))), "column a.element: length -1"),
    (column(MapType(TimeType(9), IntegerType())), "column a.key: time precision 9"),
    (column(DayTimeIntervalType(3, 0)), "from the larger unit to the smaller"),
    (column(StringType("nope")), "collation 'nope' is not known"),
    (column(StringType("utf8_lcase")), "spell collation 'utf8_lcase' as UTF8_LCASE"),
    (column(Point()), "column a has type Point"),
    (column(ArrayType(Odd())), "column a.element has type Odd"),
    (column(IntegerType(), nullable=1), "must be True or False, not 1"),
    (column(ArrayType(IntegerType(), None)), "must be True or False, not None"),
    (column(IntegerType(), metadata={"comment": 5}), "column a must have text as its comment"),
    (column(IntegerType(), metadata={"k": object()}), "column a cannot be kept as JSON"),
    (column(IntegerType(), metadata={"k": float("nan")}), "column a cannot be kept as JSON"),
    (nested(65), "nested deeper than 64 levels"),
    (nested(5_000), "nested deeper than 64 levels"),
    (doubling(60), "at most 40000 types"),
    (StructType([StructField(f"c{i}", IntegerType()) for i in range(10_001)]), "at most 10000"),
    (
        column(StructType([StructField(f"c{i}", IntegerType()) for i in range(10_000)])),
        "a.c9999 is one more",
    ),
]

BAD_JSON = [
    ("{", "JSON is malformed"),
    ('{"type": "array"}', '"type": "struct"'),
    ('{"a":' * 100_000, "nested too deeply"),
    ({}, '"type": "struct"'),
    ({"type": "struct"}, "'fields' must be of type list"),
    ({"type": "struct", "fields": [3]}, "a field must be an object"),
    (json_field(name=3), "'name' must be of type str"),
    (json_field(nullable="yes"), "column a is malformed: 'nullable' must be of type bool"),
    (json_field(metadata=[]), "'metadata' must be of type Mapping"),
    (json_field(type=None), "a type must be a name"),
    (json_field(type="decimal(10,2)junk"), "type 'decimal(10,2)junk' is not known"),
    (json_field(type="array<int>"), "a nested type must be an object"),
    (json_field(type={"type": "udt", "pyClass": "os.system"}), "a type must be a name"),
    (json_field(type={"type": "array", "elementType": "long"}), "'containsNull' must be of type"),
    (json_field(type="geometry(NOPE:1)"), "type 'geometry(NOPE:1)' is not known"),
    (json_field(metadata={"__COLLATIONS": 1}), "__COLLATIONS must be an object"),
    (json_field(metadata={"__COLLATIONS": {"a": "icu.UNICODE"}}), "must name strings"),
]

BAD_ARROW = [
    (pa.uint8(), "column a has Arrow type uint8", "next larger signed integer"),
    (pa.uint64(), "uint64", "decimal(20,0)"),
    (pa.float16(), "halffloat", "float32"),
    (pa.decimal256(39, 0), "decimal256(39, 0)", "decimal128"),
    (pa.decimal128(5, -2), "decimal128(5, -2)", "scale 0"),
    (pa.month_day_nano_interval(), "month_day_nano_interval", "columns of their own"),
    (pa.dense_union([pa.field("x", pa.int32())]), "dense_union", "struct"),
    (pa.uuid(), "extension<arrow.uuid>", "the type that it is stored as"),
    (pa.list_(pa.uint16()), "column a.element has Arrow type uint16", "signed"),
    (pa.map_(pa.string(), pa.float16()), "column a.value", "float32"),
    (pa.dictionary(pa.int8(), pa.uint32()), "uint32", "signed"),
]


@pytest.mark.parametrize(("text", "says"), BAD_DDL, ids=lambda case: repr(case)[:40])
def test_bad_ddl_is_refused(text: str, says: str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        Schema.of(text)
    assert says in str(refused.value)


@pytest.mark.parametrize(("struct", "says"), BAD_STRUCT, ids=[case[1] for case in BAD_STRUCT])
def test_a_bad_structtype_is_refused(struct: StructType, says: str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        Schema.of(struct)
    assert says in str(refused.value)


@pytest.mark.parametrize(("document", "says"), BAD_JSON, ids=[case[1] for case in BAD_JSON])
def test_bad_json_is_refused(document: Any, says: str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        Schema.of(document)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "says", "way_out"), BAD_ARROW, ids=[case[1] for case in BAD_ARROW]
)
def test_arrow_types_without_an_equal_are_refused(
    kind: pa.DataType, says: str, way_out: str
) -> None:
    with pytest.raises(InvalidSchema) as refused:
        Schema.of(pa.schema([pa.field("a", kind)]))
    assert says in str(refused.value)
    assert way_out in str(refused.value)


@pytest.mark.parametrize("definition", [None, 3, b"a INT", ["a INT"], IntegerType()])
def test_what_is_no_definition_is_refused(definition: Any) -> None:
    with pytest.raises(InvalidSchema, match="a schema cannot be made of"):
        Schema.of(definition)


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        ("", "JSON is malformed"),
        ("a INT", "JSON is malformed"),
        ("[]", "format 1, not None"),
        ("{}", "format 1, not None"),
        ('{"format":2,"type":{}}', "format 1, not 2"),
        ('{"format":1}', '"type": "struct"'),
        ('{"format":1,"type":{"type":"struct","fields":[]}}', "at least one column"),
    ],
)
def test_a_bad_payload_is_refused(payload: str, says: str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        Schema.from_payload(payload)
    assert says in str(refused.value)


def test_an_error_carries_the_column_and_the_value() -> None:
    with pytest.raises(InvalidInput) as refused:
        Schema.of("s STRUCT<x: INT, X: INT>")
    assert refused.value.condition == "INVALID_SCHEMA"
    assert refused.value.values == {"column": "s.X", "value": "X"}
