"""The page on backups: its Python runs, and it says what the code has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, errors
from catalog.backups.difference import BEHAVIOURS
from tests.sessions import ROOT
from tests.unit.test_documents import anchors, command_lines, reads

PAGE = ROOT / "docs" / "backup.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.stress
def test_the_python_of_the_page_runs_in_order(
    catalog: Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    blocks = re.findall(r"<!-- tested -->\n```python\n(.+?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    assert len(blocks) == TEXT.count("<!-- tested -->") == TEXT.count("```python\n") > 6
    names: dict[str, Any] = {"catalog": catalog, "spark": spark, "directory": str(tmp_path)}
    for number, code in enumerate(blocks, 1):
        exec(compile(code, f"{PAGE.name}, block {number}", "exec"), names)
    assert catalog.verify(since=0).ok


def test_the_page_says_of_every_kind_how_it_goes_back() -> None:
    section = TEXT.partition("| kind of row | in a rollback | |")[2].partition("\n\n")[0]
    said = {
        kind: behaviour
        for kinds, behaviour in re.findall(r"^\| (`.+?`) \| ([\w-]+) \|", section, re.MULTILINE)
        for kind in re.findall(r"`(\w+)`", kinds)
    }
    assert said == {kind: behaviour.value for kind, behaviour in BEHAVIOURS.items()}


def test_the_page_has_every_error_of_backups() -> None:
    source = (ROOT / "catalog" / "errors.py").read_text(encoding="utf-8")
    ours = source.partition("# --- backups")[2].partition("\n# --- ")[0]
    names = re.findall(r"^class (\w+)\(", ours, re.MULTILINE)
    assert len(names) == 4
    for name in (*names, "LayoutTooNew", "ClaimConflict", "VersionNotFound"):
        assert hasattr(errors, name)
        assert f"| `{name}` |" in TEXT


def test_links_and_command_lines_of_the_page_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", TEXT):
        name, _, anchor = target.partition("#")
        file = PAGE.parent / name if name else PAGE
        assert file.exists(), target
        assert not anchor or anchor in anchors(file.read_text(encoding="utf-8")), target
    lines = list(command_lines(PAGE))
    assert len(lines) >= 7
    assert all(map(reads, lines))
