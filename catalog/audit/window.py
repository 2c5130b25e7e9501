"""From when to when: what people mean by `since` and `until` (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from catalog.errors import InvalidInput
from catalog.model import micros

Moment = int | datetime | timedelta | None


@dataclass(frozen=True)
class Window:
    """Versions and moments that both ends belong to; none where it is open."""

    first: int | None = None
    last: int | None = None
    begins: datetime | None = None
    ends: datetime | None = None

    def has(self, version: int, moment: datetime) -> bool:
        """Whether a commit lies in it."""
        return (
            (self.first is None or version >= self.first)
            and (self.last is None or version <= self.last)
            and (self.begins is None or moment >= self.begins)
            and (self.ends is None or moment <= self.ends)
        )

    def sql(self) -> str:
        """The same as a condition on the columns version and timestamp."""
        parts = [
            f"version >= {self.first}" if self.first is not None else "",
            f"version <= {self.last}" if self.last is not None else "",
            _compared(">=", self.begins),
            _compared("<=", self.ends),
        ]
        return " AND ".join(part for part in parts if part) or "true"


def _compared(how: str, moment: datetime | None) -> str:
    if moment is None:
        return ""
    return f"timestamp {how} timestamp_micros({micros(moment)})"


def window(since: Moment, until: Moment, now: datetime) -> Window:
    """The window between two ends, each a version, a moment, a time before now, or open."""
    first, begins = _end("since", since, now)
    last, ends = _end("until", until, now)
    return Window(first, last, begins, ends)


def _end(name: str, given: Any, now: datetime) -> tuple[int | None, datetime | None]:
    if given is None:
        return None, None
    if isinstance(given, timedelta):
        return None, now - given
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise InvalidInput(
                f"{name} {given!r} has no time zone; give one, such as datetime.timezone.utc.",
                **{name: given},
            )
        return None, given
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return given, None
    raise InvalidInput(
        f"{name} must be a version from 0 on, a datetime or a timedelta, not {given!r}.",
        **{name: given},
    )
