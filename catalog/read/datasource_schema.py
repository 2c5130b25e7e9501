"""The schema of a datasource: the merge of its segments' schemas, with where each column is from.

It follows from how many segments have which schema, so its cost follows schemas and not segments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from catalog.evolution.merge import Conflict, Merged, Policy, extended, merged
from catalog.schema import Schema, SchemaColumn
from catalog.schema.names import folded

# names without case -> type -> the schemas that have the column with this type
Sources = Mapping[tuple[str, ...], Mapping[str, Sequence[str]]]


@dataclass(frozen=True)
class DatasourceColumn:
    """A column of a datasource, and where it comes from.

    Attributes:
        column: the merged column.
        types: the types that it was seen with, and how many segments have it with each.
        fingerprints: the schemas that have it, in the order of their publication.
        segments: how many segments have it.
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


# When a schema was published, and its fingerprint; published anew, its columns may be in another
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
    def sources(self) -> Sources:
        """Which schemas have a column, by its types."""
        found: dict[tuple[str, ...], dict[str, list[str]]] = {}
        for fingerprint, schema in zip(self.order, self.schemas, strict=True):
            for column in schema.columns:
                types = found.setdefault(folded(column.path), {})
                types.setdefault(column.type, []).append(fingerprint)
        return found


@dataclass
class Merges:
    """Remembers the last merge for each datasource, to go on from there."""

    _last: dict[tuple[str, Policy], Combined] = field(default_factory=dict)

    def of(
        self,
        datasource: str,
        published: Iterable[Stamp],
        policy: Policy,
        schema: Callable[[str], Schema],
    ) -> Combined:
        """The merge of these schemas; if the last one was of the first of them, it goes on."""
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
    """What the segments of a datasource have in common.

    With the strict policy a column in conflict keeps the type that was published first, and stands
    among the conflicts; what does merge is not affected by it.
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
        """Columns whose types have no common one, and what was kept."""
        return self._combined.merged.conflicts if self._combined.merged else ()

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """The schemas of the segments, in the order of their publication."""
        return self._combined.order

    @property
    def schemas(self) -> tuple[Schema, ...]:
        """The same as definitions: the history that a new schema is judged against."""
        return self._combined.schemas

    @property
    def segments(self) -> int:
        """How many segments there are."""
        return sum(self._counts.values())

    @property
    def segments_without_schema(self) -> int:
        """How many of them have no known schema."""
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
