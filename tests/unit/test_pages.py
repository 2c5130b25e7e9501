"""The pages: their tables of states, settings, counters, rules and errors are those of the code."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from catalog import CacheMetrics, errors
from catalog.backups.difference import BEHAVIOURS
from catalog.cache.metrics import gauges_of
from catalog.commit.operation_rows import OperationState
from catalog.contracts.model import Enforcement
from catalog.objects.platform import LIFE, PLATFORM
from catalog.objects.retention_rules import _FIELDS
from catalog.retention.archive import MANIFEST
from catalog.settings.model import KNOWN
from catalog.settings.types import duration_text
from catalog.sql.platform_views import PLATFORM_VIEWS
from catalog.tasks.kinds import TASKS
from tests.unit.objects.platform import BREAKS

DOCS = Path(__file__).parents[2] / "docs"
ERRORS = (DOCS.parent / "catalog" / "errors.py").read_text(encoding="utf-8")


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def table(name: str, header: str) -> str:
    """The rows of the table that has this header."""
    return page(name).partition(header)[2].partition("\n\n")[0]


def words(rows: str) -> list[str]:
    """The first word of each row."""
    return re.findall(r"^\| `([\w-]+)` \|", rows, re.MULTILINE)


def errors_of(capability: str) -> list[str]:
    """The names of the errors in one section of `errors.py`."""
    section = ERRORS.partition(f"# --- {capability}")[2].partition("\n# --- ")[0]
    return re.findall(r"^class (\w+)\(", section, re.MULTILINE)


def test_the_page_on_operations_and_its_picture_have_every_state() -> None:
    assert words(table("operations", "| state | meaning |")) == [*OperationState]
    drawn = {"".join(each.itertext()) for each in ElementTree.parse(DOCS / "operation.svg").iter()}
    assert drawn >= {*OperationState}


@pytest.mark.parametrize(
    ("name", "capability", "others"),
    [
        ("operations", "operations", ["InvalidEpoch", "SchemaVersionMismatch", "RuleViolation"]),
        ("objects", None, ["UnknownObject", "ObjectInUse", "RuleViolation"]),
        ("backups", "backups", ["LayoutTooNew", "ClaimConflict", "VersionNotFound"]),
    ],
)
def test_a_page_has_every_error_of_its_capability(
    name: str, capability: str | None, others: list[str]
) -> None:
    found = errors_of(capability) if capability else []
    assert capability is None or len(found) >= 4
    for error in (*found, *others):
        assert hasattr(errors, error)
        assert f"`{error}`" in page(name), error


def test_the_page_on_backups_says_of_every_kind_how_it_goes_back() -> None:
    rows = table("backups", "| kind of row | in a rollback | |")
    said = {
        kind: behaviour
        for kinds, behaviour in re.findall(r"^\| (`.+?`) \| ([\w-]+) \|", rows, re.MULTILINE)
        for kind in re.findall(r"`(\w+)`", kinds)
    }
    assert said == {kind: behaviour.value for kind, behaviour in BEHAVIOURS.items()}


def test_the_page_on_contracts_has_every_enforcement() -> None:
    assert words(table("contracts", "| enforcement |")) == [*Enforcement]


def test_the_page_on_caches_has_every_counter_with_its_meaning() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(strata_cache_\w+)` \| (.+) \|$", page("cache"), re.M)
    assert rows == [
        (gauge.name.removeprefix("strata_cache_"), gauge.name, gauge.text)
        for gauge in gauges_of(CacheMetrics(version=1))
    ]


def test_the_page_on_settings_has_every_setting_with_its_default_and_help() -> None:
    rows = table("settings", "| setting | default |")
    found = re.findall(r"^\| `([\w.]+)` \|(.*)\| (.+) \|$", rows, re.MULTILINE)
    assert [(name, default.strip(), text) for name, default, text in found] == [
        (known.name, _shown(known.default), known.help) for known in KNOWN
    ]


def _shown(default: Any) -> str:
    if default is None:
        return ""
    return duration_text(default) if isinstance(default, timedelta) else str(default)


def test_the_page_on_tasks_has_every_task() -> None:
    assert set(words(table("tasks", "| task | steps |"))) == TASKS.keys()


def test_the_page_on_retention_has_every_field_of_a_rule_and_of_the_manifest() -> None:
    assert words(table("retention", "| in the body |")) == [*_FIELDS]
    named = re.findall(r"^\| ([\w, ]+) \|", table("retention", "| column |"), re.MULTILINE)
    assert ", ".join(named).split(", ") == MANIFEST.names


def test_the_page_on_objects_has_every_type_with_its_fields_every_state_view_and_rule() -> None:
    text = page("objects")
    rows: dict[str, str] = {}  # a type and a rule may have the same name
    for name, row in re.findall(r"^\| `(\w+)` \| (.+) \|$", text, re.MULTILINE):
        rows[name] = rows.get(name, "") + row
    for declared in PLATFORM:
        for name in declared.all_fields:
            assert re.search(rf"\b{name}\b", rows[declared.name]), (declared.name, name)
    assert all(f"`{state}`" in text for state in LIFE.words)
    assert all(f"`{view.name}`" in text for view in PLATFORM_VIEWS)
    assert {rule for _, rule, _ in BREAKS.values()} <= rows.keys()
