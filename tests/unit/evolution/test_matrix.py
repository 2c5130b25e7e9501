"""Every change of a type in every kind of column: what is not allowed here is refused by name."""

from __future__ import annotations

import pytest

from catalog import Schema, superior
from catalog.errors import WouldLose
from catalog.evolution.projection import Cast, Fill, Keep, Leeway, OnLoss, projection

TYPES = (
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(5,2)",
    "decimal(7,2)", "decimal(10,0)", "string", "string collate UTF8_LCASE", "char(3)", "char(4)",
    "varchar(3)", "varchar(5)", "binary", "date", "timestamp", "timestamp_ntz", "time(0)",
    "time(6)", "interval year", "interval year to month", "interval day",
    "interval day to second", "interval", "variant", "geometry(4326)", "geometry(any)",
    "geography(4326)", "void", "struct<x:int>", "array<int>", "map<string,int>",
)  # fmt: skip
ALLOWED = {
    "tinyint": {"smallint", "int", "bigint"},
    "smallint": {"int", "bigint"},
    "int": {"bigint"},
    "float": {"double"},
    "decimal(5,2)": {"decimal(7,2)"},
    "char(3)": {"varchar(3)", "varchar(5)", "string"},
    "char(4)": {"varchar(5)", "string"},
    "varchar(3)": {"varchar(5)", "string"},
    "varchar(5)": {"string"},
    "date": {"timestamp_ntz"},
    "time(0)": {"time(6)"},
    "interval year": {"interval year to month"},
    "interval day": {"interval day to second"},
    "geometry(4326)": {"geometry(any)"},
    "void": set(TYPES) - {"void"},
}
TEXT = {
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(5,2)",
    "decimal(7,2)", "decimal(10,0)", "string collate UTF8_LCASE", "date", "timestamp_ntz",
}  # fmt: skip
KINDS = {
    "c": "{}",
    "c.x": "struct<x:{},y:int>",
    "c.element": "array<{}>",
    "c.key": "map<{},int>",
    "c.value": "map<int,{}>",
    "c.element.m.value": "array<struct<m:map<string,{}>>>",
}
PAIRS = [(old, new) for old in TYPES for new in TYPES if old != new]


def schema(shape: str, kind: str) -> Schema:
    return Schema.of(f"k int, c {shape.format(kind)}")


@pytest.mark.parametrize(("path", "shape"), KINDS.items())
def test_a_change_is_allowed_or_refused_with_its_path(path: str, shape: str) -> None:
    for old, new in PAIRS:
        source, target = schema(shape, old), schema(shape, new)
        if new in ALLOWED.get(old, ()):
            assert len(projection(source, target)) == len(target.struct())
            assert superior(target, source), (old, new)
            continue
        with pytest.raises(WouldLose) as raised:
            projection(source, target)
        (column,) = raised.value.values["columns"]
        assert column["path"] == path
        assert old in column["why"]
        assert new in column["why"]
        assert not superior(target, source)


def test_text_and_null_are_given_only_where_they_are_asked_for() -> None:
    text, null = Leeway(text=True), Leeway(on_loss=OnLoss.NULL)
    for old, new in PAIRS:
        if new in ALLOWED.get(old, ()):
            continue
        source, target = schema("{}", old), schema("{}", new)
        way = projection(source, target, null)
        assert (way[0].how, type(way[1].how)) == (Keep(), Fill)
        if new == "string" and old in TEXT:
            assert projection(source, target, text)[1].how == Cast(target.struct()["c"].dataType)
        else:
            with pytest.raises(WouldLose):
                projection(source, target, text)


def test_what_is_stored_alike_is_not_cast() -> None:
    for old, new in (("char(3)", "varchar(5)"), ("varchar(3)", "string")):
        way = projection(schema("{}", old), schema("{}", new))
        assert [field.how for field in way] == [Keep(), Keep()]
