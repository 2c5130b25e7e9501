"""Which segment a row is from: found by the path of its file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from catalog.errors import Unreadable
from catalog.read.formats import Place, key_of
from catalog.read.scans import Piece, Scan
from catalog.table.location import identifier, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FILE = "__strata_file"
_KEY = "__strata_key"
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
    ids = read.sparkSession.createDataFrame(
        list(keys.items()), f"{_KEY} STRING, {identifier(name)} STRING"
    )
    # A location is a file, or a directory somewhere above the file.
    depths = sorted({key.count("/") for key in keys}, reverse=True)
    above = [F.expr(f"substring_index({_FILE}, '/', {depth + 1})") for depth in depths]
    same = above[0] == F.col(_KEY)
    on = same if len(depths) == 1 else F.array_contains(F.array(*above), F.col(_KEY))
    lost = F.concat(F.lit("No segment was found for the file "), F.col(_FILE))
    found = F.coalesce(F.col(identifier(name)), F.raise_error(lost).cast("string"))
    return read.join(F.broadcast(ids), on, "left").withColumn(name, found).drop(_FILE, _KEY)


def _key(place: Place) -> str:
    key = key_of(place.path)
    return key if place.version is None else f"{key}@v{place.version}"
