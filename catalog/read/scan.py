"""The segments of a datasource to be read, and the scans that read them together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    VarcharType,
)

from catalog.errors import InvalidInput, Unreadable
from catalog.files.paths import FORMATS, Place, address_of, place_of
from catalog.model import micros
from catalog.schema.names import type_text
from catalog.sql import views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Interval = tuple[datetime, datetime]
Where = Interval | str | Column | None

_NAMED = 3
_HIDDEN = ("_", ".")
# These find columns by name and give null for one that a file lacks.
_BY_NAME = {"parquet", "orc", "json"}


@dataclass(frozen=True, slots=True)
class Piece:
    """A segment to be read."""

    segment_id: str
    fingerprint: str
    place: Place


def select(
    session: SparkSession, entries: str, where: Where, default_format: str | None
) -> list[Piece]:
    """The segments to read, in the order of their ids.

    Args:
        session: where the catalog's table is read.
        entries: the rows to choose from, as a relation.
        where: an interval that they overlap, or a condition on the columns of the view `segments`.
        default_format: the format of locations that do not give theirs.
    """
    rows = session.sql(views.query("segments", entries))
    chosen = _chosen(rows, where).select("segment_id", "fingerprint", "location")
    table = chosen.toArrow().sort_by("segment_id").to_pydict()
    for column, what in (("fingerprint", "a schema"), ("location", "a location")):
        pairs = zip(table["segment_id"], table[column], strict=True)
        missing = [segment_id for segment_id, value in pairs if value is None]
        if missing:
            more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
            raise Unreadable(
                f"{', '.join(missing[:_NAMED])}{more} cannot be read: published without {what}. "
                "Run a backfill for schemas, publish again with it, or leave them out with where.",
                segment_ids=missing[:_NAMED],
            )
    return [
        Piece(segment_id, fingerprint, place_of(location, default_format))
        for segment_id, fingerprint, location in zip(*table.values(), strict=True)
    ]


def _chosen(segments: DataFrame, where: Where) -> DataFrame:
    if where is None:
        return segments
    if not isinstance(where, tuple):
        return segments.where(where)
    wrong = len(where) != 2 or any(
        not isinstance(each, datetime) or each.tzinfo is None for each in where
    )
    if wrong or not where[0] < where[1]:
        raise InvalidInput(
            f"An interval is two times with a time zone, the earlier first, not {where!r}.",
            where=where,
        )
    start, end = (f"timestamp_micros({micros(each)})" for each in where)
    # A segment without an interval may hold anything.
    return segments.where(
        f"(starts_at IS NULL OR starts_at < {end}) AND (ends_at IS NULL OR ends_at > {start})"
    )


def check_places(pieces: Sequence[Piece]) -> None:
    """Raises if rows would be read twice, or left out in silence."""
    owners: dict[str, str] = {}
    for piece in pieces:
        address = address_of(piece.place)
        owner = owners.setdefault(address, piece.segment_id)
        if owner != piece.segment_id:
            raise _twice(owner, piece, "have one location")
        if address.rpartition("/")[2].startswith(_HIDDEN):
            raise Unreadable(
                f"Spark ignores files whose names begin with _ or ., and segment "
                f"{piece.segment_id} is at {piece.place.path}. Rename it and publish it again.",
                segment_id=piece.segment_id,
                location=piece.place.path,
            )
    for piece in pieces:
        above = address_of(piece.place)
        while above := above.rpartition("/")[0]:
            if above in owners:
                raise _twice(owners[above], piece, "have locations one inside the other")


def _twice(owner: str, piece: Piece, how: str) -> Unreadable:
    return Unreadable(
        f"Segments {owner} and {piece.segment_id} {how}, {piece.place.path}, and its rows would be "
        "read twice. Leave one of them out with where.",
        segment_ids=[owner, piece.segment_id],
    )


# --- scans ----------------------------------------------------------------------------------------


@dataclass
class Scan:
    """Segments of one format that are read at once.

    `columns` are those of all their schemas; a column that several have is of one type in all.
    Each may be null, because some of the files may lack it.
    """

    format: str
    version: int | None = None
    columns: dict[str, StructField] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)

    def takes(self, form: str, fields: Mapping[str, StructField]) -> bool:
        """Whether files of this format and with these columns can be read along."""
        return (
            self.format == form
            and form in _BY_NAME
            and all(
                name not in self.columns
                or (
                    self.columns[name].name == column.name
                    and type_text(self.columns[name].dataType) == type_text(column.dataType)
                )
                for name, column in fields.items()
            )
        )

    @property
    def declared(self) -> StructType:
        """The columns of the files as they were published."""
        return StructType(list(self.columns.values()))

    @property
    def readable(self) -> StructType:
        """The columns as Spark's reader takes them: text has no length there."""
        return StructType([_loose(each, _without_length) for each in self.columns.values()])


def scans_of(pieces: Sequence[Piece], schemas: Mapping[str, StructType]) -> list[Scan]:
    """As few scans as a greedy search finds: schemas whose common columns agree go together."""
    places: dict[tuple[str, str], list[Place]] = {}
    for piece in pieces:
        form = _format(piece)
        places.setdefault((form, piece.fingerprint), []).append(piece.place)
    scans: list[Scan] = []
    for (form, fingerprint), here in places.items():
        fields = {
            each.name.casefold(): _loose(each)
            for each in schemas[fingerprint]
            if not isinstance(each.dataType, NullType)  # no file format holds such a column
        }
        if form == "delta":
            # Each location is a table of its own, with its own log.
            scans += [Scan(form, each.version, fields, [each.path]) for each in here]
            continue
        scan = next((each for each in scans if each.takes(form, fields)), None)
        if scan is None:
            scan = Scan(form)
            scans.append(scan)
        for name, column in fields.items():
            scan.columns.setdefault(name, column)
        scan.paths += dict.fromkeys(each.path for each in here)
    return scans


def _format(piece: Piece) -> str:
    form = piece.place.format
    if form in FORMATS:
        return form
    said = "does not say which format it has" if form is None else f"has the format {form}"
    raise Unreadable(
        f"The location of segment {piece.segment_id}, {piece.place.path}, {said}; formats are "
        f"{', '.join(FORMATS)}. Give format=… for locations that do not say.",
        segment_id=piece.segment_id,
        location=piece.place.path,
    )


def _loose(column: StructField, atom: Callable[[DataType], DataType] = lambda a: a) -> StructField:
    """The column with null allowed everywhere, and `atom` applied to its atomic types."""

    def kind_of(kind: DataType) -> DataType:
        if isinstance(kind, StructType):
            return StructType([_loose(each, atom) for each in kind.fields])
        if isinstance(kind, ArrayType):
            return ArrayType(kind_of(kind.elementType))
        if isinstance(kind, MapType):
            return MapType(kind_of(kind.keyType), kind_of(kind.valueType))
        return atom(kind)

    return StructField(column.name, kind_of(column.dataType))


def _without_length(kind: DataType) -> DataType:
    return StringType() if isinstance(kind, CharType | VarcharType) else kind


def in_order_of(there: DataType, declared: DataType) -> DataType:
    """A declared type with the fields of its structs in the order of data of the same shape."""
    if isinstance(there, StructType) and isinstance(declared, StructType):
        return StructType(
            [
                StructField(each.name, in_order_of(each.dataType, declared[each.name].dataType))
                for each in there.fields
            ]
        )
    if isinstance(there, ArrayType) and isinstance(declared, ArrayType):
        return ArrayType(in_order_of(there.elementType, declared.elementType))
    if isinstance(there, MapType) and isinstance(declared, MapType):
        return MapType(
            in_order_of(there.keyType, declared.keyType),
            in_order_of(there.valueType, declared.valueType),
        )
    return declared
