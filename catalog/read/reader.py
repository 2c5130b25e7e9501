"""One frame over the data of a datasource's segments, in one schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from catalog.delta.layout import of_datasource
from catalog.delta.store import Store
from catalog.errors import InvalidInput, NotInSnapshot, Unreadable, WouldLose
from catalog.evolution.merge import Policy, conflict_error
from catalog.evolution.projection import Leeway, OnLoss, Refusal, fields_of, refusals, shape
from catalog.evolution.upgrade import expressions
from catalog.files.paths import Place, escaped, key_of
from catalog.read.datasource import DatasourceSchema, combine, combined_schemas
from catalog.read.registry import Registry
from catalog.read.scan import Piece, Scan, Where, check_places, in_order_of, scans_of, select
from catalog.schema import Schema
from catalog.schema.names import identifier, literal, type_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NAMED = 3
_FILES = {
    # Names of folders are no columns, and everything below a location is read.
    "recursiveFileLookup": "true",
    # Whatever the session's settings: rows that are missing must be an error.
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
}
_OPTIONS: dict[str, dict[str, str]] = {
    # The order of columns is not part of a fingerprint, so the header must agree.
    "csv": {**_FILES, "header": "true", "enforceSchema": "false"},
    "delta": {},
}


@dataclass(frozen=True)
class ReadRequest:
    """The arguments of `Catalog.read`."""

    datasource: str
    version: int
    schema: Schema | None = None
    where: Where = None
    policy: Policy = Policy.STRICT
    on_loss: OnLoss = OnLoss.REFUSE
    format: str | None = None
    options: Mapping[str, str] | None = None
    segment_id: str | None = None


class DataReader:
    """Reads datasources: segments from the catalog's table, their data in the user's session."""

    def __init__(self, spark: SparkSession, store: Store, buckets: int, registry: Registry) -> None:
        self._spark = spark
        self._store = store
        self._buckets = buckets
        self._registry = registry

    def read(self, request: ReadRequest) -> DataFrame:
        """A frame over the segments' data; nothing of it is read yet."""
        entries = (
            f"(SELECT * FROM {self._store.pinned(request.version)} WHERE kind = 'segment' AND "
            f"{self._segments_of(request.datasource)})"
        )
        # A condition of the user is evaluated in the user's session, with its time zone and
        # functions.
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
        return _with_ids(read, pieces, request.segment_id)

    def _datasource_schema(self, request: ReadRequest, pieces: Sequence[Piece]) -> Schema:
        """The merge of all schemas of the datasource, whichever part of it is read."""
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

    def _exists(self, request: ReadRequest) -> bool:
        if request.where is None:
            return False
        rows = self._store.session.sql(
            f"SELECT 1 FROM {self._store.pinned(request.version)} WHERE kind = 'segment' AND "
            f"{self._segments_of(request.datasource)} LIMIT 1"
        )
        return bool(rows.collect())

    def _segments_of(self, datasource: str) -> str:
        return of_datasource(datasource, self._buckets)

    def _frame(self, scan: Scan, target: Schema, leeway: Leeway, request: ReadRequest) -> DataFrame:
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
        return data.selectExpr(*made, _file_column(scan))

    def _nothing(self, target: Schema, request: ReadRequest) -> DataFrame:
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
    """The published columns of a Delta table's segment, in the order of the table."""
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


def _no_segments(request: ReadRequest) -> NotInSnapshot:
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


# --- the segment of each row ----------------------------------------------------------------------

_OURS = "__strata_"
_FILE = f"{_OURS}file"
_KEY = f"{_OURS}key"
_ID = f"{_OURS}id"
# The path of a file as `key_of` gives it: no scheme, no host, percent signs resolved.
_FILE_KEY = (
    "url_decode(replace(regexp_replace(_metadata.file_path, '^[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?', "
    "''), '+', '%2B'))"
)


def _file_column(scan: Scan) -> str:
    """The expression for the file of a row, which `_with_ids` needs of every scan."""
    if scan.format == "delta":
        # A scan reads one table, whose files are not segments.
        return f"{literal(_key(Place(scan.paths[0], scan.format, scan.version)))} AS {_FILE}"
    return f"{_FILE_KEY} AS {_FILE}"


def _with_ids(read: DataFrame, pieces: Sequence[Piece], name: str) -> DataFrame:
    """The frame with the id of the segment of each row, found by the path of its file.

    A file that belongs to no segment is an error when it is read, not a null.
    """
    keys = {_key(piece.place): piece.segment_id for piece in pieces}
    if len(keys) < len(pieces):
        raise Unreadable(
            "Locations of two segments differ only in scheme or host, so their rows cannot be told "
            "apart by the paths of their files; read without the segment id.",
            datasource=pieces[0].segment_id.partition("/")[0],
        )
    # A location is a file, or a folder above it: a join for each depth that occurs.
    found = []
    for depth in sorted({key.count("/") for key in keys}):
        here = [(key, name) for key, name in keys.items() if key.count("/") == depth]
        key, known = f"{_KEY}_{depth}", f"{_ID}_{depth}"
        ids = read.sparkSession.createDataFrame(here, f"{key} STRING, {known} STRING")
        above = F.expr(f"substring_index({_FILE}, '/', {depth + 1})")
        read = read.join(F.broadcast(ids), above == F.col(key), "left").drop(key)
        found.append(F.col(known))
    lost = F.concat(F.lit("No segment was found for the file "), F.col(_FILE))
    segment = F.coalesce(*found, F.raise_error(lost).cast("string"))
    columns = [F.col(identifier(column)) for column in read.columns if not column.startswith(_OURS)]
    return read.select(*columns, segment.alias(name))


def _key(place: Place) -> str:
    key = key_of(place.path)
    return key if place.version is None else f"{key}@v{place.version}"
