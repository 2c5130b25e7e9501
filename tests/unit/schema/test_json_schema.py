"""JSON Schema, there and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator
from pyspark.sql.types import IntegerType, StructField, StructType

from catalog.errors import InvalidSchema
from catalog.schema import Schema
from catalog.schema.json_schema import from_json_schema, to_json_schema
from catalog.schema.translation import Unsaid

from .dialect_strategies import attempt, faults, json_schemas, value
from .strategies import schemas


def of_column(schema: Any, **keywords: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}, "required": ["a"], **keywords}


def whats(unsaid: tuple[Unsaid, ...]) -> list[str]:
    return [what.what for what in unsaid]


# --- there and back ------------------------------------------------------------------------------


@given(json_schemas)
def test_a_round_trip_through_json_schema_loses_nothing(struct: StructType) -> None:
    schema = Schema.of(struct)
    back = from_json_schema(json.dumps(to_json_schema(schema, title="t").document))
    assert back.schema.fingerprint == schema.fingerprint
    assert back.schema.json == schema.json
    assert back.unsaid == ()


@given(schemas)
def test_what_json_schema_cannot_say_is_refused_with_its_path(struct: StructType) -> None:
    schema = Schema.of(struct)
    expected = set(faults(struct, "json"))
    document, path = attempt(to_json_schema, schema)
    assert document is None or from_json_schema(document).schema.json == schema.json
    assert path in expected if expected else path is None


@given(json_schemas)
def test_a_document_is_valid_and_so_are_the_rows_of_its_schema(struct: StructType) -> None:
    document = to_json_schema(Schema.of(struct)).document
    Draft202012Validator.check_schema(document)
    validator = Draft202012Validator(document)
    row = value(struct, "json")
    validator.validate(row)
    for field in struct.fields:
        assert validator.is_valid(row | {field.name: None}) == field.nullable
        without = {name: kept for name, kept in row.items() if name != field.name}
        assert validator.is_valid(without) == field.nullable


@pytest.mark.parametrize(
    ("ddl", "good", "bad"),
    [
        ("TINYINT", [-128, 127, 1.0], [128, 1.5, "1", True]),
        ("SMALLINT", [-32768, 32767], [-32769]),
        ("INT", [2**31 - 1], [2**31]),
        ("BIGINT", [2**63 - 1], [2**63]),
        ("DOUBLE", [1, 1.5], ["1.5"]),
        ("DECIMAL(5,2)", [1.25], ["1.25"]),
        ("DECIMAL(38,0)", [10**30], [1.25]),
        ("VARCHAR(3)", ["", "äöü"], ["abcd", 5]),
        ("BOOLEAN", [True], [1]),
        ("ARRAY<INT>", [[], [1, None]], [[2**31], {}]),
        ("MAP<VARCHAR(1), INT>", [{}, {"k": None}], [{"long": 1}, {"k": "v"}, []]),
        ("STRUCT<x: INT NOT NULL>", [{"x": 1}, {"x": 1, "y": 2}], [{}, {"x": None}]),
        ("VARIANT", [1, "x", [], {}, True, 1.5], []),
        ("VOID", [], [1, ""]),
    ],
)
def test_a_validator_tells_values_of_the_type_from_others(
    ddl: str, good: list[Any], bad: list[Any]
) -> None:
    validator = Draft202012Validator(to_json_schema(Schema.of(f"a {ddl}")).document)
    assert [found for found in [None, *good] if not validator.is_valid({"a": found})] == []
    assert [found for found in bad if validator.is_valid({"a": found})] == []


# --- to JSON Schema ------------------------------------------------------------------------------


def test_a_schema_becomes_an_object_in_the_order_of_its_columns() -> None:
    schema = Schema.of("b DATE NOT NULL COMMENT 'day', `a.b` MAP<STRING, BINARY>")
    document = to_json_schema(schema, title="Days").document
    assert document == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Days",
        "type": "object",
        "properties": {
            "b": {"type": "string", "format": "date", "description": "day"},
            "a.b": {
                "type": ["object", "null"],
                "additionalProperties": {"type": ["string", "null"], "contentEncoding": "base64"},
            },
        },
        "required": ["b"],
    }
    assert list(document["properties"]) == ["b", "a.b"]


@pytest.mark.parametrize(
    ("ddl", "what"),
    [
        ("DECIMAL(10,2)", "decimal(10,2) is written as number"),
        ("DECIMAL(20,0)", "decimal(20,0) is written as integer"),
        ("FLOAT", "float is written as number of format float"),
        ("CHAR(3)", "char(3) is written as string"),
        ("STRING COLLATE UTF8_LCASE", "collation UTF8_LCASE"),
        ("TIMESTAMP_NTZ", "timestamp_ntz is written as string of format date-time-local"),
        ("TIME(3)", "time(3) is written as string of format time-local"),
        ("INTERVAL", "interval is written as string of format duration"),
        ("INTERVAL HOUR", "interval hour is written as string of format duration"),
    ],
)
def test_a_type_that_readers_take_for_another_is_reported(ddl: str, what: str) -> None:
    assert to_json_schema(Schema.of(f"s STRUCT<a: {ddl}>")).unsaid == (Unsaid("s.a", what),)


def test_keys_and_metadata_are_reported_with_their_paths() -> None:
    field = StructField("a", IntegerType(), True, {"delta.identity.start": 1})
    unsaid = to_json_schema(Schema.of(StructType([field]))).unsaid
    assert unsaid == (Unsaid("a", "metadata delta.identity.start"),)
    keys = to_json_schema(Schema.of("`m.n` MAP<STRING COLLATE UNICODE, INT>")).unsaid
    assert keys == (Unsaid("`m.n`.key", "collation UNICODE"),)


@pytest.mark.parametrize(
    ("ddl", "problem"),
    [
        ("m MAP<INT, INT>", "column m.key is not text, .* cast it to string"),
        ("s STRUCT<m: MAP<DATE, INT>>", "column s.m.key is not text"),
        ("a GEOGRAPHY(4326)", r"column a has type geography\(4326\), which JSON has no form of; "),
        ("a ARRAY<GEOMETRY(ANY)>", r"column a.element has type geometry\(any\)"),
        ("a VOID NOT NULL", "column a is void and never null; let it be null"),
    ],
)
def test_the_refusal_names_the_column_and_the_way_out(ddl: str, problem: str) -> None:
    with pytest.raises(InvalidSchema, match=problem):
        to_json_schema(Schema.of(ddl))


def test_a_caller_may_change_the_document_that_is_given() -> None:
    schema = Schema.of("a VARIANT NOT NULL, b DATE NOT NULL")
    given = to_json_schema(schema).document
    given["properties"]["a"]["type"].clear()
    given["properties"]["b"].clear()
    assert from_json_schema(to_json_schema(schema).document).schema == schema


# --- from JSON Schema ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "ddl", "unsaid"),
    [
        ({"type": "boolean"}, "BOOLEAN", []),
        ({"type": "integer"}, "BIGINT", []),
        ({"type": "integer", "format": "int32"}, "INT", []),
        ({"type": "integer", "format": "int64", "minimum": 0}, "BIGINT", ["minimum 0"]),
        ({"type": "integer", "minimum": -128, "maximum": 127}, "TINYINT", []),
        (
            {"type": "integer", "minimum": 0, "maximum": 127},
            "BIGINT",
            ["maximum 127", "minimum 0"],
        ),
        (
            {"type": "integer", "maximum": 9223372036854776000},
            "BIGINT",
            ["maximum 9223372036854776000"],
        ),
        (
            {"type": "integer", "maximum": 2**64 - 1, "x-spark-type": "decimal(20,0)"},
            "DECIMAL(20,0)",
            ["maximum 18446744073709551615"],
        ),
        ({"type": "number"}, "DOUBLE", []),
        ({"type": "number", "format": "float"}, "FLOAT", []),
        ({"type": "number", "format": "double", "multipleOf": 0.5}, "DOUBLE", ["multipleOf 0.5"]),
        ({"type": ["integer", "number"]}, "DOUBLE", []),
        ({"type": "string"}, "STRING", []),
        ({"type": "string", "maxLength": 10}, "VARCHAR(10)", []),
        ({"type": "string", "maxLength": 10.0}, "VARCHAR(10)", []),
        ({"type": "string", "maxLength": 2**31}, "STRING", ["maxLength 2147483648"]),
        ({"type": "string", "format": "date"}, "DATE", []),
        ({"type": "string", "format": "date-time"}, "TIMESTAMP", []),
        ({"type": "string", "format": "date-time-local"}, "TIMESTAMP_NTZ", []),
        ({"type": "string", "format": "time"}, "TIME(6)", ['format "time"']),
        ({"type": "string", "format": "byte"}, "BINARY", []),
        ({"type": "string", "format": "email"}, "STRING", ['format "email"']),
        ({"type": "string", "format": "duration"}, "STRING", ['format "duration"']),
        ({"type": "string", "contentEncoding": "base64"}, "BINARY", []),
        ({"type": "string", "contentEncoding": "base16"}, "STRING", ['contentEncoding "base16"']),
        (
            {"type": "string", "pattern": "^a", "minLength": 1, "default": "b"},
            "STRING",
            ['default "b"', "minLength 1", 'pattern "^a"'],
        ),
        ({"enum": ["a", "b"]}, "STRING", ['enum ["a", "b"]']),
        ({"enum": [1, 2]}, "BIGINT", ["enum [1, 2]"]),
        ({"enum": [1, 2.5]}, "DOUBLE", ["enum [1, 2.5]"]),
        ({"const": True}, "BOOLEAN", ["const true"]),
        ({"type": ["string", "null"], "enum": ["a"]}, "STRING", ['enum ["a"]']),
        ({"type": "array", "items": {"type": "integer"}}, "ARRAY<BIGINT>", []),
        ({"items": {"type": "string"}, "minItems": 1}, "ARRAY<STRING>", ["minItems 1"]),
        ({"type": "array"}, "ARRAY<VARIANT>", []),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            "MAP<STRING, STRING>",
            [],
        ),
        ({"type": "object"}, "MAP<STRING, VARIANT>", []),
        ({"type": "object", "additionalProperties": False}, "STRUCT<>", []),
        (
            {"additionalProperties": {"type": "string"}, "propertyNames": {"maxLength": 2}},
            "MAP<VARCHAR(2), STRING>",
            [],
        ),
        (
            {"additionalProperties": {"type": "string"}, "propertyNames": {"format": "date"}},
            "MAP<STRING, STRING>",
            ['format "date"'],
        ),
        ({"properties": {"x": {"type": "string"}}}, "STRUCT<x: STRING>", []),
        (
            {
                "properties": {"x": {"type": "string"}},
                "required": ["x", "y"],
                "additionalProperties": {"type": "string"},
            },
            "STRUCT<x: STRING NOT NULL>",
            [
                'additionalProperties {"type": "string"}',
                "required y, which is not among the properties",
            ],
        ),
        (
            {"type": ["array", "boolean", "integer", "number", "object", "string"]},
            "VARIANT",
            [],
        ),
        ({"type": "string", "x-spark-type": "char(2)"}, "STRING", ['x-spark-type "char(2)"']),
        ({"type": "string", "maxLength": 2, "x-spark-type": "char(2)"}, "CHAR(2)", []),
        (
            {"type": "string", "maxLength": 3, "x-spark-type": "char(2)"},
            "VARCHAR(3)",
            ['x-spark-type "char(2)"'],
        ),
        ({"type": "string", "x-spark-type": 5}, "STRING", ["x-spark-type 5"]),
        ({"type": "string", "tpye": "x"}, "STRING", ['tpye "x"']),
        ({"$ref": "#/$defs/code"}, "VARCHAR(4)", []),
        ({"$ref": "#/$defs/code", "pattern": "A"}, "VARCHAR(4)", ['pattern "A"']),
        ({"$ref": "#/definitions/a~1b%25"}, "DATE", []),
        ({"$ref": "#/$defs/choices/anyOf/0"}, "BOOLEAN", []),
        ({"allOf": [{"$ref": "#/$defs/code"}]}, "VARCHAR(4)", []),
        ({"anyOf": [{"oneOf": [{"type": "boolean"}]}]}, "BOOLEAN", []),
        ({"type": "string", "not": {"const": "x"}}, "STRING", ['not {"const": "x"}']),
    ],
    ids=str,
)
def test_each_json_schema_has_its_spark_type(
    schema: dict[str, Any], ddl: str, unsaid: list[str]
) -> None:
    places: dict[str, Any] = {
        "$defs": {
            "code": {"type": "string", "maxLength": 4},
            "choices": {"anyOf": [{"type": "boolean"}]},
        },
        "definitions": {"a/b%": {"type": "string", "format": "date"}},
    }
    reading = from_json_schema(of_column(schema, **places))
    assert reading.schema.ddl == f"a {ddl} NOT NULL"
    assert sorted(whats(reading.unsaid)) == unsaid
    optional = from_json_schema(of_column(schema, **places) | {"required": []})
    assert optional.schema.ddl == f"a {ddl}"


@pytest.mark.parametrize(
    ("schema", "canonical"),
    [
        ({"type": ["string", "null"]}, "string?"),
        ({"type": "string", "nullable": True}, "string?"),
        ({"type": "string", "nullable": False}, "string!"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}, "string?"),
        ({"oneOf": [{"type": ["null"]}, {"$ref": "#/$defs/s"}]}, "struct<>?"),
        ({"anyOf": [{"const": None}, {"type": "integer"}]}, "bigint?"),
        ({"anyOf": [{"enum": [None]}, {"type": "integer"}]}, "bigint?"),
        ({"anyOf": [{"type": "null"}]}, "void?"),
        ({"type": "null"}, "void?"),
        ({"const": None}, "void?"),
        ({"enum": ["a", None]}, "string?"),
        ({}, "variant?"),
        (True, "variant?"),
        ({"type": "array", "items": {"type": ["integer", "null"]}}, "array<bigint?>!"),
        ({"type": "array", "items": True}, "array<variant?>!"),
        ({"additionalProperties": {"type": "number"}}, "map<string,double!>!"),
    ],
    ids=str,
)
def test_a_value_may_be_null_where_the_schema_allows_it(schema: Any, canonical: str) -> None:
    document = of_column(schema) | {"$defs": {"s": {"type": "object", "properties": {}}}}
    found = from_json_schema(document).schema.canonical
    assert found.startswith(f'strata-schema/1:struct<"a":{canonical}')


def test_the_paths_of_what_is_unsaid_are_those_of_the_columns() -> None:
    document = {
        "description": "orders",
        "type": ["object", "null"],
        "properties": {
            "a.b": {"type": "string", "pattern": "x", "description": "kept"},
            "tags": {"type": "array", "items": {"type": "string", "description": "of a tag"}},
            "m": {
                "propertyNames": {"pattern": "y"},
                "additionalProperties": {"type": "integer", "minimum": 1},
            },
        },
    }
    reading = from_json_schema(document)
    assert reading.schema.columns[0].comment == "kept"
    assert reading.unsaid == (
        Unsaid("", 'description "orders"'),
        Unsaid("`a.b`", 'pattern "x"'),
        Unsaid("tags.element", 'description "of a tag"'),
        Unsaid("m.key", 'pattern "y"'),
        Unsaid("m.value", "minimum 1"),
        Unsaid("", "the whole object may be null"),
    )


def test_one_definition_serves_many_columns_and_the_use_has_the_last_word() -> None:
    document = {
        "$ref": "#/$defs/order",
        "$defs": {
            "order": {
                "type": "object",
                "properties": {
                    "bill": {"$ref": "#/$defs/address", "description": "where the bill goes"},
                    "ship": {"$ref": "#/$defs/address"},
                },
            },
            "address": {
                "type": "object",
                "description": "an address",
                "properties": {"street": {"type": "string"}},
            },
        },
    }
    reading = from_json_schema(document)
    assert reading.schema.ddl == (
        "bill STRUCT<street: STRING> COMMENT 'where the bill goes', "
        "ship STRUCT<street: STRING> COMMENT 'an address'"
    )
    assert reading.unsaid == ()


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": ["string", "integer"]}, "column a is a union of integer and string, .* one type"),
        ({"enum": ["a", 1]}, "column a is a union of integer and string"),
        (
            {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
            "column a has 2 schemas in anyOf, and a column has one; make it an object",
        ),
        ({"allOf": [{}, {}]}, "column a has 2 schemas in allOf.*; write all that holds in one"),
        ({"anyOf": []}, "column a must have a list of schemas as anyOf"),
        ({"oneOf": 5}, "column a must have a list of schemas as oneOf"),
        ({"anyOf": [5]}, "column a must be an object, not 5"),
        ({"type": "array", "prefixItems": [{}]}, "column a is a tuple.*; use one schema in items"),
        ({"type": "array", "items": [{}]}, "column a is a tuple"),
        ({"type": "array", "items": False}, "column a.element may have no value at all; leave it"),
        ({"type": "object", "patternProperties": {}}, "column a has patternProperties"),
        ({"$ref": "#"}, "column a refers to #, which it is inside of.* unroll it"),
        ({"$ref": "#/properties/a"}, "column a refers to #/properties/a, which it is inside of"),
        ({"$ref": "#/$defs/loop"}, "column a refers to #/\\$defs/loop, which it is inside of"),
        ({"$ref": "#/$defs/tree"}, "column a.element.x refers to #/\\$defs/tree, which it is"),
        ({"$ref": "#/$defs/none"}, "refers to #/\\$defs/none, which the document does not have"),
        ({"$ref": "#/$defs/list/7"}, "which the document does not have"),
        ({"$ref": "#/$defs/list/²"}, "which the document does not have"),
        ({"$ref": "#/$defs/list/0"}, "column a must be an object, not 1"),
        ({"$ref": "https://example.com/x.json"}, "is not a place in this document; copy it into"),
        ({"$ref": "other.json#/a"}, "is not a place in this document"),
        ({"$ref": "#anchor"}, "is not a place in this document"),
        ({"$ref": 5}, "column a has the \\$ref 5; use text"),
        ({"$dynamicRef": "#x"}, "column a has a \\$dynamicRef, which only a validator follows"),
        (
            {"$ref": "#/$defs/code", "maxLength": 5},
            "column a has 'maxLength' both next to a reference and in its target",
        ),
        ({"type": "strin"}, "column a has the type 'strin'; use one of array, boolean"),
        ({"type": []}, "column a has the type \\[\\]"),
        ({"type": [["string"]]}, "column a has the type"),
        ({"type": None}, "column a has the type None"),
        ({"enum": []}, "column a has the enum \\[\\]; list its values"),
        ({"enum": "ab"}, "column a has the enum 'ab'"),
        ({"type": "string", "format": ["date"]}, "column a has the format .*; use text"),
        ({"type": "string", "maxLength": -1}, "column a has the maxLength -1; use a whole number"),
        ({"type": "string", "maxLength": True}, "column a has the maxLength True"),
        ({"type": "string", "maxLength": 1.5}, "column a has the maxLength 1.5"),
        ({"type": "string", "description": 5}, "column a has the description 5; use text"),
        ({"type": "object", "properties": []}, "column a must have an object as properties"),
        ({"properties": {"x": 5}}, "column a.x must be an object, not 5"),
        ({"properties": {"": {}}}, "column a.`` has an empty name"),
        ({"properties": {"x": {}}, "required": True}, "column a must have a list of names"),
        ({"properties": {"x": {}}, "required": [5]}, "column a must have a list of names"),
        ({"additionalProperties": 5}, "column a.value must be an object, not 5"),
        ({"propertyNames": {"type": "integer"}, "type": "object"}, "column a.key is integer, and"),
        (
            {"type": "integer", "maximum": 2**64 - 1},
            "column a may be as large as 18446744073709551615, .* decimal",
        ),
        (
            {"type": "integer", "exclusiveMinimum": float("-inf")},
            "column a may be as large as -inf",
        ),
        (False, "column a may have no value at all"),
        (None, "column a must be an object, not None"),
        (5, "column a must be an object, not 5"),
    ],
    ids=lambda case: str(case)[:60],
)
def test_what_a_column_cannot_be_is_refused_by_name(schema: Any, problem: str) -> None:
    places = {
        "code": {"type": "string", "maxLength": 4},
        "loop": {"$ref": "#/$defs/other"},
        "other": {"$ref": "#/$defs/loop"},
        "tree": {"type": "array", "items": {"properties": {"x": {"$ref": "#/$defs/tree"}}}},
        "list": [1],
    }
    with pytest.raises(InvalidSchema, match=problem):
        from_json_schema(of_column(schema) | {"$defs": places})


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("{", "JSON is malformed"),
        ("true", "a schema must be an object or its JSON text, not bool"),
        ("", "JSON is malformed"),
        (None, "not NoneType"),
        (["type"], "not list"),
        ({}, "the schema must be an object with properties; wrap it in one"),
        ({"type": "string"}, "the schema must be an object with properties"),
        ({"type": "array", "items": {}}, "the schema must be an object with properties"),
        ({"type": "object"}, "the schema must be an object with properties"),
        ({"type": "object", "properties": {}}, "at least one column"),
        ({"$ref": "#"}, "the schema refers to #, which it is inside of"),
        ({1: "x"}, "a document's keys must be text, not int"),
        ({"properties": {"a": {}, "A": {}}}, "column A differs from a only in case"),
        ({"properties": {"a": {"type": "string", "default": {1, 2}}}}, "what JSON has, not set"),
    ],
    ids=lambda case: str(case)[:60],
)
def test_bad_documents_are_refused_with_the_reason(document: Any, problem: str) -> None:
    with pytest.raises(InvalidSchema, match=problem):
        from_json_schema(document)
