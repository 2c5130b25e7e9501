"""Views of types: a column for each part of the key and each field, all with a comment."""

from __future__ import annotations

import pytest

from catalog.delta.layout import View
from catalog.objects.declarations import Types
from catalog.objects.fields import (
    BodyField,
    anything,
    boolean,
    declared_fields,
    list_of,
    number,
    one_of,
    record,
    secret,
    text,
    whole,
)
from catalog.objects.platform import PLATFORM
from catalog.sql.platform_views import PLATFORM_VIEWS, sql_type, view_of


@pytest.mark.parametrize(
    ("field", "type"),
    [
        (text(), "STRING"),
        (whole(), "BIGINT"),
        (number(), "DOUBLE"),
        (boolean(), "BOOLEAN"),
        (one_of("a"), "STRING"),
        (secret(), "STRING"),
        (anything(), "STRING"),
        (declared_fields(), "STRING"),
        (list_of(whole()), "ARRAY<BIGINT>"),
        (list_of(list_of(anything())), "ARRAY<ARRAY<STRING>>"),
        (record({"a": whole(), "b": list_of(text())}), "STRUCT<a: BIGINT, b: ARRAY<STRING>>"),
    ],
)
def test_a_field_has_the_type_that_spark_has_for_it(field: BodyField, type: str) -> None:
    assert sql_type(field) == type


@pytest.mark.parametrize("view", PLATFORM_VIEWS, ids=lambda view: view.name)
def test_every_column_has_a_comment_and_a_type(view: View) -> None:
    assert view.comment
    assert all(view.columns.values())
    assert view.types.keys() <= view.columns.keys()


def test_columns_are_the_parts_of_the_key_the_fields_and_what_all_objects_have() -> None:
    views = {declared.name: view_of(Types(PLATFORM), declared) for declared in PLATFORM}
    last = ["revision", "changed_at", "changed_by"]
    assert [*views["replica"].columns] == [
        *("key", "datastore", "shard", "name", "node", "role", "state"),
        *last,
    ]
    assert [*views["datastore_link"].columns] == ["key", "database", "datastore", "role", *last]
    assert [*views["retention"].columns][:3] == ["key", "owner_type", "owner"]
    assert "datasource" in views["table"].columns
