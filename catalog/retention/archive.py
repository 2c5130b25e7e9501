"""The archive of segments: where it is, copies made on the executors, and its manifest."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from catalog.commit.rows import TIME
from catalog.delta.failures import condition_of
from catalog.delta.location import is_relative
from catalog.delta.store import Store
from catalog.errors import BrokenFile, InvalidObject
from catalog.files.paths import FORMATS, escaped, place_of
from catalog.files.storage import Copied, Copier
from catalog.model import Caller
from catalog.objects.model import ObjectNode
from catalog.retention.selection import DueSegment
from catalog.schema.model import read_stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATASTORE, LINK = "datastore", "datastore_link"
_ROLE = "archive"
# Characters that any storage allows in a path; others are written as %XX. @ is among those, so
# that only the folders of commits begin with it.
_PLAIN = re.compile(r"[A-Za-z0-9=+,._-]")
# First characters of names that a file system treats specially or that Spark ignores.
_HIDDEN = ("_", ".")

# --- where (pure) ---------------------------------------------------------------------------------


def archive_of(datasource: str, databases: Collection[str], objects: Iterable[ObjectNode]) -> str:
    """The location to which segments of a datasource are archived; raises if there is not one.

    Args:
        datasource: the datasource.
        databases: those that have a table for it.
        objects: all objects of the types datastore and datastore_link.
    """

    def refused(why: str) -> InvalidObject:
        return InvalidObject(
            f"Segments of {datasource} cannot be archived: {why}", datasource=datasource
        )

    stores: dict[str, ObjectNode] = {}
    names: set[str] = set()
    for each in objects:
        database, _, store = each.path.partition("/")
        if each.type == DATASTORE:
            stores[each.path] = each
        elif each.type == LINK and database in databases and each.body.get("role") == _ROLE:
            names.add(store)
    if not databases:
        raise refused(
            "no table represents the datasource, so no database says where to; put "
            "table/<database>/<name> with its datasource."
        )
    if len(names) != 1:
        among = ", ".join(sorted(databases))
        found = f"several do ({', '.join(sorted(names))})" if names else "none does"
        raise refused(
            f'one datastore_link of database {among} must have {{"role": "{_ROLE}"}}, and {found}.'
        )
    (name,) = names
    if name not in stores:
        raise refused(f"there is no {DATASTORE}/{name}; put it.")
    return _location(stores[name])


def _location(store: ObjectNode) -> str:
    location = store.body.get("location")
    if not isinstance(location, str) or not location.strip("/") or is_relative(location):
        raise InvalidObject(
            f"{store.key} must have the location of a folder in its body, a whole path or URI such "
            f"as s3://bucket/archive, not {location!r:.80}.",
            key=store.key,
        )
    return location.rstrip("/")


def target_of(archive: str, segment_id: str, commit_id: str) -> str:
    """The folder of one segment as one commit left it.

    It contains the commit id: a segment that is published again under its id gets another folder,
    and no folder is inside that of another segment. Nothing in an archive is ever replaced.
    """
    return "/".join([archive, *map(_written, segment_id.split("/")), f"@{_written(commit_id)}"])


def manifest_of(archive: str, datasource: str) -> str:
    """The folder of a datasource's manifest; no segment has it, because of the leading _."""
    return f"{archive}/{_written(datasource)}/_manifest"


def _written(part: str) -> str:
    """A name as one part of a path: never empty, hidden, `.` or `..`."""
    if not part:
        return "%"
    text = "".join(c if _PLAIN.match(c) else _escaped(c) for c in part)
    return _escaped(text[0]) + text[1:] if text.startswith(_HIDDEN) else text


def _escaped(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode())


# --- copies and manifest --------------------------------------------------------------------------

# Copying mostly waits, so each task gets few segments.
_MOST_TASKS = 200
_REQUEST_DDL = "number BIGINT, path STRING, format STRING, num_rows BIGINT, target STRING"
_RESULT_DDL = (
    "number BIGINT, files BIGINT, size_bytes BIGINT, sha256 STRING, fresh BOOLEAN, problem STRING"
)
_RESULT: list[tuple[str, pa.DataType]] = [
    ("number", pa.int64()),
    ("files", pa.int64()),
    ("size_bytes", pa.int64()),
    ("sha256", pa.string()),
    ("fresh", pa.bool_()),
    ("problem", pa.string()),
]
_MANIFEST: list[tuple[str, pa.DataType]] = [
    ("segment_id", pa.string()),
    ("commit_id", pa.string()),
    ("fingerprint", pa.string()),
    ("schema", pa.string()),
    ("num_rows", pa.int64()),
    ("size_bytes", pa.int64()),
    ("starts_at", TIME),
    ("ends_at", TIME),
    ("archived_from", pa.string()),
    ("archived_to", pa.string()),
    ("format", pa.string()),
    ("files", pa.int64()),
    ("archived_bytes", pa.int64()),
    ("sha256", pa.string()),
    ("archived_at", TIME),
    ("archived_by", pa.string()),
    ("run_id", pa.string()),
]
MANIFEST = pa.schema(_MANIFEST)


@dataclass(frozen=True)
class CopyData:
    """Copies the requested data, batch by batch, on the executors."""

    copier: Copier

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows: list[dict[str, Any]] = batch.to_pylist()
            yield pa.RecordBatch.from_pylist(
                [self._copy(**row) for row in rows], schema=pa.schema(_RESULT)
            )

    def _copy(
        self, number: int, path: str, format: str, num_rows: int | None, target: str
    ) -> dict[str, Any]:
        try:
            copied = self.copier.copy(path, format, target, num_rows)
        except BrokenFile as error:
            return {"number": number, "problem": error.message}
        return {"number": number, **vars(copied)}


class Archiver:
    """Archives segments of one datasource; the original data stays."""

    def __init__(
        self, spark: SparkSession, store: Store, copier: Copier, archive: str, datasource: str
    ) -> None:
        """Args:
        spark: the user's session, which can reach the archive.
        store: the catalog's table, for the definitions of schemas.
        copier: copies data.
        archive: the location of the archive.
        datasource: the datasource.
        """
        self._spark = spark
        self._store = store
        self._copier = copier
        self._archive = archive
        self._manifest = manifest_of(archive, datasource)

    def copy(self, segments: Sequence[DueSegment]) -> tuple[dict[str, Copied], dict[str, str]]:
        """Copies their data; returns the copies, and the reasons for what was not copied, by id."""
        problems = {each.id: problem for each in segments if (problem := _unfit(each))}
        fit = [each for each in segments if each.id not in problems]
        if not fit:
            return {}, problems
        requests: list[tuple[Any, ...]] = []
        for number, each in enumerate(fit):
            place, target = place_of(each.location or ""), self._target(each)
            requests.append((number, place.path, place.format, each.num_rows, target))
        rows: Any = (
            self._spark.createDataFrame(requests, _REQUEST_DDL)
            .repartition(min(len(fit), _MOST_TASKS))
            .mapInArrow(CopyData(self._copier), _RESULT_DDL)
            .toArrow()
            .to_pylist()
        )
        copied: dict[str, Copied] = {}
        for row in rows:
            segment_id, problem = fit[row.pop("number")].id, row.pop("problem")
            if problem is None:
                copied[segment_id] = Copied(**row)
            else:
                problems[segment_id] = problem
        return copied, problems

    def add_to_manifest(
        self,
        segments: Sequence[DueSegment],
        copied: Mapping[str, Copied],
        version: int,
        caller: Caller,
        now: datetime,
    ) -> None:
        """Adds copied segments to the manifest, with the definitions of their schemas.

        A copy that existed already may be listed, by a run that was stopped afterwards.
        """
        found = {each.id for each in segments if not copied[each.id].fresh}
        listed = self._listed(sorted(found)) if found else set()
        rows = [each for each in segments if (each.id, each.commit_id) not in listed]
        if not rows:
            return
        names = sorted({each.fingerprint for each in rows if each.fingerprint is not None})
        payloads = self._store.payloads_of(names, version)
        ddl = {name: read_stored(name, payload).ddl for name, payload in payloads.items()}
        table = pa.Table.from_pylist(
            [
                {
                    **vars(each),
                    "segment_id": each.id,
                    "schema": ddl.get(each.fingerprint or ""),
                    "archived_from": each.location,
                    "archived_to": self._target(each),
                    "format": place_of(each.location or "").format,
                    "files": copied[each.id].files,
                    "archived_bytes": copied[each.id].size_bytes,
                    "sha256": copied[each.id].sha256,
                    "archived_at": now,
                    "archived_by": caller.actor,
                    "run_id": caller.run_id,
                }
                for each in rows
            ],
            schema=MANIFEST,
        )
        self._spark.createDataFrame(table).coalesce(1).write.mode("append").parquet(self._manifest)

    def _target(self, segment: DueSegment) -> str:
        return target_of(self._archive, segment.id, segment.commit_id)

    def _listed(self, segment_ids: Sequence[str]) -> set[tuple[str, str]]:
        """Those that the manifest lists already, each with its commit."""
        try:
            rows = (
                self._spark.read.options(ignoreMissingFiles="false", ignoreCorruptFiles="false")
                .parquet(escaped(self._manifest))
                .where(F.col("segment_id").isin(*segment_ids))
                .select("segment_id", "commit_id")
                .collect()
            )
        except PySparkException as error:
            if condition_of(error).startswith("PATH_NOT_FOUND"):
                return set()
            raise
        return {(row["segment_id"], row["commit_id"]) for row in rows}


def _unfit(segment: DueSegment) -> str | None:
    """Why the data of a segment cannot be archived, if its row shows that."""
    if segment.location is None:
        return "it has no location, so there is nothing to copy; drop it yourself"
    place = place_of(segment.location)
    if place.format == "delta":
        return (
            f"{place.path} is a Delta table, which is more than its files; archive it by a rule of "
            "your own, such as DEEP CLONE, and drop the segment"
        )
    if place.format not in FORMATS:
        return (
            f"its location {place.path} does not say a format that is known; name it, as in "
            f"parquet.`{place.path}`"
        )
    return None
