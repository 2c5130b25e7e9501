"""Which segments of a datasource are to be read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import Column

from catalog.errors import InvalidInput, Unreadable
from catalog.files.paths import place_of
from catalog.model import micros
from catalog.read.scans import Piece
from catalog.sql import views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Interval = tuple[datetime, datetime]
Where = Interval | str | Column | None

_NAMED = 3


def select(
    session: SparkSession, entries: str, where: Where, default_format: str | None
) -> list[Piece]:
    """The pieces to read, in the order of their ids.

    Args:
        session: where the catalog's table is read.
        entries: the rows to choose from, as a relation.
        where: an interval that they overlap, or a condition on the columns of the view `segments`.
        default_format: the format of locations that do not say theirs.
    """
    rows = session.sql(views.query("segments", entries))
    chosen = _chosen(rows, where).select("segment_id", "fingerprint", "location")
    table = chosen.toArrow().sort_by("segment_id").to_pydict()
    for column, what in (("fingerprint", "a schema"), ("location", "a location")):
        pairs = zip(table["segment_id"], table[column], strict=True)
        missing = [segment_id for segment_id, value in pairs if value is None]
        if missing:
            raise _unreadable(missing, what)
    return [
        Piece(segment_id, fingerprint, place_of(location, default_format))
        for segment_id, fingerprint, location in zip(*table.values(), strict=True)
    ]


def _chosen(segments: DataFrame, where: Where) -> DataFrame:
    if where is None:
        return segments
    if isinstance(where, tuple):
        start, end = _interval(where)
        # A segment without an interval may hold anything.
        return segments.where(
            f"(starts_at IS NULL OR starts_at < {end}) AND (ends_at IS NULL OR ends_at > {start})"
        )
    return segments.where(where)


def _interval(where: Interval) -> tuple[str, str]:
    wrong = len(where) != 2 or any(
        not isinstance(each, datetime) or each.tzinfo is None for each in where
    )
    if wrong or not where[0] < where[1]:
        raise InvalidInput(
            f"An interval is two times with a time zone, the earlier first, not {where!r}.",
            where=where,
        )
    start, end = (f"timestamp_micros({micros(each)})" for each in where)
    return start, end


def _unreadable(segment_ids: Sequence[str], what: str) -> Unreadable:
    named = ", ".join(segment_ids[:_NAMED])
    more = f" and {len(segment_ids) - _NAMED} more" if len(segment_ids) > _NAMED else ""
    return Unreadable(
        f"{named}{more} cannot be read: published without {what}. Run a backfill for schemas, "
        "publish again with it, or leave them out with where.",
        segment_ids=list(segment_ids[:_NAMED]),
    )
