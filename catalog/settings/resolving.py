"""Which of several values of a setting counts, and where it is from (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from catalog.errors import InvalidSetting
from catalog.settings.known import BY_NAME, FILE, known_setting


class Source(StrEnum):
    """Where a value is from, the first that says something."""

    GIVEN = "given"
    STORED = "stored"
    FILE = "file"
    DEFAULT = "default"


@dataclass(frozen=True)
class Stored:
    """A row of a setting."""

    name: str
    payload: str
    commit_id: str
    changed_at: datetime | None = None
    changed_by: str | None = None


@dataclass(frozen=True)
class Setting:
    """A setting as it counts now.

    Attributes:
        name: its name.
        value: its value; none if it has none.
        source: where that is from: given for this open catalog, stored, file or default.
        default: what it is if nobody says anything.
        help: what it is for.
        changed_at: when it was stored, if it is.
        changed_by: by whom.
    """

    name: str
    value: Any
    source: Source
    default: Any
    help: str
    changed_at: datetime | None = None
    changed_by: str | None = None


@dataclass(frozen=True)
class Layers:
    """What is said of settings in each place, checked already but for what is stored."""

    given: Mapping[str, Any] = field(default_factory=dict)
    stored: Mapping[str, Stored] = field(default_factory=dict)
    file: Mapping[str, Any] = field(default_factory=dict)

    def setting(self, name: str) -> Setting:
        """A setting as it counts; raises `InvalidSetting` for a name that is not known."""
        known = known_setting(name)
        row = self.stored.get(name)
        value, source = known.default, Source.DEFAULT
        if name in self.given:
            value, source = self.given[name], Source.GIVEN
        elif row is not None:
            value, source = known.from_payload(row.payload), Source.STORED
        # Once a file was taken over, what the catalog says is all that counts.
        elif name in self.file and FILE not in self.stored:
            value, source = self.file[name], Source.FILE
        return Setting(
            name,
            value,
            source,
            known.default,
            known.help,
            None if row is None else row.changed_at,
            None if row is None else row.changed_by,
        )

    def all(self) -> tuple[Setting, ...]:
        """Every setting that is known or said, in the order of their names."""
        said = {*self.given, *self.stored, *self.file}
        return tuple(self._shown(name) for name in sorted({*BY_NAME, *said}))

    def _shown(self, name: str) -> Setting:
        try:
            return self.setting(name)
        except InvalidSetting:
            # Of another release, or written past this one: shown as it stands, to be unset.
            row = self.stored[name]
            return Setting(
                name,
                row.payload,
                Source.STORED,
                None,
                "not valid for this release",
                row.changed_at,
                row.changed_by,
            )
