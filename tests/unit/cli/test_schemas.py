"""Schemas on the command line: read from other dialects and written in them."""

from __future__ import annotations

import json

import pytest

from catalog.cli.schemas import DIALECTS, schema_in, written_in
from catalog.cli.shell import shell_parser
from catalog.schema import Schema
from catalog.schema.translation import Unsaid

ORDERS = Schema.of("id BIGINT NOT NULL, amount DECIMAL(12,2)")


@pytest.mark.parametrize(
    ("dialect", "unsaid"),
    [("avro", ()), ("json-schema", (Unsaid("amount", "decimal(12,2) is written as number"),))],
)
def test_a_schema_survives_the_way_through_another_dialect(
    dialect: str, unsaid: tuple[Unsaid, ...]
) -> None:
    document, found = written_in(dialect, ORDERS)
    assert found == unsaid
    assert schema_in(dialect, json.dumps(document)) == (ORDERS, ())


def test_every_dialect_can_be_written() -> None:
    assert written_in("ddl", ORDERS)[0] == ORDERS.ddl
    assert written_in("json", ORDERS)[0]["type"] == "struct"
    assert {dialect for dialect in DIALECTS if written_in(dialect, ORDERS)[0]} == set(DIALECTS)


def test_what_a_dialect_does_not_say_is_named() -> None:
    _, unsaid = written_in("avro", Schema.of("at TIMESTAMP_NTZ, b BYTE"))
    assert {each.path for each in unsaid} == {"b"}


@pytest.mark.parametrize("words", [["x", "--avro", "f"], ["--avro", "f", "--json-schema", "g"], []])
def test_a_registration_takes_one_schema(words: list[str]) -> None:
    with pytest.raises(SystemExit):
        shell_parser().parse_args(["names", "register", "orders", *words])
