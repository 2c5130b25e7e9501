"""Objects: what is refused, what never changes, and what their digest says."""

from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import catalog
from catalog.errors import InvalidInput, InvalidObject
from catalog.model import LONGEST_DATASOURCE
from catalog.objects.model import (
    DEEPEST_BODY,
    LARGEST_BODY,
    LONGEST_KEY,
    Object,
    ObjectNode,
    StoredObject,
    check_key,
    digest_of,
)
from catalog.schema import Schema
from tests.unit.objects.strategies import objects

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
FINGERPRINT = "2894bbaa6e69557785652dde4e7e9d46"

# --- keys ----------------------------------------------------------------------------------------

BAD_KEYS: list[tuple[Any, list[str]]] = [
    (None, ["must be a string", "None"]),
    (7, ["must be a string", "7"]),
    (b"table/a", ["must be a string", "b'table/a'"]),
    ("", ["''", "both parts filled", "such as table/sales/orders"]),
    ("table", ["'table'", "both parts filled"]),
    ("table/", ["'table/'", "both parts filled"]),
    ("/a", ["'/a'", "both parts filled"]),
    ("/", ["'/'", "both parts filled"]),
    ("Table/a", ["'Table/a'", "lowercase"]),
    ("1table/a", ["'1table/a'", "begins with a letter"]),
    ("_table/a", ["'_table/a'", "begins with a letter"]),
    ("my-table/a", ["'my-table/a'", "lowercase"]),
    ("täble/a", ["'täble/a'", "lowercase"]),
    ("table\n/a", ["'table\\n/a'", "lowercase"]),
    (" table/a", ["' table/a'", "lowercase"]),
    ("table//a", ["'table//a'", "a part without a name", "leave it out"]),
    ("table/a//b", ["a part without a name"]),
    ("table/a/", ["'table/a/'", "a part without a name"]),
    ("table/_a", ["the part '_a'", "reserved", "rename it"]),
    ("table/a/_b", ["the part '_b'", "reserved"]),
    ("table/ a", ["the part ' a'", "space", "remove it"]),
    ("table/a ", ["the part 'a '", "space"]),
    ("table/a /b", ["the part 'a '", "space"]),
    ("table/a\u00a0", ["space"]),
    ("table/a\n", ["control characters; remove them"]),
    ("table/\x00", ["control characters; remove them"]),
    ("table/\x85", ["control characters; remove them"]),
    ("table/\ud800", ["'table/\\ud800'", "lone surrogate", "remove it"]),
    ("t/" + "x" * (LONGEST_KEY - 1), ["has 1025 characters", "at most 1024"]),
]


@pytest.mark.parametrize(("key", "fragments"), BAD_KEYS)
def test_a_bad_key_is_refused_with_the_value_and_the_way_out(
    key: Any, fragments: list[str]
) -> None:
    with pytest.raises(InvalidObject) as caught:
        Object(key)
    assert caught.value.values == {"key": key}
    for fragment in fragments:
        assert fragment in caught.value.message


@pytest.mark.parametrize(("key", "fragments"), BAD_KEYS)
def test_a_link_to_a_bad_key_is_refused_by_the_name_of_its_object(
    key: Any, fragments: list[str]
) -> None:
    with pytest.raises(InvalidObject) as caught:
        Object("index/a", links=[key])
    assert caught.value.message.startswith("A link of object index/a ")
    for fragment in fragments:
        assert fragment in caught.value.message


@pytest.mark.parametrize(
    "key",
    [
        "t/a",
        "t1_x/a",
        "table/sales/orders",
        "table/größe/😀",
        "table/a b/c_",
        "table/'`\"",
        "t/" + "x" * (LONGEST_KEY - 2),
    ],
)
def test_a_key_at_the_edge_of_the_rules_is_kept_as_given(key: str) -> None:
    assert check_key(key) == key
    made = Object(key)
    assert (made.key, f"{made.type}/{made.path}") == (key, key)


def test_the_type_is_the_part_before_the_first_slash() -> None:
    made = Object("table/sales/orders")
    assert (made.type, made.path) == ("table", "sales/orders")


# --- bodies --------------------------------------------------------------------------------------


def nested(levels: int) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for _ in range(levels - 1):
        body = {"a": body}
    return body


def inside_itself() -> dict[str, Any]:
    knot: list[Any] = []
    knot += [knot, knot]
    return {"a": knot}


def doubled(times: int) -> dict[str, Any]:
    """A small value whose text would have 2^times parts."""
    value: Any = 1
    for _ in range(times):
        value = [value, value]
    return {"a": value}


BAD_BODIES: list[tuple[Any, list[str]]] = [
    ([], ["body of object table/a", "must be a dict", "list"]),
    ("{}", ["must be a dict", "str"]),
    (7, ["must be a dict", "int"]),
    ({1: 2}, ["body of object table/a", "has the key 1", "keys are strings"]),
    ({"a": {None: 2}}, ["body.a of object table/a", "has the key None"]),
    ({"a": [1, {"b c": {True: 2}}]}, ["body.a[1].`b c` of", "has the key True"]),
    ({"a": float("nan")}, ["body.a of object table/a", "not finite", "as a string"]),
    ({"a": [0, float("inf")]}, ["body.a[1]", "not finite"]),
    ({"a": -float("inf")}, ["body.a", "not finite"]),
    ({"a": 10**5000}, ["body.a", "not finite as a double"]),
    ({"a": (1, 2)}, ["body.a", "is of type tuple", "lists and dicts"]),
    ({"a": {1}}, ["body.a", "is of type set"]),
    ({"a": b"x"}, ["body.a", "is of type bytes"]),
    ({"a": [{"b": NOON}]}, ["body.a[0].b", "is of type datetime"]),
    ({"a": "\ud800"}, ["body.a", "lone surrogate"]),
    ({"a": {"\ud800": 1}}, ["body.a", "lone surrogate"]),
    (nested(DEEPEST_BODY + 1), ["body.a.a", "more than 100 levels deep", "flatten"]),
    (inside_itself(), ["body.a[0][0]", "or inside itself"]),
    (doubled(90), ["more than 1048576 bytes", "store the rest elsewhere"]),
    ({"a": ["x" * 1000] * 2000}, ["more than 1048576 bytes"]),
    ({"a": "x" * (LARGEST_BODY - 7)}, ["has 1048577 bytes", "at most 1048576"]),
    ({"a": "é" * (LARGEST_BODY // 2)}, ["has 1048584 bytes"]),
]


@pytest.mark.parametrize(("body", "fragments"), BAD_BODIES)
def test_a_bad_body_is_refused_with_the_place_and_the_way_out(
    body: Any, fragments: list[str]
) -> None:
    with pytest.raises(InvalidObject) as caught:
        Object("table/a", body)
    assert caught.value.values["key"] == "table/a"
    for fragment in fragments:
        assert fragment in caught.value.message


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"": None},
        {"a": "x" * (LARGEST_BODY - 8)},
        {"a": 10**308, "b": -0.5, "c": 1e300},
        {"a": "\x00\n\u2028"},
        nested(DEEPEST_BODY),
    ],
)
def test_a_body_at_the_edge_of_the_rules_is_kept_as_given(body: dict[str, Any]) -> None:
    assert Object("table/a", body).body == body


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # Bodies hold text that UTF-8 can hold.
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), inner)
    ),
    max_leaves=8,
)
json_objects = st.dictionaries(st.sampled_from("abc"), values, max_size=3)


@given(json_objects)
def test_a_body_comes_back_as_it_was_given(body: dict[str, Any]) -> None:
    # As texts: True and 1, 0.0 and -0.0 are equal to Python.
    back = Object("table/a", body).body
    assert json.dumps(back, sort_keys=True) == json.dumps(body, sort_keys=True)


def test_nobody_can_change_an_object_that_was_made() -> None:
    body: dict[str, Any] = {"columns": [{"name": "a"}]}
    links = ["db/x"]
    made = Object("table/a", body, links)
    before = made.digest
    body["columns"][0]["name"] = "b"
    links.append("db/y")
    made.body["columns"].append(1)
    with pytest.raises(FrozenInstanceError):
        made.key = "table/b"  # type: ignore[misc]
    assert made.body == {"columns": [{"name": "a"}]}
    assert made.links == ("db/x",)
    assert made.digest == before


def test_objects_without_a_body_do_not_share_one() -> None:
    Object("table/a").body["x"] = 1
    assert Object("table/b").body == {}


# --- links, schema, datasource -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("links", "fragments"),
    [
        ("db/x", ["takes a list of keys", "'db/x'"]),
        (None, ["takes a list of keys", "None"]),
        (5, ["takes a list of keys", "5"]),
        (["db/x", "table/a"], ["table/a links to itself", "leave that link out"]),
    ],
)
def test_bad_links_are_refused_with_the_way_out(links: Any, fragments: list[str]) -> None:
    with pytest.raises(InvalidObject) as caught:
        Object("table/a", links=links)
    assert caught.value.values == {"key": "table/a"}
    for fragment in fragments:
        assert fragment in caught.value.message


@pytest.mark.parametrize(
    "links", [["db/y", "db/x", "db/y"], iter(["db/y", "db/x"]), {"db/y": 3, "db/x": 1}]
)
def test_links_are_kept_each_once_and_in_order(links: Any) -> None:
    assert Object("table/a", links=links).links == ("db/x", "db/y")


@pytest.mark.parametrize("schema", ["a INT", Schema.of("a INT"), Schema.of("a INT").struct()])
def test_the_schema_is_anything_that_is_one(schema: Any) -> None:
    made = Object("table/a", schema=schema)
    assert (made.schema, made.fingerprint) == (Schema.of("a INT"), FINGERPRINT)


@pytest.mark.parametrize(
    ("given", "condition", "fragment"),
    [
        ({"schema": "a INTT"}, "INVALID_SCHEMA", "INTT"),
        ({"schema": 5}, "INVALID_SCHEMA", "int"),
        ({"datasource": ""}, "INVALID_INPUT", "''"),
        ({"datasource": "a/b"}, "INVALID_INPUT", "'a/b'"),
        ({"datasource": 5}, "INVALID_INPUT", "5"),
        ({"datasource": "a\n"}, "INVALID_OBJECT", "control characters"),
        ({"datasource": "\ud800"}, "INVALID_OBJECT", "lone surrogate"),
        ({"datasource": "x" * (LONGEST_DATASOURCE + 1)}, "INVALID_OBJECT", "at most 255"),
    ],
)
def test_a_bad_schema_or_datasource_is_refused(
    given: dict[str, Any], condition: str, fragment: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        Object("table/a", **given)
    assert caught.value.condition == condition
    assert fragment in caught.value.message


# --- equality and digest -------------------------------------------------------------------------

WHOLE: dict[str, Any] = {
    "body": {"b": 1, "a": "é"},
    "links": ["db/y", "db/x"],
    "schema": "a INT",
    "datasource": "orders",
}


@pytest.mark.parametrize(
    "other",
    [
        {"body": {"b": 1}},
        {"body": {"b": True, "a": "é"}},
        {"body": {"b": 1.0, "a": "é"}},
        {"links": ["db/x"]},
        {"links": []},
        {"schema": "a BIGINT"},
        {"schema": None},
        {"datasource": "returns"},
        {"datasource": None},
    ],
)
def test_the_digest_depends_on_everything_but_the_key(other: dict[str, Any]) -> None:
    changed = Object("table/a", **WHOLE | other)
    assert changed.digest != Object("table/a", **WHOLE).digest
    assert changed != Object("table/a", **WHOLE)
    assert Object("view/b", **WHOLE).digest == Object("table/a", **WHOLE).digest


def test_the_digest_is_that_of_the_canonical_json() -> None:
    text = (
        '{"body":{"a":"é","b":1},"datasource":"orders",'
        f'"fingerprint":"{FINGERPRINT}","links":["db/x","db/y"]}}'
    )
    assert Object("table/a", **WHOLE).digest == sha256(text.encode()).hexdigest()
    assert digest_of('{"a":"é","b":1}', ["db/y", "db/x"], FINGERPRINT, "orders") == (
        Object("table/a", **WHOLE).digest
    )
    text = '{"body":{},"datasource":null,"fingerprint":null,"links":[]}'
    assert Object("table/a").digest == sha256(text.encode()).hexdigest()


def test_the_spelling_of_a_schema_and_the_order_of_fields_make_no_other_object() -> None:
    one = Object("table/a", {"x": 1, "y": 2}, schema="a INT, b STRING")
    other = Object("table/a", {"y": 2, "x": 1}, schema="b string, a integer COMMENT 'x'")
    assert (one, hash(one), one.digest) == (other, hash(other), other.digest)


@given(json_objects, json_objects)
def test_two_bodies_have_one_digest_exactly_if_they_are_one_json(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    texts = [json.dumps(body, sort_keys=True) for body in (one, other)]
    digests = [Object("table/a", body).digest for body in (one, other)]
    assert (digests[0] == digests[1]) == (texts[0] == texts[1])


@given(objects)
def test_an_object_survives_the_way_to_another_process(made: Object) -> None:
    back = pickle.loads(pickle.dumps(made))
    assert (back, back.schema) == (made, made.schema)


# --- stored objects ------------------------------------------------------------------------------


def stored(**given: Any) -> StoredObject:
    fields: dict[str, Any] = {
        "key": "table/sales/orders",
        "id": "0f",
        "revision": 4,
        "json": '{"a":"é"}',
        "links": {"db/x": 3},
        "fingerprint": FINGERPRINT,
        "datasource": "orders",
        "digest": digest_of('{"a":"é"}', ["db/x"], FINGERPRINT, "orders"),
        "commit_id": "c1",
        "published_at": NOON,
        "changed_at": NOON,
        "changed_by": "ann",
    }
    return StoredObject(**fields | given)


COLUMNS = (
    "key",
    "revision",
    "fingerprint",
    "datasource",
    "digest",
    "commit_id",
    "published_at",
    "changed_at",
    "changed_by",
)


def test_the_payload_is_canonical_json() -> None:
    assert stored().payload() == '{"body":{"a":"é"},"id":"0f","links":{"db/x":3}}'


@given(json_objects, st.dictionaries(st.sampled_from(["db/x", "db/y"]), st.integers(1, 9)))
def test_a_stored_object_comes_back_from_its_row(
    body: dict[str, Any], links: dict[str, int]
) -> None:
    one = stored(json=Object("table/a", body).json, links=links)
    columns = {name: getattr(one, name) for name in COLUMNS}
    assert StoredObject.from_payload(one.payload(), **columns) == one


def test_a_node_comes_back_from_its_row_whatever_the_spelling_of_the_payload() -> None:
    payload = '{"links": {"db/x": 3}, "id": "0f", "body": {"a": "\\u00e9"}}'
    columns = {name: getattr(stored(), name) for name in COLUMNS[:5]}
    node = ObjectNode.from_payload(payload, **columns)
    assert node == ObjectNode(**columns, id="0f", json='{"a":"é"}', links={"db/x": 3})


def test_a_stored_object_tells_its_type_path_and_body() -> None:
    one = stored()
    assert (one.type, one.path, one.body) == ("table", "sales/orders", {"a": "é"})


def test_the_digest_of_a_stored_object_is_that_of_what_was_put() -> None:
    put = Object("table/a", {"a": "é"}, ["db/x"], "a INT", "orders")
    assert put.digest == stored().digest


@pytest.mark.parametrize(
    "payload",
    [
        None,
        "",
        "nonsense",
        "[]",
        "{}",
        '{"id": "0f", "body": {}}',
        '{"id": 7, "body": {}, "links": {}}',
        '{"id": "0f", "body": [], "links": {}}',
        '{"id": "0f", "body": {}, "links": ["db/x"]}',
    ],
)
def test_a_payload_that_holds_no_object_is_refused_by_its_key(payload: Any) -> None:
    columns = {name: getattr(stored(), name) for name in COLUMNS}
    with pytest.raises(InvalidObject, match="table/sales/orders must be a JSON object") as caught:
        StoredObject.from_payload(payload, **columns)
    assert caught.value.values == {"key": "table/sales/orders"}


def test_objects_are_public() -> None:
    assert (catalog.Object, catalog.StoredObject) == (Object, StoredObject)
