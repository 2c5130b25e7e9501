"""One frame over the data of a datasource's segments, in one schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from catalog.cache.datasource import DatasourceSchema
from catalog.datasources import combine, combined_schemas
from catalog.errors import InvalidInput, NotInSnapshot, Unreadable, WouldLose
from catalog.evolution.merge import Policy, conflict_error
from catalog.evolution.projection import Leeway, OnLoss, fields_of, refusals
from catalog.evolution.sql import expressions
from catalog.read.formats import Place, escaped
from catalog.read.origins import file_column, with_ids
from catalog.read.scans import Piece, Scan, scans_of
from catalog.read.selection import Where, select
from catalog.registry import Registry
from catalog.schema import Schema
from catalog.schema.columns import type_text
from catalog.table.layout import bucket_of
from catalog.table.location import identifier, literal
from catalog.table.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_NAMED = 3


@dataclass(frozen=True)
class Request:
    """What to read and how; see `Catalog.read`."""

    datasource: str
    version: int
    schema: Schema | None = None
    where: Where = None
    policy: Policy = Policy.STRICT
    on_loss: OnLoss = OnLoss.REFUSE
    format: str | None = None
    options: Mapping[str, str] | None = None
    segment_id: str | None = None


class Reader:
    """Reads datasources: segments from the catalog's table, their data in the user's session."""

    def __init__(self, spark: SparkSession, store: Store, buckets: int, registry: Registry) -> None:
        self._spark = spark
        self._store = store
        self._buckets = buckets
        self._registry = registry

    def read(self, request: Request) -> DataFrame:
        """A frame over the segments' data; nothing of it is read yet."""
        segments = (
            f"{self._store.pinned(request.version)} WHERE kind = 'segment' AND "
            f"{self._segments_of(request.datasource)}"
        )
        pieces = select(self._store.session, segments, request.where, request.format)
        _check_places(pieces)
        target = request.schema or self._datasource_schema(request, pieces)
        found = self._registry.many(
            (piece.fingerprint for piece in pieces),
            # At this version: a schema of an earlier one may be gone by now.
            lambda missing: self._store.payloads_of(missing, request.version),
        )
        schemas = {fingerprint: schema.struct() for fingerprint, schema in found.items()}
        leeway = Leeway(
            drop=True, text=request.policy is not Policy.STRICT, on_loss=request.on_loss
        )
        _check(pieces, schemas, target.struct(), leeway)
        if request.segment_id is not None and _has(target, request.segment_id):
            raise InvalidInput(
                f"The data has a column {request.segment_id} of its own; name the column for the "
                "segment id otherwise.",
                segment_id=request.segment_id,
            )
        frames = [self._frame(scan, target, leeway, request) for scan in scans_of(pieces, schemas)]
        if not frames:
            frames = [self._nothing(target, request)]
        read = reduce(lambda one, other: one.unionAll(other), frames)
        if request.segment_id is None or not pieces:
            return read
        return with_ids(read, pieces, request.segment_id)

    # --- what there is ----------------------------------------------------------------------------

    def _datasource_schema(self, request: Request, pieces: Sequence[Piece]) -> Schema:
        """The merge of all schemas of the datasource, whatever part of it is to be read."""
        store, version, policy = self._store, request.version, request.policy
        if request.where is None:
            counts: dict[str | None, int] = Counter(piece.fingerprint for piece in pieces)
            found: DatasourceSchema | None
            (found,) = combine(store, version, self._registry, policy, {request.datasource: counts})
        else:
            of_it = self._segments_of(request.datasource)
            every = combined_schemas(store, version, self._registry, policy, of_it)
            found = every[0] if every else None
        if found is None or found.schema is None:
            raise NotInSnapshot(
                f"Datasource {request.datasource} has no segments with a schema at version "
                f"{version}.",
                datasource=request.datasource,
                version=version,
            )
        if found.conflicts and policy is Policy.STRICT:
            raise conflict_error(found.conflicts)
        return found.schema

    def _segments_of(self, datasource: str) -> str:
        bucket = bucket_of(datasource, self._buckets)
        return f"bucket = {bucket} AND datasource = {literal(datasource)}"

    # --- the data ---------------------------------------------------------------------------------

    def _frame(self, scan: Scan, target: Schema, leeway: Leeway, request: Request) -> DataFrame:
        reader = self._spark.read.format(scan.format)
        if scan.format == "csv":
            # The order of columns is not part of a fingerprint, so the header must agree.
            reader = reader.options(header="true", enforceSchema="false")
        reader = reader.options(**(request.options or {}))
        if scan.format == "delta":
            if scan.version is not None:
                reader = reader.option("versionAsOf", scan.version)
            data = reader.load(scan.paths[0])
            _check_delta(data, scan)
        else:
            data = reader.schema(scan.readable).load(list(map(escaped, scan.paths)))
        made = expressions(fields_of(scan.declared, target.struct(), leeway))
        if request.segment_id is None:
            return data.selectExpr(*made)
        return data.selectExpr(*made, file_column(scan))

    def _nothing(self, target: Schema, request: Request) -> DataFrame:
        made = expressions(fields_of(Scan("").declared, target.struct(), Leeway()))
        if request.segment_id is not None:
            made.append(f"CAST(NULL AS STRING) AS {identifier(request.segment_id)}")
        return self._spark.range(0).selectExpr(*made)


def _check(
    pieces: Iterable[Piece], schemas: Mapping[str, StructType], target: StructType, leeway: Leeway
) -> None:
    """Raises if the data of a schema would lose something, naming columns and segments."""
    for fingerprint, schema in schemas.items():
        refused = refusals(schema, target, leeway)
        if refused:
            having = [piece.segment_id for piece in pieces if piece.fingerprint == fingerprint]
            raise WouldLose(
                f"Segments with schema {fingerprint[:8]} ({having[0]} and {len(having) - 1} more) "
                "cannot be given in this schema without loss: "
                f"{'; '.join(map(str, refused[:_NAMED]))}. Ask for a schema that holds them, "
                'restrict what is read, or say on_loss="null".',
                fingerprint=fingerprint,
                columns=[{"path": each.path, "why": each.why} for each in refused],
            )


def _check_places(pieces: Iterable[Piece]) -> None:
    """Raises if two segments have one location: their rows could not be told apart."""
    owners: dict[Place, str] = {}
    for piece in pieces:
        owner = owners.setdefault(piece.place, piece.segment_id)
        if owner != piece.segment_id:
            raise Unreadable(
                f"Segments {owner} and {piece.segment_id} have one location, {piece.place.path}; "
                "leave one of them out with where.",
                segment_ids=[owner, piece.segment_id],
            )


def _check_delta(data: DataFrame, scan: Scan) -> None:
    """Raises if a Delta table does not have the columns that its segment was published with."""
    there = {field.name: type_text(field.dataType) for field in data.schema.fields}
    for column in scan.readable:
        kind = there.get(column.name)
        if kind != type_text(column.dataType):
            raise Unreadable(
                f"The Delta table {scan.paths[0]} has {column.name} as {kind or 'no column'}, and "
                f"its segment was published with {type_text(column.dataType)}. Pin the version of "
                "the table in the location, as in /path@v12.",
                location=scan.paths[0],
                column=column.name,
            )


def _has(schema: Schema, name: str) -> bool:
    return any(not c.depth and c.name.casefold() == name.casefold() for c in schema.columns)
