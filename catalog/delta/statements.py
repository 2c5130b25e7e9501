"""The text of the statements that write, built from constants, numbers and escaped literals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from catalog.delta.failures import mark
from catalog.delta.layout import COLUMNS, ENTRY_COLUMNS, ColumnSpec
from catalog.schema.names import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Listed = TypeVar("Listed", str, int)
Partition = tuple[str, int]
Bounds = Mapping[str, tuple[str, str]]

SEGMENT = "segment"
STAGED = "staged"
# What a staged row claims without changing it, and may share with other operations.
HOLD = "hold"
# A publish inserts the row of each of its datasources if it is not there. Claims on a datasource as
# a whole have it as their target.
DATASOURCE = "datasource"
# A row of a source that is never written: it checks for claims on the datasource in its key. The
# datasource's own row cannot, because an insert looks no further once it has found the row there.
# What matches nothing is compared with everything.
ASKING = "asking"
_WRITTEN = f"s.kind <> '{ASKING}'"

# The key of the part that a staged row belongs to.
PART_KEY = "concat(t.operation, '/', t.part)"

# From this many rows on, running a statement takes longer than planning and compiling it.
BULK_ROWS = 5_000

_SAME_KEY = "t.kind = s.kind AND t.bucket = s.bucket AND t.key = s.key"


@dataclass(frozen=True)
class Statement:
    """One statement and the rows it takes; `point` names it for tests and logs."""

    point: str
    sql: Callable[[str], str]
    source: DataFrame | None = None
    bulk: bool = False


# A segment without a schema conflicts only in the values that it has: a backfill may have filled in
# the others. `batch.contradicts` is the same in Python.
_SAYS_OTHERWISE = (
    "(t.kind <> 'segment' OR s.fingerprint IS NOT NULL "
    "OR NOT t.location <=> s.location OR NOT t.starts_at <=> s.starts_at "
    "OR NOT t.ends_at <=> s.ends_at "
    "OR (s.num_rows IS NOT NULL AND NOT t.num_rows <=> s.num_rows) "
    "OR (s.size_bytes IS NOT NULL AND NOT t.size_bytes <=> s.size_bytes))"
)
CONTRADICTS = f"t.digest <> s.digest AND {_SAYS_OTHERWISE}"


class Refuse(Enum):
    """Which rows that are there already make an insert refuse itself.

    A datasource has a digest if it has a contract, and the statement carries that of the terms by
    which it was checked: null is compared, too.
    """

    ANY_SEGMENT = "t.kind = 'segment' OR NOT t.digest <=> s.digest"
    OTHER_CONTENT = f"NOT t.digest <=> s.digest AND {_SAYS_OTHERWISE}"
    OTHER_SCHEMA = "t.kind <> 'segment' AND NOT t.digest <=> s.digest"


def listed(values: Iterable[Listed]) -> str:
    """Distinct values as literals, in order: the inside of an IN clause."""
    return ", ".join(literal(v) if isinstance(v, str) else str(v) for v in sorted(set(values)))


def partitions_clause(partitions: Iterable[Partition]) -> str:
    """The partitions that a statement reads, as literals: what Delta checks conflicts by."""
    by_kind: dict[str, list[int]] = {}
    for kind, bucket in sorted(partitions):
        by_kind.setdefault(kind, []).append(bucket)
    return " OR ".join(
        f"(t.kind = {literal(kind)} AND t.bucket IN ({listed(buckets)}))"
        for kind, buckets in by_kind.items()
    )


def bounds_clause(bounds: Bounds) -> str:
    """The range of keys for each kind, so that file statistics can skip the rest.

    It must stay a conjunct of its own: inside the alternatives of the partitions Delta would no
    longer see partition predicates, and writers of different buckets would conflict.
    """
    return " OR ".join(
        f"(t.kind = {literal(kind)} AND t.key BETWEEN {literal(low)} AND {literal(high)})"
        for kind, (low, high) in sorted(bounds.items())
    )


@dataclass(frozen=True)
class Claims:
    """The claims of operations that a plain statement must not meet.

    `decided` names operations whose staged rows are still there but claim nothing any more, and
    `harmless` parts (`operation/part`) whose rows are known not to concern the statement.
    """

    decided: frozenset[str] = frozenset()
    harmless: frozenset[str] = frozenset()

    @property
    def standing(self) -> str:
        """The condition on a staged row `t` that it claims its key for one operation alone."""
        return (
            f"t.action <> '{HOLD}' AND {not_among('t.operation', self.decided)} "
            f"AND {not_among(PART_KEY, self.harmless)}"
        )


def not_among(column: str, names: Iterable[str]) -> str:
    """The condition that a column has none of these values."""
    some = listed(names)
    return f"{column} NOT IN ({some})" if some else "true"


def with_claims(partitions: Iterable[Partition]) -> set[Partition]:
    """The partitions with those of the datasources and of claims on the segments."""
    given = set(partitions)
    homes = {bucket for kind, bucket in given if kind == SEGMENT}
    return given | {(kind, bucket) for kind in (STAGED, DATASOURCE) for bucket in homes}


def bounds_with_claims(bounds: Bounds) -> Bounds:
    """The bounds with those of the datasources and of claims on the segments.

    The lower end is open: the name of a datasource sorts before all keys of its segments.
    """
    if SEGMENT not in bounds:
        return bounds
    below = ("", bounds[SEGMENT][1])
    return {**bounds, STAGED: below, DATASOURCE: below}


def _check(condition: str) -> str:
    # The CASE compares the keys of both sides itself; a check that looks at one side only is pushed
    # into the scan and fires for unrelated rows.
    return f"CASE WHEN {_SAME_KEY} AND ({condition}) THEN {mark('t.kind', 't.key')} ELSE true END"


def _on(
    partitions: Iterable[Partition],
    bounds: Bounds,
    condition: str,
    claims: Claims | None = None,
    unmatched: str | None = None,
) -> str:
    """The ON of a MERGE: same kind and key, where to look, and what refuses the statement.

    Rows of the kind `unmatched` are checked like the others, and never match.
    """
    reach = f"({partitions_clause(partitions)}) AND ({bounds_clause(bounds)})"
    if claims is None:
        return f"{_SAME_KEY} AND {reach} AND {_check(condition)}"
    # A staged row never matches: it refuses the statement or is ignored.
    same = "t.bucket = s.bucket AND t.key = s.key"
    wanted = f"IF(s.kind = '{ASKING}', '{DATASOURCE}', s.kind)"
    # Inside the CASE: as a condition of its own it would keep these rows from being read.
    passed = "" if unmatched is None else f"WHEN t.kind = {literal(unmatched)} THEN false "
    return (
        f"{same} AND (t.kind = s.kind OR t.kind = 'staged') AND {reach} AND CASE "
        f"WHEN t.kind = 'staged' AND {same} AND t.target = {wanted} AND {claims.standing} "
        f"THEN {mark('t.kind', 't.key')} WHEN t.kind = 'staged' THEN false "
        f"WHEN {_SAME_KEY} AND ({condition}) THEN {mark('t.kind', 't.key')} {passed}ELSE true END"
    )


def _insert(columns: Iterable[ColumnSpec] = ENTRY_COLUMNS, terms: bool = False) -> str:
    values = {column.name: f"s.{column.name}" for column in columns}
    if terms:
        # A contract that the statement was checked by and that is gone with its row refuses it, by
        # the value of a column: Delta applies the condition of an insert to the whole source.
        values["kind"] = (
            "CASE WHEN s.kind = 'datasource' AND s.digest IS NOT NULL "
            f"THEN {mark('s.kind', 's.key')} ELSE s.kind END"
        )
    return f"INSERT ({', '.join(values)}) VALUES ({', '.join(values.values())})"


def insert_missing(
    target: str,
    partitions: Iterable[Partition],
    bounds: Bounds,
    refuse: Refuse,
    claims: Claims | None = None,
    terms: bool = False,
) -> Callable[[str], str]:
    """An insert-only MERGE: existing rows stay, and may refuse the whole statement.

    `terms` says that the source carries digests of contracts. With claims it checks for them, too.
    """
    on = _on(partitions, bounds, refuse.value, claims)
    insert = _insert(terms=terms)
    # Delta takes the condition of a single insert for one on the source, and would leave out the
    # rows that only ask before it compares them with anything. Of two inserts it looks first which
    # rows are there.
    inserts = (
        f"WHEN NOT MATCHED THEN {insert}"
        if claims is None
        else f"WHEN NOT MATCHED AND {_WRITTEN} THEN {insert} "
        "WHEN NOT MATCHED AND false THEN INSERT (kind) VALUES (s.kind)"
    )
    return lambda source: f"MERGE INTO {target} AS t USING {source} AS s ON {on} {inserts}"


def insert_all(target: str) -> Callable[[str], str]:
    """An insert-only MERGE with all columns; rows that are there stay, so it can be repeated.

    One row for a key; of staged rows one for each operation and part.
    """
    same = f"{_SAME_KEY} AND t.target <=> s.target AND t.operation <=> s.operation"
    return lambda source: (
        f"MERGE INTO {target} AS t USING {source} AS s ON {same} AND t.part <=> s.part "
        f"WHEN NOT MATCHED THEN {_insert(COLUMNS)}"
    )


_KEPT_ON_REPLACE = {"kind", "bucket", "key", "published_at", "revision"}


def insert_or_replace(
    target: str,
    partitions: Iterable[Partition],
    bounds: Bounds,
    claims: Claims,
    terms: bool = False,
) -> Callable[[str], str]:
    """A MERGE that also updates segments which are there with other content."""
    on = _on(partitions, bounds, Refuse.OTHER_SCHEMA.value, claims)
    updates = ", ".join(
        f"{column.name} = s.{column.name}"
        for column in ENTRY_COLUMNS
        if column.name not in _KEPT_ON_REPLACE
    )
    return lambda source: (
        f"MERGE INTO {target} AS t USING {source} AS s ON {on} "
        f"WHEN MATCHED AND t.kind = 'segment' AND {CONTRADICTS} "
        f"THEN UPDATE SET {updates}, revision = t.revision + 1 "
        f"WHEN NOT MATCHED AND {_WRITTEN} THEN {_insert(terms=terms)}"
    )


def merge_segments(
    target: str,
    partitions: Iterable[Partition],
    bounds: Bounds,
    refuse: Refuse | None,
    claims: Claims,
    terms: bool,
) -> Callable[[str], str]:
    """The MERGE of a publish: it inserts, or with nothing to refuse also replaces."""
    if refuse is None:
        return insert_or_replace(target, partitions, bounds, claims, terms)
    return insert_missing(target, partitions, bounds, refuse, claims, terms)


_COMPLETED = (
    *("commit_id", "fingerprint", "digest", "num_rows", "size_bytes", "state", "payload"),
    *("changed_at", "changed_by"),
)


def complete_segments(
    target: str, partitions: Iterable[Partition], bounds: Bounds, claims: Claims
) -> Callable[[str], str]:
    """A MERGE that completes segments, each only if its row is still as it was read.

    The source has a column `seen` besides: the commit id of the row that was read. A segment that
    is gone, was replaced or has a schema by now is skipped. Schemas are inserted if absent.
    Rows of datasources are only compared: one that matched would be written anew.
    """
    on = _on(partitions, bounds, Refuse.OTHER_SCHEMA.value, claims, unmatched=DATASOURCE)
    updates = ", ".join(f"{name} = s.{name}" for name in _COMPLETED)
    return lambda source: (
        f"MERGE INTO {target} AS t USING {source} AS s ON {on} "
        f"WHEN MATCHED AND t.kind = 'segment' AND t.fingerprint IS NULL AND t.commit_id = s.seen "
        f"THEN UPDATE SET {updates}, revision = t.revision + 1 "
        f"WHEN NOT MATCHED AND s.kind = 'schema' THEN {_insert()}"
    )


def delete_keys(
    target: str,
    partitions: Iterable[Partition],
    bounds: Bounds,
    same_commit: bool = False,
    claims: Claims | None = None,
) -> Callable[[str], str]:
    """A MERGE that deletes the rows with the source's keys, if wanted only as last seen."""
    if claims is None:
        reach = f"({partitions_clause(partitions)}) AND ({bounds_clause(bounds)})"
        on = f"{_SAME_KEY} AND {reach}"
        seen = " AND t.commit_id = s.commit_id"
    else:
        on = _on(partitions, bounds, "false", claims)
        # A staged row is of another commit, and has to meet the check all the same.
        seen = " AND (t.kind = 'staged' OR t.commit_id = s.commit_id)"
    return lambda source: (
        f"MERGE INTO {target} AS t USING {source} AS s ON {on}{seen if same_commit else ''} "
        "WHEN MATCHED THEN DELETE"
    )


def delete_where(
    target: str, partitions: Iterable[Partition], where: str, refused: str
) -> Callable[[str], str]:
    """A DELETE of rows that fulfil one condition, unless a staged row fulfils the other."""
    return lambda _: (
        f"DELETE FROM {target} AS t WHERE ({partitions_clause(partitions)}) AND CASE "
        f"WHEN t.kind = 'staged' AND {refused} THEN {mark('t.kind', 't.key')} "
        f"WHEN t.kind = 'staged' THEN false ELSE {where} END"
    )


def delete_operations(
    target: str,
    kinds: Iterable[str],
    buckets: Iterable[int],
    operations: Iterable[str],
    commits: Iterable[str],
) -> Callable[[str], str]:
    """A DELETE of rows of some operations, only if they were written by these commits."""
    text = (
        f"DELETE FROM {target} WHERE kind IN ({listed(kinds)}) AND bucket IN ({listed(buckets)}) "
        f"AND operation IN ({listed(operations)}) AND commit_id IN ({listed(commits)})"
    )
    return lambda _: text


def retire_keys(
    target: str,
    buckets: Iterable[int],
    bounds: tuple[str, str],
    commit_id: str,
    now_micros: int,
    actor: str,
) -> Callable[[str], str]:
    """A MERGE that turns live schemas into retired ones, each row as it is then.

    A key that has a retired row already refuses the statement: two retired rows would break I2.
    """
    chosen = sorted(set(buckets))
    partitions = [(kind, bucket) for kind in ("schema", "retired") for bucket in chosen]
    low, high = bounds
    same = "t.bucket = s.bucket AND t.key = s.key"
    return lambda source: (
        f"MERGE INTO {target} AS t USING {source} AS s ON {same} "
        f"AND ({partitions_clause(partitions)}) "
        f"AND t.key BETWEEN {literal(low)} AND {literal(high)} "
        f"AND CASE WHEN {same} AND t.kind = 'retired' THEN {mark('t.kind', 't.key')} "
        f"ELSE true END "
        f"WHEN MATCHED AND t.kind = 'schema' AND t.commit_id = s.commit_id THEN UPDATE SET "
        f"kind = 'retired', commit_id = {literal(commit_id)}, revision = t.revision + 1, "
        f"changed_at = timestamp_micros({int(now_micros)}), changed_by = {literal(actor)}"
    )
