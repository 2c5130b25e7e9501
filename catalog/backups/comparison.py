"""What has to change for a catalog to be what it was, compared at one version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from catalog.backups.contrast import (
    Changed,
    Reach,
    contrast,
    gone_schemas,
    reaches,
    schema_bucket_of,
    taken_numbers,
)
from catalog.backups.kinds import check_known
from catalog.backups.objects import rolled_back
from catalog.commit.rows import schema_bucket
from catalog.contracts.model import TableLimits
from catalog.contracts.store import DatasourceRow, read_datasources
from catalog.delta.layout import complete
from catalog.delta.session import Tuning, tune
from catalog.delta.statements import DATASOURCE
from catalog.delta.store import Store
from catalog.errors import NumberTaken
from catalog.model import Kind
from catalog.objects.changes import Difference, difference
from catalog.objects.model import ObjectNode
from catalog.objects.platform import changed_limits
from catalog.objects.store import Objects, all_objects, objects_of
from catalog.progress import Progress, Step
from catalog.schema.names import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OBJECT = "object"
# From so many rows on, running the statement takes longer than planning it.
_BULK = 5_000
# So many changes are kept in memory.
_FEW = 5_000


@dataclass(frozen=True)
class Past:
    """What a catalog was: all its rows, with all columns, in buckets as it has them now."""

    name: str
    rows: DataFrame


@dataclass(frozen=True)
class ObjectChanges:
    """All objects now and as they will be."""

    now: Objects
    nodes: Mapping[str, ObjectNode]
    changed: Difference
    published_micros: Mapping[str, int]

    @property
    def written(self) -> dict[str, ObjectNode]:
        return {**self.changed.inserted, **self.changed.updated}

    @property
    def keys(self) -> set[str]:
        """Those that change, and those that they link to: nobody may take these away meanwhile."""
        changing = self.written.keys() | self.changed.deleted.keys()
        return changing | {link for node in self.written.values() for link in node.links}

    @property
    def datasources(self) -> set[str]:
        """Datasources that an object begins or ceases to stand for, or gives other limits."""
        names: set[str | None] = set()
        for key in self.written.keys() | self.changed.deleted.keys():
            sides = [state[key] for state in (self.now.nodes, self.nodes) if key in state]
            found = {node.datasource for node in sides}
            if len(sides) < 2 or len(found) > 1:
                names |= found
        return {name for name in names if name is not None} | self.limits.keys()

    @property
    def limits(self) -> dict[str, TableLimits]:
        """What tables give to the datasources for which that changes."""
        return changed_limits(self.now.nodes, self.nodes)

    @property
    def fingerprints(self) -> set[str]:
        return {node.fingerprint for node in self.written.values() if node.fingerprint is not None}


@dataclass(frozen=True)
class Comparison:
    """What has to change, compared at one version.

    `unlimited` are rows of datasources that came since and stay, while the tables that limit them
    go: they lose those limits.
    """

    version: int
    rows: DataFrame
    gone: DataFrame
    objects: ObjectChanges
    unlimited: tuple[DatasourceRow, ...]
    reaches: tuple[Reach, ...]
    schemas: int
    schema_buckets: frozenset[int]
    bulk: bool

    @property
    def changes(self) -> tuple[Changed, ...]:
        changed = self.objects.changed
        objects = Changed(OBJECT, len(changed.inserted), len(changed.updated), len(changed.deleted))
        every = {each.changed.kind: each.changed for each in self.reaches}
        written = every.get(DATASOURCE, Changed(DATASOURCE))
        every[DATASOURCE] = replace(written, updated=written.updated + len(self.unlimited))
        every |= {OBJECT: objects, "schema": Changed("schema", inserted=self.schemas)}
        return tuple(
            sorted((each for each in every.values() if each.rows), key=lambda each: each.kind)
        )


class Comparer:
    """Compares a catalog with what it was."""

    def __init__(self, store: Store, buckets: int, tuning: Tuning, progress: Progress) -> None:
        self._store = store
        self._buckets = buckets
        self._tuning = tuning
        self._progress = progress

    def compare(self, past: Past) -> Comparison:
        """Compares what was with the newest version."""
        session = self._store.session
        self._progress(Step(f"rollback: compare with {past.name}", 0, 2))
        tune(session, self._tuning.large)
        try:
            return self._differences(past, self._store.head().version)
        finally:
            tune(session, self._tuning.between)
            self._progress(Step(f"rollback: compare with {past.name}", 1, 2))

    def _differences(self, past: Past, version: int) -> Comparison:
        session = self._store.session
        now = session.sql(f"SELECT * FROM {complete(session, self._store.pinned(version))}")
        kinds = now.select("kind").union(past.rows.select("kind")).groupBy("kind").count().collect()
        check_known(row["kind"] for row in kinds)
        if any(row["kind"] == Kind.VERSION for row in kinds):
            check_numbers(past, now)
        changed = contrast(past.rows, now)
        found = tuple(reaches(changed))
        if 0 < sum(each.changed.rows for each in found) <= _FEW:
            # The comparison is asked for several times from here on, and costs a scan of both.
            changed = session.createDataFrame(changed.toArrow())
        gone = gone_schemas(past.rows, now)
        # How many went, and from which buckets: their keys may be too many to be listed.
        missing = gone.groupBy(schema_bucket_of("key").alias("bucket")).count().collect()
        objects = self._objects(past, version)
        buckets = {row["bucket"] for row in missing}
        buckets |= {bucket for each in found for bucket in each.schema_buckets}
        buckets |= {schema_bucket(each) for each in objects.fingerprints}
        return Comparison(
            version=version,
            rows=changed,
            gone=gone,
            objects=objects,
            unlimited=self._unlimited(past, objects, version),
            reaches=found,
            schemas=sum(row["count"] for row in missing),
            schema_buckets=frozenset(buckets),
            bulk=sum(row["count"] for row in kinds) >= _BULK,
        )

    def _unlimited(
        self, past: Past, objects: ObjectChanges, version: int
    ) -> tuple[DatasourceRow, ...]:
        """A row that was there then has the limits that the tables of then gave."""
        # A datasource with limits has a row: the one was written together with the other.
        names = [name for name, limits in objects.limits.items() if not limits]
        if not names:
            return ()
        rows = past.rows.where(
            f"kind = '{DATASOURCE}' AND key IN ({', '.join(map(literal, names))})"
        )
        then = {row["key"] for row in rows.select("key").collect()}
        now = read_datasources(self._store, self._buckets, set(names) - then, version)
        return tuple(row for row in now if row.terms.limits)

    def _objects(self, past: Past, version: int) -> ObjectChanges:
        rows = [
            row.asDict()
            for row in past.rows.where("kind IN ('object', 'guard')")
            .selectExpr(
                *("kind", "key", "commit_id", "revision", "fingerprint", "datasource", "digest"),
                *("payload", "unix_micros(published_at) AS published_micros"),
            )
            .collect()
        ]
        then, now = objects_of(rows, version), all_objects(self._store, version)
        nodes = rolled_back(now.nodes, then.nodes, max(now.highest, then.highest))
        return ObjectChanges(
            now,
            nodes,
            difference(now.nodes, nodes),
            {row["key"]: row["published_micros"] for row in rows},
        )


def check_numbers(past: Past, now: DataFrame) -> None:
    """Refuses a past in which versions of named schemas are others than they are now."""
    taken = taken_numbers(past.rows, now)
    if taken:
        raise NumberTaken(
            f"{', '.join(taken)} of the named schemas have other schemas in {past.name} than in "
            "this catalog, and a number means one schema for good; nothing was written. Restore "
            "the backup to a location of its own.",
            versions=taken,
        )
