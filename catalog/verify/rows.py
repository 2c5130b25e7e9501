"""The checks of one version, as queries over its rows.

I1, I2, I5: each row matches its own key, bucket and digest. I3: references and links lead
somewhere. I4: rows that change together agree. I7, I8: what operations claim, and at which epoch
they wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from catalog.commit.rows import DIGEST_SQL
from catalog.contracts.model import TableLimits, limits_document, stored_limits
from catalog.delta.layout import (
    BEFORE_SLASH,
    NAME_BUCKETS,
    OPERATION_BUCKETS,
    SCHEMA_BUCKETS,
    bucket_sql,
)
from catalog.errors import CorruptSchema, InvalidObject, InvalidSchema
from catalog.names.model import NameHead, Version, parts_of
from catalog.names.store import known_versions
from catalog.objects.declarations import Types
from catalog.objects.model import ObjectNode, digest_of
from catalog.objects.platform import limits_of, missing_schemas, named_schemas
from catalog.objects.rules import BrokenRule, broken_rules
from catalog.objects.types import TYPE
from catalog.schema import Schema
from catalog.verify.model import Counterexample, Row, Violations

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Operations may have staged changes of one key side by side, and several parts of one operation,
# too; any other row is known by kind and key alone.
IDENTITY = (
    "kind",
    "key",
    "IF(kind = 'staged', target, NULL) AS target",
    "IF(kind = 'staged', operation, NULL) AS operation",
    "IF(kind = 'staged', part, NULL) AS part",
)
IDENTITY_NAMES = ("kind", "key", "target", "operation", "part")
# The content of an object besides its key.
CONTENT = ("revision", "fingerprint", "datasource", "digest", "payload")

OBJECT = "object"
NAMED, VERSION = NAME_KINDS = ("named", "version")
OPERATION_KINDS = frozenset({"operation", "part", "staged", "epoch"})
DECLARED = f"{TYPE}/"

LINKS_NOWHERE = "an object links to one that is not there"
LINK_DISAGREES = "a link does not have its target's revision"


def check_version(found: Violations, rows: str, kinds: set[str], buckets: int) -> None:
    """All checks of one version: `rows` is its relation, with rows of these kinds."""
    _check_definitions(found, rows)
    names = ", ".join(IDENTITY_NAMES)
    found.expect_none(
        "I2",
        "more than one row for a key of a kind",
        f"SELECT {names}, count(*) AS rows FROM (SELECT {', '.join(IDENTITY)} FROM {rows}) "
        f"GROUP BY {names} HAVING count(*) > 1",
    )
    _check_places(found, rows, buckets)
    _check_references(found, rows)
    if kinds & OPERATION_KINDS:
        _check_operations(found, rows)
    if OBJECT in kinds:
        _check_objects(found, rows)
    # The guard row stays when the last object was removed, and limits of tables might too.
    if kinds & {OBJECT, "guard"}:
        _check_rules(found, rows)
    if kinds & set(NAME_KINDS):
        _check_names(found, rows)


# --- every row ------------------------------------------------------------------------------------


def _check_definitions(found: Violations, rows: str) -> None:
    schemas = found.session.sql(
        f"SELECT kind, key, digest, payload FROM {rows} WHERE kind IN ('schema', 'retired')"
    )
    found.expect_none(
        "I1",
        "a fingerprint is not that of its definition",
        _with_problems(schemas, ("kind", "key"), _definition_problem),
    )
    found.expect_none(
        "I1",
        "a live and a retired schema share a fingerprint but not a definition",
        schemas.groupBy("key")
        .agg(F.count_distinct("digest").alias("definitions"))
        .where("definitions > 1"),
    )


def _with_problems(
    rows: DataFrame, columns: Iterable[str], problem_of: Callable[[Row], str | None]
) -> DataFrame:
    """The rows that have a problem: some of their columns, and what it is."""
    names = (*columns, "problem")
    schema = pa.schema([(name, pa.string()) for name in names])

    def found(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            wrong = [
                {**{name: row[name] for name in columns}, "problem": problem}
                for row in batch.to_pylist()
                if (problem := problem_of(row)) is not None
            ]
            yield pa.RecordBatch.from_pylist(wrong, schema=schema)

    return rows.mapInArrow(found, ", ".join(f"{name} STRING" for name in names))


def _definition_problem(row: Row) -> str | None:
    try:
        schema = Schema.from_payload(row["payload"] or "")
    except InvalidSchema as error:
        return f"the payload cannot be read: {error.message}"
    if schema.fingerprint != row["key"]:
        return f"the payload has the fingerprint {schema.fingerprint}"
    if schema.digest != row["digest"]:
        return f"the payload has the digest {schema.digest}, the row {row['digest']}"
    return None


def _bucket(buckets: int) -> str:
    """The bucket that a row must be in; null for a change of what does not exist."""
    by_datasource, by_operation, by_name = (
        bucket_sql(BEFORE_SLASH, number) for number in (buckets, OPERATION_BUCKETS, NAME_BUCKETS)
    )
    staged = (
        f"CASE WHEN target IN ('segment', 'datasource') THEN {by_datasource} "
        "WHEN target = 'object' THEN 0 END"
    )
    return (
        f"CASE WHEN kind IN ('schema', 'retired') THEN {bucket_sql('key', SCHEMA_BUCKETS)} "
        f"WHEN kind IN ('segment', 'datasource') THEN {by_datasource} "
        f"WHEN kind = 'staged' THEN {staged} "
        f"WHEN kind IN ('operation', 'part') THEN {by_operation} "
        f"WHEN kind IN ('named', 'version') THEN {by_name} "
        "WHEN kind IN ('object', 'epoch', 'guard', 'setting') THEN 0 ELSE bucket END"
    )


def _check_places(found: Violations, rows: str, buckets: int) -> None:
    """Buckets and digests, in one scan."""
    misplaced = (
        f"NOT bucket <=> {_bucket(buckets)} OR (kind = 'segment' "
        "AND NOT datasource <=> substring_index(key, '/', 1))"
    )
    altered = f"kind = 'segment' AND digest <> {DIGEST_SQL}"
    # The terms name their schema by its fingerprint; clean-ups look for it in the column.
    forged = (
        "kind = 'datasource' AND payload IS NOT NULL AND (NOT digest <=> sha2(payload, 256) "
        "OR NOT fingerprint <=> get_json_object(payload, '$.fingerprint'))"
    )
    flagged = found.session.sql(
        f"SELECT kind, bucket, key, digest, {misplaced} AS misplaced, {altered} AS altered, "
        f"{forged} AS forged FROM {rows}"
    )
    found.expect_no_flags(
        flagged,
        {
            "misplaced": ("I2", "a row is in a bucket where its key is not looked up"),
            "altered": ("I5", "a segment's content does not have its digest"),
            "forged": ("I5", "a contract's terms do not have their digest or their schema"),
        },
    )


def _check_references(found: Violations, rows: str) -> None:
    """Every fingerprint that a row refers to, staged ones too, has a live or retired payload."""
    found.expect_none(
        "I3",
        "a fingerprint leads to no payload",
        f"SELECT s.kind, s.key, s.fingerprint FROM {rows} AS s LEFT ANTI JOIN "
        f"(SELECT key FROM {rows} WHERE kind IN ('schema', 'retired') "
        "AND payload IS NOT NULL) AS d ON s.fingerprint = d.key "
        "WHERE s.kind NOT IN ('schema', 'retired') AND s.fingerprint IS NOT NULL",
    )


# --- operations -----------------------------------------------------------------------------------


def _check_operations(found: Violations, rows: str) -> None:
    """The rows of operations belong together, and their keys have one holder; in one scan."""
    known = (
        "SELECT kind, target, key, operation, part, action, "
        "max(IF(kind = 'operation', state, NULL)) OVER (PARTITION BY operation) AS state, "
        "bool_or(kind = 'part') OVER (PARTITION BY operation, part) AS with_part, "
        "CAST(get_json_object(payload, '$.epoch') AS BIGINT) AS epoch, "
        "coalesce(max(IF(kind = 'epoch', CAST(get_json_object(payload, '$.stable') AS BIGINT), "
        f"NULL)) OVER (), 0) AS stable FROM {rows} "
        "WHERE kind IN ('operation', 'part', 'staged', 'epoch')"
    )
    # A ready operation may have others behind it on a key: they are published in order.
    holder = "IF(state = 'open', operation, NULL)"
    window = "OVER (PARTITION BY kind, target, key)"
    flagged = found.session.sql(
        "SELECT kind, target, key, operation, part, action, state, epoch, stable, "
        "kind IN ('staged', 'part') AND state IS NULL AS alone, "
        "kind = 'staged' AND state IN ('open', 'ready') AND NOT with_part AS without_part, "
        f"kind = 'staged' AND state = 'open' AND min({holder}) {window} <> max({holder}) {window} "
        f"AND bool_or(state = 'open' AND action <> 'hold') {window} AS contested, "
        "kind = 'operation' AND state = 'ready' AND (epoch IS NULL OR epoch <= stable) AS late "
        f"FROM ({known})"
    )
    found.expect_no_flags(
        flagged,
        {
            "alone": ("I4", "a staged change or a part has no operation"),
            "without_part": (
                "I4",
                "a staged change of an undecided operation belongs to a part that is not there",
            ),
            "contested": (
                "I7",
                "several open operations hold a key, and not all of them share it",
            ),
            "late": ("I8", "an operation is ready at no epoch above the stable one"),
        },
    )


# --- objects --------------------------------------------------------------------------------------


def _check_objects(found: Violations, rows: str) -> None:
    """Contents have their digests, and links the revisions of their targets."""
    contents = found.session.sql(
        f"SELECT key, {', '.join(CONTENT)} FROM {rows} WHERE kind = 'object'"
    )
    found.expect_none(
        "I5",
        "an object's content does not have its digest",
        _with_problems(contents, ("key",), _content_problem),
    )
    links = "from_json(payload, 'links MAP<STRING, BIGINT>').links"
    flagged = found.session.sql(
        "SELECT l.key, l.target, l.seen, o.revision, o.key IS NULL AS nowhere, "
        "o.key IS NOT NULL AND NOT l.seen <=> o.revision AS disagrees FROM "
        "(SELECT key, target, seen FROM "
        f"(SELECT key, {links} AS links FROM {rows} WHERE kind = 'object') "
        "LATERAL VIEW explode(links) linked AS target, seen) AS l LEFT JOIN "
        f"(SELECT key, revision FROM {rows} WHERE kind = 'object') AS o ON l.target = o.key"
    )
    flags = {"nowhere": ("I3", LINKS_NOWHERE), "disagrees": ("I4", LINK_DISAGREES)}
    found.expect_no_flags(flagged, flags)


def _content_problem(row: Row) -> str | None:
    try:
        node = ObjectNode.from_payload(**row)
    except InvalidObject as error:
        return f"the payload cannot be read: {error.message}"
    digest = digest_of(node.json, node.links, node.fingerprint, node.datasource)
    if digest != node.digest:
        return f"the content has the digest {digest}, the row {node.digest}"
    return None


def node_of(row: Row) -> ObjectNode | None:
    """An object, or none if it cannot be read, which the check of contents reports."""
    with suppress(InvalidObject):
        return ObjectNode.from_payload(key=row["key"], **{name: row[name] for name in CONTENT})
    return None


# --- rules ----------------------------------------------------------------------------------------
# They are no promise about the table: each commit that changes objects keeps them, but a raw
# RESTORE or another release may not.


def _check_rules(found: Violations, rows: str) -> None:
    """The rules of declared types, and the limits that tables give to datasources."""
    objects = f"SELECT key, {', '.join(CONTENT)} FROM {rows} WHERE kind = 'object'"
    declarations = f"startswith(key, '{DECLARED}')"
    nodes = _nodes(found.session, f"{objects} AND {declarations}")
    if nodes:
        nodes |= _nodes(found.session, f"{objects} AND NOT {declarations}")
        types = Types.among(nodes)
        names = {name for name, _ in named_schemas(types, nodes, {}).values()}
        versions = known_versions(found.session, rows, names)
        found.add(broken_rule(each) for each in broken(types, nodes, versions))
    found.add(_wrong_limits(found.session, rows, limits_of(nodes)))


def broken(
    types: Types, nodes: Mapping[str, ObjectNode], versions: Mapping[str, set[int]]
) -> list[BrokenRule]:
    """The rules that do not hold among all objects, given the versions of named schemas."""
    wanted = named_schemas(types, nodes, {})
    return [*broken_rules(types, nodes), *missing_schemas(wanted, versions)]


def broken_rule(each: BrokenRule, **where: int) -> Counterexample:
    """A broken rule as a counterexample."""
    what = f"the rule {each.rule} does not hold"
    return Counterexample("rules", what, {**where, "key": each.key, "why": each.text})


def _wrong_limits(
    session: SparkSession, rows: str, limits: Mapping[str, TableLimits]
) -> Iterator[Counterexample]:
    """Datasources whose rows do not have the limits that tables give them."""
    terms = session.sql(
        f"SELECT key, payload FROM {rows} WHERE kind = 'datasource' AND payload IS NOT NULL"
    ).collect()
    stored: dict[str, TableLimits] = {}
    for row in terms:
        # Terms that cannot be read do not have their digest, which another check reports.
        with suppress(ValueError, TypeError, KeyError, AttributeError):
            stored[row["key"]] = stored_limits(row["payload"])
    for name in sorted(stored.keys() | limits.keys()):
        has, given = stored.get(name, {}), limits.get(name, {})
        if has != given:
            yield Counterexample(
                "rules",
                "a datasource does not have the limits that its tables give",
                {"key": name, "has": limits_document(has), "given": limits_document(given)},
            )


def _nodes(session: SparkSession, query: str) -> dict[str, ObjectNode]:
    rows = (row.asDict() for row in session.sql(query).collect())
    return {row["key"]: node for row in rows if (node := node_of(row)) is not None}


# --- named schemas --------------------------------------------------------------------------------


@dataclass
class NameRows:
    """The rows of a name: its own, and those of its versions by number."""

    head: Row | None = None
    versions: dict[int, Row] = field(default_factory=dict)


def _check_names(found: Violations, rows: str) -> None:
    names = found.session.sql(
        f"SELECT kind, key, fingerprint, payload AS said FROM {rows} "
        "WHERE kind IN ('named', 'version')"
    )
    grouped = group_names(names.toArrow().to_pylist())
    found.add(each for name, known in grouped.items() for each in check_name(name, known))


def group_names(rows: Iterable[Row]) -> dict[str, NameRows]:
    """The rows of names and versions, by name."""
    names: dict[str, NameRows] = {}
    for row in rows:
        if row["kind"] == NAMED:
            names.setdefault(row["key"], NameRows()).head = row
        else:
            name, number = parts_of(row["key"])
            names.setdefault(name, NameRows()).versions[number] = row
    return names


def check_name(name: str, known: NameRows) -> Iterator[Counterexample]:
    """I3: numbers run from 1 to the current one, each with a schema. I4: the name's row agrees with
    its versions. I5: both can be read."""
    row: dict[str, Any] = {"name": name}
    try:
        head = None if known.head is None else NameHead.from_payload(name, known.head["said"])
        versions = {
            number: Version.from_payload(
                f"{name}/{number}", number, each["fingerprint"], each["said"]
            )
            for number, each in sorted(known.versions.items())
        }
    except CorruptSchema as error:
        what = "the payload of a named schema cannot be read"
        yield Counterexample("I5", what, {**row, "why": error.message})
        return
    current = 0 if head is None else head.current
    if list(versions) != list(range(1, current + 1)):
        yield Counterexample(
            "I3",
            "the versions of a named schema do not run from 1 to the current one",
            {**row, "current": current, "versions": list(versions)[:20]},
        )
        return
    for number, version in versions.items():
        if version.fingerprint is None:
            what = "a version of a named schema leads to no schema"
            yield Counterexample("I3", what, {**row, "number": number})
    if head is None or known.head is None:
        return
    breaking = max((n for n, each in versions.items() if each.breaking), default=1)
    if head.last_breaking != breaking:
        yield Counterexample(
            "I4",
            "a named schema does not say which of its versions is the last breaking one",
            {**row, "says": head.last_breaking, "is": breaking},
        )
    if known.head["fingerprint"] != versions[current].fingerprint:
        what = "a named schema does not refer to the schema of its current version"
        yield Counterexample("I4", what, {**row, "fingerprint": known.head["fingerprint"]})
