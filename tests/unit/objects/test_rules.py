"""Rules of declared types: each is broken by one change, which is refused by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.errors import CatalogError, InvalidObject, RuleViolation
from catalog.objects import plan
from catalog.objects.changes import Changes, changes_of
from catalog.objects.declarations import Types
from catalog.objects.fields import anything, boolean, text, whole
from catalog.objects.model import Object, ObjectNode
from catalog.objects.plan import check_part
from catalog.objects.platform import LIFE, PLATFORM
from catalog.objects.retention_rules import rule_of
from catalog.objects.rules import broken_rules
from catalog.objects.types import ObjectType, distinct_siblings, one_of_siblings, ranges, unique
from tests.unit.objects.platform import BREAKS, GROUND, SECRET, ground, node, replica, step
from tests.unit.objects.strategies import links_agree

STATE = ground()


def broken(state: Mapping[str, ObjectNode]) -> set[tuple[str, str]]:
    return {(each.rule, each.key) for each in broken_rules(Types.among(state), state)}


def test_the_ground_keeps_every_rule() -> None:
    assert broken(STATE) == set()
    assert step(STATE, plan.put(changes_of(GROUND))).nodes == STATE
    assert step(STATE, plan.declare(PLATFORM)).nodes == STATE


@pytest.mark.parametrize("what", BREAKS)
def test_a_change_that_breaks_a_rule_is_refused_by_its_name(what: str) -> None:
    changes, rule, key = BREAKS[what]
    with pytest.raises(RuleViolation) as refusal:
        step(STATE, plan.put(changes))
    assert (refusal.value.values["rule"], refusal.value.values["key"]) == (rule, key)
    assert (rule, key) in refusal.value.values["violations"]
    assert key in refusal.value.message
    assert f"(rule {rule})" in refusal.value.message
    assert SECRET not in f"{refusal.value} {refusal.value.values}"


def test_a_rule_of_retention_is_refused_with_the_words_of_the_job() -> None:
    key, body = "retention/datasource/new", {"max_segments": 2, "keep_at_least": 3}
    with pytest.raises(InvalidObject) as of_job:
        rule_of(key, {**body, "action": "drop"})
    with pytest.raises(RuleViolation) as of_put:
        step(STATE, plan.put(changes_of(Object(key, {**body, "action": "drop"}))))
    assert of_job.value.message.partition(" rule ")[2].rstrip(".") in of_put.value.message


def test_every_rule_is_broken_somewhere() -> None:
    kinds = {rule.kind for declared in PLATFORM for rule in declared.rules}
    every = {"names", "parent", "reference", "states", "fields", "secret", "declaration", *kinds}
    assert {rule for _, rule, _ in BREAKS.values()} == every


def test_what_each_breaks_alone_may_be_done_together() -> None:
    # A split of a shard, and a change of the primary datastore: no step between would hold.
    split = changes_of(
        [
            Object("shard/main/b", {"low": 10, "high": 15}),
            Object("shard/main/d", {"low": 15, "high": 20}),
        ]
    )
    after = step(STATE, plan.put(split)).nodes
    assert broken(after) == set()
    swapped = changes_of(
        [
            Object("datastore_link/sales/main", {"role": "archive"}),
            Object("datastore_link/sales/cold", {"role": "primary"}),
        ]
    )
    assert broken(step(after, plan.put(swapped)).nodes) == set()


def test_what_was_broken_before_is_not_in_the_way_of_other_changes() -> None:
    # As after a RESTORE by hand: the reference of a replica is gone.
    hurt = {key: each for key, each in STATE.items() if key != "node/n2"}
    assert broken(hurt) == {("reference", "replica/main/a/two"), ("meets", "replica/main/a/two")}
    assert "database/hr" in step(hurt, plan.put(changes_of(Object("database/hr")))).nodes
    mended = step(hurt, plan.put(changes_of(remove="replica/main/a/two"))).nodes
    assert broken(mended) == set()


def damaged(*puts: Object) -> dict[str, ObjectNode]:
    """The ground with objects that no rule was asked about."""
    state = dict(STATE)
    for put in puts:
        there = {target: STATE[target].revision for target in put.links}
        state[put.key] = ObjectNode(put.key, put.key, 1, put.json, there, None, None, put.digest)
    return state


def surplus(name: str, on: str) -> Object:
    return Object(f"replica/main/a/{name}", {"node": on}, ["shard/main/a", f"node/{on}"])


MENDED_BY_HALVES: dict[str, tuple[list[Object], list[Changes]]] = {
    "surplus replicas, the last and the first of them": (
        [surplus("six", "n1"), surplus("ten", "n2"), surplus("zero", "n2")],
        [changes_of(remove=f"replica/main/a/{name}") for name in ("zero", "one", "ten")],
    ),
    "three primary indexes": (
        [
            Object(
                f"index/sales/orders/{name}",
                {"columns": ["id"], "primary": True},
                ["table/sales/orders"],
            )
            for name in ("also", "too")
        ],
        [
            changes_of(Object("index/sales/orders/pk", {"columns": ["id"]})),
            changes_of(Object("index/sales/orders/too", {"columns": ["id"]})),
        ],
    ),
    "three names in cases": (
        [Object("database/SALES"), Object("database/Sales")],
        [changes_of(remove="database/SALES"), changes_of(remove="database/Sales")],
    ),
    "three nodes at one address, two replicas on the first": (
        [
            Object(
                f"node/{name}",
                {"host": "n2", "port": 1, "node_type": "pg", "config": {"user": "u"}},
                ["node_type/pg"],
            )
            for name in ("m2", "z2")
        ],
        [changes_of(remove="node/m2"), changes_of(remove="node/z2")],
    ),
    "an empty shard that hides others": (
        [
            Object(f"shard/main/{name}", {"low": low, "high": 14}, ["datastore/main"])
            for name, low in (("x", 14), ("y", 12), ("z", 13))
        ],
        [
            changes_of(Object("shard/main/e", {"low": 30, "high": 40})),
            *(changes_of(remove=f"shard/main/{name}") for name in "xyze"),
        ],
    ),
    "shards that overlap": (
        [
            Object(f"shard/main/{name}", {"low": low, "high": 20}, ["datastore/main"])
            for name, low in (("x", 12), ("y", 14))
        ],
        [changes_of(remove="shard/main/x"), changes_of(remove="shard/main/y")],
    ),
}


@pytest.mark.parametrize("what", MENDED_BY_HALVES)
def test_what_is_broken_several_times_may_be_mended_one_by_one(what: str) -> None:
    puts, changes = MENDED_BY_HALVES[what]
    state: Mapping[str, ObjectNode] = damaged(*puts)
    assert broken(state)
    for change in changes:
        state = step(state, plan.put(change)).nodes
    assert not {rule for rule, _ in broken(state)} & {"names", "unique", "ranges", "at_most"}
    assert "one_of_siblings" not in {rule for rule, _ in broken(state)}


def test_what_is_broken_may_not_be_broken_more() -> None:
    state = damaged(surplus("six", "n3"))
    with pytest.raises(RuleViolation) as refusal:
        step(state, plan.put(changes_of(surplus("ten", "n2"))))
    assert {rule for rule, _ in refusal.value.values["violations"]} >= {"at_most"}
    # None is another thing than too many.
    too = Object("index/sales/orders/too", {"columns": ["id"], "primary": True})
    none = [Object(f"index/sales/orders/{name}", {"columns": ["id"]}) for name in ("pk", "too")]
    with pytest.raises(RuleViolation, match="of which 0 have primary"):
        step(damaged(too), plan.put(changes_of(none)))


def test_links_follow_from_keys_and_references_and_are_taken_back_with_them() -> None:
    assert set(STATE["replica/main/a/one"].links) == {"shard/main/a", "node/n1"}
    assert set(STATE["datastore_link/sales/main"].links) == {"database/sales", "datastore/main"}
    assert set(STATE["retention/database/sales"].links) == {"database/sales"}
    assert set(STATE["retention/datasource/orders"].links) == set()
    assert set(STATE["type/replica"].links) == {"type/shard", "type/node"}
    moved = step(STATE, plan.ensure(changes_of(Object("shard/main/a", {"requirements": []})))).nodes
    moved = step(moved, plan.ensure(changes_of(replica("a", "one", "n3")))).nodes
    assert set(moved["replica/main/a/one"].links) == {"shard/main/a", "node/n3"}


def test_defaults_are_stored_and_a_state_that_is_not_given_stays() -> None:
    assert STATE["node/n3"].body["labels"] == []
    assert STATE["node/n3"].body["state"] == LIFE.initial[0]
    after = step(STATE, plan.put(changes_of(node("n3", state="provision")))).nodes
    after = step(after, plan.put(changes_of(node("n3", labels=["eu"])))).nodes
    assert (after["node/n3"].body["state"], after["node/n3"].revision) == ("provision", 3)
    # A name that is created again begins anew.
    gone = step(after, plan.put(changes_of(remove="node/n3"))).nodes
    assert step(gone, plan.put(changes_of(node("n3")))).nodes["node/n3"].body["state"] == "config"


def test_an_ensured_object_keeps_what_is_not_given() -> None:
    table = Object("table/sales/orders", {"schema": "orders"}, ["node_type/pg"], "a INT")
    after = step(STATE, plan.ensure(changes_of([table, Object("database/hr")])), "ensure").nodes
    now = after["table/sales/orders"]
    assert now.body == {"limits": {"max_rows": 10}, "schema": "orders"}
    assert (now.datasource, now.fingerprint) == ("orders", table.fingerprint)
    assert set(now.links) == {"database/sales", "node_type/pg"}
    assert after["database/hr"].id == "ensure:database/hr"
    assert step(after, plan.ensure(changes_of(Object("table/sales/orders")))).nodes == after


# --- declarations --------------------------------------------------------------------------------


def test_a_declaration_gives_objects_that_are_there_its_links_and_defaults() -> None:
    free = step({}, plan.put(changes_of([Object("team/a"), Object("team/a2", {"size": 2})]))).nodes
    free = step(free, plan.put(changes_of(Object("person/a/ann", {"boss": "a/bob"})))).nodes
    free = step(free, plan.put(changes_of(Object("person/a/bob")))).nodes
    team = ObjectType("team", fields={"size": whole(default=1)})
    person = ObjectType(
        "person", parent="team", fields={"boss": text()}, references={"boss": "person"}
    )
    after = step(free, plan.declare([team, person])).nodes
    assert [after[key].body for key in ("team/a", "team/a2")] == [{"size": 1}, {"size": 2}]
    assert set(after["person/a/ann"].links) == {"team/a", "person/a/bob"}
    assert (after["person/a/ann"].id, after["person/a/ann"].revision) == ("step:person/a/ann", 2)
    assert after["team/a2"].revision == 1
    assert links_agree(after)


def test_an_owner_is_linked_to_once_its_type_is_declared() -> None:
    state = step({}, plan.declare(ObjectType("quota", owners=("team", "user")))).nodes
    state = step(
        state, plan.put(changes_of([Object("quota/team/a"), Object("quota/user/b")]))
    ).nodes
    with pytest.raises(RuleViolation) as refusal:
        step(state, plan.declare(ObjectType("team")))
    assert refusal.value.values["violations"] == (("parent", "quota/team/a"),)
    state = step(state, plan.put(changes_of(Object("team/a")))).nodes
    after = step(state, plan.declare(ObjectType("team"))).nodes
    assert (set(after["quota/team/a"].links), set(after["quota/user/b"].links)) == (
        {"team/a"},
        set(),
    )


def test_a_declaration_is_refused_with_the_names_of_those_that_break_it() -> None:
    free = step({}, plan.put(changes_of([Object(f"team/{n}", {"x": n}) for n in range(7)]))).nodes
    with pytest.raises(RuleViolation) as refusal:
        step(free, plan.declare(ObjectType("team")))
    assert refusal.value.values["violations"] == tuple(("fields", f"team/{n}") for n in range(7))
    assert "team/4" in refusal.value.message
    assert "and 2 more" in refusal.value.message
    assert step(free, plan.declare(ObjectType("team", open=True))).nodes["team/0"].revision == 1


def test_a_declaration_that_others_need_stays() -> None:
    with pytest.raises(CatalogError, match="OBJECT_IN_USE"):
        step(STATE, plan.put(changes_of(remove="type/shard")))
    # Its objects are free in form again, and keep their links.
    after = step(STATE, plan.put(changes_of(remove="type/retention"))).nodes
    after = step(after, plan.put(changes_of(Object("retention/x", {"any": 1})))).nodes
    assert broken(after) == set()


def test_objects_of_a_declaration_that_cannot_be_read_are_left_alone() -> None:
    # As a newer release may have written it.
    hurt = dict(STATE)
    newer = Object("type/database", {"colour": "red"})
    hurt["type/database"] = ObjectNode(
        "type/database", "x", 1, newer.json, {}, None, None, newer.digest
    )
    assert ("declaration", "type/database") in broken(hurt)
    with pytest.raises(RuleViolation) as refusal:
        step(hurt, plan.put(changes_of(Object("database/sales", {"comment": "x"}))))
    assert refusal.value.values["rule"] == "declaration"
    assert "node/n9" in step(hurt, plan.put(changes_of(node("n9")))).nodes


def test_the_kinds_of_rules_serve_types_of_users_as_well() -> None:
    step_type = ObjectType(
        "stage",
        parent="pipeline",
        fields={"first": boolean(), "on": text(), "low": anything(), "high": anything()},
        rules=(
            unique("low"),
            one_of_siblings("first", True),
            distinct_siblings("on"),
            ranges("low", "high"),
        ),
    )
    state = step({}, plan.declare([ObjectType("pipeline"), step_type])).nodes
    first = Object("stage/p/a", {"first": True, "on": "x", "high": "m"})
    second = Object("stage/p/b", {"on": "y", "low": "m"})
    state = step(state, plan.put(changes_of([Object("pipeline/p"), first, second]))).nodes
    cases: list[tuple[dict[str, Any], str]] = [
        ({"first": True, "on": "y", "low": "m"}, "one_of_siblings"),
        ({"first": 1, "on": "y", "low": "m"}, "fields"),
        ({"on": "x", "low": "m"}, "distinct_siblings"),
        ({"on": "y", "low": "n"}, "ranges"),
    ]
    for body, rule in cases:
        with pytest.raises(RuleViolation) as refusal:
            step(state, plan.put(changes_of(Object("stage/p/b", body))))
        assert refusal.value.values["rule"] == rule
    other = [Object("pipeline/q"), Object("stage/q/a", {"first": True, "on": "x", "low": "m"})]
    with pytest.raises(RuleViolation) as refusal:
        step(state, plan.put(changes_of(other)))
    assert refusal.value.values["rule"] == "unique"


# --- parts of operations -------------------------------------------------------------------------


def test_a_part_is_asked_for_what_no_other_part_can_mend() -> None:
    def staged(*objects: Object) -> None:
        changes = changes_of(objects)
        check_part(STATE, changes, changes)

    staged(replica("a", "two", "n1"), Object("retention/database/sales", {"max_age_days": 3}))
    staged(Object("table/none/orders"), Object("free/form", {"x": 1}))
    refused = {
        "fields": Object("database/hr", {"owner": "ann"}),
        "parent": Object("table/orders"),
        "secret": node("n3", config={"password": SECRET}),
    }
    for rule, each in refused.items():
        with pytest.raises(RuleViolation) as refusal:
            staged(each)
        assert refusal.value.values["rule"] == rule
        assert SECRET not in str(refusal.value)
    with pytest.raises(InvalidObject, match="cannot be part of an operation"):
        staged(PLATFORM[0].object())


# --- any changes ---------------------------------------------------------------------------------

_JSON = st.recursive(
    st.sampled_from([None, True, 0, -1, 1.5, "", "n1", "main", "secret://a/b", "type", "text"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["type", "of", "fields", "user", "name"]), inner, max_size=2
        )
    ),
    max_leaves=4,
)
_ANY_KEYS = st.sampled_from([*(each.key for each in GROUND), "type/node", "type/new", "free/x"])
_ANY_FIELDS = st.sampled_from(
    sorted({name for declared in PLATFORM for name in (*declared.all_fields, *declared.body())})
)


@settings(max_examples=300, deadline=None)
@given(_ANY_KEYS, st.dictionaries(_ANY_FIELDS, _JSON, max_size=4), st.booleans())
def test_whatever_a_body_holds_it_is_put_or_refused(
    key: str, body: dict[str, Any], whole: bool
) -> None:
    changes = changes_of(Object(key, body))
    try:
        after = step(STATE, plan.put(changes) if whole else plan.ensure(changes)).nodes
    except CatalogError:
        return
    assert broken(after) == set()


_NODES = st.sampled_from(["n1", "n2", "n3", "n4"])
_ENDS = st.sampled_from([None, 10, 15, 20])
_SHARDS = st.sampled_from(["a", "b", "c", "d"])
_OBJECTS = st.one_of(
    st.builds(
        lambda name, state, labels: node(name, labels=labels, **state),
        _NODES,
        st.sampled_from([{}, *({"state": word} for word in LIFE.words)]),
        st.lists(st.sampled_from(["ssd", "eu"]), max_size=2),
    ),
    st.builds(replica, _SHARDS, st.sampled_from(["one", "two", "three"]), _NODES),
    st.builds(
        lambda name, low, high: Object(f"shard/main/{name}", {"low": low, "high": high}),
        _SHARDS,
        _ENDS,
        _ENDS,
    ),
    st.builds(
        lambda store, role: Object(f"datastore_link/sales/{store}", {"role": role}),
        st.sampled_from(["main", "cold"]),
        st.sampled_from(["primary", "cache"]),
    ),
    st.builds(
        lambda name, primary: Object(
            f"index/sales/orders/{name}", {"columns": ["a"], "primary": primary}
        ),
        st.sampled_from(["pk", "day", "PK"]),
        st.booleans(),
    ),
)
_KEYS = st.sampled_from([each.key for each in GROUND])


def _changes(puts: list[Object], removes: list[str]) -> Changes:
    by_key = {put.key: put for put in puts}
    return changes_of(by_key.values(), [key for key in removes if key not in by_key])


_WORKS = st.one_of(
    st.builds(
        lambda puts, removes: plan.put(_changes(puts, removes)),
        st.lists(_OBJECTS, max_size=4),
        st.lists(_KEYS, max_size=1),
    ),
    st.builds(lambda p: plan.ensure(_changes(p, [])), st.lists(_OBJECTS, max_size=3)),
    st.builds(lambda key: plan.remove(changes_of(remove=key), cascade=True), _KEYS),
    st.builds(plan.rename, _KEYS, st.sampled_from(["x", "main", "Sales", "n2"])),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(_WORKS, max_size=6))
def test_any_changes_keep_all_rules_links_and_ids(works: list[Any]) -> None:
    state: Mapping[str, ObjectNode] = STATE
    seen = {(each.id, each.revision): each for each in state.values()}
    for number, work in enumerate(works):
        try:
            after = step(state, work, f"step {number}").nodes
        except CatalogError:
            continue
        assert broken(after) == set()
        assert links_agree(after)
        assert len({each.id for each in after.values()}) == len(after)
        for each in after.values():
            # One id and revision never stand for two things, whatever name it has.
            before = seen.setdefault((each.id, each.revision), each)
            assert before == each
        state = after
