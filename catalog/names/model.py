"""Named schemas as values: what a row holds, and what callers are told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from catalog.errors import CorruptSchema
from catalog.evolution.compatibility import ColumnChange, Compatibility, Mode
from catalog.schema import Schema
from catalog.schema.names import shown
from catalog.schema.spark_json import compact


@dataclass(frozen=True, slots=True)
class Reason:
    """What stands between a schema and a version before it, for one column.

    `kind` is a kind of change as in `compatibility`; `against` the number of that version.
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
    """A column that is gone: the type that it had last, and the first version without it."""

    type: str
    since: int


# --- rows -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Head:
    """What a name says of all its versions."""

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
    def from_payload(cls, name: str, payload: str | None) -> Head:
        """What a payload holds."""
        try:
            said = json.loads(payload or "")
            dropped = {path: Dropped(**each) for path, each in said["dropped"].items()}
            return cls(Mode(said["mode"]), said["current"], said["last_breaking"], dropped)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _unreadable(f"schema {name}", error, name=name) from error


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a name; it never changes.

    Attributes:
        number: from 1, without gaps.
        fingerprint: its schema.
        compatible: readers of it can read the data of every version since the last breaking one.
        reasons: why it is not compatible, and what `force` overrode.
        forced: it was refused without `force`.
        base: the version that its writer started from; none if that was not said.
        merged: it is the merge of what its writer gave with what others had registered meanwhile.
        note: what its writer said of it.
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
        """Whether data of versions before it cannot be read in it."""
        return not self.compatible

    def payload(self) -> str:
        """The JSON document that the catalog stores; number and fingerprint stand in the row."""
        document = asdict(self)
        del document["number"], document["fingerprint"]
        return compact(document)

    @classmethod
    def from_payload(cls, key: str, number: int, fingerprint: str, payload: str | None) -> Version:
        """What a payload and the other columns of its row hold."""
        try:
            said = json.loads(payload or "")
            said["reasons"] = tuple(Reason(**each) for each in said["reasons"])
            return cls(number, fingerprint, **said)
        except (ValueError, KeyError, TypeError) as error:
            raise _unreadable(f"version {key}", error, key=key) from error


def _unreadable(what: str, error: Exception, **values: Any) -> CorruptSchema:
    return CorruptSchema(
        f"What is stored as {what} cannot be read: {error!r:.80}. Run verify to see what else is "
        "wrong, and restore the row from an earlier version of the table.",
        **values,
    )


# --- what callers are told ------------------------------------------------------------------------


@dataclass(frozen=True)
class Registered:
    """What a registration did, or would do.

    Attributes:
        version: the number that the schema has under the name.
        fingerprint: the schema of that version; of a merge not the one that was given.
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
    """What a change of the mode did; `commit_id` is empty if the name had the mode already."""

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
    """One version of a named schema, and what the name says of all of them.

    Attributes:
        current: the number of the newest version.
        last_breaking: the newest version in which data of those before it cannot be read.
        dropped: columns that were there once, by path.
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
    """Whether what was made with one version still works with the current one; true if it does.

    Attributes:
        breaking: the versions since then that broke with those before them, with their reasons.
        compatibility: what changed from that version to the current one. Its `forward` says
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
        """Whether data of the version can be read in the current schema."""
        return self.version >= self.last_breaking

    def __bool__(self) -> bool:
        return self.works
