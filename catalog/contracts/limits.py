"""Limits that tables give to the segments of the datasource that they stand for, as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

LIMITS = ("max_rows", "max_bytes", "max_columns")


@dataclass(frozen=True)
class TableLimit:
    """The least limit of its name that a table gives, and the key of that table."""

    most: int
    table: str


# By the names of the limits.
TableLimits = Mapping[str, TableLimit]


def limits_in(document: Any) -> dict[str, int]:
    """The limits in the field of a table; what is none breaks a rule, and does not count here."""
    if not isinstance(document, Mapping):
        return {}
    given = {name: document.get(name) for name in LIMITS}
    return {name: most for name, most in given.items() if type(most) is int and most > 0}


def least(given: Iterable[tuple[str, Mapping[str, int]]]) -> dict[str, TableLimit]:
    """The least of each limit that some tables give; of those with the same, the first table's."""
    found: dict[str, TableLimit] = {}
    for table, limits in sorted(given):
        for name, most in limits.items():
            if name not in found or most < found[name].most:
                found[name] = TableLimit(most, table)
    return found


def limits_document(limits: TableLimits) -> dict[str, Any]:
    """The limits as they stand in a JSON document."""
    return {
        name: {"most": limit.most, "table": limit.table} for name, limit in sorted(limits.items())
    }


def limits_from(document: Mapping[str, Any]) -> dict[str, TableLimit]:
    """The limits that a JSON document tells of."""
    return {name: TableLimit(said["most"], said["table"]) for name, said in document.items()}
