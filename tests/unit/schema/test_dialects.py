"""The dialects by name: `Schema.of(..., dialect=)` and `Schema.to`."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from pyspark.sql.types import IntegerType, StructField, StructType

from catalog.errors import InvalidInput, InvalidSchema
from catalog.schema import Schema
from catalog.schema.avro import to_avro
from catalog.schema.dialects import Dialect
from catalog.schema.json_schema import to_json_schema

from .dialect_strategies import avro_schemas, json_schemas
from .strategies import arrow_schemas, ddl_schemas, schemas

ONE = Schema.of("a INT")


@pytest.mark.parametrize(
    ("dialect", "form"),
    [
        ("ddl", "a INT"),
        ("json", ONE.json),
        ("json", json.loads(ONE.json)),
        ("spark", StructType([StructField("a", IntegerType())])),
        ("arrow", pa.schema({"a": pa.int32()})),
        (
            "avro",
            '{"type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", "int"]}]}',
        ),
        ("avro", to_avro(ONE).document),
        ("json-schema", '{"properties": {"a": {"type": "integer", "format": "int32"}}}'),
        ("json-schema", to_json_schema(ONE).document),
    ],
)
def test_a_schema_is_read_in_every_dialect(dialect: str, form: Any) -> None:
    assert Schema.of(form, dialect) == ONE
    assert Schema.of(form, dialect=Dialect(dialect)) == ONE


@pytest.mark.parametrize(
    ("dialect", "form"),
    [
        ("ddl", "a INT"),
        ("json", ONE.json),
        ("spark", ONE.struct()),
        ("arrow", ONE.arrow()),
        ("avro", to_avro(ONE).document),
        ("json-schema", to_json_schema(ONE).document),
    ],
)
def test_a_schema_is_written_in_every_dialect(dialect: str, form: Any) -> None:
    assert ONE.to(dialect) == form


@given(ddl_schemas)
def test_ddl_comes_back(struct: StructType) -> None:
    schema = Schema.of(struct)
    assert Schema.of(schema.to("ddl"), "ddl") == schema


@given(schemas)
def test_sparks_own_forms_come_back(struct: StructType) -> None:
    schema = Schema.of(struct)
    assert Schema.of(schema.to("json"), "json") == schema
    assert Schema.of(schema.to("spark"), "spark") == schema


@given(arrow_schemas)
def test_arrow_comes_back(struct: StructType) -> None:
    schema = Schema.of(struct)
    assert Schema.of(schema.to("arrow"), "arrow") == schema


@given(avro_schemas, json_schemas)
def test_documents_of_others_come_back(avro: StructType, other: StructType) -> None:
    for struct, dialect in ((avro, "avro"), (other, "json-schema")):
        schema = Schema.of(struct)
        assert Schema.of(schema.to(dialect), dialect) == schema


def test_options_name_the_document() -> None:
    record = ONE.to("avro", name="order", namespace="shop")
    assert (record["name"], record["namespace"]) == ("order", "shop")
    assert ONE.to("json-schema", title="Order")["title"] == "Order"
    assert ONE.to("avro", name=None, namespace=None) == ONE.to("avro")


@pytest.mark.parametrize("dialect", ["xml", "", "Avro", "json_schema"])
def test_an_unknown_dialect_is_refused_with_those_there_are(dialect: str) -> None:
    says = 'dialect must be "ddl", "json", "spark", "arrow", "avro" or "json-schema", not '
    with pytest.raises(InvalidInput, match=says):
        Schema.of("a INT", dialect)
    with pytest.raises(InvalidInput, match=says):
        ONE.to(dialect)


@pytest.mark.parametrize(
    ("dialect", "option", "says"),
    [
        ("ddl", "name", "the dialect ddl has no option name; it has none"),
        ("avro", "title", "the dialect avro has no option title; it has name and namespace"),
        ("json-schema", "name", "the dialect json-schema has no option name; it has title"),
    ],
)
def test_an_unknown_option_is_refused(dialect: str, option: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        ONE.to(dialect, **{option: "x"})


@pytest.mark.parametrize(
    ("dialect", "form", "says"),
    [
        ("ddl", {"a": "int"}, "in the dialect ddl is text, not dict"),
        ("json", ["a"], "in the dialect json is text or a mapping, not list"),
        ("spark", "a INT", "in the dialect spark is a StructType, not str"),
        ("arrow", ONE, "in the dialect arrow is an Arrow schema, not Schema"),
        ("avro", None, "in the dialect avro is text or a mapping, not NoneType"),
        ("ddl", "{}", "DDL is malformed"),
        ("json", "a INT", "JSON is malformed"),
        ("avro", "a INT", "JSON is malformed"),
        ("json", to_avro(ONE).document, 'or name another dialect: "avro" or "json-schema"'),
        ("avro", to_json_schema(ONE).document, "fastavro refuses"),
        ("json-schema", ONE.json, "has the type 'struct'"),
    ],
)
def test_what_a_dialect_does_not_have_is_refused(dialect: str, form: Any, says: str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        Schema.of(form, dialect)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("dialect", "ddl", "says"),
    [
        ("arrow", "a VARIANT", "column a has type variant, which Arrow has no equal of"),
        ("avro", "a VARIANT", "column a has type variant, which Avro has no form of"),
        ("avro", "`a b` INT", "has a name that Avro does not allow"),
        ("json-schema", "a MAP<INT, INT>", "column a.key is not text"),
    ],
)
def test_what_a_dialect_cannot_express_is_refused_with_the_column(
    dialect: str, ddl: str, says: str
) -> None:
    with pytest.raises(InvalidSchema) as refused:
        Schema.of(ddl).to(dialect)
    assert says in str(refused.value)


def test_the_package_is_imported_without_the_dialects_of_others() -> None:
    script = (
        "import sys, catalog\n"
        "print([name for name in ('fastavro', 'catalog.schema.avro') if name in sys.modules])\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout == "[]\n"
