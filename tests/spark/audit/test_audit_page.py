"""The page on the audit and on settings: its Python runs, and it says what the code has."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog
from catalog.settings.model import KNOWN
from catalog.settings.types import duration_text
from tests.sessions import ROOT
from tests.unit.test_documents import anchors, command_lines, reads

PAGE = ROOT / "docs" / "audit.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.stress
def test_the_python_of_the_page_runs_in_order(spark: SparkSession, catalog: Catalog) -> None:
    blocks = re.findall(r"<!-- tested -->\n```python\n(.+?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    assert len(blocks) == TEXT.count("<!-- tested -->") == TEXT.count("```python\n") == 4
    names: dict[str, Any] = {"catalog": catalog, "spark": spark}
    for number, code in enumerate(blocks, 1):
        exec(compile(code, f"{PAGE.name}, block {number}", "exec"), names)


def test_the_page_has_every_setting_with_its_default_and_help() -> None:
    section = TEXT.partition("| setting | default |")[2].partition("\n\n")[0]
    found = re.findall(r"^\| `([\w.]+)` \|(.*)\| (.+) \|$", section, re.MULTILINE)
    assert [(name, default.strip(), text) for name, default, text in found] == [
        (known.name, _shown(known.default), known.help) for known in KNOWN
    ]


def _shown(default: Any) -> str:
    if default is None:
        return ""
    return duration_text(default) if isinstance(default, timedelta) else str(default)


def test_links_and_command_lines_of_the_page_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", TEXT):
        name, _, anchor = target.partition("#")
        file = PAGE.parent / name if name else PAGE
        assert file.exists(), target
        assert not anchor or anchor in anchors(file.read_text(encoding="utf-8")), target
    lines = list(command_lines(PAGE))
    assert len(lines) == 7
    assert all(map(reads, lines))
