"""The words for types and renames: what they read and what they show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from catalog.cli.commands.objects import read_types, shown_rename, shown_types, types_in
from catalog.errors import InvalidInput, InvalidType
from catalog.objects.keeper import PutResult
from catalog.objects.platform import PLATFORM
from catalog.objects.types import ObjectType


def test_declarations_are_read_from_a_file_one_or_many(tmp_path: Path) -> None:
    assert read_types("platform") == PLATFORM
    file = tmp_path / "types.json"
    file.write_text(json.dumps([{"name": each.name, **each.body()} for each in PLATFORM]))
    assert read_types(str(file)) == PLATFORM
    file.write_text('{"name": "team"}')
    assert read_types(str(file)) == (ObjectType("team"),)


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("{", InvalidInput, "types.json is not JSON"),
        ('{"name": "a", "name": "b"}', InvalidInput, "occurs twice"),
        ("[1]", InvalidInput, "with the name of the type"),
        ('{"fields": {}}', InvalidInput, "with the name of the type"),
        ('{"name": "a", "rules": 1}', InvalidType, "must have a list as rules"),
    ],
)
def test_a_document_that_declares_nothing_is_refused(
    text: str, error: type[InvalidInput], said: str
) -> None:
    with pytest.raises(error) as refusal:
        types_in(text, "types.json")
    assert said in refusal.value.message


def test_an_empty_list_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "types.json"
    file.write_text("[]")
    with pytest.raises(InvalidInput, match="no declaration"):
        read_types(str(file))


def rows(answer: Any, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answer.tables[name].dicts()
    return found


def test_types_are_shown_by_name_with_all_that_they_say() -> None:
    shown = rows(shown_types(PLATFORM), "types")
    assert [row["type"] for row in shown] == sorted(each.name for each in PLATFORM)
    (replica,) = [row for row in shown if row["type"] == "replica"]
    assert (replica["parent"], replica["references"]) == ("shard", {"node": "node"})
    assert replica["fields"] == ["node", "role", "state"]
    assert ["at_most", "replicas"] in replica["rules"]


def test_a_rename_shows_old_and_new_keys_up_to_the_limit() -> None:
    result = PutResult(
        *(9, "c", {"a/x": 2, "b/x": 3}), touched=("c/y",), renamed={"a/w": "a/x", "b/w": "b/x"}
    )
    answer = shown_rename(result, 1, 1)
    assert answer.facts == {
        "version": 9,
        "commit_id": "c",
        "renamed": 2,
        "touched": 1,
        "retries": 1,
    }
    assert rows(answer, "renamed") == [{"key": "a/w", "new_key": "a/x", "revision": 2}]
    assert answer.tables["renamed"].more
