"""The schemas of all datasources at a version, as a frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from catalog.delta.store import Store
from catalog.errors import InvalidSchema, UnknownSchema
from catalog.evolution.merge import Policy
from catalog.read.datasource_schema import DatasourceSchema, Merges
from catalog.read.registry import Registry
from catalog.schema.model import read_stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = (
    "datasource STRING, fingerprint STRING, ddl STRING, num_columns INT, num_schemas INT, "
    "num_segments BIGINT, conflicts ARRAY<STRUCT<path: STRING, types: ARRAY<STRING>, kept: STRING>>"
)


def combined_schemas(
    store: Store, version: int, registry: Registry, policy: Policy, segments: str = "true"
) -> list[DatasourceSchema]:
    """The schema of each datasource, in the order of their names.

    `segments` is a condition on the rows of segments, for who wants some datasources only.
    """
    rows = store.session.sql(
        "SELECT datasource, fingerprint, count(*) AS segments FROM "
        f"{store.pinned(version)} WHERE kind = 'segment' AND {segments} "
        "GROUP BY datasource, fingerprint"
    ).collect()
    counts: dict[str, dict[str | None, int]] = {}
    for row in rows:
        counts.setdefault(row["datasource"], {})[row["fingerprint"]] = row["segments"]
    return combine(store, version, registry, policy, counts)


def combine(
    store: Store,
    version: int,
    registry: Registry,
    policy: Policy,
    counts: Mapping[str, Mapping[str | None, int]],
) -> list[DatasourceSchema]:
    """The schemas of datasources whose segments have been counted by their fingerprints."""
    names = {name for by_name in counts.values() for name in by_name if name is not None}
    # At this version: a schema of an earlier one may be gone by now.
    stored = store.definitions_of(sorted(names), version)
    if missing := sorted(names - stored.keys()):
        raise UnknownSchema(
            f"Segments refer to schema {missing[0]}, which is not stored at version {version}. Run "
            "verify to see what else is wrong.",
            fingerprint=missing[0],
            version=version,
        )
    # As they are stored there: published anew, a schema may have another order of columns.
    schemas = {name: read_stored(name, found.payload) for name, found in stored.items()}
    for schema in schemas.values():
        registry.learn(schema)
    merges, combined = Merges(), []
    for datasource, by_name in sorted(counts.items()):
        stamps = [(stored[name].published_micros, name) for name in by_name if name is not None]
        try:
            merge = merges.of(datasource, stamps, policy, schemas.__getitem__)
        except InvalidSchema as error:
            raise InvalidSchema(
                f"The schemas of datasource {datasource} have no merge: {error.message}.",
                datasource=datasource,
            ) from error
        combined.append(DatasourceSchema(datasource, policy, merge, by_name))
    return combined


def frame_of(spark: SparkSession, found: Iterable[DatasourceSchema]) -> DataFrame:
    """One row for each datasource."""
    return spark.createDataFrame([_row(each) for each in found], _COLUMNS)


def _row(found: DatasourceSchema) -> tuple[object, ...]:
    schema = found.schema
    return (
        found.datasource,
        None if schema is None else schema.fingerprint,
        None if schema is None else schema.ddl,
        0 if schema is None else sum(not column.depth for column in schema.columns),
        len(found.fingerprints),
        found.segments,
        [(each.path, list(each.seen), each.kept) for each in found.conflicts],
    )
