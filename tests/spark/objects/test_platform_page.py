"""The page on the platform, section on objects: its Python runs, and it says what the code has."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog
from catalog.objects.platform import LIFE, PLATFORM
from catalog.sql.platform_views import PLATFORM_VIEWS
from tests.concurrency.gates import assert_promises
from tests.sessions import ROOT
from tests.unit.objects.platform import BREAKS
from tests.unit.test_documents import anchors, command_lines, reads

PAGE = ROOT / "docs" / "platform.md"
TEXT = PAGE.read_text(encoding="utf-8")
SECTION = TEXT.partition("\n## Objects\n")[2].partition("\n## ")[0]


@pytest.mark.stress
def test_the_python_on_objects_runs_in_order_and_so_does_its_query(
    spark: SparkSession, catalog: Catalog
) -> None:
    pattern = r"<!-- tested -->\n```python\n(.+?)^```$"
    blocks = re.findall(pattern, SECTION, re.DOTALL | re.MULTILINE)
    assert len(blocks) == SECTION.count("```python\n") == 7
    names: dict[str, Any] = {"catalog": catalog}
    for number, code in enumerate(blocks, 1):
        exec(compile(code, f"{PAGE.name}, objects, block {number}", "exec"), names)
    assert_promises(catalog)
    views = catalog.inspect.create_views("page_")
    (query,) = re.findall(r"^```sql\n(.+?)^```$", SECTION, re.DOTALL | re.MULTILINE)
    query = query.replace("FROM ", "FROM page_").replace("JOIN ", "JOIN page_")
    assert [tuple(row) for row in spark.sql(query).collect()] == [
        ("main", "all", "n1.example.com", 5432)
    ]
    for view in views:
        spark.catalog.dropTempView(view)


def test_the_page_has_every_type_with_its_fields_every_state_view_and_rule() -> None:
    rows: dict[str, str] = {}  # a type and a rule may have the same name
    for name, text in re.findall(r"^\| `(\w+)` \| (.+) \|$", SECTION, re.MULTILINE):
        rows[name] = rows.get(name, "") + text
    for declared in PLATFORM:
        for name in declared.all_fields:
            assert re.search(rf"\b{name}\b", rows[declared.name]), (declared.name, name)
    assert all(f"`{state}`" in SECTION for state in LIFE.words)
    assert all(f"`{view.name}`" in SECTION for view in PLATFORM_VIEWS)
    assert {rule for _, rule, _ in BREAKS.values()} <= rows.keys()


def test_links_and_command_lines_of_the_page_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", TEXT):
        name, _, anchor = target.partition("#")
        file = PAGE.parent / name if name else PAGE
        assert file.exists(), target
        assert not anchor or anchor in anchors(file.read_text(encoding="utf-8")), target
    lines = list(command_lines(PAGE))
    assert len(lines) >= 6
    assert all(map(reads, lines))
