"""Named schemas through the words of the shell, in the session of the tests."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Schema
from catalog.cli import shell
from tests.unit.builders import segment

Strata = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def strata(spark: SparkSession, location: str, capsys: pytest.CaptureFixture[str]) -> Strata:
    """Runs a command of the shell, unrecorded; gives its exit code and its answer."""

    def run(*argv: str) -> tuple[int, dict[str, Any]]:
        options = ["--location", location, "--actor", "ann", "--output", "json", "--no-record"]
        code = shell.main([*argv, *options], lambda *_: nullcontext(spark))
        (line,) = capsys.readouterr().out.splitlines()
        return code, json.loads(line)

    return run


def test_schemas_are_registered_listed_compared_and_judged(
    catalog: Catalog, strata: Strata, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "order.ddl"
    file.write_text("id BIGINT, amount INT")
    code, answer = strata(
        "names", "register", "order", str(file), "--note", "first", "--mode", "full"
    )
    assert (code, answer["facts"]["version"], answer["facts"]["commit_id"] is None) == (0, 1, False)
    wider = "id BIGINT, amount BIGINT"
    code, answer = strata("names", "register", "order", wider)
    assert (code, answer["error"]["condition"]) == (2, "INCOMPATIBLE_SCHEMA")
    assert answer["error"]["values"]["mode"] == "full"
    code, answer = strata("names", "set-mode", "order", "backward")
    assert (code, answer["facts"]["before"], answer["facts"]["mode"]) == (0, "full", "backward")
    code, answer = strata("names", "register", "order", wider, "--base", "1", "--dry-run")
    assert (answer["facts"]["version"], answer["facts"]["dry_run"]) == (2, True)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Schema.of(wider).json.encode())))
    code, answer = strata("names", "register", "order", "-")
    assert (code, answer["facts"]["version"], answer["facts"]["repeated"]) == (0, 2, False)

    catalog.publish([segment("orders/1", "id STRING")])
    code, answer = strata("names", "register", "order", "datasource:orders", "--force")
    assert (code, answer["facts"]["breaking"], answer["facts"]["forced"]) == (0, True, True)
    assert answer["tables"]["reasons"][0]["path"] == "id"

    code, answer = strata("names", "list")
    (row,) = answer["tables"]["named_schemas"]
    assert (row["name"], row["current_version"], row["last_breaking"]) == ("order", 3, 3)
    assert row["dropped"] == {"amount": {"type": "bigint", "since": 3}}
    code, answer = strata("names", "versions", "order")
    assert answer["facts"] == {"mode": "backward", "current": 3, "last_breaking": 3}
    rows = answer["tables"]["versions"]
    assert [(row["version"], row["breaking"], row["note"]) for row in rows] == [
        (1, False, "first"),
        (2, False, ""),
        (3, True, ""),
    ]
    code, answer = strata("names", "get", "order@2")
    assert (answer["facts"]["version"], answer["facts"]["ddl"]) == (2, wider)
    assert answer["tables"]["dropped"] == [{"path": "amount", "type": "bigint", "since": 3}]
    code, answer = strata("names", "still-works", "order", "2")
    assert (code, answer["found"], answer["facts"]["works"]) == (1, True, False)
    assert answer["tables"]["breaking"][0]["version"] == 3

    code, answer = strata("schema-of", "orders/1", "--as", "avro")
    (row,) = answer["tables"]["segments"]
    assert (code, row["ddl"], row["schema"]["fields"][0]["name"]) == (0, "id STRING", "id")
    for option in ("--avro", "--json-schema"):
        document = strata("schema-of", "orders/1", "--as", option[2:])[1]["tables"]["segments"]
        file.write_text(json.dumps(document[0]["schema"]))
        code, answer = strata("names", "register", f"by{option}", option, str(file))
        assert (code, answer["facts"]["fingerprint"]) == (0, row["fingerprint"])

    code, answer = strata("diff", "order@1", "named:order", "--mode", "backward")
    assert (code, answer["facts"]["new"]) == (1, Schema.of("id STRING").fingerprint)
    code, answer = strata("diff", "order@9", "order@1")
    assert (code, answer["error"]["condition"]) == (2, "UNKNOWN_NAME")
    catalog.publish([segment("odd@3/1", "id STRING")])  # a datasource may be called so
    code, answer = strata("diff", "odd@3", "order@current", "--mode", "full")
    assert (code, answer["facts"]["compatible"]) == (0, "full")
