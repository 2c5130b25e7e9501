"""How the rows of a catalog differ from what they were: what a rollback has to write, as frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from catalog.backups.kinds import Behaviour, kinds_that
from catalog.commit.rows import RowSet, as_changes
from catalog.delta.changes import RowChange
from catalog.delta.layout import ENTRY_COLUMNS, SCHEMA_BUCKETS, bucket_sql
from catalog.delta.statements import DATASOURCE
from catalog.model import Kind, micros
from catalog.schema.names import literal

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# What a row says of itself rather than of the commit that wrote it.
_CONTENT = tuple(
    column.name
    for column in ENTRY_COLUMNS
    if column.name
    not in ("kind", "bucket", "key", "commit_id", "revision", "changed_at", "changed_by")
)
# Schemas are carried, see `carried`; objects are few, and go by their links.
_COMPARED = kinds_that(Behaviour.RESTORED, Behaviour.RETURNED, Behaviour.GROW_ONLY)
_SHOWN = 10


@dataclass(frozen=True)
class Changed:
    """What has to change in the rows of one kind."""

    kind: str
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    # The first keys, with what is done with them; only a dry run looks for them.
    first: tuple[tuple[str, str], ...] = ()

    @property
    def rows(self) -> int:
        return self.inserted + self.updated + self.deleted


@dataclass(frozen=True)
class Reach:
    """Where the rows of one kind are that have to change."""

    changed: Changed
    buckets: tuple[int, ...]
    low: str
    high: str
    # The buckets of the schemas that they refer to.
    schema_buckets: tuple[int, ...] = field(default=())


def contrast(then: DataFrame, now: DataFrame) -> DataFrame:
    """One row for each key that has to change, but for objects and schemas.

    It has kind, bucket, key, `change`, `seen` (the commit id of what is there), `revision` (the
    next one) and the content that the row had then. Both frames have all columns of the table, and
    both spread their rows over the same buckets.
    """
    kinds = f"kind IN ({_COMPARED}) AND kind <> 'schema'"
    sides = (
        then.where(kinds)
        .alias("o")
        .join(now.where(kinds).alias("n"), ["kind", "bucket", "key"], "full_outer")
    )
    # A name and its versions are one: whoever brings versions back brings who counts them.
    current = "CAST(get_json_object({}.payload, '$.current') AS INT)".format
    grows = f"kind = '{Kind.NAMED}' AND {current('o')} > {current('n')}"
    differs = " OR ".join(f"NOT o.{name} <=> n.{name}" for name in _CONTENT)
    change = (
        f"CASE WHEN n.commit_id IS NULL THEN '{RowChange.INSERT}' WHEN o.commit_id IS NULL "
        f"THEN IF(kind IN ({kinds_that(Behaviour.RESTORED)}), '{RowChange.DELETE}', NULL) "
        f"WHEN {grows} THEN '{RowChange.UPDATE}' "
        f"WHEN kind IN ({kinds_that(Behaviour.GROW_ONLY)}) THEN NULL "
        f"WHEN {differs} THEN '{RowChange.UPDATE}' END AS change"
    )
    revision = "greatest(coalesce(o.revision, 0), coalesce(n.revision, 0)) + 1 AS revision"
    # The datasource of a segment that goes has to be known: claims are asked for by it.
    datasource = "coalesce(o.datasource, n.datasource) AS datasource"
    content = (datasource if name == "datasource" else f"o.{name}" for name in _CONTENT)
    return sides.selectExpr(
        "kind", "bucket", "key", change, "n.commit_id AS seen", revision, *content
    ).where("change IS NOT NULL")


def taken_numbers(then: DataFrame, now: DataFrame) -> list[str]:
    """Some keys of schema versions that have another schema now than they had then.

    Numbers are dense, so where there is none one side's versions begin with all of the other's.
    """
    versions = f"kind = '{Kind.VERSION}'"
    pairs = then.where(versions).alias("o").join(now.where(versions).alias("n"), "key")
    other = pairs.where("o.fingerprint <> n.fingerprint").select("key").orderBy("key")
    return [row["key"] for row in other.limit(_SHOWN).collect()]


def reaches(changed: DataFrame) -> list[Reach]:
    """How much has to change, and where, kind by kind."""
    rows = (
        changed.groupBy("kind")
        .agg(
            *(
                F.count_if(F.col("change") == change.value).alias(change.value)
                for change in (RowChange.INSERT, RowChange.UPDATE, RowChange.DELETE)
            ),
            F.collect_set("bucket").alias("buckets"),
            F.min("key").alias("low"),
            F.max("key").alias("high"),
            F.collect_set(schema_bucket_of("fingerprint")).alias("schema_buckets"),
        )
        .collect()
    )
    return [
        Reach(
            Changed(row["kind"], row["insert"], row["update"], row["delete"]),
            tuple(row["buckets"]),
            row["low"],
            row["high"],
            tuple(row["schema_buckets"]),
        )
        for row in sorted(rows, key=lambda row: row["kind"])
    ]


def schema_bucket_of(column: str) -> Column:
    """The bucket of a schema, as an expression."""
    return F.expr(f"CAST({bucket_sql(column, SCHEMA_BUCKETS)} AS INT)")


def first_keys(changed: DataFrame, kinds: Sequence[str]) -> dict[str, tuple[tuple[str, str], ...]]:
    """Some of the keys of each kind, with what has to be done with them."""
    return {
        kind: tuple(
            (row["change"], row["key"])
            for row in changed.where(f"kind = {literal(kind)}")
            .select("change", "key")
            .orderBy("key")
            .limit(_SHOWN)
            .collect()
        )
        for kind in kinds
    }


def changes_of(changed: DataFrame, rows: RowSet) -> DataFrame:
    """The source rows of the commit that brings the contents back."""
    return as_changes(
        changed,
        {
            "kind": "kind",
            "bucket": "bucket",
            "key": "key",
            "commit_id": literal(rows.commit_id),
            "revision": "CAST(revision AS BIGINT)",
            **{name: name for name in _CONTENT},
            **_written(rows),
            "change": "change",
            "seen": "seen",
            # What it was before comes back, also when it was first published.
            "fresh": "true",
            "shared": "false",
        },
    )


def probes(
    changed: DataFrame, more: DataFrame, others: Iterable[str], known: DataFrame, rows: RowSet
) -> DataFrame:
    """Source rows that ask for claims on the datasources of segments that change, and on more.

    They expect the rows of these datasources as they were read: what comes back is not checked by
    a contract that was set since. One that has no row gets it with its segments, as by a publish.

    Args:
        changed: what has to change.
        more: further datasources, with their buckets.
        others: datasources that are written besides.
        known: the rows of datasources that there are, with key and commit_id.
        rows: the rows of the commit.
    """
    # One row of a source for each row of the table: what is written asks for itself.
    names = [(name,) for name in sorted(others)]
    written = (
        changed.where(f"kind = '{DATASOURCE}'")
        .selectExpr("key AS datasource")
        .union(changed.sparkSession.createDataFrame(names, "datasource STRING"))
    )
    asked = (
        changed.where("kind = 'segment'")
        .selectExpr("bucket", "datasource", f"change <> '{RowChange.DELETE}' AS comes")
        .union(more.selectExpr("bucket", "datasource", "false AS comes"))
        .groupBy("bucket", "datasource")
        .agg(F.bool_or("comes").alias("comes"))
        .join(written, "datasource", "left_anti")
        .join(known.selectExpr("key AS datasource", "commit_id AS seen"), "datasource", "left")
    )
    change = (
        f"CASE WHEN seen IS NOT NULL THEN '{RowChange.EXPECT}' "
        f"WHEN comes THEN '{RowChange.INSERT}' ELSE '{RowChange.PROBE}' END"
    )
    return as_changes(
        asked,
        {
            "kind": f"'{DATASOURCE}'",
            "bucket": "bucket",
            "key": "datasource",
            "commit_id": literal(rows.commit_id),
            "revision": "CAST(1 AS BIGINT)",
            "starts_at": "CAST(NULL AS TIMESTAMP)",
            "ends_at": "CAST(NULL AS TIMESTAMP)",
            "published_at": f"timestamp_micros({micros(rows.now)})",
            **_written(rows),
            "change": change,
            "seen": "seen",
            "fresh": "false",
            "shared": "false",
        },
    )


def claimed_keys(changed: DataFrame) -> DataFrame:
    """The keys that nobody else may claim: those that change, and the datasources of segments."""
    keys = changed.selectExpr("kind AS target", "bucket", "key")
    datasources = changed.where("kind = 'segment'").selectExpr(
        f"'{DATASOURCE}' AS target", "bucket", "datasource AS key"
    )
    return keys.union(datasources).distinct()


# --- schemas --------------------------------------------------------------------------------------


def gone_schemas(then: DataFrame, now: DataFrame) -> DataFrame:
    """The fingerprints of schemas that were live then and are not now."""
    live = now.where("kind = 'schema'").select("key")
    return then.where("kind = 'schema'").select("key").join(live, "key", "left_anti")


def carried(
    then: DataFrame, changed: DataFrame, gone: DataFrame, more: Iterable[str], rows: RowSet
) -> DataFrame:
    """The source rows of schemas: those that went, and all that rows which change refer to.

    I3: a schema that is there may be retired before the commit, so what is referred to is carried.
    """
    session = then.sparkSession
    others = session.createDataFrame([(each,) for each in sorted(more)], "key STRING")
    wanted = (
        changed.where(f"change <> '{RowChange.DELETE}' AND fingerprint IS NOT NULL")
        .selectExpr("fingerprint AS key")
        .union(gone)
        .union(others)
        .distinct()
    )
    kept = ("bucket", "revision", "digest", "payload", "published_at")
    definitions = (
        then.where("kind IN ('schema', 'retired')")
        .join(wanted, "key", "left_semi")
        .groupBy("key")
        .agg(F.min_by(F.struct(*kept), F.expr("kind = 'retired'")).alias("d"))
    )
    return as_changes(
        definitions,
        {
            "kind": "'schema'",
            "bucket": "d.bucket",
            "key": "key",
            "commit_id": literal(rows.commit_id),
            "revision": "d.revision + 1",
            "fingerprint": "key",
            "digest": "d.digest",
            "payload": "d.payload",
            "published_at": "d.published_at",
            "starts_at": "CAST(NULL AS TIMESTAMP)",
            "ends_at": "CAST(NULL AS TIMESTAMP)",
            **_written(rows),
            "change": f"'{RowChange.INSERT}'",
            "fresh": "false",
            "shared": "false",
        },
    )


def _written(rows: RowSet) -> dict[str, str]:
    return {
        "changed_at": f"timestamp_micros({micros(rows.now)})",
        "changed_by": literal(rows.actor),
    }
