"""The schema that a reader expects of a segment, and what it is told instead (pure)."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from catalog.cache.snapshot import Snapshot
from catalog.errors import CatalogError, InvalidInput, NotInSnapshot, SchemaVersionMismatch
from catalog.schema import Schema
from catalog.schema.canonical import MAX_DIGITS, is_prefix


@dataclass(frozen=True)
class Told:
    """What a reader is told of a segment at a version: its schema, or why it is not known."""

    version: int
    schema: Schema | None
    reason: CatalogError | None = None

    @property
    def fingerprint(self) -> str | None:
        return None if self.schema is None else self.schema.fingerprint

    def as_expected(self, expected: str) -> Schema | None:
        """The schema, if it is the one with this fingerprint."""
        return self.schema if self.fingerprint == expected else None


def told_by(snapshot: Snapshot, segment_id: str) -> Told:
    """What a snapshot says of a segment."""
    try:
        return Told(snapshot.version, snapshot.schema_of(segment_id))
    except NotInSnapshot as error:
        return Told(snapshot.version, None, error)


def check_expect(expect: Any) -> str:
    """The fingerprint of what is expected, given as a whole fingerprint or as a schema."""
    if isinstance(expect, Schema):
        return expect.fingerprint
    # A beginning is refused: it would fit another schema one day.
    if isinstance(expect, str) and len(expect) == MAX_DIGITS and is_prefix(expect):
        return expect.lower()
    raise InvalidInput(
        f"expect takes a whole fingerprint of {MAX_DIGITS} hexadecimal digits, or a Schema, not "
        f"{expect!r:.80}.",
        expect=expect,
    )


def mismatch(segment_id: str, expected: str, told: Told, advice: str) -> SchemaVersionMismatch:
    """The error that says what was expected, what was found, and at which version."""
    found = told.fingerprint
    if told.reason is None:
        what = f"Segment {segment_id} has schema {found} at version {told.version}."
    else:
        what = told.reason.message
    return SchemaVersionMismatch(
        f"{what} Schema {expected} was expected; {advice}",
        segment_id=segment_id,
        expected=expected,
        found=found,
        version=told.version,
    )


@dataclass(frozen=True)
class MismatchFigures:
    """How often readers were told another schema than they expected.

    Attributes:
        met: questions whose first answer had another schema, or none.
        retries: times that such a question was asked again after a poll.
        remained: questions that were given up with `SchemaVersionMismatch`.
    """

    met: int = 0
    retries: int = 0
    remained: int = 0


class Mismatches:
    """Counts mismatches, from any thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._figures = MismatchFigures()

    @property
    def figures(self) -> MismatchFigures:
        """What was counted so far, at one moment."""
        return self._figures

    def count(self, met: int = 0, retries: int = 0, remained: int = 0) -> None:
        """Adds to the figures."""
        with self._guard:
            now = self._figures
            self._figures = MismatchFigures(
                now.met + met, now.retries + retries, now.remained + remained
            )
