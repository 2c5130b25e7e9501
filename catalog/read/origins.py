"""Which segment a row is from: found by the path of its file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from catalog.errors import Unreadable
from catalog.files.paths import Place, key_of
from catalog.read.scans import Piece, Scan
from catalog.schema.names import identifier, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OURS = "__strata_"
_FILE = f"{_OURS}file"
_KEY = f"{_OURS}key"
_ID = f"{_OURS}id"
# The path of a file as `key_of` gives it: no scheme, no host, percent signs resolved.
_FILE_KEY = (
    "url_decode(replace(regexp_replace(_metadata.file_path, '^[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?', "
    "''), '+', '%2B'))"
)


def file_column(scan: Scan) -> str:
    """The expression that `with_ids` needs of every scan."""
    if scan.format == "delta":
        # A table's files are its own affair; it is read by itself.
        return f"{literal(_key(Place(scan.paths[0], scan.format, scan.version)))} AS {_FILE}"
    return f"{_FILE_KEY} AS {_FILE}"


def with_ids(read: DataFrame, pieces: Sequence[Piece], name: str) -> DataFrame:
    """The frame with the id of the segment that each row is from.

    A file that belongs to no segment is an error when it is read, not a null.
    """
    keys = {_key(piece.place): piece.segment_id for piece in pieces}
    if len(keys) < len(pieces):
        raise Unreadable(
            "Locations of two segments differ only in scheme or host, so their rows cannot be told "
            "apart by the paths of their files; read without the segment id.",
            datasource=pieces[0].segment_id.partition("/")[0],
        )
    # A location is a file, or a directory above it: a join for each depth that there is.
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
