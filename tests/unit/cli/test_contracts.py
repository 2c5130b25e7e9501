"""Contracts as the shell shows them."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from catalog import Breach, Contract, ContractResult, Offence
from catalog.cli.commands.contracts import definition, shown_contract, shown_contract_change
from catalog.cli.shell import shell_parser

CONTRACT = Contract(schema="a INT", enforcement="subset", mode="forward", max_rows=5)
WRONG = Offence(
    "orders",
    "f" * 32,
    (Breach("b", "unknown", "is not in the contract"), Breach("", "max_rows", "9 rows")),
    2,
    ("orders/1", "orders/2"),
)


def test_a_change_shows_one_row_for_each_thing_that_is_wrong() -> None:
    result = ContractResult(3, "c", "orders", CONTRACT, None, (WRONG,))
    answer = shown_contract_change(result, 1)
    assert answer.facts == {
        "version": 3,
        "commit_id": "c",
        "datasource": "orders",
        "changed": True,
        "segments_that_break_it": 2,
        "dry_run": False,
        "retries": 1,
    }
    assert [row["column"] for row in answer.tables["breaches"].dicts()] == ["b", None]
    assert answer.tables["breaches"].dicts()[1] == {
        "datasource": "orders",
        "fingerprint": "f" * 32,
        "segments": 2,
        "example": "orders/1",
        "column": None,
        "rule": "max_rows",
        "words": "9 rows",
        "refused": True,
    }
    same = shown_contract_change(ContractResult(3, "", "orders", CONTRACT, CONTRACT), 0)
    assert (same.facts["commit_id"], same.facts["changed"], same.tables) == (None, False, {})


def test_a_contract_shows_all_that_it_says() -> None:
    facts = shown_contract("orders", CONTRACT).facts
    assert facts == {
        "datasource": "orders",
        "contract": True,
        "enforcement": "subset",
        "mode": "forward",
        "policy": None,
        "max_rows": 5,
        "max_bytes": None,
        "max_columns": None,
        "fingerprint": CONTRACT.fingerprint,
        "ddl": "a INT",
    }
    assert shown_contract("orders", None).facts == {"datasource": "orders", "contract": False}


def test_a_schema_is_given_as_text_or_as_a_file(tmp_path: Path) -> None:
    file = tmp_path / "orders.ddl"
    file.write_text("a INT\n")
    parsed = shell_parser().parse_args(["contracts", "set", "orders", "--schema", f"@{file}"])
    assert parsed.schema == "a INT\n"
    assert definition("a INT") == "a INT"
    with pytest.raises(ArgumentTypeError, match="cannot be read"):
        definition(f"@{tmp_path}/none")
