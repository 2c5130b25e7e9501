"""What tables say of the segments of their datasources: from all objects, the limits of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from catalog.contracts.limits import TableLimits, least, limits_in
from catalog.objects.model import Named, Node
from catalog.objects.types import TYPE

TABLE = "table"
_DECLARATION = f"{TYPE}/{TABLE}"


def given_limits(found: Named, datasource: str | None) -> dict[str, int]:
    """The limits that one object gives to its datasource, if it is a table."""
    if found.type != TABLE or datasource is None:
        return {}
    return limits_in(found.body.get("limits"))


def tables_declared(nodes: Mapping[str, Node]) -> bool:
    """Whether the type of tables is declared; free in form, they give no limits."""
    return _DECLARATION in nodes


def limits_of(nodes: Mapping[str, Node]) -> dict[str, TableLimits]:
    """The limits of each datasource that has any."""
    if not tables_declared(nodes):
        return {}
    given: defaultdict[str, list[tuple[str, Mapping[str, int]]]] = defaultdict(list)
    for key, node in nodes.items():
        limits = given_limits(node, node.datasource)
        if limits and node.datasource is not None:
            given[node.datasource].append((key, limits))
    return {datasource: least(some) for datasource, some in given.items()}


def changed_limits(before: Mapping[str, Node], after: Mapping[str, Node]) -> dict[str, TableLimits]:
    """The limits of the datasources that have others than before, as they are afterwards."""
    old, new = limits_of(before), limits_of(after)
    names = sorted(old.keys() | new.keys())
    return {name: new.get(name, {}) for name in names if old.get(name) != new.get(name)}
