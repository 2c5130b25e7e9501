"""The rows of datasources with their terms: read, written, and segments counted against them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from catalog.commit.rows import RowSet
from catalog.contracts.model import NO_TERMS, TableLimits, Terms
from catalog.delta.changes import RowChange
from catalog.delta.layout import bucket_of
from catalog.delta.store import Store
from catalog.model import Kind
from catalog.schema.names import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DATASOURCE_COLUMNS = "key, bucket, commit_id, digest, payload, fingerprint"


# --- rows of datasources --------------------------------------------------------------------------


@dataclass(frozen=True)
class DatasourceRow:
    """The row of a datasource as it was read; without a commit id there is none."""

    datasource: str
    bucket: int
    commit_id: str | None = None
    terms: Terms = NO_TERMS


def read_datasource(store: Store, buckets: int, datasource: str, version: int) -> DatasourceRow:
    """The row of one datasource at a version, or an empty one if there is none."""
    return read_datasources(store, buckets, [datasource], version)[0]


def read_datasources(
    store: Store, buckets: int, datasources: Collection[str], version: int
) -> list[DatasourceRow]:
    """The same for several, in the order of their names."""
    absent = {name: DatasourceRow(name, bucket_of(name, buckets)) for name in sorted(datasources)}
    homes = ", ".join(map(str, sorted({each.bucket for each in absent.values()})))
    names = ", ".join(map(literal, absent))
    found = _rows(store, version, f"bucket IN ({homes}) AND key IN ({names})") if absent else []
    return [*{**absent, **{row.datasource: row for row in found}}.values()]


def read_policy(store: Store, buckets: int, datasource: str, version: int) -> str | None:
    """The merge policy in a datasource's contract at a version, if it has one."""
    found = store.session.sql(
        f"SELECT get_json_object(payload, '$.policy') AS policy FROM {store.pinned(version)} "
        f"WHERE kind = 'datasource' AND bucket = {bucket_of(datasource, buckets)} "
        f"AND key = {literal(datasource)}"
    ).collect()
    return found[0]["policy"] if found else None


def read_terms(store: Store, version: int, buckets: Iterable[int]) -> dict[str, Terms]:
    """The terms of all datasources in some buckets that have any at a version."""
    homes = ", ".join(map(str, sorted(set(buckets))))
    # Of many datasources few have terms.
    found = _rows(
        store, version, f"bucket IN ({homes}) AND (digest IS NOT NULL OR payload IS NOT NULL)"
    )
    return {row.datasource: row.terms for row in found}


def _rows(store: Store, version: int, condition: str) -> list[DatasourceRow]:
    rows = store.session.sql(
        f"SELECT {DATASOURCE_COLUMNS} FROM {store.pinned(version)} "
        f"WHERE kind = 'datasource' AND {condition} ORDER BY key"
    ).collect()
    return datasource_rows(store, version, [row.asDict() for row in rows])


def datasource_rows(
    store: Store, version: int, rows: Collection[Mapping[str, Any]]
) -> list[DatasourceRow]:
    """Rows of kind `datasource` as values, with the schemas of their contracts."""
    schemas = store.schemas_of({row["fingerprint"] for row in rows}, version)
    return [
        DatasourceRow(
            row["key"],
            row["bucket"],
            row["commit_id"],
            Terms.stored(row["digest"], row["payload"], schemas.__getitem__),
        )
        for row in rows
    ]


def write_terms(rows: RowSet, before: DatasourceRow, after: Terms) -> None:
    """Adds the row of a datasource with other terms to a commit, in place of the row that was read.

    The statement must refuse every claim on the datasource, shared ones too (`plain_clash`), or
    belong to the operation that holds it: segments that others have staged were checked against
    the terms of before.
    """
    contract = after.contract
    if contract is not None and contract.schema is not None:
        rows.schema(contract.schema)
    rows.add(
        Kind.DATASOURCE,
        before.bucket,
        before.datasource,
        RowChange.INSERT if before.commit_id is None else RowChange.UPDATE,
        seen=before.commit_id,
        fingerprint=None if contract is None else contract.fingerprint,
        digest=after.digest,
        payload=after.payload(),
    )
    rows.reads(Kind.STAGED, [before.bucket], before.datasource, before.datasource)


def write_limits(
    rows: RowSet, store: Store, buckets: int, version: int, limits: Mapping[str, TableLimits]
) -> None:
    """Adds the rows of datasources whose tables set other limits; contracts stay."""
    for row in read_datasources(store, buckets, limits, version):
        write_terms(rows, row, Terms.of(row.terms.contract, limits[row.datasource]))


# --- segments -------------------------------------------------------------------------------------

# The aggregates of `Group`; `max_rows` and `max_bytes` are the limits of the datasource.
_GROUPED = {
    "segments": "count(*)",
    "beyond": "count_if(num_rows > max_rows OR size_bytes > max_bytes)",
    "num_rows": "max(num_rows)",
    "most_rows": "max_by(key, num_rows)",
    "size_bytes": "max(size_bytes)",
    "most_bytes": "max_by(key, size_bytes)",
    "example": "min(key)",
}


@dataclass(frozen=True)
class Group:
    """Segments of a datasource with one schema, aggregated by Spark.

    Attributes:
        segments: how many there are.
        beyond: how many of them are larger than a limit.
        num_rows: of the one with the most rows, which is `most_rows`.
        size_bytes: of the one with the most bytes, which is `most_bytes`.
        example: the id that comes first.
    """

    datasource: str
    fingerprint: str | None
    segments: int
    beyond: int
    num_rows: int | None
    most_rows: str | None
    size_bytes: int | None
    most_bytes: str | None
    example: str


def group_segments(segments: DataFrame, terms: Mapping[str, Terms]) -> list[Group]:
    """Rows of segments by datasource and schema; datasources without terms are left out."""
    limits = segments.sparkSession.createDataFrame(
        [(name, each.most("max_rows"), each.most("max_bytes")) for name, each in terms.items()],
        "datasource STRING, max_rows BIGINT, max_bytes BIGINT",
    )
    counted = (
        segments.join(F.broadcast(limits), "datasource")
        .groupBy("datasource", "fingerprint")
        .agg(*(F.expr(how).alias(name) for name, how in _GROUPED.items()))
    )
    return [Group(**row.asDict()) for row in counted.collect()]


def segments_of(store: Store, version: int, row: DatasourceRow) -> DataFrame:
    """The rows of a datasource's segments at a version."""
    return store.session.sql(
        f"SELECT * FROM {store.pinned(version)} WHERE kind = 'segment' "
        f"AND bucket = {row.bucket} AND datasource = {literal(row.datasource)}"
    )
