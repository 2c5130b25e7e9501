"""The schema of a datasource: the merge of its segments' schemas, with the provenance of columns.

It follows from the number of segments with each schema, so its cost grows with schemas and not with
segments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from catalog.delta.store import Store
from catalog.errors import InvalidSchema, UnknownSchema
from catalog.evolution.merge import Conflict, Merged, Policy, extended, merged
from catalog.read.registry import Registry
from catalog.schema import Schema, SchemaColumn
from catalog.schema.model import read_stored
from catalog.schema.names import folded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class DatasourceColumn:
    """A column of a datasource, and the schemas and segments that have it.

    Attributes:
        column: the merged column.
        types: its types in these schemas, with the number of segments for each.
        fingerprints: the schemas, in the order of their publication.
        segments: the number of segments.
    """

    column: SchemaColumn
    types: Mapping[str, int]
    fingerprints: tuple[str, ...]
    segments: int

    @property
    def path(self) -> str:
        return self.column.path

    @property
    def type(self) -> str:
        return self.column.type

    @property
    def nullable(self) -> bool:
        return self.column.nullable


# When a schema was published, and its fingerprint: published again, its columns may have another
# order.
Stamp = tuple[int, str]


@dataclass(frozen=True)
class Combined:
    """Schemas in the order of their publication, merged."""

    stamps: tuple[Stamp, ...]
    schemas: tuple[Schema, ...]
    merged: Merged | None

    @property
    def order(self) -> tuple[str, ...]:
        """The fingerprints."""
        return tuple(name for _, name in self.stamps)

    @cached_property
    def sources(self) -> Mapping[tuple[str, ...], Mapping[str, Sequence[str]]]:
        """The schemas that have a column, by its names without case and by its types."""
        found: dict[tuple[str, ...], dict[str, list[str]]] = {}
        for fingerprint, schema in zip(self.order, self.schemas, strict=True):
            for column in schema.columns:
                types = found.setdefault(folded(column.path), {})
                types.setdefault(column.type, []).append(fingerprint)
        return found


@dataclass
class Merges:
    """The last merge of each datasource, which the next one may extend."""

    _last: dict[tuple[str, Policy], Combined] = field(default_factory=dict)

    def of(
        self,
        datasource: str,
        published: Iterable[Stamp],
        policy: Policy,
        schema: Callable[[str], Schema],
    ) -> Combined:
        """The merge of these schemas; it extends the last one if that was of the first of them."""
        stamps = tuple(sorted(published))
        last = self._last.get((datasource, policy))
        if last is not None and last.stamps == stamps:
            return last
        done = 0 if last is None else len(last.stamps)
        if last is not None and last.merged is not None and stamps[:done] == last.stamps:
            more = tuple(schema(name) for _, name in stamps[done:])
            merge = extended(last.merged, more, policy)
            combined = Combined(stamps, (*last.schemas, *more), merge)
        else:
            schemas = tuple(schema(name) for _, name in stamps)
            combined = Combined(stamps, schemas, merged(schemas, policy) if schemas else None)
        # Two threads may both merge; they get equal results.
        self._last[datasource, policy] = combined
        return combined


@dataclass(frozen=True)
class DatasourceSchema:
    """The merged schema of a datasource's segments.

    With the strict policy a column in conflict keeps the type that was published first, and is
    among the conflicts; other columns are not affected by it.
    """

    datasource: str
    policy: Policy
    _combined: Combined = field(repr=False)
    _counts: Mapping[str | None, int] = field(repr=False)

    @property
    def schema(self) -> Schema | None:
        """The merged schema; none if no segment has a known schema."""
        return self._combined.merged.schema if self._combined.merged else None

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """Columns whose types have no common one, with the type that was kept."""
        return self._combined.merged.conflicts if self._combined.merged else ()

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """The schemas of the segments, in the order of their publication."""
        return self._combined.order

    @property
    def schemas(self) -> tuple[Schema, ...]:
        """The same as definitions: the history that a new schema is checked against."""
        return self._combined.schemas

    @property
    def segments(self) -> int:
        """The number of segments."""
        return sum(self._counts.values())

    @property
    def segments_without_schema(self) -> int:
        """The number of segments without a known schema."""
        return self._counts.get(None, 0)

    @cached_property
    def columns(self) -> tuple[DatasourceColumn, ...]:
        """Every column at any depth, with its provenance."""
        return tuple(map(self._column, self.schema.columns)) if self.schema else ()

    def _column(self, column: SchemaColumn) -> DatasourceColumn:
        sources = self._combined.sources[folded(column.path)]
        having = {name for names in sources.values() for name in names}
        types = {kind: sum(self._counts[name] for name in names) for kind, names in sources.items()}
        return DatasourceColumn(
            column,
            types,
            tuple(name for name in self._combined.order if name in having),
            sum(types.values()),
        )


# --- from the catalog's table ---------------------------------------------------------------------

_COLUMNS = (
    "datasource STRING, fingerprint STRING, ddl STRING, num_columns INT, num_schemas INT, "
    "num_segments BIGINT, conflicts ARRAY<STRUCT<path: STRING, types: ARRAY<STRING>, kept: STRING>>"
)


def combined_schemas(
    store: Store, version: int, registry: Registry, policy: Policy, segments: str = "true"
) -> list[DatasourceSchema]:
    """The schema of each datasource, in the order of their names.

    `segments` is a condition on the rows of segments, to choose some datasources.
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
    # As they are stored there: published again, a schema may have another order of columns.
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
