"""The difference of two schemas: its lines, and its faces."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given, settings

from catalog import Schema
from catalog.evolution.diff import diff
from tests.unit.evolution.strategies import related

OLD = """
    id BIGINT NOT NULL, flag BOOLEAN, amount DECIMAL(10, 2) COMMENT 'net',
    lines ARRAY<STRUCT<sku: STRING, qty: INT>>, tags ARRAY<INT>, note STRING
"""
NEW = """
    id BIGINT, amount DECIMAL(12, 2) COMMENT 'gross',
    lines ARRAY<STRUCT<sku: STRING, qty: BIGINT, price: DOUBLE>>, tags ARRAY<BIGINT>, note STRING,
    city STRING
"""
TEXT = """\
~ id                   bigint not null → bigint       made nullable
- flag                 boolean                        dropped nullable
~ amount               decimal(10,2) → decimal(12,2)  widened, comment changed
~ lines.element.qty    int → bigint                   widened
+ lines.element.price  double                         added nullable
~ tags                 array<int> → array<bigint>     element widened
+ city                 string                         added nullable
  compatible: backward"""


def test_the_text_shows_what_changed_in_columns() -> None:
    found = diff(OLD, NEW)
    assert found.text() == str(found) == TEXT
    assert "  note" in found.text(whole=True)


def test_the_document_holds_what_programs_need() -> None:
    document = json.loads(json.dumps(diff(OLD, NEW).document()))
    assert document["verdict"] == "backward"
    assert document["comments"] == ["amount"]
    assert document["old"]["fingerprint"] == Schema.of(OLD).fingerprint
    assert {"path": "tags.element", "kind": "widened", "old": "int", "new": "bigint",
            "backward": True, "forward": False,
            "reason": "old readers may meet values that do not fit",
            } in document["changes"]  # fmt: skip


def test_a_terminal_sees_colours_and_no_markup_of_the_catalog() -> None:
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, force_terminal=True, color_system="standard", width=200).print(
        diff("`[red]x` INT", "`[red]x` BIGINT, y INT")
    )
    assert "\x1b[33m~ `[red]x`" in out.getvalue()
    assert "\x1b[32m+ y" in out.getvalue()


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("a INT", "a INT", "  no difference"),
        ("a INT, b INT", "b INT, a INT", "  columns stand in another order"),
        ("a INT COMMENT 'x'", "a INT", "~ a  int  comment changed"),
        ("a INT", "A INT", "~ A  int  respelled\n  compatible: none"),
        ("a INT, b INT", "b INT", "- a  int  dropped nullable\n  compatible: full"),
        (
            "m MAP<INT, INT>",
            "m MAP<BIGINT, DATE>",
            "~ m  map<int,int> → map<bigint,date>  key widened, value retyped\n  compatible: none",
        ),
    ],
)
def test_small_differences(old: str, new: str, text: str) -> None:
    assert diff(old, new).text() == text


def test_a_difference_is_true_and_none_is_false() -> None:
    assert diff("a INT", "a INT, b INT")
    assert diff("a INT, b INT", "b INT, a INT")
    assert not diff("a INT", "a INT")


@settings(max_examples=500, deadline=None)
@given(related(2))
def test_every_change_stands_in_a_line_and_every_column_has_one(pair: tuple[Schema, ...]) -> None:
    old, new = pair
    found = diff(old, new)
    assert sorted(
        (each.path, each.kind) for line in found.lines for each in line.changes
    ) == sorted((each.path, each.kind) for each in found.compatibility.changes)
    paths = [line.path.casefold() for line in found.lines]
    columns = {column.path.casefold() for schema in pair for column in schema.columns}
    assert len(paths) == len(set(paths))
    assert set(paths) == columns
    assert (found.text() == "  no difference") == (old.json == new.json or not found)
