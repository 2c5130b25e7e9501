"""The page on contracts: its Python runs, and it says what the code has."""

from __future__ import annotations

import re
from typing import Any

from catalog import Catalog
from catalog.contracts.model import Enforcement
from tests.sessions import ROOT
from tests.unit.test_documents import anchors, command_lines, reads

PAGE = ROOT / "docs" / "contracts.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_python_of_the_page_runs_in_order(catalog: Catalog) -> None:
    blocks = re.findall(r"<!-- tested -->\n```python\n(.+?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    assert len(blocks) == TEXT.count("<!-- tested -->") == TEXT.count("```python\n") > 5
    names: dict[str, Any] = {"catalog": catalog}
    for number, code in enumerate(blocks, 1):
        exec(compile(code, f"{PAGE.name}, block {number}", "exec"), names)


def test_the_page_has_every_enforcement() -> None:
    section = TEXT.partition("| enforcement |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [*Enforcement]


def test_links_and_command_lines_of_the_page_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", TEXT):
        name, _, anchor = target.partition("#")
        file = PAGE.parent / name if name else PAGE
        assert file.exists(), target
        assert not anchor or anchor in anchors(file.read_text(encoding="utf-8")), target
    lines = [line for line in command_lines(PAGE) if "--schema" not in line or "@" not in str(line)]
    assert len(lines) == 4
    assert all(map(reads, lines))
