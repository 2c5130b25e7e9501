"""The schemas that tables name."""

from __future__ import annotations

from typing import Any

from catalog.objects import plan
from catalog.objects.changes import changes_of
from catalog.objects.declarations import Types
from catalog.objects.model import Object, ObjectNode
from catalog.objects.platform import PLATFORM, SchemaName, missing_schemas, named_schemas
from tests.unit.objects.strategies import ids

TYPES = [each for each in PLATFORM if each.name in ("database", "table")]


def state(declared: bool, **tables: dict[str, Any]) -> dict[str, ObjectNode]:
    objects = [Object("database/s"), *(Object(f"table/s/{k}", v) for k, v in tables.items())]
    nodes = plan.put(changes_of(put=objects))({}, ids("put")).nodes
    return dict(plan.declare(TYPES)(nodes, ids("type")).nodes if declared else nodes)


def wanted(before: dict[str, ObjectNode], after: dict[str, ObjectNode]) -> dict[str, SchemaName]:
    return named_schemas(Types.among(after), after, before)


def test_tables_of_a_declared_type_name_schemas_if_they_do() -> None:
    tables: dict[str, dict[str, Any]] = {"a": {"schema": "o"}, "b": {}}
    tables["d"] = {"schema": "o", "schema_version": 2}
    after = state(True, **tables)
    expected = {"table/s/a": ("o", None), "table/s/d": ("o", 2)}
    assert wanted({}, after) == expected
    # Declaring the type is when they begin to count; free in form, they do not.
    assert wanted(state(False, **tables), after) == expected
    assert wanted({}, state(False, **tables)) == {}


def test_what_a_table_named_before_is_not_asked_for_again() -> None:
    before = state(True, a={"schema": "gone"}, b={"schema": "o"})
    after = state(True, a={"schema": "gone", "acl": 1}, b={"schema": "o", "schema_version": 1})
    assert wanted(before, before) == {}
    assert wanted(before, after) == {"table/s/b": ("o", 1)}


def test_names_and_versions_that_are_not_there_break_the_rule_of_references() -> None:
    asked: dict[str, SchemaName] = {
        "a": ("o", None),
        "b": ("o", 2),
        "c": ("o", 3),
        "d": ("p", None),
    }
    found = missing_schemas(asked, {"o": {1, 2}})
    assert [(each.rule, each.key) for each in found] == [("reference", "c"), ("reference", "d")]
    assert "version 3 of the schema 'o', which has 2" in found[0].text
    assert "'p', which is not registered" in found[1].text
