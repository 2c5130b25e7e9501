"""The page on contracts: its Python runs, and it says what the code has."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog
from catalog.cli import shell
from catalog.contracts.model import Enforcement
from tests.sessions import ROOT
from tests.unit.builders import segment
from tests.unit.test_documents import anchors, command_lines, reads

PAGE = ROOT / "docs" / "contracts.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.stress
def test_the_python_of_the_page_runs_in_order(catalog: Catalog) -> None:
    blocks = re.findall(r"<!-- tested -->\n```python\n(.+?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    assert len(blocks) == TEXT.count("<!-- tested -->") == TEXT.count("```python\n") > 5
    names: dict[str, Any] = {"catalog": catalog}
    for number, code in enumerate(blocks, 1):
        exec(compile(code, f"{PAGE.name}, block {number}", "exec"), names)


@pytest.mark.exact
def test_contracts_are_set_shown_and_removed_from_the_shell(
    spark: SparkSession, catalog: Catalog, location: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def strata(*words: str) -> tuple[int, dict[str, Any]]:
        options = ["--location", location, "--output", "json", "--no-record"]
        code = shell.main([*words, *options], lambda *_: nullcontext(spark))
        (line,) = capsys.readouterr().out.splitlines()
        return code, json.loads(line)

    catalog.publish([segment("orders/1", "b INT")])
    given = ["contracts", "set", "orders", "--schema", "a INT", "--enforcement", "strict"]
    code, answer = strata(*given)
    assert (code, answer["facts"]["segments_that_break_it"]) == (0, 1)
    assert [row["column"] for row in answer["tables"]["breaches"]] == ["b", "a"]
    assert strata(*given, "--dry-run")[1]["facts"]["changed"] is False
    facts = strata("contracts", "get", "orders")[1]["facts"]
    assert (facts["enforcement"], facts["ddl"]) == ("strict", "a INT")
    (row,) = strata("contracts", "list")[1]["tables"]["contracts"]
    assert (row["datasource"], row["mode"]) == ("orders", "none")
    assert strata("contracts", "remove", "orders")[1]["facts"]["changed"] is True
    assert strata("contracts", "get", "orders")[1]["facts"]["contract"] is False
    code, answer = strata("contracts", "set", "orders", "--enforcement", "strict")
    assert (code, answer["error"]["condition"]) == (2, "INVALID_INPUT")


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
