"""The manifest of a backup: a JSON document with counts and digests of its rows, and of itself."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from catalog.errors import BrokenBackup

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FORMAT = 1
_PROPERTY = re.compile(r"[\w .:,-]*")
_ATTEMPT = re.compile(r"[\w-]*")
_MASK = (1 << 64) - 1

# --- digests --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ContentDigest:
    """A number of rows, and a digest of all their columns that does not depend on their order."""

    rows: int
    digest: str


def hash_sql(columns: Sequence[str]) -> str:
    """The hash of a row; `xxhash64` ignores nulls, so their positions are hashed as well."""
    nulls = (f"{column} IS NULL" for column in columns)
    return f"xxhash64({', '.join((*columns, *nulls))})"


def digests_of(
    frame: DataFrame, columns: Sequence[str], kind: str = "kind"
) -> dict[str, ContentDigest]:
    """Counts and digests of the rows of each kind, in one scan; `kind` is an expression."""
    rows = (
        frame.selectExpr(f"{kind} AS of_kind", f"{hash_sql(columns)} AS hashed")
        .groupBy("of_kind")
        .agg(F.count("*").alias("rows"), F.bit_xor("hashed").alias("digest"))
        .collect()
    )
    return {
        row["of_kind"]: ContentDigest(row["rows"], f"{row['digest'] & _MASK:016x}") for row in rows
    }


def differences(
    expected: Mapping[str, ContentDigest], found: Mapping[str, ContentDigest]
) -> list[str]:
    """Where two accounts of the same rows differ, in words."""
    texts: list[str] = []
    nothing = ContentDigest(0, "")
    for kind in sorted(expected.keys() | found.keys()):
        wanted, there = expected.get(kind, nothing), found.get(kind, nothing)
        if wanted.rows != there.rows:
            texts.append(f"{there.rows} rows of kind {kind} instead of {wanted.rows}")
        elif wanted != there:
            texts.append(f"the rows of kind {kind} have other contents")
    return texts


# --- manifest -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Manifest:
    """What a backup is of, and what its files must contain.

    Attributes:
        layout: the number of the table's layout.
        segment_buckets: the number of segment buckets.
        table_id: Delta's id of the table.
        version: the version that was copied.
        version_at: when that version was committed; None if the history no longer has it.
        made_at: when the backup was made.
        columns: the columns of the rows, in order.
        entries: rows and digest of each kind.
        runs: the same of the recorded runs; None if there was no such table.
        attempt: the directory of its files, which nobody else writes to; empty in backups of
            earlier releases, which had none.
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
    entries: Mapping[str, ContentDigest]
    runs: ContentDigest | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    attempt: str = ""

    @property
    def rows(self) -> int:
        """The number of rows of the catalog."""
        return sum(content.rows for content in self.entries.values())

    @property
    def identity(self) -> str:
        """A unique name of the backup."""
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
        """Reads a manifest; raises `BrokenBackup` if it is damaged or its format is not known."""
        document = _read(text, path)
        try:
            made = cls(
                **{
                    **document,
                    "version_at": _moment(document["version_at"]),
                    "made_at": datetime.fromisoformat(document["made_at"]),
                    "columns": tuple(document["columns"]),
                    "entries": {
                        k: ContentDigest(**each) for k, each in document["entries"].items()
                    },
                    "runs": None if document["runs"] is None else ContentDigest(**document["runs"]),
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
