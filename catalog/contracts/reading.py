"""The rows of datasources with their contracts, out of the table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from catalog.contracts.checking import Group
from catalog.contracts.terms import NO_TERMS, Terms
from catalog.delta.layout import bucket_of
from catalog.delta.store import Store
from catalog.errors import UnknownSchema
from catalog.schema import Schema
from catalog.schema.model import read_stored
from catalog.schema.names import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DATASOURCE_COLUMNS = "key, bucket, commit_id, digest, payload, fingerprint"
# What a group of segments is counted by; the limits are those of their datasource.
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
class DatasourceRow:
    """The row of a datasource as it was read; without a commit id there is none."""

    datasource: str
    bucket: int
    commit_id: str | None = None
    terms: Terms = NO_TERMS


def read_datasource(store: Store, buckets: int, datasource: str, version: int) -> DatasourceRow:
    """The row of one datasource at a version, or what stands for it if there is none."""
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
    """The merge policy in a datasource's contract at a version, if it says one."""
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
        store,
        version,
        f"bucket IN ({homes}) AND (digest IS NOT NULL OR payload IS NOT NULL)",
    )
    return {row.datasource: row.terms for row in found}


def _rows(store: Store, version: int, condition: str) -> list[DatasourceRow]:
    rows = store.session.sql(
        f"SELECT {DATASOURCE_COLUMNS} FROM {store.pinned(version)} "
        f"WHERE kind = 'datasource' AND {condition} ORDER BY key"
    ).collect()
    return datasource_rows(store, version, [row.asDict() for row in rows])


def datasource_rows(
    store: Store, version: int, rows: Iterable[Mapping[str, Any]]
) -> list[DatasourceRow]:
    """Rows of kind `datasource` as values, with the schemas of their contracts."""
    given = list(rows)
    schemas = schemas_of(store, version, {row["fingerprint"] for row in given})
    return [
        DatasourceRow(
            row["key"],
            row["bucket"],
            row["commit_id"],
            Terms.stored(row["digest"], row["payload"], schemas.__getitem__),
        )
        for row in given
    ]


def schemas_of(
    store: Store, version: int, fingerprints: Collection[str | None]
) -> dict[str, Schema]:
    """The schemas with these fingerprints at a version; all of them are stored."""
    wanted = sorted(each for each in fingerprints if each is not None)
    payloads = store.payloads_of(wanted, version)
    if missing := [each for each in wanted if each not in payloads]:
        raise UnknownSchema(
            f"The schema {missing[0]} is referred to and not stored at version {version}. Run "
            "verify to see what else is wrong.",
            fingerprint=missing[0],
            version=version,
        )
    return {each: read_stored(each, payloads[each]) for each in wanted}


def group_segments(segments: DataFrame, terms: Mapping[str, Terms]) -> list[Group]:
    """Rows of segments by datasource and schema, as far as their datasources have terms."""
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


class KnownTerms:
    """The terms that a catalog last saw for each datasource: what its publishes plan with.

    They may be outdated. The statement that carries their digest refuses itself then, and `learn`
    reads them anew.
    """

    def __init__(self, store: Store, buckets: int) -> None:
        self._store = store
        self._buckets = buckets
        self._terms: dict[str, Terms] = {}

    def of(self, datasources: Iterable[str]) -> dict[str, Terms]:
        """Those of some datasources, as far as they have any."""
        return {name: self._terms[name] for name in datasources if name in self._terms}

    def __bool__(self) -> bool:
        """Whether some datasource is known to have terms: most catalogs have no contracts."""
        return bool(self._terms)

    def within(self, homes: Collection[int]) -> dict[str, Terms]:
        """Those of all datasources in some buckets."""
        return {
            name: terms
            for name, terms in self._terms.items()
            if bucket_of(name, self._buckets) in homes
        }

    def learn(self, datasources: Collection[str]) -> dict[str, Terms]:
        """Reads the terms of some datasources, as they are now."""
        learned = self.learn_within({bucket_of(name, self._buckets) for name in datasources})
        return {name: terms for name, terms in learned.items() if name in datasources}

    def learn_within(self, homes: Collection[int]) -> dict[str, Terms]:
        """Reads all terms in some buckets, as they are now."""
        learned = read_terms(self._store, self._store.head().version, homes)
        for name in self.within(homes):
            del self._terms[name]
        self._terms |= learned
        return learned
