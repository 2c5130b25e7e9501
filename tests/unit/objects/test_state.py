"""The state of all objects: revisions, links that agree, refusals, and locks that suffice."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from catalog.errors import ObjectInUse, UnknownObject
from catalog.objects.changes import (
    Changes,
    Difference,
    Locks,
    applied,
    applied_in_order,
    changes_of,
    difference,
    locks,
    united,
)
from catalog.objects.model import Object, ObjectNode, StoredObject
from tests.unit.objects.strategies import (
    changes,
    ids,
    links_agree,
    outcome,
    split,
    states,
)

DB = Object("db/x")
TABLE = Object("table/a", {"n": 1}, ["db/x"])
INDEX = Object("index/a", {}, ["table/a"])
OTHER = Object("table/b", {}, ["db/x"])


def after(
    state: Mapping[str, ObjectNode], *steps: Changes, touch: bool = True
) -> dict[str, ObjectNode]:
    for number, each in enumerate(steps):
        state = applied(state, each, ids(f"op{number}"), touch)
    return dict(state)


def revisions(state: Mapping[str, ObjectNode]) -> dict[str, int]:
    return {key: node.revision for key, node in state.items()}


def ground(*objects: Object) -> dict[str, ObjectNode]:
    return applied({}, changes_of(objects or (DB, TABLE, INDEX, OTHER)), ids("ground"), touch=True)


# --- one change ----------------------------------------------------------------------------------


def test_created_objects_have_revision_one_and_so_have_their_links() -> None:
    state = ground()
    assert revisions(state) == {"db/x": 1, "table/a": 1, "index/a": 1, "table/b": 1}
    assert state["table/a"] == ObjectNode(
        key="table/a",
        id="ground:table/a",
        revision=1,
        json='{"n":1}',
        links={"db/x": 1},
        fingerprint=None,
        datasource=None,
        digest=TABLE.digest,
    )


def test_a_put_bumps_every_holder_once_and_nobody_else() -> None:
    state = after(ground(), changes_of(Object("table/a", {"n": 2}, ["db/x"])))
    assert revisions(state) == {"db/x": 1, "table/a": 2, "index/a": 2, "table/b": 1}
    assert state["index/a"].links == {"table/a": 2}
    assert state["table/a"].links == {"db/x": 1}
    assert state["table/a"].body == {"n": 2}
    assert state["index/a"].id == "ground:index/a"


def test_a_holder_of_several_changed_objects_is_bumped_once() -> None:
    state = ground(DB, TABLE, OTHER, Object("view/v", {}, ["table/a", "table/b"]))
    state = after(state, changes_of([DB, OTHER]))
    assert revisions(state) == {"db/x": 2, "table/a": 2, "table/b": 2, "view/v": 2}


def test_a_put_of_equal_content_is_a_new_revision_for_an_operation_only() -> None:
    state = ground()
    assert after(state, changes_of([DB, TABLE]), touch=False) == state
    assert revisions(after(state, changes_of(TABLE))) == {
        "db/x": 1,
        "table/a": 2,
        "index/a": 2,
        "table/b": 1,
    }


def test_a_plain_put_of_equal_content_is_bumped_as_the_holder_of_what_changed_with_it() -> None:
    state = after(ground(), changes_of([Object("db/x", {"n": 1}), TABLE]), touch=False)
    assert revisions(state) == {"db/x": 2, "table/a": 2, "index/a": 2, "table/b": 2}


def test_links_that_a_put_leaves_out_are_gone() -> None:
    state = after(ground(), changes_of(Object("table/a")), changes_of(DB))
    assert state["table/a"].links == {}
    assert revisions(state) == {"db/x": 2, "table/a": 2, "index/a": 2, "table/b": 2}


def test_objects_that_link_in_a_circle_rise_together() -> None:
    circle = [Object("a/1", {}, ["a/2"]), Object("a/2", {}, ["a/3"]), Object("a/3", {}, ["a/1"])]
    state = ground(*circle, Object("b/1", {}, ["a/2"]))
    state = after(state, changes_of(circle[2]))
    assert revisions(state) == {"a/1": 2, "a/2": 2, "a/3": 2, "b/1": 2}
    assert links_agree(state)
    assert revisions(after(state, changes_of(remove=["a/1", "a/2", "a/3", "b/1"]))) == {}


@pytest.mark.parametrize("touch", [True, False])
def test_to_remove_what_is_not_there_changes_nothing(touch: bool) -> None:
    assert after(ground(), changes_of(remove=["table/z"]), touch=touch) == ground()


def test_a_key_that_is_created_again_is_a_new_object() -> None:
    state = after(ground(DB), changes_of(DB), changes_of(remove="db/x"), changes_of(DB))
    assert (state["db/x"].id, state["db/x"].revision) == ("op2:db/x", 1)


def test_a_removed_object_no_longer_rises_with_what_it_linked_to() -> None:
    state = after(ground(), changes_of(remove="index/a"), changes_of(TABLE))
    assert revisions(state) == {"db/x": 1, "table/a": 2, "table/b": 1}


def test_an_object_may_be_removed_together_with_its_holders_or_with_their_links() -> None:
    put = [Object("table/a"), Object("table/b")]
    state = after(ground(), changes_of(put, "db/x"))
    assert revisions(state) == {"table/a": 2, "index/a": 2, "table/b": 2}
    state = after(state, changes_of(remove=["table/a", "index/a"]))
    assert revisions(state) == {"table/b": 2}


def test_a_state_that_is_given_stays_as_it_is() -> None:
    state = ground()
    after(state, changes_of([Object("db/x", {"n": 1})], ["index/a"]))
    assert state == ground()


def test_a_bumped_object_no_longer_names_the_commit_of_before() -> None:
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    rows = {
        key: StoredObject(
            **{name: getattr(node, name) for name in ObjectNode.__slots__},
            commit_id="c1",
            published_at=moment,
            changed_at=moment,
            changed_by=None,
        )
        for key, node in ground().items()
    }
    state = after(rows, changes_of(TABLE))
    assert {key: type(node) for key, node in state.items()} == {
        "db/x": StoredObject,
        "table/a": ObjectNode,
        "index/a": ObjectNode,
        "table/b": StoredObject,
    }
    assert difference(rows, state).updated.keys() == {"table/a", "index/a"}


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("touch", [True, False])
@pytest.mark.parametrize(
    ("each", "fragments"),
    [
        (changes_of(Object("view/v", {}, ["table/z"])), ["view/v", "table/z", "is not there"]),
        (
            changes_of([Object("view/v", {}, ["table/b"])], "table/b"),
            ["view/v", "table/b", "is removed by the same change"],
        ),
        (changes_of([INDEX], "table/a"), ["index/a", "table/a", "removed by the same change"]),
    ],
)
def test_a_link_to_what_is_not_there_is_refused_with_both(
    each: Changes, fragments: list[str], touch: bool
) -> None:
    with pytest.raises(UnknownObject) as caught:
        after(ground(), each, touch=touch)
    assert [caught.value.values["holder"], caught.value.values["key"]] == fragments[:2]
    for fragment in fragments:
        assert fragment in caught.value.message


@pytest.mark.parametrize("touch", [True, False])
def test_what_others_link_to_is_not_removed(touch: bool) -> None:
    with pytest.raises(ObjectInUse, match=r"db/x cannot be removed.*: table/a, table/b\. ") as no:
        after(ground(), changes_of(remove="db/x"), touch=touch)
    assert no.value.values == {"key": "db/x", "holders": ("table/a", "table/b")}
    with pytest.raises(ObjectInUse, match=r"others link to it: table/b\. Remove"):
        after(ground(), changes_of(Object("table/a"), "db/x"), touch=touch)


def test_of_many_holders_the_message_names_some_and_the_error_all() -> None:
    many = [Object(f"table/{n}", {}, ["db/x"]) for n in range(7)]
    with pytest.raises(ObjectInUse, match=r"table/0, .*table/4 and 2 more\. Remove") as caught:
        after(ground(DB, *many), changes_of(remove="db/x"))
    assert len(caught.value.values["holders"]) == 7


# --- laws of one change --------------------------------------------------------------------------


def holders(links: Mapping[str, Any], seeds: set[str]) -> set[str]:
    """The seeds and who links to them through others, by the definition: again until no more."""
    found = set(seeds)
    while more := {key for key in links if found & set(links[key])} - found:
        found |= more
    return found


def links_of(state: Mapping[str, ObjectNode]) -> dict[str, set[str]]:
    return {key: set(node.links) for key, node in state.items()}


@given(states, changes, st.booleans())
def test_a_change_does_what_the_definition_says(
    state: dict[str, ObjectNode], each: Changes, touch: bool
) -> None:
    found = outcome(lambda: applied(state, each, ids("new"), touch))
    there = (state.keys() - each.removes) | each.puts.keys()
    links = {key: each.puts[key].links if key in each.puts else state[key].links for key in there}
    dangling = {key for key in there if not set(links[key]) <= there}
    if dangling:
        expected = "UNKNOWN_OBJECT" if dangling & each.puts.keys() else "OBJECT_IN_USE"
        assert found[0] == expected
        return
    written = {
        key
        for key, put in each.puts.items()
        if touch or key not in state or state[key].digest != put.digest
    }
    touched = holders(links, written)
    expected_revisions = {
        key: (state[key].revision if key in state else 0) + (key in touched) for key in there
    }
    assert revisions(found) == expected_revisions
    assert links_of(found) == {key: set(links[key]) for key in there}
    assert links_agree(found)
    for key, node in found.items():
        content = each.puts[key] if key in each.puts else state[key]
        assert (node.json, node.digest) == (content.json, content.digest)
        assert (node.fingerprint, node.datasource) == (content.fingerprint, content.datasource)
        assert node.id == (state[key].id if key in state else f"new:{key}")


@given(states, changes.flatmap(lambda whole: st.tuples(st.just(whole), split(whole))))
def test_the_parts_of_an_operation_give_one_state_in_every_order_and_grouping(
    state: dict[str, ObjectNode], drawn: tuple[Changes, dict[int, Changes]]
) -> None:
    whole, parts = drawn
    expected = outcome(lambda: applied(state, whole, ids("op"), touch=True))
    for order in itertools.permutations(parts.values()):
        for cut in range(1, len(order)):
            groups = (united(dict(enumerate(group))) for group in (order[:cut], order[cut:]))
            together = united(dict(enumerate(groups)))
            found = outcome(lambda each=together: applied(state, each, ids("op"), touch=True))
            assert found == expected


def test_an_operation_no_longer_minds_links_that_one_before_it_left_out() -> None:
    loose = (ids("one"), changes_of(Object("table/a")))
    state = applied_in_order(ground(), [loose, (ids("two"), changes_of(DB))])
    assert revisions(state) == {"db/x": 2, "table/a": 2, "index/a": 2, "table/b": 2}
    both = (ids("one"), changes_of([Object("table/a"), Object("table/b")]))
    state = applied_in_order(ground(), [both, (ids("two"), changes_of(remove="db/x"))])
    assert revisions(state) == {"table/a": 2, "index/a": 2, "table/b": 2}


@settings(max_examples=300)
@given(states, st.lists(changes, max_size=4))
def test_several_operations_at_once_are_as_one_after_the_other(
    state: dict[str, ObjectNode], operations: list[Changes]
) -> None:
    def stepwise() -> dict[str, ObjectNode]:
        found = state
        for number, each in enumerate(operations):
            found = applied(found, each, ids(f"op{number}"), touch=True)
        return found

    named = [(ids(f"op{number}"), each) for number, each in enumerate(operations)]
    assert outcome(lambda: applied_in_order(state, named)) == outcome(stepwise)


@given(states)
def test_the_links_of_every_state_agree_with_the_revisions(state: dict[str, ObjectNode]) -> None:
    assert links_agree(state)


# --- difference ----------------------------------------------------------------------------------


def test_create_and_remove_in_one_advance_leave_no_trace() -> None:
    steps = [(ids("one"), changes_of(OTHER)), (ids("two"), changes_of(remove="table/b"))]
    state = ground(DB)
    assert difference(state, applied_in_order(state, steps)) == Difference({}, {}, {}, frozenset())


def test_the_difference_names_what_has_to_be_written() -> None:
    before = ground()
    steps = [
        (ids("one"), changes_of([Object("table/c")], ["index/a", "table/b"])),
        (ids("two"), changes_of([TABLE, OTHER])),
    ]
    now = applied_in_order(before, steps)
    assert difference(before, now) == Difference(
        inserted={"table/c": now["table/c"]},
        updated={"table/a": now["table/a"], "table/b": now["table/b"]},
        deleted={"index/a": before["index/a"]},
        recreated=frozenset({"table/b"}),
    )


@given(states, states)
def test_a_difference_leads_from_one_state_to_the_other(
    before: dict[str, ObjectNode], now: dict[str, ObjectNode]
) -> None:
    found = difference(before, now)
    kept = {key: node for key, node in before.items() if key not in found.deleted}
    assert kept | found.inserted | found.updated == now
    assert all(before[key] != node for key, node in found.updated.items())
    assert not found.inserted.keys() & before.keys()
    assert found.deleted.keys() == before.keys() - now.keys()


# --- locks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("each", "expected"),
    [
        (changes_of(TABLE), Locks({"table/a", "index/a"}, {"db/x"}, set())),
        (changes_of(DB), Locks({"db/x", "table/a", "index/a", "table/b"}, set(), set())),
        (changes_of(remove="table/a"), Locks({"table/a", "index/a"}, set(), set())),
        (changes_of(remove="table/z"), Locks({"table/z"}, set(), set())),
        (
            changes_of(Object("view/v", {}, ["table/z", "db/x"])),
            Locks({"view/v"}, {"table/z", "db/x"}, set()),
        ),
        (
            changes_of([TABLE, Object("view/v", {}, ["table/a", "index/a", "table/b"])]),
            Locks({"table/a", "index/a", "view/v"}, {"db/x", "table/b"}, set()),
        ),
    ],
)
def test_locks_are_what_is_changed_with_its_holders_and_what_is_linked_to(
    each: Changes, expected: Locks
) -> None:
    assert locks(ground(), each) == expected


@pytest.mark.parametrize(
    ("each", "datasources"),
    [
        (changes_of(Object("table/new", datasource="new")), {"new"}),
        (changes_of(Object("table/new")), set()),
        (changes_of(Object("table/old", {"n": 1}, datasource="old")), set()),
        (changes_of(Object("table/old", datasource="other")), {"old", "other"}),
        (changes_of(Object("table/old")), {"old"}),
        (changes_of(remove="table/old"), {"old"}),
        (changes_of(remove=["table/none", "table/z"]), set()),
        (changes_of(Object("table/none", datasource="new")), {"new"}),
    ],
)
def test_a_datasource_is_locked_when_what_stands_for_it_comes_or_goes(
    each: Changes, datasources: set[str]
) -> None:
    state = ground(Object("table/old", datasource="old"), Object("table/none"))
    assert locks(state, each).datasources == datasources


@settings(max_examples=300)
@given(states, changes, st.booleans())
def test_locks_cover_everything_that_changes(
    state: dict[str, ObjectNode], each: Changes, touch: bool
) -> None:
    found = outcome(lambda: applied(state, each, ids("new"), touch))
    assume(isinstance(found, dict))
    taken = locks(state, each)
    changed = difference(state, found)
    assert {*changed.inserted, *changed.updated, *changed.deleted} <= taken.exclusive
    assert not taken.exclusive & taken.held
    linked = {target for put in each.puts.values() for target in put.links}
    assert linked <= taken.exclusive | taken.held
    stands = [{(key, node.datasource) for key, node in it.items()} for it in (state, found)]
    assert {name for _, name in stands[0] ^ stands[1]} - {None} <= taken.datasources


@given(states, changes)
def test_locks_are_holders_before_and_after_and_no_more(
    state: dict[str, ObjectNode], each: Changes
) -> None:
    links = links_of(state)
    afterwards = {key: found for key, found in links.items() if key not in each.removes}
    afterwards |= {key: set(put.links) for key, put in each.puts.items()}
    seeds = set(each.keys)
    expected = holders(links, seeds) | holders(afterwards, seeds)
    assert locks(state, each).exclusive == expected


@given(states, changes.flatmap(lambda whole: st.tuples(st.just(whole), split(whole))))
def test_the_locks_of_all_parts_are_enough_for_the_operation(
    state: dict[str, ObjectNode], drawn: tuple[Changes, dict[int, Changes]]
) -> None:
    whole, parts = drawn
    needed = locks(state, whole)
    taken = [locks(state, part) for part in parts.values()]
    exclusive = frozenset().union(*(each.exclusive for each in taken))
    assert needed.exclusive == exclusive
    assert needed.held == frozenset().union(*(each.held for each in taken)) - exclusive
    assert needed.datasources <= frozenset().union(*(each.datasources for each in taken))


def compatible(one: Locks, other: Locks) -> bool:
    """Whether two may have their locks at the same time; objects only, not datasources."""
    return not (
        one.exclusive & (other.exclusive | other.held)
        or other.exclusive & (one.exclusive | one.held)
    )


pairs = st.tuples(changes, changes)


@settings(max_examples=400)
@given(states, pairs, st.booleans())
def test_changes_with_compatible_locks_do_not_meet(
    state: dict[str, ObjectNode], pair: tuple[Changes, Changes], touch: bool
) -> None:
    one, other = pair
    assume(compatible(locks(state, one), locks(state, other)))

    def refused_or(found: Any, unless: dict[str, ObjectNode]) -> dict[str, ObjectNode]:
        return found if isinstance(found, dict) else unless

    def run(state: dict[str, ObjectNode], each: Changes, name: str) -> Any:
        return outcome(lambda: applied(state, each, ids(name), touch))

    alone = run(state, one, "one"), run(state, other, "other")
    then_other = run(refused_or(alone[0], state), other, "other")
    then_one = run(refused_or(alone[1], state), one, "one")
    # Each is refused, in the same words, or not, whether the other was there first or not.
    for first, second in ((alone[0], then_one), (alone[1], then_other)):
        assert isinstance(first, dict) == isinstance(second, dict)
        if not isinstance(first, dict):
            assert first == second
    assert refused_or(then_other, refused_or(alone[0], state)) == refused_or(
        then_one, refused_or(alone[1], state)
    )
    # And what one has locked is still what it needs after the other.
    assert locks(refused_or(alone[0], state), other) == locks(state, other)
    assert locks(refused_or(alone[1], state), one) == locks(state, one)


def test_without_locks_the_order_would_matter() -> None:
    state = ground()
    one, other = changes_of(TABLE), changes_of(Object("view/v", {}, ["index/a"]))
    assert not compatible(locks(state, one), locks(state, other))
    assert revisions(after(state, one, other)) != revisions(after(state, other, one))
