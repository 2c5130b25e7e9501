"""The table's columns, properties and buckets; a change here needs a new layout number."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import xxhash

from catalog.schema.names import literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class ColumnSpec:
    """A column of a table."""

    name: str
    type: str
    comment: str

    def ddl(self) -> str:
        """The column as a statement adds it, with its comment."""
        return f"{self.name} {self.type} COMMENT {literal(self.comment)}"


def columns_sql(columns: Iterable[ColumnSpec]) -> str:
    """Columns as a statement adds them, with their comments."""
    return ", ".join(column.ddl() for column in columns)


def ddl(columns: Iterable[ColumnSpec]) -> str:
    """Columns as the schema of a frame."""
    return ", ".join(f"{column.name} {column.type}" for column in columns)


COMMIT = "Id of the commit that last changed the row; DESCRIBE HISTORY shows it in userMetadata"


@dataclass(frozen=True)
class View:
    """A view: its query over `{entries}`, and a comment for it and for each of its columns.

    `needs` names the columns of the table that older layouts do not have. `types` has the types of
    columns that are not of the same type in every view.
    """

    name: str
    comment: str
    query: str
    columns: dict[str, str]
    needs: tuple[str, ...] = ()
    types: dict[str, str] = field(default_factory=dict)


# Added by layout 2, for the staged changes of operations; null in all other rows.
PREPARED_COLUMNS = (
    ColumnSpec("target", "STRING", "Of a staged change: the kind of the row that it is for"),
    ColumnSpec("operation", "STRING", "The operation that a staged change or a part belongs to"),
    ColumnSpec("part", "INT", "The part of the operation, from 0"),
    ColumnSpec("action", "STRING", "What a staged change does with the row that it is for"),
    ColumnSpec("base", "STRING", "Commit id of that row when it was claimed, absent or after"),
)

# Keys come first, so that file statistics cover keys and never a payload.
ENTRY_COLUMNS = (
    ColumnSpec("kind", "STRING", "What the row is: schema, retired, segment, object, …"),
    ColumnSpec("bucket", "INT", "Partition within the kind, a hash that follows from the key"),
    ColumnSpec("key", "STRING", "Fingerprint of a schema, id of a segment, key of an object, …"),
    ColumnSpec("commit_id", "STRING", "Random id of the commit that last changed the row"),
    ColumnSpec("revision", "BIGINT", "How often the row was changed, from 1"),
    ColumnSpec("fingerprint", "STRING", "The schema that the row is or refers to"),
    ColumnSpec(
        "digest", "STRING", "SHA-256 of the row's content; of the canonical form, for a schema"
    ),
    ColumnSpec("datasource", "STRING", "The part of a segment id before the first slash"),
    ColumnSpec("num_rows", "BIGINT", "Rows in the segment"),
    ColumnSpec("size_bytes", "BIGINT", "Bytes of the segment"),
    ColumnSpec("location", "STRING", "Where the segment's data is"),
    ColumnSpec("starts_at", "TIMESTAMP", "Start of the segment's interval, inclusive"),
    ColumnSpec("ends_at", "TIMESTAMP", "End of the segment's interval, exclusive"),
    ColumnSpec(
        "state", "STRING", "Of a segment: inferred or quarantined, where its schema calls for it"
    ),
    ColumnSpec("payload", "STRING", "Definition of a schema, or trouble with a segment, as JSON"),
    ColumnSpec("published_at", "TIMESTAMP", "When the row was first published"),
    ColumnSpec("changed_at", "TIMESTAMP", "When the row was last changed"),
    ColumnSpec("changed_by", "STRING", "Who changed it last"),
)
COLUMNS = (*ENTRY_COLUMNS, *PREPARED_COLUMNS)

PARTITION_COLUMNS = ("kind", "bucket")
SCHEMA_BUCKETS = 16
NAME_BUCKETS = 16
DEFAULT_SEGMENT_BUCKETS = 16
# Many, so that two operations opened at the same time rarely conflict.
OPERATION_BUCKETS = 64

# What the bucket of a segment, of a part of an operation and of a version of a name follows from.
BEFORE_SLASH = "substring_index(key, '/', 1)"

LAYOUT_PROPERTY = "strata.layout"
# Marks the side tables as ours: a schema may have other tables of these names.
TABLE_PROPERTY = "strata.table"
BUCKETS_PROPERTY = "strata.segmentBuckets"
# The backup that a catalog was restored from; and the same while the restore is not complete.
RESTORED_PROPERTY = "strata.restored"
RESTORING_PROPERTY = "strata.restoring"

# The promises of publish, clean-up and poll rest on these.
REQUIRED_PROPERTIES = {
    "delta.isolationLevel": "Serializable",
    "delta.enableChangeDataFeed": "true",
}

TABLE_PROPERTIES = {
    **REQUIRED_PROPERTIES,
    "delta.checkpointInterval": "100",
    "delta.dataSkippingStatsColumns": "key",
    "delta.enableDeletionVectors": "false",
    "delta.autoOptimize.autoCompact": "false",
    "delta.autoOptimize.optimizeWrite": "false",
    "delta.logRetentionDuration": "interval 30 days",
    "delta.deletedFileRetentionDuration": "interval 7 days",
}


@dataclass(frozen=True)
class LayoutStep:
    """The upgrade from one layout to the next: columns to add and properties to set."""

    columns: tuple[ColumnSpec, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Layout:
    """A layout number with the columns and properties that belong to it.

    `steps[n]` brings layout n to n + 1.
    """

    number: int
    columns: tuple[ColumnSpec, ...]
    steps: dict[int, LayoutStep] = field(default_factory=dict)

    def ddl(
        self, relation: str, segment_buckets: int, more: Mapping[str, str] | None = None
    ) -> str:
        """The statement that creates the table unless it is there, with more properties."""
        columns = ",\n  ".join(column.ddl() for column in self.columns)
        properties = {
            **TABLE_PROPERTIES,
            **(more or {}),
            **REQUIRED_PROPERTIES,
            LAYOUT_PROPERTY: str(self.number),
            BUCKETS_PROPERTY: str(segment_buckets),
        }
        return (
            f"CREATE TABLE IF NOT EXISTS {relation} (\n  {columns}\n) USING DELTA\n"
            f"PARTITIONED BY ({', '.join(PARTITION_COLUMNS)})\n"
            f"COMMENT 'Strata catalog: schemas and segments, one row each'\n"
            f"TBLPROPERTIES ({properties_sql(properties)})"
        )

    def upgrade_statements(self, relation: str, found: int, present: set[str]) -> list[str]:
        """The statements that bring layout `found`, with the columns `present`, to this one."""
        statements: list[str] = []
        for number in range(found, self.number):
            step = self.steps[number]
            missing = [c for c in step.columns if c.name not in present]
            if missing:
                statements.append(f"ALTER TABLE {relation} ADD COLUMNS ({columns_sql(missing)})")
            # The number goes up last: an interrupted upgrade is repeated.
            properties = {**step.properties, LAYOUT_PROPERTY: str(number + 1)}
            statements.append(
                f"ALTER TABLE {relation} SET TBLPROPERTIES ({properties_sql(properties)})"
            )
        return statements


# Layout 3 adds no columns; it keeps releases out that do not check contracts.
LAYOUT = Layout(
    number=3, columns=COLUMNS, steps={1: LayoutStep(columns=PREPARED_COLUMNS), 2: LayoutStep()}
)


def properties_sql(properties: dict[str, str]) -> str:
    """Constant properties as the inside of a TBLPROPERTIES clause."""
    return ", ".join(f"'{name}' = '{value}'" for name, value in sorted(properties.items()))


def of_datasource(datasource: str, buckets: int) -> str:
    """The condition that selects the segment rows of a datasource, by partition first."""
    return f"bucket = {bucket_of(datasource, buckets)} AND datasource = {literal(datasource)}"


def bucket_of(text: str, buckets: int) -> int:
    """The bucket of a key: Spark's `pmod(xxhash64(text), buckets)`, computed here."""
    unsigned: int = xxhash.xxh64_intdigest(text.encode(), seed=42)
    signed = unsigned - (1 << 64) if unsigned >= 1 << 63 else unsigned
    return signed % buckets


def bucket_sql(text: str, buckets: int) -> str:
    """`bucket_of` in SQL, for an expression."""
    return f"pmod(xxhash64({text}), {buckets})"


def schema_bucket_sql(fingerprint: str) -> str:
    """The bucket of a schema, as an expression over the column with its fingerprint."""
    return f"CAST({bucket_sql(fingerprint, SCHEMA_BUCKETS)} AS INT)"


def row_bucket_sql(buckets: int) -> str:
    """The bucket of a row in a catalog with this number of segment buckets, as an expression."""
    return (
        "CAST(CASE WHEN kind IN ('segment', 'datasource') OR (kind = 'staged' AND target IN "
        f"('segment', 'datasource')) THEN {bucket_sql(BEFORE_SLASH, buckets)} "
        "ELSE bucket END AS INT)"
    )


def complete(session: SparkSession, pinned: str) -> str:
    """A version of the table with all columns of the layout; null where it is too old for them."""
    lacking = nulls(session.sql(f"SELECT * FROM {pinned} LIMIT 0").columns)
    return f"(SELECT *, {', '.join(lacking)} FROM {pinned})" if lacking else pinned


def nulls(present: Collection[str]) -> list[str]:
    """Null expressions for the columns of the layout that are not among these."""
    return [f"CAST(NULL AS {c.type}) AS {c.name}" for c in COLUMNS if c.name not in present]
