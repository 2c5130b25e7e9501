"""Segments that break contracts, as a table of the shell."""

from __future__ import annotations

from collections.abc import Iterable

from catalog.cli.answer import Table
from catalog.model import Offence

_COLUMNS = (
    *("datasource", "fingerprint", "segments", "example", "column", "rule", "words"),
    "refused",
)
_BRIEF = ("fingerprint", "segments", "example", "column", "words")


def shown_offences(offences: Iterable[Offence]) -> Table:
    """One row for each thing that is wrong with segments of one schema."""
    rows = tuple(
        (
            *(each.datasource, each.fingerprint, each.segments),
            *(next(iter(each.segment_ids), None), breach.path or None, breach.rule, breach.words),
            each.refused,
        )
        for each in offences
        for breach in each.breaches
    )
    return Table(_COLUMNS, rows, brief=_BRIEF)
