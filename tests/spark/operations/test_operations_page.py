"""The page on operations: its Python runs, and it says what the code has."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from catalog import Catalog, errors
from catalog.commit.operation_rows import OperationState
from tests.sessions import ROOT
from tests.unit.test_documents import anchors, command_lines, reads

PAGE = ROOT / "docs" / "operations.md"
TEXT = PAGE.read_text(encoding="utf-8")
PICTURE = ROOT / "docs" / "operation.svg"


@pytest.mark.stress
def test_the_python_of_the_page_runs_in_order(catalog: Catalog) -> None:
    blocks = re.findall(r"<!-- tested -->\n```python\n(.+?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    assert len(blocks) == TEXT.count("<!-- tested -->") == TEXT.count("```python\n") > 15
    names: dict[str, Any] = {"catalog": catalog}
    for number, code in enumerate(blocks, 1):
        exec(compile(code, f"{PAGE.name}, block {number}", "exec"), names)


def test_the_page_and_its_picture_have_every_state() -> None:
    section = TEXT.partition("| state | meaning |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [*OperationState]
    drawn = {"".join(each.itertext()) for each in ElementTree.parse(PICTURE).iter()}
    assert drawn >= {*OperationState}


def test_the_page_has_every_error_that_operations_and_objects_raise() -> None:
    source = (ROOT / "catalog" / "errors.py").read_text(encoding="utf-8")
    of_operations = source.partition("# --- operations")[2].partition("\n# --- ")[0]
    names = re.findall(r"^class (\w+)\(", of_operations, re.MULTILINE)
    assert len(names) > 8
    for name in (*names, "InvalidEpoch", "UnknownObject", "ObjectInUse", "SchemaVersionMismatch"):
        assert hasattr(errors, name)
        assert f"`{name}`" in TEXT, name


def test_links_and_command_lines_of_the_page_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", TEXT):
        name, _, anchor = target.partition("#")
        file = PAGE.parent / name if name else PAGE
        assert file.exists(), target
        assert not anchor or anchor in anchors(file.read_text(encoding="utf-8")), target
    lines = list(command_lines(PAGE))
    assert len(lines) == 5
    assert all(map(reads, lines))
