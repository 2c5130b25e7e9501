"""Upgrades of Arrow tables: every value arrives, nulls stay nulls, losses are refused."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from catalog import Schema
from catalog.errors import InvalidInput, WouldLose
from catalog.evolution import merged, upgrade
from catalog.evolution.projection import Leeway, refusals
from tests.unit.evolution.strategies import related

ROWS: list[dict[str, Any]] = [
    {"a": 1, "s": {"x": 1, "y": "p"}, "l": [{"x": 1}, None, {"x": None}], "m": {1: {"x": 5}}},
    {"a": None, "s": None, "l": None, "m": None},
    {"a": 3, "s": {"x": None, "y": None}, "l": [], "m": {}},
    {"a": 4, "s": {"x": 4, "y": "q"}, "l": [{"x": 9}], "m": {3: None, 4: {"x": 7}}},
]
OLD = "a INT, s STRUCT<x: INT, y: STRING>, l ARRAY<STRUCT<x: INT>>, m MAP<INT, STRUCT<x: INT>>"
NEW = (
    "z DATE, m MAP<BIGINT, STRUCT<w: STRING, x: BIGINT>>, a BIGINT, "
    "l ARRAY<STRUCT<x: BIGINT, w: INT>>, s STRUCT<y: STRING, w: INT, x: INT>"
)


def table(rows: list[dict[str, Any]], ddl: str) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=Schema.of(ddl).arrow())


def wanted(row: dict[str, Any]) -> dict[str, Any]:
    """What a row of OLD is in NEW, by hand."""
    s, elements, entries = row["s"], row["l"], row["m"]
    return {
        "z": None,
        "m": None
        if entries is None
        else [(k, None if v is None else {"w": None, "x": v["x"]}) for k, v in entries.items()],
        "a": row["a"],
        "l": None
        if elements is None
        else [None if each is None else {"x": each["x"], "w": None} for each in elements],
        "s": None if s is None else {"y": s["y"], "w": None, "x": s["x"]},
    }


def test_nested_columns_are_found_by_name_cast_and_filled() -> None:
    done = upgrade(table(ROWS, OLD), NEW)
    assert done.schema.equals(Schema.of(NEW).arrow())
    done.validate(full=True)
    assert done.to_pylist() == [wanted(row) for row in ROWS]


@pytest.mark.parametrize("cut", [slice(1, 3), slice(2, None), slice(3, 3), slice(0, 1)])
def test_slices_and_chunks_are_upgraded_like_whole_tables(cut: slice) -> None:
    whole = table(ROWS, OLD)
    start, stop, _ = cut.indices(len(ROWS))
    part = pa.concat_tables([whole.slice(start, stop - start), whole.slice(0, 2)])
    done = upgrade(part, NEW)
    done.validate(full=True)
    assert done.to_pylist() == [wanted(row) for row in ROWS[cut] + ROWS[:2]]


def test_encodings_that_a_schema_does_not_tell_apart_are_understood() -> None:
    words = pa.array(["p", None, "q"])
    arrays = {
        "dictionary": words.dictionary_encode(),
        "large": words.cast(pa.large_string()),
        "view": words.cast(pa.string_view()),
        "lists": pa.array([[1], None, [2]], pa.large_list(pa.int16())),
        "fixed": pa.array([[0], [1], None, [2]], pa.list_(pa.int16(), 1)).slice(1),
        "nested": pa.array([["p"], None, ["q"]], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
    }
    given_table = pa.table(arrays)
    target = (
        "dictionary STRING, large STRING, view STRING, lists ARRAY<INT>, fixed ARRAY<INT>, "
        "nested ARRAY<STRING>, more INT"
    )
    done = upgrade(given_table, target)
    done.validate(full=True)
    assert done.drop_columns(["more"]).to_pydict() == given_table.to_pydict()


def test_text_is_made_where_it_is_asked_for() -> None:
    rows = [
        {"i": -5, "d": Decimal("1.50"), "b": True, "t": date(2026, 1, 2)},
        {"i": None, "d": None, "b": None, "t": None},
    ]
    given_table = table(rows, "i INT, d DECIMAL(5, 2), b BOOLEAN, t DATE")
    to = "i STRING, d STRING, b STRING, t STRING"
    with pytest.raises(WouldLose):
        upgrade(given_table, to)
    assert upgrade(given_table, to, text=True).to_pylist() == [
        {"i": "-5", "d": "1.50", "b": "true", "t": "2026-01-02"},
        {"i": None, "d": None, "b": None, "t": None},
    ]


REFUSED = [
    ("a BIGINT", "a INT", "a is bigint, whose values may not fit int"),
    ("a DOUBLE", "a FLOAT", "a is double, whose values may not fit float"),
    ("a TIMESTAMP_NTZ", "a DATE", "a is timestamp_ntz, whose values may not fit date"),
    ("a DECIMAL(10, 2)", "a DECIMAL(10, 3)", r"may not fit decimal\(10,3\)"),
    ("a STRING", "a VARCHAR(3)", r"may not fit varchar\(3\)"),
    ("a INT", "a STRING", "may not fit string"),
    ("a INT", "a INT NOT NULL", "a is required and may be null in the data"),
    ("a INT", "a INT, b INT NOT NULL", "b is required and the data has no such column"),
    ("a INT, b INT", "a INT", "b would be left out"),
    ("a STRUCT<x: INT, y: INT>", "a STRUCT<x: INT>", "a.y would be left out"),
    ("a INT", "A INT", "A is a in the data, which differs only in case"),
    ("a ARRAY<STRUCT<x: BIGINT>>", "a ARRAY<STRUCT<x: INT>>", "a.element.x is bigint"),
    ("a MAP<BIGINT, INT>", "a MAP<INT, INT>", "a.key is bigint"),
    ("a STRUCT<x: INT>", "a STRING", "a is struct<x:int>"),
]


@pytest.mark.parametrize(("old", "new", "message"), REFUSED)
def test_what_would_lose_data_is_refused_by_name(old: str, new: str, message: str) -> None:
    empty = Schema.of(old).arrow().empty_table()
    with pytest.raises(WouldLose, match=message) as raised:
        upgrade(empty, new)
    assert raised.value.values["columns"]


@pytest.mark.parametrize(
    "new", ["a MAP<STRUCT<x: INT>, INT>", "a MAP<STRUCT<x: INT, y: TINYINT>, INT>"]
)
def test_less_in_the_key_of_a_map_is_always_refused(new: str) -> None:
    empty = Schema.of("a MAP<STRUCT<x: INT, y: INT>, INT>").arrow().empty_table()
    with pytest.raises(WouldLose, match=r"a\.key\.y"):
        upgrade(empty, new, drop=True, on_loss="null")


def test_a_source_must_be_that_of_the_data() -> None:
    given_table = table([{"a": 1}], "a INT")
    assert upgrade(given_table, "a INT NOT NULL", source="a INT NOT NULL").to_pylist() == [{"a": 1}]
    for wrong in ("a BIGINT", "a INT, b INT", "b INT"):
        with pytest.raises(InvalidInput, match="another schema than that of the data"):
            upgrade(given_table, "a BIGINT, b INT", source=wrong)


def test_null_may_be_asked_for_instead() -> None:
    given_table = table(
        [{"a": 2**40, "s": {"x": 1.5}, "k": 1}], "a BIGINT, s STRUCT<x: DOUBLE>, k INT"
    )
    done = upgrade(given_table, "a INT, s STRUCT<x: FLOAT>, k INT", on_loss="null")
    assert done.to_pylist() == [{"a": None, "s": {"x": None}, "k": 1}]
    with pytest.raises(WouldLose, match="a is bigint"):
        upgrade(given_table, "a INT NOT NULL, s STRUCT<x: FLOAT>, k INT", on_loss="null")


def test_a_unit_of_time_that_a_schema_cannot_say_is_refused_when_it_matters() -> None:
    moments = pa.array([1_000, 2_001], pa.timestamp("ns"))
    with pytest.raises(WouldLose, match="t has values that do not fit"):
        upgrade(pa.table({"t": moments}), "t TIMESTAMP_NTZ, u INT")
    done = upgrade(pa.table({"t": moments[:1]}), "t TIMESTAMP_NTZ, u INT")
    assert done["t"].to_pylist() == [datetime(1970, 1, 1, 0, 0, 0, 1)]


def test_what_is_neither_frame_nor_table_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not list"):
        upgrade([], "a INT")  # type: ignore[type-var]


def test_values_arrive_in_every_schema_that_holds_theirs() -> None:
    """Over random schemas: what is refused is refused, what is given has the same values."""
    seen = {"given": 0, "changed": 0, "refused": 0}

    @settings(max_examples=600, deadline=None, database=None)
    @given(related(2, arrow=True))
    def check(pair: tuple[Schema, ...]) -> None:
        source, other = pair
        given_table = pa.Table.from_pylist(_example(source.arrow()), schema=source.arrow())
        for target in (merged([source, other]).schema, other):
            if refusals(source.struct(), target.struct(), Leeway(drop=True)):
                seen["refused"] += 1
                with pytest.raises(WouldLose):
                    upgrade(given_table, target, drop=True)
                continue
            done = upgrade(given_table, target, drop=True)
            assert done.schema.equals(target.arrow())
            done.validate(full=True)
            wanted = [_given(row, target.arrow()) for row in given_table.to_pylist()]
            assert [_given(row, target.arrow()) for row in done.to_pylist()] == wanted
            seen["given"] += 1
            seen["changed"] += source != target

    check()
    assert all(count >= 100 for count in seen.values()), seen


def _given(value: Any, kind: Any) -> Any:
    """A value as it must be in a type that holds it, by hand: only dates look different there."""
    if isinstance(kind, pa.Schema | pa.StructType):
        if value is None:
            return None
        return {field.name: _given(value.get(field.name), field.type) for field in kind}
    if value is None:
        return None
    if isinstance(kind, pa.MapType):
        return [(_given(k, kind.key_type), _given(v, kind.item_type)) for k, v in value]
    if isinstance(kind, pa.ListType):
        return [_given(each, kind.value_type) for each in value]
    if pa.types.is_timestamp(kind) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value


def _example(schema: pa.Schema) -> list[dict[str, Any]]:
    """Two rows: one with as much as possible, one with as little."""
    return [{f.name: _value(f, full) for f in schema} for full in (True, False)]


def _value(field: Any, full: bool) -> Any:
    kind = field.type
    if not full and field.nullable:
        return None
    if isinstance(kind, pa.StructType):
        return {inner.name: _value(inner, full) for inner in kind}
    if isinstance(kind, pa.MapType):
        return [(_value(kind.key_field, True), _value(kind.item_field, full))]
    if isinstance(kind, pa.ListType):
        return [_value(kind.value_field, full), _value(kind.value_field, full)]
    if pa.types.is_string(kind):
        return "ab"
    if pa.types.is_null(kind):
        return None
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return Decimal(7) if pa.types.is_decimal(kind) else 7
    number = pa.int32() if pa.types.is_date(kind) else pa.int64()
    return pa.scalar(7, number).cast(kind).as_py()
