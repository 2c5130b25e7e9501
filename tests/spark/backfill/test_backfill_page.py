"""The page on schemas that nobody published: its Python runs, and it says what the code has."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import CacheMetrics, Catalog
from catalog.cache.metrics import gauges_of
from tests.sessions import ROOT
from tests.unit.test_documents import anchors, command_lines, reads

PAGE = ROOT / "docs" / "backfill.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.stress
def test_the_python_of_the_page_runs_in_order(
    spark: SparkSession, catalog: Catalog, tmp_path: Any
) -> None:
    blocks = re.findall(r"<!-- tested -->\n```python\n(.+?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    assert len(blocks) == TEXT.count("<!-- tested -->") >= 10
    names: dict[str, Any] = {"spark": spark, "catalog": catalog, "folder": str(tmp_path / "files")}
    for number, code in enumerate(blocks, 1):
        exec(compile(code, f"{PAGE.name}, block {number}", "exec"), names)


def test_the_page_has_every_counter_with_its_meaning() -> None:
    listed = re.findall(r"^\| `(\w+)` \| `(strata_cache_\w+)` \| (.+) \|$", TEXT, re.MULTILINE)
    assert listed == [
        (gauge.name.removeprefix("strata_cache_"), gauge.name, gauge.text)
        for gauge in gauges_of(CacheMetrics(version=1))
    ]


def test_links_and_command_lines_of_the_page_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", TEXT):
        name, _, anchor = target.partition("#")
        file = PAGE.parent / name if name else PAGE
        assert file.exists(), target
        assert not anchor or anchor in anchors(file.read_text(encoding="utf-8")), target
    lines = list(command_lines(PAGE))
    assert len(lines) == 3
    assert all(map(reads, lines))
