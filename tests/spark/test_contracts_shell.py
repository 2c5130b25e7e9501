"""Contracts from the shell."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog
from catalog.cli import shell
from tests.unit.builders import segment


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
