"""Named schemas as values: names and their keys, what rows hold, and the results of calls."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from catalog.delta.layout import NAME_BUCKETS, bucket_of
from catalog.errors import CorruptSchema, InvalidName
from catalog.evolution.compatibility import ColumnChange, Compatibility, Mode
from catalog.model import LONGEST_DATASOURCE, text_problem
from catalog.schema import Schema
from catalog.schema.names import shown
from catalog.schema.spark_json import compact

CURRENT = "current"
# No definition of a schema ends like this: neither DDL nor JSON.
_REFERENCE = re.compile(r"([^/]+)@([0-9]{1,9}|current)", re.DOTALL)


def check_name(name: Any) -> str:
    """The name, checked; the limits are those of a datasource's name."""
    if not isinstance(name, str) or not name or "/" in name:
        raise InvalidName(
            f"{name!r:.80} is not a name for a schema: it must be a text that is not empty and has "
            "no slash, such as orders.",
            name=name,
        )
    if len(name) > LONGEST_DATASOURCE:
        raise InvalidName(
            f"The name {name[:80]!r}… has {len(name)} characters; at most {LONGEST_DATASOURCE} are "
            "kept.",
            name=name,
        )
    if problem := text_problem(name):
        raise InvalidName(f"The name {name!r} {problem}.", name=name)
    return name


def name_bucket(name: str) -> int:
    """The bucket of a name and of its versions."""
    return bucket_of(name, NAME_BUCKETS)


def version_key(name: str, number: int) -> str:
    """The key of one version of a name."""
    return f"{name}/{number}"


def parts_of(key: str) -> tuple[str, int]:
    """The name and the number in the key of a version."""
    name, _, number = key.rpartition("/")
    return name, int(number)


def reference(text: str) -> tuple[str, int | None] | None:
    """The name and the number in `orders@3`; no number in `orders@current`; none in other texts."""
    found = _REFERENCE.fullmatch(text)
    if found is None:
        return None
    name, number = found.groups()
    return name, None if number == CURRENT else int(number)


# --- rows -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a schema may not follow an earlier version, for one column.

    `kind` is a kind of change as in `compatibility`, `against` the number of that version.
    """

    path: str
    kind: str
    old: str | None
    new: str | None
    why: str
    against: int

    @classmethod
    def of(cls, change: ColumnChange, against: int) -> Reason:
        """A change as a reason."""
        return cls(change.path, str(change.kind), change.old, change.new, change.reason, against)

    def __str__(self) -> str:
        return f"{shown(self.path)} was {self.kind}: {self.why} (against version {self.against})"


@dataclass(frozen=True, slots=True)
class Dropped:
    """A dropped column: its last type, and the first version without it."""

    type: str
    since: int


@dataclass(frozen=True, slots=True)
class NameHead:
    """The row of a name: its mode, its current version and the columns that were dropped."""

    mode: Mode
    current: int
    last_breaking: int
    dropped: Mapping[str, Dropped] = field(default_factory=dict)

    def payload(self) -> str:
        """The JSON document that the catalog stores."""
        return compact(
            {
                "mode": str(self.mode),
                "current": self.current,
                "last_breaking": self.last_breaking,
                "dropped": {path: asdict(each) for path, each in self.dropped.items()},
            }
        )

    @classmethod
    def from_payload(cls, name: str, payload: str | None) -> NameHead:
        """The head in a payload."""
        try:
            document = json.loads(payload or "")
            dropped = {path: Dropped(**each) for path, each in document["dropped"].items()}
            return cls(
                Mode(document["mode"]), document["current"], document["last_breaking"], dropped
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _unreadable(f"schema {name}", error, name=name) from error


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a name; it never changes.

    Attributes:
        number: from 1, without gaps.
        fingerprint: its schema.
        compatible: readers with it can read the data of every version since the last breaking one.
        reasons: why it is not compatible, and what `force` overrode.
        forced: it was refused without `force`.
        base: the version that its writer started from; none if not given.
        merged: it is the merge of the writer's schema with versions registered since its base.
        note: the writer's note.
    """

    number: int
    fingerprint: str
    compatible: bool = True
    reasons: tuple[Reason, ...] = ()
    forced: bool = False
    base: int | None = None
    merged: bool = False
    note: str = ""

    @property
    def breaking(self) -> bool:
        """Whether data of earlier versions cannot be read with it."""
        return not self.compatible

    def payload(self) -> str:
        """The JSON document that the catalog stores; number and fingerprint have columns."""
        document = asdict(self)
        del document["number"], document["fingerprint"]
        return compact(document)

    @classmethod
    def from_payload(cls, key: str, number: int, fingerprint: str, payload: str | None) -> Version:
        """The version in a payload and the other columns of its row."""
        try:
            document = json.loads(payload or "")
            document["reasons"] = tuple(Reason(**each) for each in document["reasons"])
            return cls(number, fingerprint, **document)
        except (ValueError, KeyError, TypeError) as error:
            raise _unreadable(f"version {key}", error, key=key) from error


def _unreadable(what: str, error: Exception, **values: Any) -> CorruptSchema:
    return CorruptSchema(
        f"What is stored as {what} cannot be read: {error!r:.80}. Run verify to see what else is "
        "wrong, and restore the row from an earlier version of the table.",
        **values,
    )


# --- results --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Registered:
    """The result of a registration.

    Attributes:
        version: the number that the schema has under the name.
        fingerprint: the schema of that version; after a merge not the given one.
        compatible, reasons, forced, merged: as in `Version`.
        breaking: it is now the last breaking version.
        repeated: the schema was current already; nothing was written.
        version_of_table: the version of the table at which it is visible.
        commit_id: empty if nothing was written.
    """

    name: str
    version: int
    fingerprint: str
    compatible: bool
    reasons: tuple[Reason, ...]
    forced: bool
    breaking: bool
    repeated: bool
    merged: bool
    version_of_table: int
    commit_id: str = ""
    retries: int = 0
    dry_run: bool = False

    def facts(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "version": self.version,
            "fingerprint": self.fingerprint,
            "compatible": self.compatible,
            "breaking": self.breaking,
            "forced": self.forced,
            "merged": self.merged,
            "repeated": self.repeated,
            "version_of_table": self.version_of_table,
            "commit_id": self.commit_id or None,
            "dry_run": self.dry_run,
            "retries": self.retries,
        }

    def figures(self) -> dict[str, float]:
        return {
            "registered": int(not (self.repeated or self.dry_run)),
            "conflicts_retried": self.retries,
        }


@dataclass(frozen=True)
class ModeSet:
    """The result of setting a mode; `commit_id` is empty if the name had it already."""

    name: str
    mode: Mode
    before: Mode
    version_of_table: int
    commit_id: str = ""
    retries: int = 0

    def facts(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "before": str(self.before),
            "mode": str(self.mode),
            "version_of_table": self.version_of_table,
            "commit_id": self.commit_id or None,
            "retries": self.retries,
        }

    def figures(self) -> dict[str, float]:
        return {"conflicts_retried": self.retries}


@dataclass(frozen=True)
class NamedSchema:
    """One version of a named schema, with the row of its name.

    Attributes:
        current: the number of the newest version.
        last_breaking: the newest version with which data of earlier ones cannot be read.
        dropped: dropped columns, by path.
    """

    name: str
    version: int
    schema: Schema
    mode: Mode
    current: int
    last_breaking: int
    dropped: Mapping[str, Dropped]
    compatible: bool
    reasons: tuple[Reason, ...]
    forced: bool
    merged: bool
    base: int | None
    note: str
    registered_by: str | None
    registered_at: datetime
    commit_id: str

    @property
    def fingerprint(self) -> str:
        """The id of the schema."""
        return self.schema.fingerprint


@dataclass(frozen=True)
class StillWorks:
    """Whether data of one version can be read with the current one; true if it can.

    Attributes:
        breaking: the breaking versions since then, with their reasons.
        compatibility: the changes from that version to the current one. Its `forward` says
            whether a reader that stays with the version can read data of the current one.
    """

    name: str
    version: int
    current: int
    last_breaking: int
    breaking: Mapping[int, tuple[Reason, ...]]
    compatibility: Compatibility

    @property
    def works(self) -> bool:
        """Whether data of the version can be read with the current schema."""
        return self.version >= self.last_breaking

    def __bool__(self) -> bool:
        return self.works
