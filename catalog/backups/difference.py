"""How the rows of a catalog differ from an earlier state: what a rollback writes, as frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from catalog.commit.rows import RowSet, as_changes
from catalog.delta.changes import RowChange
from catalog.delta.layout import ENTRY_COLUMNS, schema_bucket_sql
from catalog.delta.statements import DATASOURCE
from catalog.errors import CommitFailed
from catalog.model import Kind, micros
from catalog.schema.names import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# --- kinds of rows --------------------------------------------------------------------------------


class Behaviour(StrEnum):
    """What a rollback does with the rows of a kind."""

    # As they were: newer rows are deleted, removed rows inserted, changed rows changed back.
    RESTORED = "restored"
    # The same, but newer rows stay.
    RETURNED = "returned"
    # Removed rows are inserted; no row is changed or deleted. (A name whose versions come back
    # counts these too, see `contrast`.)
    GROW_ONLY = "grow-only"
    # Not changed: they record what happened, and that is not undone.
    KEPT = "kept"


BEHAVIOURS = {
    # Only a clean-up removes schemas, with its own checks.
    Kind.SCHEMA.value: Behaviour.GROW_ONLY,
    Kind.RETIRED.value: Behaviour.KEPT,
    Kind.SEGMENT.value: Behaviour.RESTORED,
    # Publishes and claims rely on these rows, so none is deleted.
    Kind.DATASOURCE.value: Behaviour.RETURNED,
    Kind.OBJECT.value: Behaviour.RESTORED,
    "setting": Behaviour.RESTORED,
    # Numbers of schema versions are assigned once: neither they nor their counters go back.
    "named": Behaviour.GROW_ONLY,
    "version": Behaviour.GROW_ONLY,
    # I8: the stable epoch never goes down, and a decision is final.
    Kind.EPOCH.value: Behaviour.KEPT,
    Kind.OPERATION.value: Behaviour.KEPT,
    Kind.PART.value: Behaviour.KEPT,
    Kind.STAGED.value: Behaviour.KEPT,
    Kind.GUARD.value: Behaviour.KEPT,
}


def check_known(kinds: Iterable[str]) -> None:
    """Refuses a rollback if there are rows of an unknown kind."""
    unknown = sorted(set(kinds) - BEHAVIOURS.keys())
    if unknown:
        raise CommitFailed(
            f"This release does not know how rows of kind {', '.join(unknown)} go back; nothing "
            "was written. Use the release that wrote them.",
            kinds=unknown,
        )


def kinds_that(*behaviours: Behaviour) -> str:
    """The kinds with one of these behaviours, for an IN clause; without objects."""
    names = (kind for kind, found in BEHAVIOURS.items() if found in behaviours)
    return ", ".join(f"'{kind}'" for kind in names if kind != Kind.OBJECT)


# --- differences ----------------------------------------------------------------------------------

# The content of a row, without what it records of the commit that wrote it.
_CONTENT = tuple(
    column.name
    for column in ENTRY_COLUMNS
    if column.name
    not in ("kind", "bucket", "key", "commit_id", "revision", "changed_at", "changed_by")
)
# Schemas are handled by `carried`; objects by their links, in `comparison`.
_COMPARED = kinds_that(Behaviour.RESTORED, Behaviour.RETURNED, Behaviour.GROW_ONLY)
_SHOWN = 10
_NO_INTERVAL = dict.fromkeys(("starts_at", "ends_at"), "CAST(NULL AS TIMESTAMP)")


@dataclass(frozen=True)
class Changed:
    """The number of changes in the rows of one kind."""

    kind: str
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    # The first keys with their changes, in a dry run.
    first: tuple[tuple[str, str], ...] = ()

    @property
    def rows(self) -> int:
        return self.inserted + self.updated + self.deleted


@dataclass(frozen=True)
class Reach:
    """The changes of one kind: buckets and range of keys, and buckets of their schemas."""

    changed: Changed
    buckets: tuple[int, ...]
    low: str
    high: str
    schema_buckets: tuple[int, ...] = ()


def contrast(then: DataFrame, now: DataFrame) -> DataFrame:
    """One row for each key that changes, without objects and schemas.

    It has kind, bucket, key, `change`, `seen` (the commit id of the present row), `revision` (the
    next one) and the content of then. Both frames have all columns of the table, and the same
    number of buckets.
    """
    kinds = f"kind IN ({_COMPARED}) AND kind <> 'schema'"
    sides = (
        then.where(kinds)
        .alias("o")
        .join(now.where(kinds).alias("n"), ["kind", "bucket", "key"], "full_outer")
    )
    # A name counts its versions: where versions come back, so does the name that counts them.
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
    # Also of a segment that is deleted: claims are looked up by its datasource.
    datasource = "coalesce(o.datasource, n.datasource) AS datasource"
    content = (datasource if name == "datasource" else f"o.{name}" for name in _CONTENT)
    return sides.selectExpr(
        "kind", "bucket", "key", change, "n.commit_id AS seen", revision, *content
    ).where("change IS NOT NULL")


def taken_numbers(then: DataFrame, now: DataFrame) -> list[str]:
    """Some keys of schema versions that have another schema now than then.

    Numbers are dense: if there are none, one side's versions are a prefix of the other's.
    """
    versions = f"kind = '{Kind.VERSION}'"
    pairs = then.where(versions).alias("o").join(now.where(versions).alias("n"), "key")
    other = pairs.where("o.fingerprint <> n.fingerprint").select("key").orderBy("key")
    return [row["key"] for row in other.limit(_SHOWN).collect()]


def reaches(changed: DataFrame) -> list[Reach]:
    """The changes of each kind, with their buckets and keys."""
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
            F.collect_set(F.expr(schema_bucket_sql("fingerprint"))).alias("schema_buckets"),
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


def first_keys(changed: DataFrame, kinds: Sequence[str]) -> dict[str, tuple[tuple[str, str], ...]]:
    """The first keys of each kind, with their changes."""
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
    """The source rows for the changes."""
    return as_changes(
        changed,
        {
            **{name: name for name in ("kind", "bucket", "key", "change", "seen", *_CONTENT)},
            "revision": "CAST(revision AS BIGINT)",
            **_written(rows),
            # Everything comes back as it was, also `published_at`.
            "fresh": "true",
        },
    )


def probes(
    changed: DataFrame, more: DataFrame, others: Iterable[str], known: DataFrame, rows: RowSet
) -> DataFrame:
    """Source rows that check for claims on the datasources of changing segments, and on more.

    They expect the rows of these datasources as they were read: segments that come back are not
    checked by a contract that was set since. A datasource without a row gets it with its segments,
    as by a publish.

    Args:
        changed: the changes.
        more: further datasources, with their buckets.
        others: datasources whose rows this commit writes otherwise.
        known: the existing rows of datasources, with key and commit_id.
        rows: the rows of the commit.
    """
    # A source may have one row for each row of the table; those written here check for themselves.
    names = [(name,) for name in sorted(others)]
    written = (
        changed.where(f"kind = '{DATASOURCE}'")
        .selectExpr("key AS datasource")
        .union(changed.sparkSession.createDataFrame(names, "datasource STRING"))
    )
    checked = (
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
        checked,
        {
            "kind": f"'{DATASOURCE}'",
            "bucket": "bucket",
            "key": "datasource",
            "revision": "CAST(1 AS BIGINT)",
            **_NO_INTERVAL,
            "published_at": f"timestamp_micros({micros(rows.now)})",
            **_written(rows),
            "change": change,
            "seen": "seen",
        },
    )


def claimed_keys(changed: DataFrame) -> DataFrame:
    """The keys that no operation may claim: those that change, and datasources of segments."""
    keys = changed.selectExpr("kind AS target", "bucket", "key")
    datasources = changed.where("kind = 'segment'").selectExpr(
        f"'{DATASOURCE}' AS target", "bucket", "datasource AS key"
    )
    return keys.union(datasources).distinct()


# --- schemas --------------------------------------------------------------------------------------


def gone_schemas(then: DataFrame, now: DataFrame) -> DataFrame:
    """Fingerprints of schemas that were live then and are not now."""
    live = now.where("kind = 'schema'").select("key")
    return then.where("kind = 'schema'").select("key").join(live, "key", "left_anti")


def carried(
    then: DataFrame, changed: DataFrame, gone: DataFrame, more: Iterable[str], rows: RowSet
) -> DataFrame:
    """The source rows of schemas: those that are gone, and all that changing rows refer to.

    I3: a schema that is live now may be retired before the commit, so every referenced one is
    written.
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
            "revision": "d.revision + 1",
            "fingerprint": "key",
            "digest": "d.digest",
            "payload": "d.payload",
            "published_at": "d.published_at",
            **_NO_INTERVAL,
            **_written(rows),
            "change": f"'{RowChange.INSERT}'",
        },
    )


def _written(rows: RowSet) -> dict[str, str]:
    """What the commit sets in each of its rows."""
    return {
        "commit_id": literal(rows.commit_id),
        "changed_at": f"timestamp_micros({micros(rows.now)})",
        "changed_by": literal(rows.actor),
        "fresh": "false",
        "shared": "false",
    }
