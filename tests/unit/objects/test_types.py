"""Declarations of types: what they may say, and that JSON keeps all of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import InvalidObject, InvalidType
from catalog.objects.declarations import Types
from catalog.objects.fields import (
    BodyField,
    anything,
    boolean,
    declared_fields,
    documents,
    fields_from,
    filled,
    list_of,
    number,
    one_of,
    problems,
    record,
    secret,
    text,
    whole,
)
from catalog.objects.model import Object
from catalog.objects.platform import PLATFORM
from catalog.objects.types import (
    ObjectType,
    Rule,
    States,
    at_most,
    conforms,
    meets,
    ranges,
    type_from,
    types_of,
    unique,
)

# --- fields --------------------------------------------------------------------------------------

FIELDS: dict[str, BodyField] = {
    "name": text(required=True),
    "count": whole(1, 10),
    "share": number(0, 1),
    "on": boolean(),
    "colour": one_of("red", "blue"),
    "tags": list_of(text()),
    "login": record({"user": text(required=True), "password": secret()}),
    "logins": list_of(record({"password": secret()})),
    "any": anything(),
    "key": secret(),
    "schema": declared_fields(),
}
PLAIN = "hunter2"


@pytest.mark.parametrize(
    ("body", "path", "said"),
    [
        ({}, "body.name", "is required"),
        ({"name": None}, "body.name", "is required"),
        ({"name": 1}, "body.name", "must be a text, not 1"),
        ({"name": {"a": 1}}, "body.name", "must be a text, not a JSON object"),
        ({"name": "x", "other": 1}, "body.other", "is not declared; its fields are: any, colour"),
        ({"name": "x", "a b": 1}, "body.`a b`", "is not declared"),
        (
            {"name": "x", "count": 0},
            "body.count",
            "number at least 1 and at most 10, not 0",
        ),
        ({"name": "x", "count": 1.5}, "body.count", "must be a whole number"),
        ({"name": "x", "count": True}, "body.count", "must be a whole number"),
        ({"name": "x", "share": 1.5}, "body.share", "a number at least 0 and at most 1, not 1.5"),
        ({"name": "x", "share": "1"}, "body.share", "must be a number"),
        ({"name": "x", "on": 1}, "body.on", "must be true or false, not 1"),
        ({"name": "x", "colour": "green"}, "body.colour", 'one of red, blue, not "green"'),
        ({"name": "x", "colour": ["red"]}, "body.colour", "one of red, blue, not a list"),
        ({"name": "x", "tags": "a"}, "body.tags", "must be a list, not a text"),
        ({"name": "x", "tags": ["a", 1]}, "body.tags[1]", "must be a text, not 1"),
        ({"name": "x", "tags": [None]}, "body.tags[0]", "must be a text, not null"),
        ({"name": "x", "login": [PLAIN]}, "body.login", "must be a JSON object, not a list"),
        ({"name": "x", "login": {}}, "body.login.user", "is required"),
        ({"name": "x", "login": {"user": "u", "x": PLAIN}}, "body.login.x", "is not declared"),
        (
            {"name": "x", "login": {"user": "u", "password": PLAIN}},
            *("body.login.password", "as secret://scope/name; it is not shown"),
        ),
        ({"name": "x", "logins": [{"password": PLAIN}]}, "body.logins[0].password", "is not shown"),
        ({"name": "x", "key": PLAIN}, "body.key", "is not shown"),
        ({"name": "x", "key": f"secret://{PLAIN}"}, "body.key", "is not shown"),
        ({"name": "x", "key": ["secret://a/b"]}, "body.key", "is not shown"),
        ({"name": "x", "schema": {"a": {"type": "int"}}}, "body.schema", "must be one of text"),
        ({"name": "x", "schema": [PLAIN]}, "body.schema", "not a list"),
    ],
)
def test_a_body_is_told_what_is_wrong_where_and_never_a_secret(
    body: dict[str, Any], path: str, said: str
) -> None:
    (found,) = problems(FIELDS, body)
    assert (found.path, said in found.text) == (path, True), found
    assert found.rule == ("secret" if "not shown" in said else "fields")
    assert PLAIN not in found.text


def test_a_body_as_it_is_declared_has_no_problems() -> None:
    body = {
        "name": "x",
        "count": 10,
        "share": 0,
        "on": False,
        "colour": "red",
        "tags": [],
        "login": {"user": "u", "password": "secret://pg/u-1.x"},
        "any": [{"deep": None}],
        "key": "secret://a/b",
        "schema": documents(FIELDS),
    }
    assert [*problems(FIELDS, body)] == []
    assert [*problems(FIELDS, {**body, "other": 1}, open=True)] == []
    assert [*problems(FIELDS, {}, partial=True)] == []


def test_defaults_fill_what_is_not_given_also_inside_of_records() -> None:
    fields = {
        "a": whole(default=1),
        "b": text(),
        "r": record({"x": whole(default=2)}),
        "s": record({"x": whole(default=3)}, default={}),
    }
    assert filled(fields, {"r": {}}) == {"a": 1, "r": {"x": 2}, "s": {"x": 3}}
    assert filled(fields, {"a": 0, "s": {"x": 9}, "z": 1}) == {"a": 0, "s": {"x": 9}, "z": 1}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "fields must be a JSON object of declarations, not a list"),
        ({"A": {"type": "text"}}, "fields.A is no name of a field"),
        ({"a": "text"}, "fields.a must be a declaration"),
        ({"a": {}}, "fields.a.type is required"),
        ({"a": {"type": "words"}}, "fields.a.type must be one of text, whole"),
        ({"a": {"type": ["text"]}}, "fields.a.type must be one of"),
        (
            {"a": {"type": "text", "min": 1}},
            "fields.a.min is not declared; its fields are: comment",
        ),
        ({"a": {"type": "text", "low": 1}}, "fields.a.low has no meaning for a field of type text"),
        ({"a": {"type": "text", "required": 1}}, "fields.a.required must be true or false"),
        ({"a": {"type": "text", "default": 1}}, "fields.a.default must be a text"),
        ({"a": {"type": "text", "comment": 1}}, "fields.a.comment must be a text"),
        ({"a": {"type": "whole", "low": "1"}}, "fields.a.low must be a number"),
        ({"a": {"type": "whole", "low": 2, "default": 1}}, "fields.a.default must be a whole"),
        ({"a": {"type": "one_of"}}, "fields.a.words must be a list of one text or more"),
        ({"a": {"type": "one_of", "words": []}}, "fields.a.words must be a list"),
        ({"a": {"type": "list"}}, "fields.a.of must be a declaration"),
        ({"a": {"type": "record"}}, "fields.a.fields must be a JSON object"),
        ({"a": {"type": "record", "fields": {"b": {}}}}, "fields.a.fields.b.type is required"),
        ({"a": {"type": "secret", "default": PLAIN}}, "is not shown"),
    ],
)
def test_fields_that_cannot_be_declared_are_refused(document: Any, said: str) -> None:
    with pytest.raises(InvalidType) as refusal:
        fields_from(document)
    assert said in refusal.value.message
    assert PLAIN not in refusal.value.message


def test_fields_inside_of_fields_end_somewhere() -> None:
    deep: dict[str, Any] = {"type": "text"}
    for _ in range(60):
        deep = {"type": "list", "of": deep}
    with pytest.raises(InvalidType, match="levels deep"):
        fields_from({"a": deep})


_NAMES = st.sampled_from(["a", "b", "c1", "d_e"])
_SCALARS = st.one_of(
    st.builds(text, required=st.booleans(), comment=st.sampled_from(["", "what it is"])),
    st.builds(whole, st.integers(-5, 0), st.integers(1, 5), default=st.sampled_from([None, 1])),
    st.builds(boolean, default=st.sampled_from([None, True, False])),
    st.builds(one_of, st.just("x"), st.just("y"), default=st.sampled_from([None, "x"])),
    st.builds(secret),
    st.builds(anything, default=st.sampled_from([None, [], {"x": 1}])),
)
_FIELDS = st.recursive(
    _SCALARS,
    lambda inner: st.builds(list_of, inner) | st.builds(record, st.dictionaries(_NAMES, inner)),
    max_leaves=5,
)


@given(st.dictionaries(_NAMES, _FIELDS, max_size=4))
def test_json_keeps_all_that_fields_say(fields: dict[str, BodyField]) -> None:
    assert fields_from(json.loads(json.dumps(documents(fields)))) == fields


# --- types ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("declared", PLATFORM, ids=lambda declared: declared.name)
def test_json_keeps_all_that_a_type_says(declared: ObjectType) -> None:
    stored = declared.object()
    assert stored.key == f"type/{declared.name}"
    assert type_from(stored.path, stored.body) == declared
    assert all(each.comment for each in declared.all_fields.values())


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        (lambda: ObjectType("type"), "is the type of declarations itself"),
        (lambda: ObjectType("a", parent="a"), "is its own parent"),
        (lambda: ObjectType("a", parent="b", owners=("c",)), "has a parent and owners"),
        (lambda: ObjectType("a", fields={"B": text()}), "is no name of a field"),
        (lambda: ObjectType("a", fields={"b": 1}), "which is no BodyField"),  # type: ignore[dict-item]
        (lambda: ObjectType("a", references={"b": "c"}), "which is no field of text"),
        (
            lambda: ObjectType("a", fields={"b": whole()}, references={"b": "c"}),
            "which is no field of text",
        ),
        (
            lambda: ObjectType("a", fields={"state": text()}, states=States(("x",), {})),
            "has states and a field state",
        ),
        (lambda: ObjectType("a", states=States((), {"x": ()})), "none to begin with"),
        (lambda: ObjectType("a", rules=(Rule("sorted", ()),)), "has a rule 'sorted'"),
        (lambda: ObjectType("a", rules=(unique(),)), "with not 1 parameters"),
        (lambda: ObjectType("a", rules=(Rule("ranges", ("b",)),)), "with not 2 parameters"),
        (lambda: ObjectType("a", rules=(ranges("b", "c"),)), "on 'b', not a field"),
        (lambda: ObjectType("a", rules=(at_most("b"),)), "and no parent"),
        (
            lambda: ObjectType("a", parent="p", rules=(meets("x", "b", "y"),)),
            "over 'b', not a reference",
        ),
        (
            lambda: ObjectType("a", fields={"b": anything()}, rules=(conforms("b", "c", "d"),)),
            "on 'c', not a field",
        ),
    ],
)
def test_a_type_that_cannot_be_declared_is_refused(declared: Any, said: str) -> None:
    with pytest.raises(InvalidType) as refusal:
        declared()
    assert said in refusal.value.message


@pytest.mark.parametrize("name", ["A", "", "a b", "1", None, "a/b"])
def test_the_name_of_a_type_is_what_keys_can_have(name: Any) -> None:
    with pytest.raises(InvalidObject):
        ObjectType(name)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ([], "must be declared by a JSON object"),
        ({"colour": 1}, "has no 'colour'; there are comment, fields"),
        ({"parent": 1}, "must have a text as parent"),
        ({"parent": "A"}, "cannot be declared so: A type has lowercase letters"),
        ({"owners": "a"}, "must have a list as owners"),
        ({"owners": [1]}, "must have a list of texts as owners"),
        ({"references": []}, "must have a JSON object of texts as references"),
        ({"fields": 1}, "must be a JSON object of declarations"),
        ({"states": ["x"]}, "must have states as a JSON object with initial and next"),
        ({"states": {"next": {}}}, "must have a list as initial"),
        ({"states": {"initial": ["x"], "next": {"x": "y"}}}, "must have a list as next"),
        ({"rules": {}}, "must have a list as rules"),
        ({"rules": ["unique"]}, "must have each rule as a list"),
        ({"rules": [[]]}, "must have each rule as a list"),
        ({"rules": [["unique", ["a"]]]}, "not a field"),
        ({"comment": 1}, "must have a text as comment"),
        ({"open": "no"}, "must have true or false as open"),
    ],
)
def test_a_declaration_that_cannot_be_read_is_refused(body: Any, said: str) -> None:
    with pytest.raises(InvalidType) as refusal:
        type_from("team", body)
    assert said in refusal.value.message


def test_types_have_to_fit_each_other() -> None:
    def wrong(*types: ObjectType) -> list[tuple[str, str]]:
        return [*Types(types).inconsistencies()]

    shard = ObjectType("shard")
    replica = ObjectType("replica", parent="shard", rules=(at_most("copies"),))
    assert wrong(*PLATFORM) == []
    assert wrong(replica) == [("type/replica", "needs the type shard, which is not declared")]
    ((key, said),) = wrong(shard, replica)
    assert (key, "on the field 'copies' of type shard" in said) == ("type/replica", True)
    assert wrong(ObjectType("shard", fields={"copies": whole()}), replica) == []
    circle = [ObjectType("a", parent="b"), ObjectType("b", parent="a")]
    assert {key for key, _ in wrong(*circle)} == {"type/a", "type/b"}
    assert Types(circle).shape("a") == ("b", "a")


def test_keys_have_the_shape_that_their_parents_give() -> None:
    types = Types(PLATFORM)
    assert types.shape("replica") == ("datastore", "shard", "replica")
    assert types.parent_of("replica/main/a/one") == "shard/main/a"
    assert types.parent_of("retention/database/sales") == "database/sales"
    assert types.parent_of("database/sales") is types.parent_of("free/form") is None
    assert types.shape_problem("replica/main/a/one") is None
    assert types.shape_problem("replica/main/one") == "replica/<datastore>/<shard>/<replica>"
    assert types.shape_problem("database/a/b") == "database/<database>"
    wanted = "retention/database/<database> or retention/datasource/<datasource>"
    assert types.shape_problem("retention/sales") == wanted
    assert types.shape_problem("retention/datasource/a/b") == wanted


def test_one_type_may_stand_alone_and_nothing_else() -> None:
    assert types_of(PLATFORM[0]) == (PLATFORM[0],)
    for wrong in ([Object("type/a")], "team", [1]):
        with pytest.raises(InvalidType):
            types_of(wrong)  # type: ignore[arg-type]
