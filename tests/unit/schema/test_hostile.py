"""Documents that mean harm, or nothing: they end in a schema or in InvalidSchema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from catalog.errors import InvalidSchema
from catalog.schema import Schema
from catalog.schema.avro import from_avro, to_avro
from catalog.schema.json_schema import from_json_schema, to_json_schema

from .dialect_strategies import avro_schemas, json_schemas

KEYWORDS = [
    *("type", "properties", "required", "items", "additionalProperties", "propertyNames"),
    *("enum", "const", "format", "maxLength", "minimum", "maximum", "nullable", "default"),
    *("$ref", "$defs", "anyOf", "oneOf", "allOf", "description", "x-spark-type", "a"),
]
ATTRIBUTES = [
    *("type", "name", "namespace", "fields", "items", "values", "symbols", "size", "doc"),
    *("default", "aliases", "logicalType", "precision", "scale", "spark.type", "a"),
]
WORDS = [
    *("object", "array", "string", "integer", "number", "null", "date", "base64", "varchar(3)"),
    *("record", "map", "enum", "fixed", "bytes", "int", "long", "decimal", "r", "a"),
    *("#", "#/$defs/a"),
]
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(WORDS), st.text()
)


def documents(keys: list[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.sampled_from(keys), inner, max_size=5),
        ),
        max_leaves=20,
    )


def settle(read: Any, document: Any) -> None:
    try:
        schema = read(document).schema
    except InvalidSchema:
        return
    assert Schema.of(schema.json) == schema


@given(st.dictionaries(st.sampled_from(KEYWORDS), documents(KEYWORDS)))
def test_any_object_is_read_as_json_schema_or_refused(document: dict[str, Any]) -> None:
    settle(from_json_schema, document)
    settle(from_json_schema, {"properties": {"a": document}, "$defs": {"a": document}})


@given(st.dictionaries(st.sampled_from(ATTRIBUTES), documents(ATTRIBUTES)))
def test_any_object_is_read_as_avro_or_refused(document: dict[str, Any]) -> None:
    settle(from_avro, document)
    fields = [{"name": "a", "type": document}, {"name": "b", "type": "a"}]
    settle(from_avro, {"type": "record", "name": "r", "fields": fields})


@given(json_schemas, st.data())
def test_a_json_schema_with_a_wrong_part_is_read_or_refused(
    struct: StructType, data: st.DataObject
) -> None:
    document = to_json_schema(Schema.of(struct)).document
    settle(from_json_schema, spoilt(document, data, KEYWORDS))


@given(avro_schemas, st.data())
def test_an_avro_schema_with_a_wrong_part_is_read_or_refused(
    struct: StructType, data: st.DataObject
) -> None:
    document = to_avro(Schema.of(struct)).document
    settle(from_avro, spoilt(document, data, ATTRIBUTES))


def spoilt(document: dict[str, Any], data: st.DataObject, keys: list[str]) -> dict[str, Any]:
    """A copy of the document with something else in one of its places."""
    copy: dict[str, Any] = json.loads(json.dumps(document))
    places: list[tuple[Any, Any]] = []
    pending = [copy]
    while pending:
        holder = pending.pop()
        inside = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for key, value in inside:
            places.append((holder, key))
            if isinstance(value, dict | list):
                pending.append(value)
    holder, key = data.draw(st.sampled_from(places))
    holder[key] = data.draw(documents(keys))
    return copy


# --- deep, wide, round ---------------------------------------------------------------------------


def deep_json(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return {"type": "object", "properties": {"a": schema}}


def deep_avro(levels: int) -> dict[str, Any]:
    kind: Any = "string"
    for _ in range(levels):
        kind = {"type": "array", "items": kind}
    return {"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]}


def deep_records(levels: int) -> dict[str, Any]:
    kind: dict[str, Any] = {"type": "string"}
    for level in range(levels):
        field = {"name": "s", "type": ["null", kind]}
        kind = {"type": "record", "name": f"r{level}", "fields": [field]}
    return kind


def round_mapping(word: str, kind: str) -> dict[str, Any]:
    document: dict[str, Any] = {"type": kind}
    document[word] = document
    return document


def doubling_json(levels: int) -> dict[str, Any]:
    places: dict[str, Any] = {"d0": {"type": "string"}}
    for level in range(levels):
        ref = {"$ref": f"#/$defs/d{level}"}
        places[f"d{level + 1}"] = {"type": "object", "properties": {"a": ref, "b": ref}}
    return {"$ref": f"#/$defs/d{levels}", "$defs": places}


def doubling_avro(levels: int) -> dict[str, Any]:
    fields: list[dict[str, Any]] = []
    for level in range(levels):
        inner = [
            {"name": name, "type": "string" if level == 0 else f"d{level - 1}"} for name in "ab"
        ]
        kind = {"type": "record", "name": f"d{level}", "fields": inner}
        fields.append({"name": f"c{level}", "type": kind})
    return {"type": "record", "name": "r", "fields": fields}


def doubling_objects(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema, "b": schema}}
    return schema


def many_refs(count: int) -> dict[str, Any]:
    places: dict[str, Any] = {
        f"d{place}": {"$ref": f"#/$defs/d{place + 1}"} for place in range(count)
    }
    return {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": places}


def shared_enum(columns: int, values: int) -> dict[str, Any]:
    properties = {f"c{place}": {"$ref": "#/$defs/e"} for place in range(columns)}
    return {"properties": properties, "$defs": {"e": {"enum": list(range(values))}}}


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (deep_json(65), "nested deeper than 64 levels"),
        (deep_json(5_000), "at most 300 levels"),
        ('{"properties":' * 200_000, "nested too deeply|malformed"),
        (round_mapping("items", "array"), "at most 300 levels"),
        (doubling_json(30), "unfolds into too many types"),
        (doubling_objects(30), "1000000 parts"),
        (many_refs(10_000), "takes more than 100 references"),
        (shared_enum(1_000, 10_000), "unfolds into too many types"),
    ],
    ids=["deep", "deeper", "text", "round", "doubling", "shared", "references", "enum"],
)
def test_a_json_schema_that_never_ends_is_refused(document: Any, problem: str) -> None:
    with pytest.raises(InvalidSchema, match=problem):
        from_json_schema(document)


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (deep_avro(65), "nested deeper than 64 levels"),
        (deep_records(66), "nested deeper than 64 levels"),
        (deep_avro(5_000), "at most 300 levels"),
        ('{"type":' * 200_000, "nested too deeply|malformed"),
        (round_mapping("items", "array"), "at most 300 levels"),
        (doubling_avro(30), "unfolds into too many types"),
    ],
    ids=["deep", "records", "deeper", "text", "round", "doubling"],
)
def test_an_avro_schema_that_never_ends_is_refused(document: Any, problem: str) -> None:
    with pytest.raises(InvalidSchema, match=problem):
        from_avro(document)


def test_the_deepest_schemas_that_the_rules_allow_go_there_and_back() -> None:
    ddl = "a " + "STRUCT<s: " * 64 + "INT" + ">" * 64
    schema = Schema.of(ddl)
    assert from_avro(to_avro(schema).document).schema == schema
    assert from_json_schema(to_json_schema(schema).document).schema == schema


def test_reading_leaves_the_document_as_it_was() -> None:
    avro = to_avro(Schema.of("a INT, s STRUCT<x: SMALLINT>")).document
    jsons = to_json_schema(Schema.of("a INT, s STRUCT<x: SMALLINT>")).document
    before = json.dumps([avro, jsons])
    from_avro(avro)
    from_json_schema(jsons)
    assert json.dumps([avro, jsons]) == before
