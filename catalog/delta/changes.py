"""The general commit: changes and expectations of any kind of row, checked in one MERGE.

Its source has, besides the columns of the table:

- `change`: what to do with the row, see `RowChange`;
- `seen`: the commit id that the row must still have;
- `fresh`: an update that makes a new thing of the row; otherwise `revision` is added to the row's;
- `shared`: for a probe of claims, whether it ignores those that are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum

from catalog.delta.failures import mark
from catalog.delta.layout import COLUMNS, ENTRY_COLUMNS
from catalog.delta.statements import (
    HOLD,
    PART_KEY,
    Bounds,
    Partition,
    bounds_clause,
    not_among,
    partitions_clause,
)


class RowChange(StrEnum):
    """What a commit does with a row; if the row is not as expected, the statement is refused."""

    # The row is absent; only a schema may be there, with the same definition.
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    # The row is there with the commit id that was read, and stays.
    EXPECT = "expect"
    # Nothing is written; a claim on the key refuses the statement.
    PROBE = "probe"


_SAME = "t.bucket = s.bucket AND t.key = s.key"
_KEPT = {"kind", "bucket", "key", "published_at", "revision"}


def plain_clash(decided: Iterable[str]) -> str:
    """The condition that a staged row conflicts with a change outside of operations."""
    return (
        f"t.target = s.kind AND (t.action <> '{HOLD}' OR NOT s.shared) "
        f"AND {not_among('t.operation', decided)}"
    )


def staging_clash(parts: Iterable[str], ignored: Iterable[str]) -> str:
    """The condition that a staged row conflicts with another that is being staged.

    `parts` are the keys of parts of the same operation that the plan knows, `ignored` operations
    that are decided, or ready and known to come before.
    """
    return (
        f"s.kind = 'staged' AND t.target = s.target "
        f"AND NOT (t.action = '{HOLD}' AND s.action = '{HOLD}') "
        f"AND {not_among('t.operation', ignored)} AND {not_among(PART_KEY, parts)}"
    )


def change_rows(
    target: str,
    partitions: Iterable[Partition],
    bounds: Bounds,
    clash: str = "false",
    inserts_only: bool = False,
) -> Callable[[str], str]:
    """A MERGE that applies the changes in its source, or nothing if a row is not as expected.

    With `inserts_only` the source neither updates nor deletes nor probes, which Delta executes in
    one pass.
    """
    # Each check compares the keys of both sides itself; one that looks at one side only would be
    # pushed into the scan and fire for unrelated rows.
    refused = mark("t.kind", "t.key")
    on = (
        f"{_SAME} AND (t.kind = s.kind OR t.kind = 'staged' OR t.kind = s.target) "
        f"AND ({partitions_clause(partitions)}) AND ({bounds_clause(bounds)}) AND CASE "
        f"WHEN {_SAME} AND t.kind = 'staged' AND {clash} THEN {refused} "
        "WHEN t.kind = 'staged' THEN false "
        # A row that is staged because its target is absent.
        f"WHEN {_SAME} AND t.kind <> s.kind AND s.base = 'absent' THEN {refused} "
        "WHEN t.kind <> s.kind THEN false "
        f"WHEN {_SAME} AND s.kind = 'schema' AND t.digest <> s.digest THEN {refused} "
        "WHEN s.kind = 'schema' THEN true "
        f"WHEN {_SAME} AND s.change = 'insert' THEN {refused} "
        f"WHEN {_SAME} AND s.change <> 'probe' AND NOT t.commit_id <=> s.seen THEN {refused} "
        "ELSE true END"
    )
    updates = ", ".join(
        f"{column.name} = s.{column.name}" for column in ENTRY_COLUMNS if column.name not in _KEPT
    )
    matched = (
        "WHEN MATCHED AND s.change = 'delete' THEN DELETE "
        f"WHEN MATCHED AND s.change = 'update' THEN UPDATE SET {updates}, "
        "revision = IF(s.fresh, s.revision, t.revision + s.revision), "
        "published_at = IF(s.fresh, s.published_at, t.published_at) "
    )
    # A row that is expected and not there is refused by the value of a column: Delta applies the
    # condition of an insert to the whole source, before it matches rows.
    values = {column.name: f"s.{column.name}" for column in COLUMNS}
    values["kind"] = f"CASE s.change WHEN 'insert' THEN s.kind ELSE {mark('s.kind', 's.key')} END"
    return lambda source: (
        f"MERGE INTO {target} AS t USING {source} AS s ON {on} {'' if inserts_only else matched}"
        f"WHEN NOT MATCHED AND s.change <> 'probe' THEN INSERT ({', '.join(values)}) "
        f"VALUES ({', '.join(values.values())})"
    )
