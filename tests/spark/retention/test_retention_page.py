"""The pages on retention and access: their Python runs, and they say what the code has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog
from catalog.objects.retention_rules import _FIELDS
from catalog.retention.archive import MANIFEST
from tests.sessions import ROOT
from tests.unit.test_documents import anchors, command_lines, reads

RETENTION, ACCESS = PAGES = [ROOT / "docs" / f"{name}.md" for name in ("retention", "access")]


def marked(text: str) -> Iterator[str]:
    """The blocks of Python that are marked; there are no others."""
    blocks = re.findall(r"<!-- tested -->\n```python\n(.+?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) == text.count("<!-- tested -->") == text.count("```python\n") > 0
    yield from blocks


def test_the_python_of_the_pages_runs_in_order(catalog: Catalog, spark: SparkSession) -> None:
    names: dict[str, Any] = {"catalog": catalog, "spark": spark}
    for page in PAGES:
        for number, code in enumerate(marked(page.read_text(encoding="utf-8")), 1):
            exec(compile(code, f"{page.name}, block {number}", "exec"), names)
    names["reader"].close()


def test_the_page_on_retention_has_every_field_of_a_rule_and_of_the_manifest() -> None:
    text = RETENTION.read_text(encoding="utf-8")
    section = text.partition("| in the body |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [*_FIELDS]
    section = text.partition("| column |")[2].partition("\n\n")[0]
    named = re.findall(r"^\| ([\w, ]+) \|", section, re.MULTILINE)
    assert ", ".join(named).split(", ") == MANIFEST.names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_command_lines_of_the_pages_lead_somewhere(page: Any) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file.read_text(encoding="utf-8")), target
    lines = list(command_lines(page))
    assert len(lines) == (3 if page == RETENTION else 0)
    assert all(map(reads, lines))
