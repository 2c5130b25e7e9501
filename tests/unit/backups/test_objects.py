"""What a rollback makes of objects: old contents, new revisions, links that agree."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.backups.comparison import rolled_back
from catalog.errors import CatalogError
from catalog.objects.changes import applied, changes_of, difference
from catalog.objects.model import Object, ObjectNode
from tests.unit.objects.strategies import changes, ids, links_agree

State = Mapping[str, ObjectNode]

DB = Object("db/x", {"n": 1})
TABLE = Object("table/a", {}, ["db/x"])
OTHER = Object("node/n", {})


def content(state: State) -> dict[str, tuple[str, str]]:
    return {key: (node.id, node.digest) for key, node in state.items()}


def highest(states: list[State]) -> int:
    return max((node.revision for state in states for node in state.values()), default=0)


def revisions(state: State) -> dict[str, int]:
    return {key: node.revision for key, node in state.items()}


def test_what_is_as_it_was_stays_and_what_links_to_what_changes_is_touched() -> None:
    then = applied({}, changes_of([DB, TABLE, OTHER]), ids("a"), touch=False)
    now = applied(then, changes_of(Object("db/x", {"n": 2})), ids("b"), touch=False)
    assert revisions(now) == {"db/x": 2, "table/a": 2, "node/n": 1}
    after = rolled_back(now, then, 2)
    assert revisions(after) == {"db/x": 3, "table/a": 3, "node/n": 1}
    assert after["table/a"].links == {"db/x": 3}
    assert after["db/x"].body == {"n": 1}
    assert rolled_back(then, then, 2) == then


def test_what_was_removed_comes_back_under_its_id_above_every_revision() -> None:
    then = applied({}, changes_of([DB, TABLE]), ids("a"), touch=False)
    for n in range(2, 5):
        now = applied(then, changes_of(Object("db/x", {"n": n})), ids("b"), touch=False)
    gone = applied(now, changes_of(remove=["db/x", "table/a"]), ids("c"), touch=False)
    again = applied(gone, changes_of(Object("db/x", {"n": 9})), ids("d"), touch=False)
    for state in (gone, again):
        after = rolled_back(state, then, 4)
        assert revisions(after) == {"db/x": 5, "table/a": 5}
        assert content(after) == content(then)


# A step is a change, or a way back to one of the states before.
_steps = st.lists(changes | st.integers(0, 20), min_size=1, max_size=12)


@given(_steps)
@settings(max_examples=300)
def test_in_any_history_an_id_and_a_revision_stand_for_one_content(steps: list[object]) -> None:
    """Against a plain account: every state is remembered, and all of them are compared."""
    states: list[dict[str, ObjectNode]] = [{}]
    # As the guard keeps it: never below a revision that was written.
    guard = 0
    for number, step in enumerate(steps):
        now = states[-1]
        if isinstance(step, int):
            then = states[step % len(states)]
            new = rolled_back(now, then, guard)
            assert content(new) == content(then)
            assert rolled_back(new, then, guard + 1) == new
        else:
            try:
                new = applied(now, step, ids(f"op {number}"), touch=bool(number % 2))  # type: ignore[arg-type]
            except CatalogError:
                continue
        assert links_agree(new)
        written = difference(now, new)
        for key, node in {**written.inserted, **written.updated}.items():
            old = now.get(key)
            assert old is None or old.id != node.id or node.revision > old.revision
        guard = max(guard + 1, highest([new])) if new != now else guard
        assert guard >= highest(states)
        states.append(new)
    said: dict[tuple[str, int], tuple[str, object]] = {}
    for state in states:
        for node in state.values():
            says = (node.digest, dict(node.links))
            assert said.setdefault((node.id, node.revision), says) == says
