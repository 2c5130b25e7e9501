"""Operations, epochs and objects through the words of the shell, in the session of the tests."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Object
from catalog.cli import shell
from catalog.cli.shell import run_job
from tests.unit.builders import segment

Strata = Callable[..., tuple[int, dict[str, Any]]]
OBJECTS = [
    {
        "key": "table/orders",
        "body": {"owner": "ann"},
        "schema": "id BIGINT",
        "datasource": "orders",
    },
    {"key": "index/orders", "body": {"on": ["id"]}, "links": ["table/orders"]},
]


@pytest.fixture
def strata(spark: SparkSession, location: str, capsys: pytest.CaptureFixture[str]) -> Strata:
    """Runs a command of the shell, unrecorded, or a job; gives its exit code and its answer."""

    def run(*argv: str, job: bool = False) -> tuple[int, dict[str, Any]]:
        options = ["--location", location, "--actor", "ann", "--output", "json"]
        if job:
            code = run_job(argv[0], [*argv[1:], *options], lambda *_: nullcontext(spark))
        else:
            code = shell.main([*argv, *options, "--no-record"], lambda *_: nullcontext(spark))
        (line,) = capsys.readouterr().out.splitlines()  # an answer, and nothing else
        return code, json.loads(line)

    return run


def refused(ended: tuple[int, dict[str, Any]]) -> tuple[int, str]:
    """The exit code and the condition of a command that failed."""
    return ended[0], ended[1]["error"]["condition"]


@pytest.mark.stress
def test_objects_are_put_shown_touched_and_removed(
    strata: Strata, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "objects.jsonl"
    file.write_text("\n".join(map(json.dumps, OBJECTS)))
    code, answer = strata("objects", "put", str(file), "--reason", "new tables")
    assert (code, answer["facts"]["put"], answer["facts"]["version"]) == (0, 2, 1)
    assert strata("objects", "put", str(file))[1]["facts"] | {"version": 1} == {
        "version": 1, "commit_id": None, "put": 0, "removed": 0, "touched": 0, "unchanged": 2,
        "absent": 0, "retries": 0,
    }  # fmt: skip

    changed = json.dumps({**OBJECTS[0], "body": {"owner": "bob"}}).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(changed)))
    assert strata("objects", "put", "-")[1]["tables"]["changes"] == [
        {"change": "put", "key": "table/orders", "revision": 2},
        {"change": "touched", "key": "index/orders", "revision": None},
    ]
    answer = strata("objects", "get", "index/orders")[1]
    assert (answer["facts"]["revision"], answer["facts"]["body"]) == (2, {"on": ["id"]})
    assert answer["tables"]["links"] == [{"target": "table/orders", "revision": 2}]
    facts = strata("objects", "get", "table/orders", "--as-of", "1")[1]["facts"]
    assert (facts["body"], facts["ddl"], facts["datasource"], facts["changed_by"]) == (
        {"owner": "ann"},
        "id BIGINT",
        "orders",
        "ann",
    )
    listed = strata("objects", "list", "index")[1]["tables"]["objects"]
    assert [(row["key"], row["links"]) for row in listed] == [("index/orders", {"table/orders": 2})]

    assert refused(strata("objects", "list", "Index")) == (2, "INVALID_OBJECT")
    assert refused(strata("objects", "get", "table/none")) == (2, "UNKNOWN_OBJECT")
    assert refused(strata("objects", "remove", "table/orders")) == (2, "OBJECT_IN_USE")
    facts = strata("objects", "remove", "table/orders", "index/orders", "table/none")[1]["facts"]
    assert (facts["removed"], facts["absent"]) == (2, 1)
    assert strata("objects", "list")[1]["tables"]["objects"] == []


@pytest.mark.stress
def test_types_are_declared_and_objects_ensured_renamed_and_removed_with_all_below(
    strata: Strata, catalog: Catalog, tmp_path: Path
) -> None:
    code, answer = strata("objects", "declare", "platform", "--reason", "one set of rules")
    assert (code, answer["facts"]["put"]) == (0, 10)
    types = strata("objects", "types")[1]["tables"]["types"]
    assert [each["type"] for each in types if each["parent"] == "database"] == [
        "datastore_link",
        "table",
    ]
    file = tmp_path / "objects.jsonl"
    file.write_text(
        '{"key": "database/sales"}\n{"key": "table/sales/orders", "body": {"schema": "orders"}}\n'
    )
    assert strata("names", "register", "orders", "id BIGINT")[0] == 0  # tables refer to it
    assert strata("objects", "ensure", str(file))[1]["facts"]["put"] == 2
    assert strata("objects", "ensure", str(file))[1]["facts"]["unchanged"] == 2
    file.write_text('{"key": "table/sales/returns", "body": {"colour": "red"}}')
    code, answer = strata("objects", "put", str(file))
    assert (code, answer["error"]["condition"]) == (2, "RULE_VIOLATION")
    assert answer["error"]["values"]["rule"] == "fields"
    assert strata("objects", "rename", "database/sales", "shop")[1]["tables"]["renamed"] == [
        {"key": "database/sales", "new_key": "database/shop", "revision": 2},
        {"key": "table/sales/orders", "new_key": "table/shop/orders", "revision": 2},
    ]
    below = strata("objects", "list", "table", "--parent", "database/shop")[1]["tables"]["objects"]
    assert [row["key"] for row in below] == ["table/shop/orders"]
    answer = strata("objects", "remove", "database/shop", "--cascade", "--dry-run")[1]
    assert (answer["facts"]["removed"], answer["facts"]["dry_run"]) == (2, True)
    assert len(catalog.objects.list("table")) == 1


@pytest.mark.stress
def test_operations_are_listed_decided_and_recovered(
    strata: Strata, catalog: Catalog, tmp_path: Path
) -> None:
    load = catalog.operation("load orders", parts=2)
    load.stage(0, publish=[segment("orders/1")])
    answer = strata("operations", "list")[1]
    assert answer["facts"] | {"version": 0, "oldest_seconds": 0} == {
        "version": 0, "open": 1, "ready": 0, "expired": 0, "oldest_seconds": 0,
    }  # fmt: skip
    (row,) = answer["tables"]["operations"]
    assert (row["operation_id"], row["name"], row["state"]) == (load.id, "load orders", "open")
    assert (row["parts_staged"], row["parts"], row["claims"], row["floor"]) == (1, 2, 1, 0)
    assert (row["owner"], row["expired"], row["epoch"]) == ("tester", False, None)

    answer = strata("operations", "show", load.id[:9])[1]
    assert (answer["facts"]["operation_id"], answer["facts"]["missing"]) == (load.id, [1])
    assert [tuple(row.values()) for row in answer["tables"]["claims"]] == [
        ("datasource", "orders", "hold", True, 0),
        ("segment", "orders/1", "publish", False, 0),
    ]
    assert refused(strata("operations", "publish", load.id)) == (2, "PARTS_MISSING")
    load.stage(1, put=Object("table/orders", {"owner": "ann"}))
    file = tmp_path / "objects.jsonl"
    file.write_text('{"key": "table/orders"}')
    assert refused(strata("objects", "put", str(file))) == (2, "CLAIM_CONFLICT")

    code, answer = strata("operations", "publish", load.id[:9], "--epoch", "2")
    assert (code, answer["facts"]["state"], answer["facts"]["epoch"]) == (0, "ready", 2)
    undo = catalog.operation("undo", parts=1, id="undo-1")
    undo.stage(0, drop=["orders/1"])  # behind the load, which waits
    left = catalog.operation("left", parts=1, lease=timedelta(milliseconds=1), id="undo-2")
    left.stage(0, put=Object("table/left"))
    assert refused(strata("operations", "show", "undo-")) == (2, "INVALID_INPUT")
    answer = strata("operations", "list")[1]
    assert [(r["name"], r["floor"], r["expired"]) for r in answer["tables"]["operations"]] == [
        ("load orders", 0, False),
        ("undo", 2, False),
        ("left", 0, True),
    ]
    assert (answer["facts"]["open"], answer["facts"]["expired"]) == (2, 1)

    answer = strata("operations", "epoch")[1]
    assert answer["facts"] == {"stable": 0, "waiting": 1, "next_epoch": 2}
    assert [row["operation_id"] for row in answer["tables"]["waiting"]] == [load.id]
    assert catalog.segments().count() == 0
    code, answer = strata("operations", "advance", "2", "--reason", "release 2")
    assert code == 0, answer
    assert (answer["facts"]["before"], answer["facts"]["stable"]) == (0, 2)
    assert answer["tables"]["applied"] == [{"operation_id": load.id}]
    assert [row["segment_id"] for row in catalog.segments().collect()] == ["orders/1"]
    assert strata("segments", "--as-of", "epoch:1")[1]["tables"]["segments"] == []

    answer = strata("operations", "renew", "undo-1", "--lease", "2d")[1]
    assert answer["facts"]["lease_until"] == undo.status().lease_until.isoformat().replace(
        "+00:00", "Z"
    )
    answer = strata("operations", "recover", "--dry-run")[1]
    assert (answer["facts"]["aborted"], answer["facts"]["swept"]) == (1, 1)
    assert left.status().state == "open"
    metrics = tmp_path / "strata.prom"
    code, answer = strata("recover", "--metrics-file", str(metrics), job=True)
    done = [(row["change"], row["operation_id"]) for row in answer["tables"]["changes"]]
    assert (code, sorted(done)) == (
        0,
        sorted([("aborted", "undo-2"), ("swept", "undo-2"), ("swept", load.id)]),
    )
    assert (answer["facts"]["open"], answer["facts"]["expired"]) == (1, 0)
    told = metrics.read_text()
    for name, value in (("recover_aborted", 1), ("operations_open", 1), ("operations_expired", 0)):
        label = f'{{command="recover",location="{catalog.location}"}}'
        assert f"strata_{name}{label} {value}.0" in told
    (run,) = catalog.audit.runs().collect()
    assert (run["job"], run["status"], run["figures"]["swept"]) == ("recover", "done", 2.0)

    assert strata("operations", "abort", "undo-1")[1]["facts"]["repeated"] is False
    names = [
        row["name"] for row in strata("operations", "list", "--all")[1]["tables"]["operations"]
    ]
    assert names[0] == "undo"
    assert set(names) == {"undo", "left", "load orders"}
    assert catalog.verify().ok
