"""Changes: what one call may ask for, and what the parts of an operation say together."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import InvalidObject, PartConflict
from catalog.objects.changes import Changes, changes_of, put_from, put_payload, united
from catalog.objects.model import LARGEST_BODY, Object
from catalog.schema import Schema
from tests.unit.objects.strategies import PARTS, changes, objects, outcome, split

TABLE = Object("table/a", {"x": 1})

# --- one call ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("put", "remove", "fragments"),
    [
        (["table/a"], (), ["put takes Object values", "'table/a'"]),
        ("table/a", (), ["put takes Object or a list", "'table/a'"]),
        ({"table/a": TABLE}, (), ["put takes Object or a list"]),
        (None, (), ["put takes Object or a list", "None"]),
        (5, (), ["put takes Object or a list", "5"]),
        ([TABLE, Object("table/a", {"x": True})], (), ["table/a is put twice", "put it once"]),
        ([TABLE, Object("table/a", {"x": 1}, ["db/x"])], (), ["table/a is put twice"]),
        ([TABLE], ["table/b", "table/a"], ["table/a is put and removed", "one of the two"]),
        ((), [TABLE], ["must be a string", "table/a"]),
        ((), ["orders"], ["'orders'", "both parts filled"]),
        ((), ["table/_a"], ["reserved"]),
        ((), None, ["remove takes str or a list", "None"]),
        ((), {"table/a": 1}, ["remove takes str or a list"]),
    ],
)
def test_a_bad_call_is_refused_with_the_value_and_the_way_out(
    put: Any, remove: Any, fragments: list[str]
) -> None:
    with pytest.raises(InvalidObject) as caught:
        changes_of(put, remove)
    for fragment in fragments:
        assert fragment in caught.value.message


def test_one_object_and_one_key_may_stand_alone() -> None:
    assert changes_of(TABLE, "table/b") == changes_of([TABLE], ["table/b"])
    assert changes_of(TABLE, "table/b") == Changes({"table/a": TABLE}, frozenset({"table/b"}))
    assert changes_of(TABLE, "table/b").keys == {"table/a", "table/b"}


def test_the_same_twice_is_the_same_once() -> None:
    again = Object("table/a", {"x": 1})
    assert changes_of([TABLE, again], ["db/x", "db/x"]) == changes_of([TABLE], ["db/x"])


def test_no_changes_are_changes() -> None:
    assert changes_of() == Changes() == united({}) == united({3: Changes()})


# --- several parts -------------------------------------------------------------------------------


def put(body: dict[str, Any] | None = None, **rest: Any) -> Changes:
    return changes_of(Object("table/a", body, **rest))


REMOVE = changes_of(remove="table/a")


@pytest.mark.parametrize(
    ("one", "other", "field", "fragments"),
    [
        (put(), REMOVE, "action", ["one puts object table/a and the other removes it"]),
        (put({"x": 1}), put({"x": 2}), "body.x", ["body.x of object table/a", "1", "2"]),
        (put({"x": 1}), put({"x": True}), "body.x", ["is 1 in one", "true in the other"]),
        (put({"x": 1}), put({"x": 1.0}), "body.x", ["1.0"]),
        (put({"x": None}), put({"x": 0}), "body.x", ["null"]),
        (
            put({"x": {"y": 1}}),
            put({"x": {"z": 2}}),
            "body.x",
            ["is not the same"],
        ),
        (put({"a b": 1}), put({"a b": 2}), "body.`a b`", ["body.`a b`"]),
        (put({"y": 1, "x": 1}), put({"x": 2, "y": 2}), "body.x", ["body.x"]),
        (put(schema="a INT"), put(schema="b INT"), "schema", ["schema of object table/a"]),
        (
            put(datasource="orders"),
            put(datasource="returns"),
            "datasource",
            ["datasource of object table/a", "orders", "returns"],
        ),
    ],
)
def test_parts_that_contradict_each_other_are_refused_by_key_field_and_parts(
    one: Changes, other: Changes, field: str, fragments: list[str]
) -> None:
    told = []
    for parts in ({2: one, 5: other, 3: Changes()}, {5: other, 3: Changes(), 2: one}):
        with pytest.raises(PartConflict) as caught:
            united(parts)
        assert caught.value.values == {"key": "table/a", "field": field, "parts": (2, 5)}
        for fragment in ["Parts 2 and 5", "Let only one", *fragments]:
            assert fragment in caught.value.message
        told.append(caught.value.message)
    assert told[0] == told[1]
    with pytest.raises(PartConflict):
        united({2: other, 5: one})


def test_of_several_parts_that_contradict_each_other_the_first_of_each_side_are_named() -> None:
    parts = {4: REMOVE, 3: put(), 1: REMOVE, 2: put()}
    with pytest.raises(PartConflict) as caught:
        united(parts)
    assert caught.value.values["parts"] == (1, 2)
    with pytest.raises(PartConflict) as caught:
        united({number: put({"x": number // 5}) for number in (9, 7, 3, 4)})
    assert caught.value.values["parts"] == (3, 7)


def test_bodies_that_are_too_large_together_are_refused() -> None:
    half = "x" * (LARGEST_BODY // 2)
    with pytest.raises(PartConflict, match="1, 2 give object table/a a body of 1048591 bytes"):
        united({1: put({"x": half}), 2: put({"y": half})})


def test_each_part_brings_what_it_knows() -> None:
    together = united(
        {
            0: put({"x": 1, "y": [1]}, links=["db/x"]),
            1: put({"y": [1], "z": None}, links=["db/y", "db/x"], schema="a INT"),
            2: put(schema="a INT", datasource="orders"),
            3: changes_of(Object("view/b"), "table/c"),
        }
    )
    body = {"x": 1, "y": [1], "z": None}
    whole = Object("table/a", body, ["db/x", "db/y"], "a INT", "orders")
    assert together == changes_of([whole, Object("view/b")], "table/c")
    assert together.puts["table/a"].digest == whole.digest
    assert together.puts["table/a"].schema == Schema.of("a INT")


def test_of_two_spellings_of_a_schema_the_same_is_kept_in_every_order() -> None:
    one, other = put(schema="a INT, b INT"), put(schema="b INT, a INT COMMENT 'c'")
    kept = [united({0: first, 1: second}) for first, second in ((one, other), (other, one))]
    schemas = [each.puts["table/a"].schema for each in kept]
    assert schemas[0] is not None
    assert schemas[1] is not None
    assert schemas[0].json == schemas[1].json


several = st.lists(changes, min_size=PARTS, max_size=PARTS)


@given(changes.flatmap(lambda whole: st.tuples(st.just(whole), split(whole))))
def test_parts_of_a_whole_say_together_what_the_whole_says_in_every_order(
    drawn: tuple[Changes, dict[int, Changes]],
) -> None:
    whole, parts = drawn
    for order in itertools.permutations(parts.values()):
        assert united(dict(enumerate(order))) == whole


def condition(parts: list[Changes]) -> Any:
    """The union, or only the condition: who is named depends on the numbers of the parts."""
    found = outcome(lambda: united(dict(enumerate(parts))))
    return found if isinstance(found, Changes) else found[0]


@given(several)
def test_union_is_commutative_also_for_parts_that_contradict_each_other(
    parts: list[Changes],
) -> None:
    found = [condition(list(order)) for order in itertools.permutations(parts)]
    assert all(each == found[0] for each in found)


@given(several, st.integers(1, PARTS - 1))
def test_union_is_associative_also_for_parts_that_contradict_each_other(
    parts: list[Changes], cut: int
) -> None:
    def grouped() -> Changes:
        groups = parts[:cut], parts[cut:]
        return united({n: united(dict(enumerate(group))) for n, group in enumerate(groups)})

    found = outcome(grouped)
    assert (found if isinstance(found, Changes) else found[0]) == condition(parts)


@given(changes)
def test_a_part_that_is_said_twice_says_the_same(part: Changes) -> None:
    assert united({0: part, 1: part}) == united({7: part}) == part


# --- staged rows ---------------------------------------------------------------------------------


@given(objects)
def test_a_put_comes_back_from_its_staged_row(made: Object) -> None:
    back = put_from(made.key, put_payload(made), made.fingerprint, made.datasource)
    assert (back, back.digest) == (made, made.digest)


def test_a_staged_put_knows_its_schema_by_the_fingerprint_and_unites_with_one_that_has_it() -> None:
    made = Object("table/a", {"b": 1, "a": "é"}, ["db/y", "db/x"], "a INT", "orders")
    assert put_payload(made) == '{"body":{"a":"é","b":1},"links":["db/x","db/y"]}'
    back = put_from("table/a", put_payload(made), made.fingerprint, "orders")
    assert (back.schema, back.fingerprint) == (None, made.fingerprint)
    both = united({0: changes_of(back), 1: changes_of(made)}).puts["table/a"]
    assert (both, both.schema) == (made, made.schema)


@pytest.mark.parametrize("payload", [None, "", "[]", '{"body":{}}', '{"body":{},"links":{}}'])
def test_a_payload_that_holds_no_put_is_refused_by_its_key(payload: Any) -> None:
    with pytest.raises(InvalidObject, match="table/a must be a JSON object with body, links"):
        put_from("table/a", payload, None, None)
