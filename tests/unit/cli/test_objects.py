"""Objects as JSON lines: what is read, and what is refused with its line."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from catalog.cli.commands.objects import objects_in, read_objects
from catalog.errors import InvalidInput, InvalidObject, InvalidSchema
from catalog.objects.model import Object

LINES = [
    {"key": "table/sales/orders", "schema": "id BIGINT NOT NULL", "datasource": "orders"},
    {"key": "index/sales/orders", "body": {"on": ["id"]}, "links": ["table/sales/orders"]},
]
OBJECTS = [
    Object("table/sales/orders", schema="id BIGINT NOT NULL", datasource="orders"),
    Object("index/sales/orders", {"on": ["id"]}, links=["table/sales/orders"]),
]


def written(file: Path, lines: list[dict[str, object]]) -> str:
    file.write_text("\n".join(map(json.dumps, lines)) + "\n\n", encoding="utf-8")
    return str(file)


def test_a_file_has_an_object_a_line_and_empty_lines_do_not_count(tmp_path: Path) -> None:
    assert read_objects(written(tmp_path / "objects.jsonl", LINES)) == OBJECTS


def test_a_dash_is_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = Path(written(tmp_path / "objects.jsonl", LINES)).read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert read_objects("-") == OBJECTS


def test_only_the_key_must_be_given_and_nulls_say_nothing() -> None:
    line = '{"key": "a/b", "body": null, "links": null, "schema": null, "datasource": null}'
    assert list(objects_in(f'{line}\r\n{{"key": "a/b"}}', "x")) == [Object("a/b")] * 2


def test_a_schema_may_be_sparks_json_and_a_text_may_have_any_line_break() -> None:
    schema = {"type": "struct", "fields": []}
    schema["fields"] = [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]
    line = json.dumps(
        {"key": "a/b", "schema": schema, "body": {"x": "1\u20282"}}, ensure_ascii=False
    )
    assert list(objects_in(line, "x")) == [Object("a/b", {"x": "1\u20282"}, schema="id BIGINT")]


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ("{oops", InvalidInput, "'{oops' is not JSON"),
        ('{"key": "a/b", "key": "a/c"}', InvalidInput, "'key' occurs twice"),
        ('{"key": "a/b", "body": {"x": 1, "x": 2}}', InvalidInput, "'x' occurs twice"),
        ("[" * 100_000, InvalidInput, "is not JSON"),
        ('["a/b"]', InvalidInput, "is a JSON object with key, body, links"),
        ('{"body": {}}', InvalidInput, "has no key"),
        ('{"key": "a/b", "lnks": []}', InvalidInput, "did you mean links?"),
        ('{"key": "a/b", "zzz": 1}', InvalidInput, "it has key, body, links"),
        ('{"key": "a/b", "links": {"a/c": 3}}', InvalidInput, "links is a list of keys"),
        ('{"key": "a/b", "links": "a/c"}', InvalidInput, "links is a list of keys"),
        ('{"key": "a/b", "links": ["a"]}', InvalidObject, "A link of object a/b"),
        ('{"key": "orders"}', InvalidObject, "must be type/path"),
        ('{"key": "a/b", "body": [1]}', InvalidObject, "must be a dict"),
        ('{"key": "a/b", "body": {"x": NaN}}', InvalidObject, "a/b"),
        ('{"key": "a/b", "schema": "id BIGNIT"}', InvalidSchema, "BIGNIT"),
    ],
)
def test_what_is_no_object_is_refused_with_its_line(
    line: str, error: type[InvalidInput], message: str
) -> None:
    with pytest.raises(error, match=message.replace("?", r"\?")) as refused:
        list(objects_in(f'{{"key": "a/a"}}\n\n{line}', "objects.jsonl"))
    assert refused.value.__notes__ == ["That is line 3 of objects.jsonl; nothing was written."]


def test_a_file_that_cannot_be_read_or_is_empty_is_named(tmp_path: Path) -> None:
    (tmp_path / "latin.jsonl").write_bytes(b'{"key": "a/\xe9"}')
    (tmp_path / "empty.jsonl").write_text("\n")
    for name, message in (
        ("nowhere.jsonl", "cannot be read"),
        ("latin.jsonl", "cannot be read"),
        ("", "cannot be read"),
        ("empty.jsonl", "There is no object in"),
    ):
        with pytest.raises(InvalidInput, match=message):
            read_objects(str(tmp_path / name))
