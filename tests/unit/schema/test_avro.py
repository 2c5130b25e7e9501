"""Avro schemas, there and back."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from io import BytesIO
from typing import Any

import fastavro
import pytest
from fastavro.schema import parse_schema
from hypothesis import given
from pyspark.sql.types import IntegerType, StructField, StructType

from catalog.errors import InvalidInput, InvalidSchema
from catalog.schema import Schema
from catalog.schema.avro import from_avro, to_avro
from catalog.schema.translation import Unsaid

from .dialect_strategies import attempt, avro_schemas, faults, value
from .strategies import schemas


def record(kind: Any, **attributes: Any) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": "a", "type": kind, **attributes}]}


def whats(unsaid: tuple[Unsaid, ...]) -> list[str]:
    return [what.what for what in unsaid]


# --- there and back ------------------------------------------------------------------------------


@given(avro_schemas)
def test_a_round_trip_through_avro_loses_nothing(struct: StructType) -> None:
    schema = Schema.of(struct)
    back = from_avro(json.dumps(to_avro(schema).document))
    assert back.schema.fingerprint == schema.fingerprint
    assert back.schema.json == schema.json
    assert back.unsaid == ()


@given(avro_schemas)
def test_a_document_without_its_notes_is_still_valid_and_of_the_same_columns(
    struct: StructType,
) -> None:
    schema = Schema.of(struct)
    text = json.dumps(to_avro(schema).document).replace('"spark.', '"other.')
    back = from_avro(text).schema
    assert [column.path for column in back.columns] == [column.path for column in schema.columns]


@given(schemas)
def test_what_avro_cannot_say_is_refused_with_its_path(struct: StructType) -> None:
    schema = Schema.of(struct)
    expected = set(faults(struct, "avro"))
    document, path = attempt(to_avro, schema)
    assert document is None or from_avro(document).schema.json == schema.json
    assert path in expected if expected else path is None


@given(avro_schemas)
def test_rows_are_written_and_read_with_the_document(struct: StructType) -> None:
    document = parse_schema(to_avro(Schema.of(struct)).document)
    row, file = value(struct, "avro"), BytesIO()
    fastavro.schemaless_writer(file, document, row)
    file.seek(0)
    assert fastavro.schemaless_reader(file, document, None) == row


def test_nulls_are_written_where_the_columns_may_be_null_and_only_there() -> None:
    document = to_avro(Schema.of("a INT, b STRUCT<x: INT NOT NULL>, c VOID")).document
    file = BytesIO()
    fastavro.schemaless_writer(file, document, {})
    file.seek(0)
    assert fastavro.schemaless_reader(file, document, None) == {"a": None, "b": None, "c": None}
    with pytest.raises(ValueError, match="do not match"):
        fastavro.schemaless_writer(BytesIO(), document, {"b": {"x": None}})


# --- to Avro -------------------------------------------------------------------------------------


def test_a_schema_becomes_a_record_with_names_for_the_records_inside() -> None:
    schema = Schema.of(
        "id BIGINT NOT NULL COMMENT 'key', address STRUCT<street: STRING>, "
        "tags ARRAY<STRUCT<address: INT>>, m MAP<STRING, STRUCT<>>"
    )
    address = [{"name": "street", "type": ["null", "string"], "default": None}]
    inner = [{"name": "address", "type": ["null", "int"], "default": None}]
    kinds = {
        "address": {"type": "record", "name": "order_address", "fields": address},
        "tags": {
            "type": "array",
            "items": ["null", {"type": "record", "name": "order_tags_element", "fields": inner}],
        },
        "m": {
            "type": "map",
            "values": ["null", {"type": "record", "name": "order_m_value", "fields": []}],
        },
    }
    assert to_avro(schema, name="order", namespace="shop.v1").document == {
        "type": "record",
        "name": "order",
        "namespace": "shop.v1",
        "fields": [
            {"name": "id", "type": "long", "doc": "key"},
            *(
                {"name": name, "type": ["null", kind], "default": None}
                for name, kind in kinds.items()
            ),
        ],
    }


def test_records_at_paths_that_read_alike_have_different_names() -> None:
    schema = Schema.of("a_b STRUCT<x: INT>, a STRUCT<b: STRUCT<y: INT>, b_2: STRUCT<z: INT>>")
    document = to_avro(schema).document
    found = re.findall(r'"name": "(record\w*)"', json.dumps(document))
    assert sorted(found) == ["record", "record_a", "record_a_b", "record_a_b_2", "record_a_b_2_2"]
    assert from_avro(document).schema.json == schema.json


@pytest.mark.parametrize(
    ("ddl", "kind", "what"),
    [
        ("TINYINT", "int", "tinyint is written as int"),
        ("SMALLINT", "int", "smallint is written as int"),
        ("VARCHAR(10)", "string", "varchar(10) is written as string"),
        ("CHAR(3)", "string", "char(3) is written as string"),
        ("STRING COLLATE UNICODE_CI", "string", "collation UNICODE_CI"),
        ("INTERVAL YEAR", "int", "interval year is written as int"),
        ("INTERVAL DAY TO SECOND", "long", "interval day to second is written as long"),
    ],
)
def test_a_type_that_avro_can_hold_but_not_name_is_noted_and_reported(
    ddl: str, kind: str, what: str
) -> None:
    translation = to_avro(Schema.of(f"s STRUCT<a: {ddl} NOT NULL> NOT NULL"))
    field = translation.document["fields"][0]["type"]["fields"][0]
    assert field["type"]["type"] == kind
    assert translation.unsaid == (Unsaid("s.a", what),)


def test_notes_of_keys_and_of_precision_are_reported_with_their_paths() -> None:
    translation = to_avro(Schema.of("m MAP<VARCHAR(5), ARRAY<TIME(3)>>"))
    assert translation.unsaid == (
        Unsaid("m.key", "varchar(5) is written as string"),
        Unsaid("m.value.element", "time(3) is written as time-micros"),
    )


def test_metadata_that_only_spark_knows_is_reported() -> None:
    field = StructField("a", IntegerType(), True, {"comment": "c", "delta.identity.start": 1})
    translation = to_avro(Schema.of(StructType([field])))
    assert translation.unsaid == (Unsaid("a", "metadata delta.identity.start"),)


@pytest.mark.parametrize(
    ("ddl", "problem"),
    [
        ("`a-b` INT", "column `a-b` has a name that Avro does not allow; rename it"),
        ("s STRUCT<`1`: INT>", r"column s.`1` has a name that Avro does not allow"),
        ("`größe` INT", "column `größe` has a name"),
        ("m MAP<INT, INT>", "column m.key is not text, .* cast it to string"),
        ("m MAP<BINARY, INT>", "column m.key is not text"),
        ("a ARRAY<VARIANT>", "column a.element has type variant, which Avro has no form of; cast"),
        ("a INTERVAL", "column a has type interval, which Avro has no form"),
        ("a GEOMETRY(4326)", r"column a has type geometry\(4326\), which Avro has no form"),
        ("a VOID NOT NULL", "column a is void and never null; let it be null"),
    ],
)
def test_the_refusal_names_the_column_and_the_way_out(ddl: str, problem: str) -> None:
    with pytest.raises(InvalidSchema, match=problem):
        to_avro(Schema.of(ddl))


@pytest.mark.parametrize(
    ("name", "namespace"), [("a-b", None), ("", None), ("int", None), ("a.b", None), ("r", "a..b")]
)
def test_names_that_avro_does_not_have_are_refused(name: str, namespace: str | None) -> None:
    with pytest.raises(InvalidInput, match=r"an Avro (record|namespace) cannot be"):
        to_avro(Schema.of("a INT"), name=name, namespace=namespace)


# --- from Avro -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "ddl", "unsaid"),
    [
        ("boolean", "BOOLEAN", []),
        ("int", "INT", []),
        ("long", "BIGINT", []),
        ("float", "FLOAT", []),
        ("double", "DOUBLE", []),
        ("string", "STRING", []),
        ("bytes", "BINARY", []),
        ({"type": "string", "avro.java.string": "String"}, "STRING", []),
        ({"type": "int", "logicalType": "date"}, "DATE", []),
        ({"type": "int", "logicalType": "time-millis"}, "TIME(3)", []),
        ({"type": "long", "logicalType": "time-micros"}, "TIME(6)", []),
        ({"type": "long", "logicalType": "timestamp-millis"}, "TIMESTAMP", []),
        ({"type": "long", "logicalType": "timestamp-micros"}, "TIMESTAMP", []),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, "TIMESTAMP_NTZ", []),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, "TIMESTAMP_NTZ", []),
        (
            {"type": "long", "logicalType": "timestamp-nanos"},
            "BIGINT",
            ['logicalType "timestamp-nanos"'],
        ),
        ({"type": "string", "logicalType": "date"}, "STRING", ['logicalType "date"']),
        ({"type": "string", "logicalType": "uuid"}, "STRING", ['logicalType "uuid"']),
        ({"type": "string", "logicalType": ["odd"]}, "STRING", ['logicalType ["odd"]']),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            "DECIMAL(9,2)",
            [],
        ),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9}, "DECIMAL(9,0)", []),
        (
            {
                "type": "fixed",
                "name": "f",
                "size": 9,
                "logicalType": "decimal",
                "precision": 9,
                "scale": 2,
            },
            "DECIMAL(9,2)",
            ["size 9"],
        ),
        ({"type": "fixed", "name": "f", "size": 16}, "BINARY", ["size 16"]),
        (
            {"type": "enum", "name": "e", "symbols": ["A", "B"], "default": "A"},
            "STRING",
            ['default "A"', 'symbols ["A", "B"]'],
        ),
        ({"type": "array", "items": "int"}, "ARRAY<INT>", []),
        ({"type": "map", "values": "int"}, "MAP<STRING, INT>", []),
        (
            {
                "type": "record",
                "name": "s",
                "doc": "d",
                "aliases": ["t"],
                "fields": [{"name": "x", "type": "int", "order": "ignore"}],
            },
            "STRUCT<x: INT NOT NULL>",
            ['aliases ["t"]', 'doc "d"', 'order "ignore"'],
        ),
        ({"type": "error", "name": "s", "fields": []}, "STRUCT<>", []),
        ({"type": "int", "spark.type": "smallint"}, "SMALLINT", []),
        ({"type": "int", "spark.type": "bigint"}, "INT", ['spark.type "bigint"']),
        ({"type": "int", "spark.type": "nonsense("}, "INT", ['spark.type "nonsense("']),
        ({"type": "int", "spark.type": ["int"]}, "INT", ['spark.type ["int"]']),
        ({"type": "long", "spark.sql.catalyst.type": "interval day"}, "INTERVAL DAY", []),
        ({"type": "map", "values": "int", "spark.key.type": "char(2)"}, "MAP<CHAR(2), INT>", []),
        (
            {"type": "map", "values": "int", "spark.key.type": "int"},
            "MAP<STRING, INT>",
            ['spark.key.type "int"'],
        ),
    ],
    ids=str,
)
def test_each_avro_type_has_its_spark_type(kind: Any, ddl: str, unsaid: list[str]) -> None:
    reading = from_avro(record(kind))
    assert reading.schema.ddl == f"a {ddl} NOT NULL"
    assert sorted(whats(reading.unsaid)) == unsaid
    assert from_avro(record(["null", kind])).schema.ddl == f"a {ddl}"


@pytest.mark.parametrize(
    ("kind", "attributes", "canonical", "unsaid"),
    [
        (["null", "int"], {"default": None}, '"a":int?', []),
        (["int", "null"], {"default": 5}, '"a":int?', ["default 5"]),
        (["int"], {}, '"a":int!', []),
        (["null"], {}, '"a":void?', []),
        ("null", {}, '"a":void?', []),
        ([{"type": "null"}, {"type": "int"}], {}, '"a":int?', []),
        ("int", {"default": 5}, '"a":int!', ["default 5"]),
        ({"type": "array", "items": ["null", "int"]}, {}, '"a":array<int?>!', []),
        ({"type": "map", "values": ["int", "null"]}, {}, '"a":map<string,int?>!', []),
    ],
)
def test_a_union_with_null_is_a_column_that_may_be_null(
    kind: Any, attributes: dict[str, Any], canonical: str, unsaid: list[str]
) -> None:
    reading = from_avro(record(kind, **attributes))
    assert reading.schema.canonical == f"strata-schema/1:struct<{canonical}>"
    assert whats(reading.unsaid) == unsaid


def test_named_types_are_found_again_across_namespaces() -> None:
    point = {"type": "record", "name": "geo.point", "fields": [{"name": "x", "type": "int"}]}
    colour = {"type": "enum", "name": "colour", "symbols": ["RED"]}
    document = {
        "type": "record",
        "name": "r",
        "namespace": "shop",
        "fields": [
            {"name": "a", "type": point},
            {"name": "b", "type": ["null", "geo.point"]},
            {"name": "c", "type": colour},
            {"name": "d", "type": {"type": "array", "items": "colour"}},
            {"name": "e", "type": {"type": "map", "values": "shop.colour"}},
        ],
    }
    assert from_avro(document).schema.ddl == (
        "a STRUCT<x: INT NOT NULL> NOT NULL, b STRUCT<x: INT NOT NULL>, c STRING NOT NULL, "
        "d ARRAY<STRING> NOT NULL, e MAP<STRING, STRING> NOT NULL"
    )


def test_a_named_type_may_be_called_what_avro_calls_a_kind_of_types() -> None:
    fixed = {"type": "record", "name": "fixed", "fields": [{"name": "x", "type": "int"}]}
    document = record({"type": "map", "values": fixed})
    document["fields"].append({"name": "b", "type": "fixed"})
    assert from_avro(document).schema.ddl == (
        "a MAP<STRING, STRUCT<x: INT NOT NULL>> NOT NULL, b STRUCT<x: INT NOT NULL> NOT NULL"
    )


def test_a_schema_that_fastavro_parsed_before_is_read_like_the_one_it_came_from() -> None:
    document = to_avro(Schema.of("a INT, s STRUCT<x: SMALLINT>")).document
    parsed: Any = parse_schema(document)
    assert from_avro(parsed) == from_avro(document)


def test_docs_become_comments_and_a_comment_may_be_empty() -> None:
    columns = from_avro(record("int", doc="")).schema.columns
    assert columns[0].comment == ""
    assert from_avro(record("int", doc=None)).schema.columns[0].comment is None


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (record(["int", "string"]), "column a is a union of int and string, and a column has one"),
        (record(["null", "int", "long"]), "column a is a union of int and long"),
        (record(["null", ["null", "int"]]), "column a is a union of other unions"),
        (record([]), "column a is a union of nothing"),
        (record({"type": "array", "items": ["int", "r"]}), "column a.element is a union of int"),
        (record(["null", "r"]), "column a has the record r inside itself.* unroll it"),
        (record({"type": "map", "values": "r"}), "column a.value has the record r inside"),
        (
            record({"type": "bytes", "logicalType": "decimal", "precision": 39}),
            "column a cannot be read: decimal precision 39 must be between 1 and 38",
        ),
        (
            record({"type": "bytes", "logicalType": "decimal", "precision": True}),
            "decimal precision True must be",
        ),
        (record({"type": "bytes", "logicalType": "decimal"}), "decimal precision 0 must be"),
        (
            record({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": "2"}),
            "fastavro refuses the Avro schema: decimal scale must be",
        ),
        (record("text"), "fastavro refuses the Avro schema: type 'text' is not known; repair it"),
        (record({"type": "array"}), "'items' is missing"),
        (record({"type": "fixed", "name": "f"}), "'size' is missing"),
        (record({"type": "enum", "name": "e", "symbols": ["a b"]}), "Every symbol must match"),
        (record({"type": {"type": "int"}}), "fastavro refuses"),
        (record(None), "fastavro refuses"),
        (record(5), "fastavro refuses"),
        (record("int", default="x"), "Default value <x> must match"),
        (record("int", doc=5), "column a has the doc 5; use text"),
        ({"type": "record", "name": "r", "fields": [{"type": "int"}]}, "missing 'name'"),
        (
            {"type": "record", "name": "r", "fields": [{"name": 5, "type": "int"}]},
            "the schema has a field named 5; use text",
        ),
        ({"type": "record", "name": "r", "fields": [{"name": "", "type": "int"}]}, "empty name"),
        ({"type": "record", "name": "r", "fields": 5}, "fastavro refuses"),
        ({"type": "record", "name": "r"}, "at least one column"),
        ({"type": "record", "fields": []}, '"name" is a required field'),
        ({"type": "record", "name": ["r"], "fields": []}, "fastavro refuses"),
        ({"type": "record", "name": "r", "__fastavro_parsed": True}, "at least one column"),
        ({"type": "int"}, "the schema must be a record in Avro, not int; wrap it"),
        ({}, "'type' is missing"),
        ('"int"', "a schema must be an object or its JSON text, not str"),
        ("[]", "a schema must be an object or its JSON text, not list"),
        ("{", "JSON is malformed"),
        (b"{}", "not bytes"),
        (None, "not NoneType"),
        ({"type": "record", 5: "r"}, "a document's keys must be text, not int"),
        ({"type": "record", None: "r"}, "a document's keys must be text, not NoneType"),
        (record("int", default=b"x"), "a document holds what JSON has, not bytes"),
        (record("int", default=2**5000), "a number of 5001 bits"),
        (
            {
                "type": "record",
                "name": "r",
                "fields": [{"name": "a", "type": "int"}, {"name": "A", "type": "int"}],
            },
            "column A differs from a only in case",
        ),
    ],
    ids=lambda case: str(case)[:60],
)
def test_bad_documents_are_refused_with_the_reason(document: Any, problem: str) -> None:
    with pytest.raises(InvalidSchema, match=problem):
        from_avro(document)


def test_without_fastavro_the_message_says_what_to_install() -> None:
    script = (
        "import sys; sys.modules['fastavro'] = None\n"
        "from catalog.schema.avro import from_avro, to_avro\n"
        "from catalog.schema import Schema\n"
        "document = to_avro(Schema.of('a INT')).document\n"
        "try: from_avro(document)\n"
        "except Exception as error: print(error)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout == (
        "[INVALID_INPUT] reading Avro needs fastavro: pip install 'strata-catalog[avro]'\n"
    )
