"""Which files can be read together: as few scans as possible, each with one schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

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

from catalog.errors import Unreadable
from catalog.files.formats import FORMATS, Place
from catalog.schema.names import type_text

# These find columns by name and give null for one that a file lacks.
_BY_NAME = {"parquet", "orc", "json"}
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Piece:
    """A segment to be read."""

    segment_id: str
    fingerprint: str
    place: Place


@dataclass
class Scan:
    """Pieces of one format that are read at once.

    `columns` are those of all their schemas: a column that several have is of one type in all.
    Each may be null, because some of the files may lack it.
    """

    format: str
    version: int | None = None
    columns: dict[str, StructField] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)

    def takes(self, fields: Mapping[str, StructField]) -> bool:
        """Whether files with these columns can be read along."""
        return all(
            name not in self.columns
            or (
                self.columns[name].name == column.name
                and type_text(self.columns[name].dataType) == type_text(column.dataType)
            )
            for name, column in fields.items()
        )

    @property
    def declared(self) -> StructType:
        """What the files hold, as it was published."""
        return StructType(list(self.columns.values()))

    @property
    def readable(self) -> StructType:
        """What Spark is told that the files hold: text has no length there."""
        return StructType([_loose(each, _without_length) for each in self.columns.values()])


def scans_of(pieces: Sequence[Piece], schemas: Mapping[str, StructType]) -> list[Scan]:
    """The fewest scans that a simple search finds: schemas that agree in what they share go
    together, in the order in which they come."""
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
        scan = next((s for s in scans if _fits(s, form) and s.takes(fields)), None)
        if scan is None:
            scan = Scan(form)
            scans.append(scan)
        for name, column in fields.items():
            scan.columns.setdefault(name, column)
        scan.paths += dict.fromkeys(each.path for each in here)
    return scans


def _fits(scan: Scan, form: str) -> bool:
    return scan.format == form and form in _BY_NAME


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
    """The column with null allowed everywhere, and its atoms as `atom` gives them."""

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
    """A declared type with the columns of its structs as they stand in data of the same shape."""
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
