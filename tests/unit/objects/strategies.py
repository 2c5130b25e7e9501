"""Random objects over few keys, so that they link, collide and contradict each other often."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import strategies as st

from catalog.errors import CatalogError
from catalog.objects.changes import Changes, applied, changes_of
from catalog.objects.model import Object, ObjectNode

KEYS = ("db/sales", "table/orders", "table/returns", "index/by_day", "view/open")
FIELDS = ("x", "y", "z")
PARTS = 4


def made(
    key: str,
    body: dict[str, Any] | None = None,
    links: Iterable[str] = (),
    schema: str | None = None,
    datasource: str | None = None,
) -> Object:
    """An object; links to itself are left out, so that any choice of links will do."""
    return Object(key, body, [link for link in links if link != key], schema, datasource)


def ids(name: str) -> Any:
    """Gives ids that tell who created the object."""
    return lambda key: f"{name}:{key}"


keys = st.sampled_from(KEYS)
bodies = st.dictionaries(st.sampled_from(FIELDS), st.integers(0, 1), max_size=3)
objects = st.builds(
    made,
    keys,
    bodies,
    st.lists(keys, max_size=2),
    st.sampled_from([None, None, "a INT", "b INT"]),
    st.sampled_from([None, None, "orders", "returns"]),
)
plain_objects = st.builds(made, keys, bodies, st.lists(keys, max_size=2))


def _changes(puts: list[Object], removes: list[str]) -> Changes:
    by_key = {put.key: put for put in puts}
    return changes_of(by_key.values(), [key for key in removes if key not in by_key])


changes = st.builds(_changes, st.lists(objects, max_size=3), st.lists(keys, max_size=2))


def _state(history: list[Changes]) -> dict[str, ObjectNode]:
    state: dict[str, ObjectNode] = {}
    for number, each in enumerate(history):
        try:
            state = applied(state, each, ids(f"before {number}"), touch=bool(number % 2))
        except CatalogError:
            continue  # the state stays as it was
    return state


# The first change puts every key without links, so that later ones find something to link to.
_grounds = st.just(changes_of([made(key) for key in KEYS])) | changes
states = st.builds(
    lambda ground, history: _state([ground, *history]), _grounds, st.lists(changes, max_size=5)
)


@st.composite
def split(draw: st.DrawFn, whole: Changes) -> dict[int, Changes]:
    """Parts that say together what the whole says, some of it more than once."""
    some = st.integers(1, (1 << PARTS) - 1).map(
        lambda bits: [part for part in range(PARTS) if bits >> part & 1]
    )
    puts: dict[int, list[Object]] = {part: [] for part in range(PARTS)}
    removes: dict[int, list[str]] = {part: [] for part in range(PARTS)}
    for key, put in whole.puts.items():
        said: dict[int, dict[str, Any]] = {part: {} for part in draw(some)}
        for name, value in put.body.items():
            for part in draw(some):
                said.setdefault(part, {}).setdefault("body", {})[name] = value
        for link in put.links:
            for part in draw(some):
                said.setdefault(part, {}).setdefault("links", []).append(link)
        for name in ("schema", "datasource"):
            if getattr(put, name) is not None:
                for part in draw(some):
                    said.setdefault(part, {})[name] = getattr(put, name)
        for part, values in said.items():
            puts[part].append(Object(key, **values))
    for key in whole.removes:
        for part in draw(some):
            removes[part].append(key)
    return {part: changes_of(puts[part], removes[part]) for part in range(PARTS)}


def outcome(work: Any) -> Any:
    """What some work gives, or the condition and the message with which it is refused."""
    try:
        return work()
    except CatalogError as error:
        return error.condition, error.message


def links_agree(state: Mapping[str, ObjectNode]) -> bool:
    return all(
        target in state and state[target].revision == revision
        for node in state.values()
        for target, revision in node.links.items()
    )
