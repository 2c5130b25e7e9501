"""Laws of the canonical form and the fingerprint, and the vectors that pin them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    DoubleType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from catalog.schema import Schema

from .strategies import schemas, shape, shuffled, tiny_schemas

PAGE = Path(__file__).parents[3] / "docs" / "fingerprint.md"
VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text("utf-8"))


def definition(vector: dict[str, Any]) -> Any:
    return vector["ddl"] if "ddl" in vector else vector["json"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["fingerprint"][:8])
def test_a_pinned_vector_keeps_its_form_and_hashes(vector: dict[str, Any]) -> None:
    schema = Schema.of(definition(vector))
    assert schema.canonical == vector["canonical"]
    assert schema.fingerprint == vector["fingerprint"]
    assert schema.digest == vector["digest"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["fingerprint"][:8])
def test_hashes_are_those_of_the_forms_utf8(vector: dict[str, Any]) -> None:
    form = vector["canonical"].encode("utf-8")
    assert xxhash.xxh3_128(form).hexdigest() == vector["fingerprint"]
    assert hashlib.sha256(form).hexdigest() == vector["digest"]


def test_there_are_enough_vectors_to_pin_every_atom() -> None:
    forms = " ".join(vector["canonical"] for vector in VECTORS)
    atoms = (
        "boolean tinyint smallint int bigint float double decimal(38,18) string char(3) binary "
        "date timestamp timestamp_ntz time(6) void variant interval geometry(4326) geography(4326)"
    )
    assert len(VECTORS) >= 30
    assert [atom for atom in atoms.split() if f":{atom}?" not in forms.replace("!", "?")] == []


def test_the_canonical_form_reads_as_specified() -> None:
    struct = StructType(
        [
            StructField("b", MapType(StringType(), DoubleType(), False), True),
            StructField(
                "a", ArrayType(StructType([StructField("x", IntegerType(), False)])), False
            ),
        ]
    )
    assert Schema.of(struct).canonical == (
        'strata-schema/1:struct<"a":array<struct<"x":int!>?>!,"b":map<string,double!>?>'
    )


def test_the_example_in_the_documentation_is_true() -> None:
    page = PAGE.read_text("utf-8")
    example = page.partition("### An example\n")[2].partition("has the canonical form")[0]
    schema = Schema.of(example)
    assert f"    {schema.canonical}\n" in page
    assert f"`{schema.fingerprint}`" in page


@given(schemas, st.integers(0, 2**16))
def test_order_of_columns_at_any_level_does_not_matter(struct: StructType, seed: int) -> None:
    other = shuffled(struct, seed)
    assert isinstance(other, StructType)
    assert Schema.of(other).fingerprint == Schema.of(struct).fingerprint


@given(tiny_schemas, tiny_schemas)
def test_two_schemas_share_a_form_exactly_when_they_have_one_shape(
    one: StructType, other: StructType
) -> None:
    same = shape(one) == shape(other)
    assert (Schema.of(one).canonical == Schema.of(other).canonical) is same
    assert (Schema.of(one) == Schema.of(other)) is same


@given(schemas, schemas)
def test_no_two_shapes_share_a_form(one: StructType, other: StructType) -> None:
    assert (Schema.of(one).canonical == Schema.of(other).canonical) is (shape(one) == shape(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a INT", "a INT COMMENT 'the same'"),
        ("a INT, b STRING", "b STRING, a INT"),
        ("a INT, b BIGINT, c DECIMAL", "a integer, b long, c numeric(10,0)"),
        ("a STRUCT<x: INT, y: INT>", "a: struct<y int comment 'c', x int>"),
        ("a STRING", "a STRING COLLATE utf8_binary"),
        ("a STRING COLLATE UNICODE_CI_AI", "a STRING COLLATE unicode_ai_ci"),
        ("a TIMESTAMP", "a TIMESTAMP_LTZ"),
        ("a TIMESTAMP_NTZ", "a TIMESTAMP WITHOUT TIME ZONE"),
        ("a TIME", "a TIME(6)"),
    ],
)
def test_comments_order_and_spelling_do_not_matter(one: str, other: str) -> None:
    assert Schema.of(one).fingerprint == Schema.of(other).fingerprint


def test_metadata_does_not_matter() -> None:
    plain = StructType([StructField("a", IntegerType())])
    noted = StructType([StructField("a", IntegerType(), True, {"unit": "m", "nested": {"k": [1]}})])
    assert Schema.of(plain).fingerprint == Schema.of(noted).fingerprint


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a INT", "a INT NOT NULL"),
        ("a INT", "A INT"),
        ("a INT", "a BIGINT"),
        ("a INT", "a INT, b INT"),
        ("a DECIMAL(10,2)", "a DECIMAL(10,3)"),
        ("a VARCHAR(3)", "a CHAR(3)"),
        ("a STRING", "a VARCHAR(3)"),
        ("a STRING", "a STRING COLLATE UNICODE"),
        ("a STRUCT<x: INT>", "a STRUCT<x: INT NOT NULL>"),
        ("a STRUCT<x: INT>", "a STRUCT<X: INT>"),
        ("a STRUCT<x: INT>, y INT", "a STRUCT<x: INT, y: INT>"),
        ("a STRUCT<x: INT>", "a ARRAY<STRUCT<x: INT>>"),
        ("a MAP<STRING, INT>", "a MAP<INT, STRING>"),
        ("`a.x` INT", "a STRUCT<x: INT>"),
        ("a INTERVAL DAY", "a INTERVAL DAY TO HOUR"),
        ("a TIMESTAMP", "a TIMESTAMP_NTZ"),
        ("`\u00e9` INT", "`e\u0301` INT"),
    ],
)
def test_names_types_nullability_and_nesting_matter(one: str, other: str) -> None:
    assert Schema.of(one).fingerprint != Schema.of(other).fingerprint


def test_nullability_of_elements_and_values_matters() -> None:
    forms = {
        Schema.of(StructType([StructField("a", kind)])).fingerprint
        for kind in (
            ArrayType(IntegerType(), True),
            ArrayType(IntegerType(), False),
            MapType(IntegerType(), IntegerType(), True),
            MapType(IntegerType(), IntegerType(), False),
        )
    }
    assert len(forms) == 4
