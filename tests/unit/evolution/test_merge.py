"""Merging and the order of schemas: laws over random schemas, and the rules one by one."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings

from catalog import Schema
from catalog.errors import InvalidInput, SchemaConflict
from catalog.evolution import merge, merged, superior
from tests.unit.evolution.strategies import related

MANY = settings(max_examples=600, deadline=None)


def joined(*schemas: Schema) -> Schema | None:
    """The strict merge; none if there is none."""
    try:
        return merge(*schemas)
    except SchemaConflict:
        return None


# --- laws ---


@MANY
@given(related(2))
def test_merging_does_not_depend_on_the_order(pair: tuple[Schema, ...]) -> None:
    a, b = pair
    assert joined(a, b) == joined(b, a)


@MANY
@given(related(3))
def test_merging_does_not_depend_on_the_grouping(triple: tuple[Schema, ...]) -> None:
    a, b, c = triple
    first, second = joined(a, b), joined(b, c)
    left = None if first is None else joined(first, c)
    right = None if second is None else joined(a, second)
    assert left == right == joined(a, b, c)


@MANY
@given(related(2))
def test_merging_again_changes_nothing(pair: tuple[Schema, ...]) -> None:
    a, b = pair
    assert joined(a, a) == a
    both = joined(a, b)
    if both is not None:
        assert joined(both, a) == joined(a, both) == joined(both, both) == both


@MANY
@given(related(3))
def test_superior_is_an_order(triple: tuple[Schema, ...]) -> None:
    a, b, c = triple
    assert superior(a, a)
    assert not (superior(a, b) and superior(b, a)) or a == b
    assert not (superior(a, b) and superior(b, c)) or superior(a, c)


@MANY
@given(related(3))
def test_a_merge_is_the_least_schema_above_both(triple: tuple[Schema, ...]) -> None:
    a, b, c = triple
    both = joined(a, b)
    if both is not None:
        assert superior(both, a)
        assert superior(both, b)
    if superior(c, a) and superior(c, b):
        assert both is not None
        assert superior(c, both)


@MANY
@given(related(3))
def test_conflicts_are_reported_and_never_hide_the_other_columns(
    triple: tuple[Schema, ...],
) -> None:
    names = {
        column.path.casefold() for each in triple for column in each.columns if not column.depth
    }
    for policy in ("strict", "widest", "latest"):
        done = merged(triple, policy)
        found = {column.path.casefold() for column in done.schema.columns if not column.depth}
        assert found == names
        assert bool(done.conflicts) == (joined(*triple) is None)


@MANY
@given(related(2))
def test_without_a_conflict_the_policies_agree(pair: tuple[Schema, ...]) -> None:
    both = joined(*pair)
    if both is not None:
        assert merge(*pair, policy="widest") == merge(*pair, policy="latest") == both


def test_related_schemas_merge_and_conflict_and_are_ordered_often() -> None:
    """The laws above would say nothing about schemas that never meet."""
    seen = {"merged": 0, "conflict": 0, "ordered": 0, "incomparable": 0}

    @settings(max_examples=500, deadline=None, derandomize=True, database=None)
    @given(related(2))
    def count(pair: tuple[Schema, ...]) -> None:
        a, b = pair
        seen["conflict" if joined(a, b) is None else "merged"] += 1
        if a != b:
            seen["ordered" if superior(a, b) or superior(b, a) else "incomparable"] += 1

    count()
    assert all(number >= 25 for number in seen.values()), seen


# --- rules ---

MERGES = [
    ("tinyint", "bigint", "bigint"),
    ("smallint", "int", "int"),
    ("float", "double", "double"),
    ("date", "timestamp_ntz", "timestamp_ntz"),
    ("decimal(5,2)", "decimal(10,0)", "decimal(12,2)"),
    ("decimal(38,0)", "decimal(10,0)", "decimal(38,0)"),
    ("char(3)", "char(3)", "char(3)"),
    ("char(3)", "char(5)", "varchar(5)"),
    ("char(3)", "varchar(2)", "varchar(3)"),
    ("varchar(3)", "string", "string"),
    ("time(0)", "time(6)", "time(6)"),
    ("interval year", "interval month", "interval year to month"),
    ("interval day", "interval minute to second", "interval day to second"),
    ("geometry(4326)", "geometry(3857)", "geometry(any)"),
    ("void", "variant", "variant"),
    ("void", "struct<x:int>", "struct<x:int>"),
    ("array<void>", "array<array<date>>", "array<array<date>>"),
    ("map<tinyint,void>", "map<int,double>", "map<int,double>"),
    ("struct<x:int>", "struct<y:date>", "struct<x:int,y:date>"),
    ("array<struct<x:int>>", "array<struct<x:bigint>>", "array<struct<x:bigint>>"),
]

CONFLICTS = [
    ("int", "double", "c"),
    ("bigint", "decimal(20,0)", "c"),
    ("decimal(38,0)", "decimal(38,1)", "c"),
    ("string", "binary", "c"),
    ("string", "string collate UTF8_LCASE", "c"),
    ("varchar(3)", "string collate UTF8_LCASE", "c"),
    ("date", "timestamp", "c"),
    ("timestamp", "timestamp_ntz", "c"),
    ("boolean", "tinyint", "c"),
    ("interval month", "interval day", "c"),
    ("interval", "interval day", "c"),
    ("variant", "string", "c"),
    ("geometry(4326)", "geography(4326)", "c"),
    ("struct<x:int>", "int", "c"),
    ("array<int>", "map<int,int>", "c"),
    ("array<int>", "array<string>", "c.element"),
    ("map<int,int>", "map<string,int>", "c.key"),
    ("map<int,int>", "map<int,string>", "c.value"),
    ("struct<x:array<struct<y:int>>>", "struct<x:array<struct<y:date>>>", "c.x.element.y"),
    ("struct<`a.b`:int>", "struct<`a.b`:date>", "c.`a.b`"),
]


@pytest.mark.parametrize(("a", "b", "both"), MERGES)
def test_types_merge(a: str, b: str, both: str) -> None:
    wanted = Schema.of(f"c {both}")
    assert merge(f"c {a}", f"c {b}") == merge(f"c {b}", f"c {a}") == wanted


@pytest.mark.parametrize(("a", "b", "path"), CONFLICTS)
def test_types_in_conflict_are_named_with_their_path(a: str, b: str, path: str) -> None:
    with pytest.raises(SchemaConflict) as raised:
        merge(f"k INT, c {a}", f"k INT, c {b}")
    (conflict,) = raised.value.values["conflicts"]
    assert conflict["path"] == path
    for kind in conflict["seen"]:
        assert kind in raised.value.message
    ((_, _, kept),) = (
        (e.path, e.seen, e.kept) for e in merged([f"c {a}", f"c {b}"], "widest").conflicts
    )
    assert kept == "string"
    assert merge(f"c {a}", f"c {b}", policy="latest") == Schema.of(f"c {b}")


def test_a_column_that_one_side_lacks_may_be_null() -> None:
    both = merge("a INT NOT NULL, b INT NOT NULL", "b INT NOT NULL, c INT NOT NULL")
    assert both.ddl == Schema.of("a INT, b INT NOT NULL, c INT").ddl


def test_columns_stand_in_the_order_of_their_first_appearance() -> None:
    both = merge("b INT, s STRUCT<y: INT>", "a INT, b INT, s STRUCT<x: INT, y: INT>")
    assert [column.path for column in both.columns] == ["b", "s", "s.y", "s.x", "a"]


def test_comments_are_kept_and_the_first_one_wins() -> None:
    both = merge("a INT COMMENT 'one', b INT", "a BIGINT COMMENT 'two', b INT COMMENT 'three'")
    assert [column.comment for column in both.columns] == ["one", "three"]


def test_names_that_differ_only_in_case_are_a_conflict() -> None:
    with pytest.raises(SchemaConflict, match="differ only in case"):
        merge("id INT", "ID INT")
    done = merged(["id INT", "ID BIGINT"], "latest")
    assert (done.schema.ddl, str(done.conflicts[0])) == (
        "ID BIGINT",
        "id: id and ID differ only in case",
    )


def test_each_fallback_is_reported_once() -> None:
    done = merged(["c INT", "c DATE", "c INT", "c DATE"], "widest")
    assert done.schema == Schema.of("c STRING")
    assert [(each.path, each.seen, each.kept) for each in done.conflicts] == [
        ("c", ("int", "date"), "string"),
        ("c", ("string", "int"), "string"),
        ("c", ("string", "date"), "string"),
    ]


def test_some_schemas_are_in_no_order() -> None:
    for a, b in itertools.permutations(("a INT", "b INT", "a DATE"), 2):
        assert not superior(a, b)


def test_bad_calls_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at least one"):
        merge()
    with pytest.raises(InvalidInput, match='"strict", "widest" or "latest"'):
        merge("a INT", policy="loose")
