"""The layout and the documents: names that exist once, paragraphs that exist once, sizes."""

from __future__ import annotations

import re
import runpy
from collections import defaultdict
from pathlib import Path

from tests.house import ROOT, in_cycles, repeated_classes

PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "tests").rglob("*.md"))
    if path.name != "CHANGELOG.md"
)


def test_a_class_name_exists_once() -> None:
    assert repeated_classes(ROOT) == {}


def test_no_packages_import_each_other_in_a_cycle() -> None:
    assert in_cycles(ROOT) == []


def test_a_paragraph_exists_once() -> None:
    """What two pages need stands in one of them, and the other has a link."""
    found: dict[str, list[str]] = defaultdict(list)
    for page in PAGES:
        for paragraph in paragraphs(page.read_text(encoding="utf-8")):
            found[paragraph].append(page.name)
    assert {text[:80]: pages for text, pages in found.items() if len(pages) > 1} == {}


def paragraphs(text: str) -> list[str]:
    """Paragraphs and list items of eight words or more, table rows of fifteen.

    Code is left out, and so is the generated dictionary: columns of one meaning recur in it.
    """
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"<!-- dictionary -->.*<!-- /dictionary -->", "", prose, flags=re.DOTALL)
    blocks = re.split(r"\n\s*\n|\n(?=\||- |\d+\. )", prose)
    plain = (" ".join(block.split()) for block in blocks)
    return [each for each in plain if len(each.split()) >= (15 if each.startswith("|") else 8)]


def test_the_reference_is_what_the_code_says() -> None:
    written = runpy.run_path(str(ROOT / "docs" / "reference.py"))
    page: Path = written["PAGE"]
    assert page.read_text(encoding="utf-8") == written["page"](), "run `make docs`"
    assert len(written["all_errors"]()) > 50


def test_the_documents_are_short_enough_to_be_read() -> None:
    lines = {
        name: len((ROOT / name).read_text().splitlines())
        for name in ("README.md", "ARCHITECTURE.md")
    }
    assert lines["README.md"] <= 350
    assert lines["ARCHITECTURE.md"] <= 700
