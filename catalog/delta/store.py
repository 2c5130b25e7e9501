"""Reads of a table: newest version, rows at a version, change feed, history."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from catalog.delta.layout import BUCKETS_PROPERTY, SCHEMA_BUCKETS, bucket_of
from catalog.delta.location import ENTRIES, Location, local_path
from catalog.errors import (
    CatalogReplaced,
    InvalidEpoch,
    InvalidInput,
    UnknownSchema,
    VersionNotFound,
)
from catalog.schema import Schema
from catalog.schema.model import read_stored
from catalog.schema.names import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The verb of commits that move the stable epoch.
ADVANCE = "advance"
# The verb of the commit that fills a table from a backup: its rows keep the ids that they have.
RESTORE_BACKUP = "restore-backup"
# With more names than this, listing them costs more than reading all rows.
MOST_NAMED = 5_000


@dataclass(frozen=True)
class TableHead:
    """The newest version, with a stamp that is unique to its commit.

    A table that replaces another at the same path may reach the same version; the stamps differ.
    """

    version: int
    stamp: str


@dataclass(frozen=True)
class Definition:
    """A stored schema: its payload, and when it was first published."""

    payload: str
    published_micros: int


@dataclass(frozen=True)
class Detail:
    """Delta's description of a table."""

    table_id: str
    uri: str
    format: str
    properties: dict[str, str]
    partition_columns: tuple[str, ...]

    @property
    def path(self) -> Path | None:
        """The resolved path on local disk; None for other storage."""
        return local_path(self.uri)


def read_detail(session: SparkSession, relation: str) -> Detail:
    """Describes a table; raises what Spark raises if there is none."""
    row = session.sql(f"DESCRIBE DETAIL {relation}").collect()[0]
    return Detail(
        table_id=row["id"] or "",
        uri=row["location"] or "",
        format=row["format"] or "",
        properties=dict(row["properties"] or {}),
        partition_columns=tuple(row["partitionColumns"] or ()),
    )


@dataclass(frozen=True)
class Epoch:
    """An epoch as a point in time: the last version before the stable epoch went past it."""

    number: int


AsOf = int | datetime | Epoch | None


class Store:
    """Reads of one of a catalog's tables, all in the catalog's own session."""

    def __init__(self, session: SparkSession, location: Location, table: str = ENTRIES) -> None:
        self.session = session
        self.location = location
        self.table = table
        self.relation = location.table(table)

    def detail(self) -> Detail:
        """Delta's description of the table, now."""
        return read_detail(self.session, self.relation)

    def check_buckets(self, buckets: int) -> int:
        """The number of segment buckets, if the table still has this number.

        Another table may have replaced the one that was opened. A query for buckets that it does
        not have would silently find nothing.
        """
        if self.detail().properties.get(BUCKETS_PROPERTY) != str(buckets):
            raise replaced(self.location)
        return buckets

    def head(self) -> TableHead:
        """The newest version, in one small query."""
        row = self.history(1).collect()[0]
        stamp = f"{row['timestamp'].isoformat()} {row['operation']} {row['userMetadata'] or ''}"
        return TableHead(version=int(row["version"]), stamp=stamp)

    def history(self, limit: int | None = None) -> DataFrame:
        """Delta's history of the table, newest first."""
        bound = "" if limit is None else f" LIMIT {int(limit)}"
        return self.session.sql(f"DESCRIBE HISTORY {self.relation}{bound}")

    def pinned(self, version: int) -> str:
        """The table at one version, for a FROM clause; Spark's cache is not used for it."""
        return f"{self.relation} VERSION AS OF {int(version)}"

    def rows(self, version: int) -> DataFrame:
        """All rows at one version."""
        return self.session.sql(f"SELECT * FROM {self.pinned(version)}")

    def definitions(
        self, version: int, condition: str, limit: int | None = None
    ) -> dict[str, Definition]:
        """Stored schemas at a version, by fingerprint; a live row wins over a retired one."""
        bound = "" if limit is None else f" ORDER BY key LIMIT {int(limit)}"
        rows = self.session.sql(
            "SELECT key, min_by(struct(payload, unix_micros(published_at) AS published), "
            f"kind = 'retired') AS stored FROM {self.pinned(version)} "
            f"WHERE kind IN ('schema', 'retired') AND ({condition}) GROUP BY key{bound}"
        ).collect()
        return {row["key"]: Definition(*row["stored"]) for row in rows}

    def definitions_of(self, fingerprints: Sequence[str], version: int) -> dict[str, Definition]:
        """The definitions of those of these schemas that are stored at a version."""
        if not fingerprints:
            return {}
        buckets = sorted({bucket_of(each, SCHEMA_BUCKETS) for each in fingerprints})
        some = f"bucket IN ({', '.join(map(str, buckets))})"
        if len(fingerprints) > MOST_NAMED:
            wanted = set(fingerprints)
            found = self.definitions(version, some)
            return {name: found[name] for name in wanted & found.keys()}
        names = ", ".join(map(literal, fingerprints))
        return self.definitions(version, f"{some} AND key IN ({names})")

    def payloads_of(self, fingerprints: Sequence[str], version: int) -> dict[str, str]:
        """The same, payloads only."""
        found = self.definitions_of(fingerprints, version)
        return {name: definition.payload for name, definition in found.items()}

    def schemas_of(self, fingerprints: Collection[str | None], version: int) -> dict[str, Schema]:
        """The schemas with these fingerprints at a version; raises if one is not stored."""
        wanted = sorted({each for each in fingerprints if each is not None})
        payloads = self.payloads_of(wanted, version)
        if missing := [each for each in wanted if each not in payloads]:
            raise UnknownSchema(
                f"The schema {missing[0]} is referred to and not stored at version {version}. Run "
                "verify to see what else is wrong.",
                fingerprint=missing[0],
                version=version,
            )
        return {each: read_stored(each, payloads[each]) for each in wanted}

    def changes(self, first: int, last: int) -> DataFrame:
        """The change feed of the versions from `first` to `last`, both included."""
        reader = (
            self.session.read.format("delta")
            .option("readChangeFeed", "true")
            .option("startingVersion", first)
            .option("endingVersion", last)
        )
        if self.location.path is not None:
            return reader.load(f"{self.location.path}/{self.table}")
        return reader.table(self.relation)

    def find_commit(self, commit_id: str, among: int = 200) -> int | None:
        """The version that carries this commit id in its user metadata, if a recent one does."""
        for row in self.history(among).select("version", "userMetadata").collect():
            if commit_id_of(row["userMetadata"]) == commit_id:
                return int(row["version"])
        return None

    def version_as_of(self, as_of: AsOf) -> int:
        """The version that a user means by a number, a time, an epoch, or nothing: the newest."""
        if isinstance(as_of, Epoch):
            return self._readable(self._version_of_epoch(as_of.number))
        if as_of is None:
            return self.head().version
        return self._readable(self._number(as_of))

    def epoch_row(self, version: int) -> dict[str, Any] | None:
        """The row of the stable epoch at a version; None before the first one."""
        rows = self.session.sql(
            f"SELECT payload, commit_id, revision FROM {self.pinned(version)} "
            "WHERE kind = 'epoch' AND bucket = 0"
        ).collect()
        return rows[0].asDict() if rows else None

    def stable_epoch(self, version: int) -> int:
        """The stable epoch at a version; 0 before the first one."""
        row = self.epoch_row(version)
        return 0 if row is None else int(json.loads(row["payload"])["stable"])

    def _version_of_epoch(self, epoch: int) -> int:
        """The last version before the stable epoch went past one that it has reached."""
        check_epoch(epoch)
        newest = self.head().version
        stable = self.stable_epoch(newest)
        if epoch >= stable:
            if epoch == stable:
                return newest
            raise VersionNotFound(
                f"The stable epoch is {stable} and has not reached {epoch} yet.",
                epoch=epoch,
                stable=stable,
            )
        history = self.history().select("version", "userMetadata").collect()
        steps = {int(row["version"]): epoch_of(row["userMetadata"]) for row in history}
        beyond = [version for version, reached in steps.items() if reached and reached > epoch]
        last = min(beyond, default=0) - 1
        # The history may have lost them, or they are of the table that a backup was made of.
        if last not in steps or self.stable_epoch(self._readable(last)) > epoch:
            raise VersionNotFound(
                f"The history does not reach back to epoch {epoch}.", epoch=epoch, stable=stable
            )
        return last

    def _number(self, as_of: int | datetime) -> int:
        if isinstance(as_of, bool) or not isinstance(as_of, int | datetime):
            raise InvalidInput(
                f"as_of is a version number, a datetime or an Epoch, not {as_of!r}.", as_of=as_of
            )
        if isinstance(as_of, datetime):
            return self._version_at(as_of)
        newest = self.head().version
        if not 0 <= as_of <= newest:
            raise VersionNotFound(
                f"Version {as_of} is not in the history; the newest is {newest}.",
                version=as_of,
                newest=newest,
            )
        return as_of

    def _readable(self, version: int) -> int:
        """The version, unless it is older than what the table keeps."""
        try:
            _ = self.session.sql(f"SELECT 1 FROM {self.pinned(version)}").schema
        except PySparkException as error:
            raise VersionNotFound(
                f"Version {version} can no longer be read: {error}", version=version
            ) from error
        return version

    def _version_at(self, moment: datetime) -> int:
        if moment.tzinfo is None:
            raise InvalidInput(
                f"as_of {moment!r} has no time zone; give one, such as datetime.timezone.utc.",
                as_of=moment,
            )
        history = self.history().select("version", "timestamp").collect()
        versions = [int(row["version"]) for row in history if _aware(row["timestamp"]) <= moment]
        if not versions:
            raise VersionNotFound(
                f"The history does not reach back to {moment.isoformat()}.", as_of=moment
            )
        return max(versions)


def replaced(location: Location) -> CatalogReplaced:
    """The error for a table with another number of buckets than the one that was opened."""
    return CatalogReplaced(
        f"The table of {location} is another one than when the catalog was opened, with another "
        "number of buckets; nothing was written. Open the catalog again.",
        location=str(location),
    )


def _aware(timestamp: datetime) -> datetime:
    # collect() returns local time without a zone, which astimezone assumes.
    return timestamp.astimezone()


def commit_id_of(user_metadata: str | None) -> str | None:
    """The commit id in user metadata of ours."""
    document = commit_metadata(user_metadata)
    commit_id = document.get("commit")
    return commit_id if isinstance(commit_id, str) else None


def verb_of(user_metadata: str | None) -> str | None:
    """The verb in user metadata of ours."""
    verb = commit_metadata(user_metadata).get("verb")
    return verb if isinstance(verb, str) else None


def epoch_of(user_metadata: str | None) -> int | None:
    """The epoch that a commit made stable, if it did."""
    document = commit_metadata(user_metadata)
    callers = document.get("callers")
    if document.get("verb") != ADVANCE or not callers:
        return None
    return int(callers[0]["epoch"])


def check_epoch(epoch: Any) -> int:
    """An epoch: a whole number above zero that fits 63 bits."""
    if isinstance(epoch, bool) or not isinstance(epoch, int) or not 0 < epoch < 1 << 63:
        raise InvalidEpoch(
            f"An epoch is a whole number from 1 to 2^63-1, not {epoch!r}.", epoch=epoch
        )
    return epoch


def commit_metadata(user_metadata: str | None) -> dict[str, Any]:
    """The user metadata of a commit of ours; empty for any other."""
    try:
        document = json.loads(user_metadata or "")
    except ValueError:
        return {}
    return document if isinstance(document, dict) and "strata" in document else {}
