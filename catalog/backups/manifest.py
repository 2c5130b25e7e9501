"""The manifest of a backup: what it holds, as one JSON document that knows when it is damaged."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any

from catalog.backups.digests import Content
from catalog.errors import BrokenBackup

FORMAT = 1
_PROPERTY = re.compile(r"[\w .:,-]*")
_ATTEMPT = re.compile(r"[\w-]*")


@dataclass(frozen=True)
class Manifest:
    """What a backup is of, and what must be found in its files.

    Attributes:
        layout: the number of the table's layout.
        segment_buckets: among how many buckets its segments are spread.
        table_id: Delta's id of the table.
        version: the version that was copied.
        version_at: when that version came about; none if the history no longer says so.
        made_at: when the backup was made.
        columns: the columns of the rows, in order.
        entries: rows and digest of each kind.
        runs: the same of the recorded runs; none if there was no such table.
        attempt: the directory that its files are in, which nobody else writes to; empty in backups
            of earlier releases, which had none.
    """

    layout: int
    segment_buckets: int
    table_id: str
    version: int
    version_at: datetime | None
    made_at: datetime
    actor: str
    reason: str
    columns: tuple[str, ...]
    entries: Mapping[str, Content]
    runs: Content | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    attempt: str = ""

    @property
    def rows(self) -> int:
        """How many rows of the catalog it holds."""
        return sum(content.rows for content in self.entries.values())

    @property
    def identity(self) -> str:
        """A name for the backup that no other has."""
        return _digest(self._document())[:32]

    def to_json(self) -> str:
        """The manifest as one line, with a digest of itself."""
        document = self._document()
        return _text({**document, "digest": _digest(document)})

    def _document(self) -> dict[str, Any]:
        return {
            "strata_backup": FORMAT,
            **vars(self),
            "version_at": None if self.version_at is None else self.version_at.isoformat(),
            "made_at": self.made_at.isoformat(),
            "columns": list(self.columns),
            "entries": {kind: asdict(content) for kind, content in self.entries.items()},
            "runs": None if self.runs is None else asdict(self.runs),
            "properties": dict(self.properties),
        }

    @classmethod
    def from_json(cls, text: str, path: str) -> Manifest:
        """Reads a manifest; raises if it is damaged, or of a format that is not known here."""
        document = _read(text, path)
        try:
            made = cls(
                **{
                    **document,
                    "version_at": _moment(document["version_at"]),
                    "made_at": datetime.fromisoformat(document["made_at"]),
                    "columns": tuple(document["columns"]),
                    "entries": {k: Content(**each) for k, each in document["entries"].items()},
                    "runs": None if document["runs"] is None else Content(**document["runs"]),
                    # Earlier releases wrote to one place, whoever did.
                    "attempt": _name(document.get("attempt", "")),
                }
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _broken(path, f"does not say what it should ({error!r})") from error
        strange = {n: v for n, v in made.properties.items() if not _PROPERTY.fullmatch(f"{n}{v}")}
        if strange:
            raise _broken(path, f"has table properties that cannot be: {strange}")
        return made


def _name(text: str) -> str:
    if not _ATTEMPT.fullmatch(text):
        raise ValueError(f"a directory that cannot be: {text!r}")
    return text


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _read(text: str, path: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise _broken(path, "is not a JSON document") from error
    if not isinstance(document, dict) or "strata_backup" not in document:
        raise _broken(path, "is not that of a backup")
    if document["strata_backup"] != FORMAT:
        raise BrokenBackup(
            f"The backup at {path} has format {document['strata_backup']!r} and this release knows "
            f"format {FORMAT}; use the release that made it.",
            path=path,
            format=document["strata_backup"],
        )
    digest = document.pop("digest", None)
    if digest != _digest(document):
        raise _broken(path, "was changed after it was written")
    del document["strata_backup"]
    return document


def _broken(path: str, what: str) -> BrokenBackup:
    return BrokenBackup(
        f"The manifest of the backup at {path} {what}; use another backup.", path=path
    )


def _digest(document: Mapping[str, Any]) -> str:
    return sha256(_text(document).encode()).hexdigest()


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, sort_keys=True)
