"""One-line builders for what tests publish."""

from __future__ import annotations

from typing import Any

from catalog.model import Caller, Segment
from catalog.segments.batch import Batch, batch_of


def segment(
    id: str = "orders/1", ddl: str | None = "a INT", rows: int | None = 1, **given: Any
) -> Segment:
    """A segment; the rest are fields of `Segment`."""
    return Segment(id, ddl, rows, **given)


def batch(*segments: Segment, actor: str = "ann", reason: str = "") -> Batch:
    """One caller's batch, of one segment unless told."""
    return batch_of(segments or (segment(),), Caller(actor, reason))
