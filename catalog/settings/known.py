"""The settings that a catalog knows, in one place: what each is for and what it may be (pure)."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from catalog.errors import InvalidSetting
from catalog.settings import sorts
from catalog.settings.sorts import Sort

# Which file was taken over; written by the doors alone.
FILE = "config.file"
_FREE = re.compile(r"(app|secret)\.[a-z0-9_]+(\.[a-z0-9_]+)*")
_TELLING = re.compile(r"(^|[._])(password|passwd|secret|token|credentials?|api_key)([._]|$)")
LONGEST_NAME = 200


@dataclass(frozen=True)
class Known:
    """A setting that can be made; a default of none stands for what its help says."""

    name: str
    sort: Sort
    default: Any
    help: str

    def check(self, value: Any) -> Any:
        """The value as it is used; raises `InvalidSetting`."""
        try:
            return self.sort.check(value)
        except ValueError as error:
            raise InvalidSetting(
                f"{self.name} cannot be set: {error}. It takes {self.sort.what}.", name=self.name
            ) from None

    def payload(self, value: Any) -> str:
        """A checked value as it is stored."""
        return json.dumps(self.sort.stored(value), ensure_ascii=False)

    def from_payload(self, payload: str | None) -> Any:
        """A value out of storage, checked again: a later release may have allowed more."""
        try:
            return self.check(json.loads(payload or ""))
        except json.JSONDecodeError as error:
            raise InvalidSetting(
                f"What is stored for {self.name} is not JSON: {error}. Set it again, or unset it.",
                name=self.name,
            ) from None


KNOWN = (
    Known(
        "deadline",
        sorts.SECONDS,
        120.0,
        "how long a call waits for others before it gives up",
    ),
    Known(
        "cleanup.grace",
        sorts.DURATION,
        timedelta(days=1),
        "how long a schema must have been unused to be retired, and retired to be purged",
    ),
    Known(
        "cleanup.limit",
        sorts.COUNT,
        10_000,
        "how many schemas a clean-up retires, and purges, at most",
    ),
    Known(
        "maintain.retain",
        sorts.DURATION,
        None,
        "how long removed files are kept; as the table says if it is not set",
    ),
    Known(
        "maintain.poller_lag",
        sorts.DURATION,
        timedelta(days=7),
        "how far behind a poller may be; less is not retained",
    ),
    Known("backfill.batch", sorts.COUNT, 10_000, "segments in one commit of a backfill"),
    Known("publish_files.batch", sorts.COUNT, 10_000, "files in one commit"),
    Known(
        "recover.keep",
        sorts.DURATION,
        timedelta(days=30),
        "how long it stays known what became of an operation",
    ),
    Known(
        "operation.lease",
        sorts.DURATION,
        timedelta(hours=1),
        "how long the owner of an operation is waited for",
    ),
    Known(
        "poll.interval",
        sorts.SECONDS,
        None,
        "how often the word poll looks; once and no more if it is not set",
    ),
    Known("report.versions", sorts.COUNT, 500, "versions whose growth a report shows"),
    Known(FILE, sorts.TEXT, None, "the configuration file whose settings were taken over"),
)
BY_NAME = {known.name: known for known in KNOWN}
FREE_HELP = "of an application's own"


def default_of(name: str) -> Any:
    """The default of a setting of ours."""
    return BY_NAME[name].default


def known_setting(name: Any) -> Known:
    """The setting with a name: one of ours, or one under `app.` or `secret.`, which are free."""
    if isinstance(name, str) and name in BY_NAME:
        return BY_NAME[name]
    if isinstance(name, str) and _FREE.fullmatch(name) and len(name) <= LONGEST_NAME:
        secret = name.startswith("secret.") or _TELLING.search(name) is not None
        return Known(name, sorts.SECRET if secret else sorts.ANYTHING, None, FREE_HELP)
    near = difflib.get_close_matches(str(name), BY_NAME, 1)
    hint = f"Did you mean {near[0]}?" if near else f"Known are {', '.join(BY_NAME)}."
    raise InvalidSetting(
        f"There is no setting {name!r}. {hint} Names under app. and secret. are free, in small "
        "letters, digits, _ and dots.",
        name=name,
    )


def checked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name, each with its value checked; the file that they are from is no such."""
    if FILE in values:
        raise InvalidSetting(f"{FILE} is written by the doors; leave it out.", name=FILE)
    return {name: known_setting(name).check(value) for name, value in values.items()}
