"""A schema as a value."""

from __future__ import annotations

import json
import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from pyspark.sql.types import IntegerType, StructField, StructType

from catalog.schema import Schema, SchemaColumn

from .strategies import schemas

ORDERS = """
    id BIGINT NOT NULL COMMENT 'key', lines ARRAY<STRUCT<sku: STRING NOT NULL, qty: INT>>,
    `odd.name` MAP<STRUCT<k: INT>, STRUCT<v: DATE COMMENT 'day'>>
"""


@given(schemas)
def test_json_holds_the_whole_schema(struct: StructType) -> None:
    schema = Schema.of(struct)
    assert schema.struct().jsonValue() == struct.jsonValue()
    assert Schema.of(schema.json).json == schema.json
    assert Schema.of(json.loads(schema.json)).json == schema.json


@given(schemas)
def test_a_payload_gives_the_schema_back(struct: StructType) -> None:
    schema = Schema.of(struct)
    back = Schema.from_payload(schema.payload)
    assert back == schema
    assert back.json == schema.json
    assert back.payload == schema.payload


@given(schemas)
def test_pickling_gives_an_equal_schema(struct: StructType) -> None:
    schema = Schema.of(struct)
    back = pickle.loads(pickle.dumps(schema))
    assert back == schema
    assert hash(back) == hash(schema)
    assert back.payload == schema.payload


@given(schemas)
def test_every_column_has_a_path_of_its_own(struct: StructType) -> None:
    columns = Schema.of(struct).columns
    assert len({column.path for column in columns}) == len(columns)
    assert [c.name for c in columns if c.depth == 0] == [field.name for field in struct.fields]


def test_every_form_of_a_definition_gives_one_schema() -> None:
    struct = StructType([StructField("a", IntegerType(), False)])
    schema = Schema.of(struct)
    forms = [
        "a INT NOT NULL",
        struct.json(),
        " \n" + struct.json(),
        struct.jsonValue(),
        schema,
        pa.schema([pa.field("a", pa.int32(), nullable=False)]),
    ]
    assert {Schema.of(form) for form in forms} == {schema}


def test_columns_are_listed_flat_in_the_order_of_the_definition() -> None:
    assert Schema.of(ORDERS).columns == (
        SchemaColumn("id", "id", 0, 0, "bigint", False, "key"),
        SchemaColumn("lines", "lines", 1, 0, "array<struct<sku:string,qty:int>>", True, None),
        SchemaColumn("lines.element.sku", "sku", 0, 1, "string", False, None),
        SchemaColumn("lines.element.qty", "qty", 1, 1, "int", True, None),
        SchemaColumn(
            "`odd.name`", "odd.name", 2, 0, "map<struct<k:int>,struct<v:date>>", True, None
        ),
        SchemaColumn("`odd.name`.key.k", "k", 0, 1, "int", True, None),
        SchemaColumn("`odd.name`.value.v", "v", 0, 1, "date", True, "day"),
    )


def test_a_payload_keeps_order_and_comments() -> None:
    document = json.loads(Schema.of("b INT COMMENT 'x', a STRING").payload)
    assert list(document) == ["format", "ddl", "type", "columns"]
    assert document["format"] == 1
    assert document["ddl"] == "b INT COMMENT 'x', a STRING"
    assert [field["name"] for field in document["type"]["fields"]] == ["b", "a"]
    assert document["columns"][0] == {
        "path": "b",
        "name": "b",
        "position": 0,
        "depth": 0,
        "type": "int",
        "nullable": True,
        "comment": "x",
    }


def test_equal_schemas_keep_their_own_order() -> None:
    one, other = Schema.of("a INT, b INT"), Schema.of("b INT, a INT")
    assert one == other
    assert hash(one) == hash(other)
    assert (one.ddl, other.ddl) == ("a INT, b INT", "b INT, a INT")
    assert one != "a INT, b INT"


def test_a_schema_cannot_be_changed() -> None:
    struct = StructType([StructField("a", IntegerType())])
    schema = Schema.of(struct)
    before = schema.fingerprint
    struct.add("b", "string")
    schema.struct().add("c", "string")
    with pytest.raises(AttributeError, match="never changes"):
        schema.json = "{}"
    with pytest.raises(AttributeError, match="never changes"):
        del schema.json
    assert schema.ddl == "a INT"
    assert Schema.of(schema.json).fingerprint == before


def test_a_text_is_read_once() -> None:
    assert Schema.of("a INT, b DOUBLE") is Schema.of("a INT, b DOUBLE")
    payload = Schema.of("a INT").payload
    assert Schema.from_payload(payload) is Schema.from_payload(payload)


def test_reading_a_mapping_leaves_it_alone() -> None:
    collated = Schema.of("a MAP<STRING COLLATE UNICODE, STRING COLLATE UTF8_LCASE>")
    document = json.loads(collated.json)
    before = json.dumps(document)
    assert Schema.of(document) == collated
    assert json.dumps(document) == before


def test_a_pickle_is_little_more_than_the_json() -> None:
    schema = Schema.of(ORDERS)
    assert schema.payload
    assert len(pickle.dumps(schema)) < len(schema.json) + 100


def test_repr_is_short_enough_for_a_log_line() -> None:
    wide = Schema.of(", ".join(f"column_{i} STRING" for i in range(500)))
    assert repr(Schema.of("a INT")) == "Schema(2894bbaa, 'a INT')"
    assert len(repr(wide)) < 120
