"""One frame over the data of a datasource's segments, in one schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import StructField, StructType

from catalog.delta.layout import of_datasource
from catalog.delta.store import Store
from catalog.errors import InvalidInput, NotInSnapshot, Unreadable, WouldLose
from catalog.evolution.merge import Policy, conflict_error
from catalog.evolution.projection import Leeway, OnLoss, Refusal, fields_of, refusals, shape
from catalog.evolution.upgrade import expressions
from catalog.files.formats import escaped
from catalog.read.datasource_schema import DatasourceSchema
from catalog.read.datasources import combine, combined_schemas
from catalog.read.origins import file_column, with_ids
from catalog.read.places import check_places
from catalog.read.registry import Registry
from catalog.read.scans import Piece, Scan, in_order_of, scans_of
from catalog.read.selection import Where, select
from catalog.schema import Schema
from catalog.schema.names import identifier, type_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NAMED = 3
_FILES = {
    # Names of folders are no columns, and nothing below a location is passed by.
    "recursiveFileLookup": "true",
    # Whatever the session says: rows that are missing must be an error.
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
}
_OPTIONS: dict[str, dict[str, str]] = {
    # The order of columns is not part of a fingerprint, so the header must agree.
    "csv": {**_FILES, "header": "true", "enforceSchema": "false"},
    "delta": {},
}


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
        entries = (
            f"(SELECT * FROM {self._store.pinned(request.version)} WHERE kind = 'segment' AND "
            f"{self._segments_of(request.datasource)})"
        )
        # A condition of the user's is for the user's session, with its time zone and functions.
        own = request.where is None or isinstance(request.where, tuple)
        session = self._store.session if own else self._spark
        pieces = select(session, entries, request.where, request.format)
        check_places(pieces)
        target = request.schema or self._datasource_schema(request, pieces)
        if not pieces and not self._exists(request):
            raise _no_segments(request)
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
        scans = scans_of(pieces, schemas)
        if request.segment_id is not None:
            _check_id_column(request.segment_id, target, scans)
        frames = [self._frame(scan, target, leeway, request) for scan in scans]
        if not frames:
            frames = [self._nothing(target, request)]
        read = _union(frames)
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
            raise _no_segments(request)
        if found.conflicts and policy is Policy.STRICT:
            raise conflict_error(found.conflicts)
        return found.schema

    def _exists(self, request: Request) -> bool:
        if request.where is None:
            return False
        rows = self._store.session.sql(
            f"SELECT 1 FROM {self._store.pinned(request.version)} WHERE kind = 'segment' AND "
            f"{self._segments_of(request.datasource)} LIMIT 1"
        )
        return bool(rows.collect())

    def _segments_of(self, datasource: str) -> str:
        return of_datasource(datasource, self._buckets)

    # --- the data ---------------------------------------------------------------------------------

    def _frame(self, scan: Scan, target: Schema, leeway: Leeway, request: Request) -> DataFrame:
        reader = self._spark.read.format(scan.format).options(**_OPTIONS.get(scan.format, _FILES))
        reader = reader.options(**(request.options or {}))
        if scan.format == "delta":
            if scan.version is not None:
                reader = reader.option("versionAsOf", scan.version)
            data = reader.load(scan.paths[0])
            source = _of_table(data, scan)
        else:
            data = reader.schema(scan.readable).load(list(map(escaped, scan.paths)))
            source = scan.declared
        made = expressions(fields_of(source, target.struct(), leeway))
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
                f"{'; '.join(map(str, refused[:_NAMED]))}. Ask for a schema that holds them, or "
                f"restrict what is read{_way_out(refused)}.",
                fingerprint=fingerprint,
                columns=[{"path": each.path, "why": each.why} for each in refused],
            )


def _of_table(data: DataFrame, scan: Scan) -> StructType:
    """The columns that a Delta table's segment was published with, as the table has them."""
    there = {field.name: field for field in data.schema.fields}
    for column in scan.readable:
        kind = there[column.name].dataType if column.name in there else None
        if kind is None or shape(kind) != shape(column.dataType):
            found = "no column" if kind is None else type_text(kind)
            raise Unreadable(
                f"The Delta table {scan.paths[0]} has {column.name} as {found}, and its segment "
                f"was published with {type_text(column.dataType)}. Pin the version of the table in "
                "the location, as in /path@v12.",
                location=scan.paths[0],
                column=column.name,
            )
    return StructType(
        [
            StructField(column.name, in_order_of(there[column.name].dataType, column.dataType))
            for column in scan.declared
        ]
    )


def _way_out(refused: Sequence[Refusal]) -> str:
    return ', or say on_loss="null"' if all(each.lossy for each in refused) else ""


def _check_id_column(name: str, target: Schema, scans: Iterable[Scan]) -> None:
    if any(not c.depth and c.name.casefold() == name.casefold() for c in target.columns):
        raise InvalidInput(
            f"The data has a column {name} of its own; name the column for the segment id "
            "otherwise.",
            segment_id=name,
        )
    if any("_metadata" in scan.columns for scan in scans):
        raise Unreadable(
            "The data has a column _metadata, which hides the paths of the files; read without the "
            "segment id.",
            segment_id=name,
        )


def _no_segments(request: Request) -> NotInSnapshot:
    return NotInSnapshot(
        f"Datasource {request.datasource} has no segments with a schema at version "
        f"{request.version}.",
        datasource=request.datasource,
        version=request.version,
    )


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    """All frames as one, by halves: a plan as deep as they are many would be too deep."""
    if len(frames) == 1:
        return frames[0]
    middle = len(frames) // 2
    return _union(frames[:middle]).unionAll(_union(frames[middle:]))
