"""Rules of retention: what is refused, and which one holds for a datasource."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.errors import InvalidObject
from catalog.objects.model import ObjectNode, canonical
from catalog.objects.retention_rules import RetentionAction, RetentionRule, Scope, assigned, rule_of

KEY = "retention/datasource/orders"
DROP = {"max_age_days": 30, "action": "drop"}


def node(key: str, body: dict[str, Any] | None = None, datasource: str | None = None) -> ObjectNode:
    """An object as it is read."""
    return ObjectNode(key, key, 1, canonical(body or {}), {}, None, datasource, "")


def table(key: str, datasource: str | None) -> ObjectNode:
    return node(f"table/{key}", datasource=datasource)


def test_a_rule_is_what_its_body_says() -> None:
    body = {"max_age_days": 0.5, "max_segments": 10, "keep_at_least": 2, "action": "archive"}
    assert rule_of(KEY, body) == RetentionRule(
        KEY, Scope.DATASOURCE, "orders", 0.5, 10, 2, RetentionAction.ARCHIVE, enabled=True
    )
    database = rule_of("retention/database/sales", DROP | {"enabled": False})
    assert (database.scope, database.name) == (Scope.DATABASE, "sales")
    assert (database.max_segments, database.keep_at_least, database.enabled) == (None, 0, False)
    assert database.oldest_kept(30 * 86_400_000_000 + 7) == 7


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"action": "drop"}, "neither max_age_days nor max_segments"),
        ({"action": "drop", "keep_at_least": 1}, "neither max_age_days nor max_segments"),
        (DROP | {"max_age_days": 0}, "max_age_days 0; give a number of days above 0"),
        (DROP | {"max_age_days": -1}, "max_age_days -1"),
        (DROP | {"max_age_days": 365_001}, "up to 365000"),
        (DROP | {"max_age_days": float("nan")}, "max_age_days nan"),
        (DROP | {"max_age_days": True}, "max_age_days True"),
        (DROP | {"max_age_days": "30"}, "max_age_days '30'"),
        (DROP | {"max_segments": 0}, "max_segments 0; give a whole number from 1"),
        (DROP | {"max_segments": 1.5}, "max_segments 1.5"),
        (DROP | {"max_segments": True}, "max_segments True"),
        (DROP | {"max_segments": 1 << 31}, "to 2147483647"),
        (DROP | {"keep_at_least": -1}, "keep_at_least -1; give a whole number from 0"),
        (DROP | {"max_segments": 3, "keep_at_least": 4}, "at least 4 segments and at most 3"),
        ({"max_age_days": 1}, "action None; say drop or archive"),
        (DROP | {"action": "delete"}, "action 'delete'; say drop or archive"),
        (DROP | {"action": ["drop"]}, "say drop or archive"),
        (DROP | {"enabled": "no"}, "enabled 'no'; say true or false"),
        (DROP | {"enabled": 0}, "enabled 0; say true or false"),
        (DROP | {"max_age": 1}, "has 'max_age'; it may have max_age_days"),
    ],
)
def test_a_bad_rule_is_refused_with_its_key_and_the_way_out(
    body: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidObject, match=KEY) as refused:
        rule_of(KEY, body)
    assert says in refused.value.message


@pytest.mark.parametrize(
    "key",
    [
        "retention/orders",
        "retention/table/orders",
        "retention/datasource",
        "retention/database/a/b",
    ],
)
def test_a_rule_under_another_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidObject, match="retention/datasource/<name>"):
        rule_of(key, DROP)


def test_a_rule_of_the_datasource_wins_over_that_of_the_database_also_to_exempt_it() -> None:
    found = assigned(
        [
            table("sales/orders", "orders"),
            table("sales/visits", "visits"),
            table("sales/exempt", "exempt"),
            table("sales/view", None),
            table("other/clicks", "clicks"),
            table("alone", "alone"),
            node("retention/database/sales", DROP),
            node("retention/database/alone", DROP),
            node(KEY, DROP | {"max_age_days": 7}),
            node("retention/datasource/exempt", DROP | {"enabled": False}),
            node("retention/datasource/tableless", DROP),
        ]
    )
    assert {name: rule.key for name, rule in found.rules.items()} == {
        "orders": KEY,
        "visits": "retention/database/sales",
        "tableless": "retention/datasource/tableless",
    }
    assert (found.troubled, found.refused) == ({}, {})
    assert found.ruled == {"orders", "visits", "exempt", "tableless"}


def test_a_bad_rule_holds_for_nothing_and_lets_no_other_take_its_place() -> None:
    objects = [
        table("sales/orders", "orders"),
        table("sales/visits", "visits"),
        table("bad/clicks", "clicks"),
        table("sales/shared", "shared"),
        table("bad/shared", "shared"),
        node("retention/database/sales", DROP),
        node("retention/database/bad", {"action": "drop"}),
        node(KEY, {}),
        node("retention/nonsense", DROP),
    ]
    found = assigned(objects)
    assert found.rules.keys() == {"visits"}
    assert found.refused.keys() == {"retention/database/bad", KEY, "retention/nonsense"}
    assert found.troubled == {}
    some = assigned(objects, ["clicks", "visits", "unknown"])
    assert some.rules.keys() == {"visits"}
    assert some.refused.keys() == {"retention/database/bad"}
    assert some.ruled == {"clicks", "visits"}


def test_rules_of_two_databases_for_one_datasource_are_trouble_unless_one_is_not_enabled() -> None:
    tables = [table("a/t", "shared"), table("b/t", "shared")]
    first = node("retention/database/a", DROP)
    found = assigned([*tables, first, node("retention/database/b", DROP)])
    assert found.rules == {}
    assert "retention/database/a, retention/database/b" in found.troubled["shared"]
    off = node("retention/database/b", DROP | {"enabled": False})
    assert assigned([*tables, first, off]).rules["shared"].key == "retention/database/a"
