"""Locations that cannot be read together, refused before anything is read."""

from __future__ import annotations

from collections.abc import Sequence

from catalog.errors import Unreadable
from catalog.files.paths import address_of
from catalog.read.scans import Piece

_HIDDEN = ("_", ".")


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
                f"Spark passes by files whose names begin with _ or ., and segment "
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
