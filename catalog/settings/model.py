"""Every setting with its default and meaning, and which of several values is in effect (pure)."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from catalog.errors import InvalidSetting
from catalog.settings.types import (
    ANYTHING,
    COUNT,
    DURATION,
    SECONDS,
    SECRET,
    TEXT,
    SettingType,
)

# Records which configuration file was adopted; written by `adopt` alone.
FILE = "config.file"
LONGEST_NAME = 200
_FREE = re.compile(r"(app|secret)\.[a-z0-9_]+(\.[a-z0-9_]+)*")
_CONFIDENTIAL = re.compile(r"(^|[._])(password|passwd|secret|token|credentials?|api_key)([._]|$)")

# --- settings that exist --------------------------------------------------------------------------


@dataclass(frozen=True)
class SettingSpec:
    """A setting that can be stored; with a default of None its help says what applies."""

    name: str
    type: SettingType
    default: Any
    help: str

    def check(self, value: Any) -> Any:
        """The value as it is used; raises `InvalidSetting`."""
        try:
            return self.type.check(value)
        except ValueError as error:
            raise InvalidSetting(
                f"{self.name} cannot be set: {error}. It takes {self.type.what}.", name=self.name
            ) from None

    def payload(self, value: Any) -> str:
        """A checked value as it is stored."""
        return json.dumps(self.type.stored(value), ensure_ascii=False)

    def from_payload(self, payload: str | None) -> Any:
        """A stored value, checked again: another release may have allowed more."""
        try:
            return self.check(json.loads(payload or ""))
        except json.JSONDecodeError as error:
            raise InvalidSetting(
                f"What is stored for {self.name} is not JSON: {error}. Set it again, or unset it.",
                name=self.name,
            ) from None


KNOWN = (
    SettingSpec("deadline", SECONDS, 120.0, "how long a call waits for others before it gives up"),
    SettingSpec(
        "cleanup.grace",
        DURATION,
        timedelta(days=1),
        "how long a schema must have been unused to be retired, and retired to be purged",
    ),
    SettingSpec(
        "cleanup.limit", COUNT, 10_000, "how many schemas a clean-up retires, and purges, at most"
    ),
    SettingSpec(
        "maintain.retain",
        DURATION,
        None,
        "how long removed files are kept; as the table says if it is not set",
    ),
    SettingSpec(
        "maintain.poller_lag",
        DURATION,
        timedelta(days=7),
        "how far behind a poller may be; less is not retained",
    ),
    SettingSpec("backfill.batch", COUNT, 10_000, "segments in one commit of a backfill"),
    SettingSpec("publish_files.batch", COUNT, 10_000, "files in one commit"),
    SettingSpec(
        "recover.keep",
        DURATION,
        timedelta(days=30),
        "how long it stays known what became of an operation",
    ),
    SettingSpec(
        "operation.lease",
        DURATION,
        timedelta(hours=1),
        "how long the owner of an operation is waited for",
    ),
    SettingSpec(
        "poll.interval",
        SECONDS,
        None,
        "how often the word poll looks; once and no more if it is not set",
    ),
    SettingSpec("report.versions", COUNT, 500, "versions whose growth a report shows"),
    SettingSpec(FILE, TEXT, None, "the configuration file whose settings were taken over"),
)
BY_NAME = {spec.name: spec for spec in KNOWN}


def default_of(name: str) -> Any:
    """The default of one of the catalog's own settings."""
    return BY_NAME[name].default


def known_setting(name: Any) -> SettingSpec:
    """The setting with a name: one of the catalog's, or any under `app.` or `secret.`."""
    if isinstance(name, str) and name in BY_NAME:
        return BY_NAME[name]
    if isinstance(name, str) and _FREE.fullmatch(name) and len(name) <= LONGEST_NAME:
        secret = name.startswith("secret.") or _CONFIDENTIAL.search(name) is not None
        return SettingSpec(name, SECRET if secret else ANYTHING, None, "of an application's own")
    near = difflib.get_close_matches(str(name), BY_NAME, 1)
    hint = f"Did you mean {near[0]}?" if near else f"Known are {', '.join(BY_NAME)}."
    raise InvalidSetting(
        f"There is no setting {name!r}. {hint} Names under app. and secret. are free, in small "
        "letters, digits, _ and dots.",
        name=name,
    )


def checked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by setting name, each checked; raises `InvalidSetting`."""
    if FILE in values:
        raise InvalidSetting(
            f"{FILE} is written when a configuration file is adopted; leave it out.", name=FILE
        )
    return {name: known_setting(name).check(value) for name, value in values.items()}


# --- values in effect -----------------------------------------------------------------------------


class Source(StrEnum):
    """Where a value comes from, in order of precedence."""

    GIVEN = "given"
    STORED = "stored"
    FILE = "file"
    DEFAULT = "default"


@dataclass(frozen=True)
class StoredSetting:
    """The row of a setting."""

    name: str
    payload: str
    commit_id: str
    changed_at: datetime | None = None
    changed_by: str | None = None


@dataclass(frozen=True)
class Setting:
    """A setting with the value in effect.

    Attributes:
        name: its name.
        value: its value, or None.
        source: where the value comes from: given to this open catalog, stored, file or default.
        default: its default.
        help: what it is for.
        changed_at: when it was stored; None if it is not.
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
    """The values of settings from each source; all but the stored ones are checked."""

    given: Mapping[str, Any] = field(default_factory=dict)
    stored: Mapping[str, StoredSetting] = field(default_factory=dict)
    file: Mapping[str, Any] = field(default_factory=dict)

    def setting(self, name: str) -> Setting:
        """A setting with the value in effect; raises `InvalidSetting` for an unknown name."""
        spec = known_setting(name)
        row = self.stored.get(name)
        value, source = spec.default, Source.DEFAULT
        if name in self.given:
            value, source = self.given[name], Source.GIVEN
        elif row is not None:
            value, source = spec.from_payload(row.payload), Source.STORED
        # Once a file was adopted, its settings are those stored in the catalog.
        elif name in self.file and FILE not in self.stored:
            value, source = self.file[name], Source.FILE
        return _with_change(Setting(name, value, source, spec.default, spec.help), row)

    def all(self) -> tuple[Setting, ...]:
        """Every setting that exists or has a value, ordered by name."""
        names = {*BY_NAME, *self.given, *self.stored, *self.file}
        return tuple(self._shown(name) for name in sorted(names))

    def _shown(self, name: str) -> Setting:
        try:
            return self.setting(name)
        except InvalidSetting:
            # Stored by another release: listed as it is, so that it can be unset.
            row = self.stored[name]
            shown = Setting(name, row.payload, Source.STORED, None, "not valid for this release")
            return _with_change(shown, row)


def _with_change(setting: Setting, row: StoredSetting | None) -> Setting:
    if row is None:
        return setting
    return replace(setting, changed_at=row.changed_at, changed_by=row.changed_by)
