"""Compares a catalog with an earlier state: all that a rollback changes, at one version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from catalog.backups.difference import (
    Changed,
    Reach,
    check_known,
    contrast,
    gone_schemas,
    reaches,
    taken_numbers,
)
from catalog.commit.rows import schema_bucket
from catalog.contracts.model import TableLimits
from catalog.contracts.store import DatasourceRow, read_datasources
from catalog.delta.layout import complete, schema_bucket_sql
from catalog.delta.session import Tuning, tune
from catalog.delta.statements import BULK_ROWS, DATASOURCE
from catalog.delta.store import Store
from catalog.errors import NumberTaken
from catalog.model import Kind
from catalog.objects.changes import Difference, Graph, difference
from catalog.objects.model import ObjectNode
from catalog.objects.platform import changed_limits
from catalog.objects.store import Objects, all_objects, objects_of
from catalog.progress import Progress, Step
from catalog.schema.names import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OBJECT = "object"
# Up to this number, changes are kept in memory.
_FEW = 5_000


@dataclass(frozen=True)
class Past:
    """An earlier state: all rows, with all columns of the table and the present buckets."""

    name: str
    rows: DataFrame


@dataclass(frozen=True)
class ObjectChanges:
    """All objects now, and after the rollback."""

    now: Objects
    nodes: Mapping[str, ObjectNode]
    changed: Difference
    published_micros: Mapping[str, int]

    @property
    def written(self) -> dict[str, ObjectNode]:
        return {**self.changed.inserted, **self.changed.updated}

    @property
    def keys(self) -> set[str]:
        """Objects that change, and those that they link to, which must not be removed meanwhile."""
        changing = self.written.keys() | self.changed.deleted.keys()
        return changing | {link for node in self.written.values() for link in node.links}

    @property
    def datasources(self) -> set[str]:
        """Datasources that an object begins or ceases to represent, or gives other limits."""
        names: set[str | None] = set()
        for key in self.written.keys() | self.changed.deleted.keys():
            sides = [state[key] for state in (self.now.nodes, self.nodes) if key in state]
            found = {node.datasource for node in sides}
            if len(sides) < 2 or len(found) > 1:
                names |= found
        return {name for name in names if name is not None} | self.limits.keys()

    @property
    def limits(self) -> dict[str, TableLimits]:
        """The new limits that tables give to datasources, where they change."""
        return changed_limits(self.now.nodes, self.nodes)

    @property
    def fingerprints(self) -> set[str]:
        return {node.fingerprint for node in self.written.values() if node.fingerprint is not None}


@dataclass(frozen=True)
class RollbackPlan:
    """All changes, compared at one version.

    `unlimited` are rows of newer datasources, which stay while the tables that limit them are
    removed: they lose these limits.
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
    """Compares a catalog with an earlier state."""

    def __init__(self, store: Store, buckets: int, tuning: Tuning, progress: Progress) -> None:
        self._store = store
        self._buckets = buckets
        self._tuning = tuning
        self._progress = progress

    def compare(self, past: Past) -> RollbackPlan:
        """Compares an earlier state with the newest version."""
        session = self._store.session
        self._progress(Step(f"rollback: compare with {past.name}", 0, 2))
        tune(session, self._tuning.large)
        try:
            return self._differences(past, self._store.head().version)
        finally:
            tune(session, self._tuning.between)
            self._progress(Step(f"rollback: compare with {past.name}", 1, 2))

    def _differences(self, past: Past, version: int) -> RollbackPlan:
        session = self._store.session
        now = session.sql(f"SELECT * FROM {complete(session, self._store.pinned(version))}")
        kinds = now.select("kind").union(past.rows.select("kind")).groupBy("kind").count().collect()
        check_known(row["kind"] for row in kinds)
        if any(row["kind"] == Kind.VERSION for row in kinds):
            check_numbers(past, now)
        changed = contrast(past.rows, now)
        found = tuple(reaches(changed))
        if 0 < sum(each.changed.rows for each in found) <= _FEW:
            # It is evaluated several times from here on, and each time costs a scan of both.
            changed = session.createDataFrame(changed.toArrow())
        gone = gone_schemas(past.rows, now)
        # Counts by bucket: the keys may be too many to be listed.
        bucket = F.expr(schema_bucket_sql("key")).alias("bucket")
        missing = gone.groupBy(bucket).count().collect()
        objects = self._objects(past, version)
        buckets = {row["bucket"] for row in missing}
        buckets |= {bucket for each in found for bucket in each.schema_buckets}
        buckets |= {schema_bucket(each) for each in objects.fingerprints}
        return RollbackPlan(
            version=version,
            rows=changed,
            gone=gone,
            objects=objects,
            unlimited=self._unlimited(past, objects, version),
            reaches=found,
            schemas=sum(row["count"] for row in missing),
            schema_buckets=frozenset(buckets),
            bulk=sum(row["count"] for row in kinds) >= BULK_ROWS,
        )

    def _unlimited(
        self, past: Past, objects: ObjectChanges, version: int
    ) -> tuple[DatasourceRow, ...]:
        """Rows of newer datasources that lose limits; older rows come back with their limits."""
        # A datasource with limits always has a row: they are written together.
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
    """Refuses an earlier state with other versions of named schemas than now."""
    taken = taken_numbers(past.rows, now)
    if taken:
        raise NumberTaken(
            f"{', '.join(taken)} of the named schemas have other schemas in {past.name} than in "
            "this catalog, and a number means one schema for good; nothing was written. Restore "
            "the backup to a location of its own.",
            versions=taken,
        )


def rolled_back(
    now: Mapping[str, ObjectNode], then: Mapping[str, ObjectNode], highest: int
) -> dict[str, ObjectNode]:
    """All objects with the contents and ids of then, and revisions that only go up (pure).

    An object that differs from now gets a new revision, and so does every object that links to it,
    directly or not, as after a put. If the object exists under its id, that is the next revision;
    if it is gone, or its key has another object by now, one above `highest`, the highest revision
    that any object ever had. So a pair of id and revision never means two contents.
    """
    differing = {key for key, node in then.items() if not _same(now.get(key), node)}
    changed = Graph(then).with_holders(differing)
    revisions = {
        key: _revision(now.get(key), node, highest) if key in changed else now[key].revision
        for key, node in then.items()
    }
    return {
        key: replace(
            node,
            revision=revisions[key],
            links={target: revisions[target] for target in node.links},
        )
        for key, node in then.items()
    }


def _same(now: ObjectNode | None, then: ObjectNode) -> bool:
    # The digest covers all content but the revisions in links.
    return now is not None and now.id == then.id and now.digest == then.digest


def _revision(now: ObjectNode | None, then: ObjectNode, highest: int) -> int:
    return now.revision + 1 if now is not None and now.id == then.id else highest + 1
