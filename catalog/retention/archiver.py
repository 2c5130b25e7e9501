"""Segments archived: their data copied on the executors, and a manifest that says what it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from catalog.commit.rows import TIME
from catalog.delta.failures import condition_of
from catalog.delta.store import Store
from catalog.errors import BrokenFile
from catalog.files.paths import FORMATS, escaped, place_of
from catalog.files.storage import Copied, Copier
from catalog.model import Caller
from catalog.retention.archives import manifest_of, target_of
from catalog.retention.search import Candidate
from catalog.schema.stored import read_stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DELTA = "delta"
# Copying takes long and mostly waits, so each task takes few.
_MOST_TASKS = 200

_ASKED_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("number", pa.int64()),
    ("path", pa.string()),
    ("format", pa.string()),
    ("num_rows", pa.int64()),
    ("target", pa.string()),
]
_ASKED = pa.schema(_ASKED_COLUMNS)
_TOLD_DDL = (
    "number BIGINT, files BIGINT, size_bytes BIGINT, sha256 STRING, fresh BOOLEAN, problem STRING"
)
_TOLD_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("number", pa.int64()),
    ("files", pa.int64()),
    ("size_bytes", pa.int64()),
    ("sha256", pa.string()),
    ("fresh", pa.bool_()),
    ("problem", pa.string()),
]
_TOLD = pa.schema(_TOLD_COLUMNS)
_MANIFEST_COLUMNS: list[tuple[str, pa.DataType]] = [
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
MANIFEST = pa.schema(_MANIFEST_COLUMNS)


@dataclass(frozen=True)
class CopyData:
    """Turns batches of what is to be copied into what became of it; runs on the executors."""

    copier: Copier

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows: list[dict[str, Any]] = batch.to_pylist()
            yield pa.RecordBatch.from_pylist([self._copy(**row) for row in rows], schema=_TOLD)

    def _copy(
        self, number: int, path: str, format: str, num_rows: int | None, target: str
    ) -> dict[str, Any]:
        try:
            copied = self.copier.copy(path, format, target, num_rows)
        except BrokenFile as error:
            return {"number": number, "problem": error.message}
        return {"number": number, **vars(copied)}


class Archiver:
    """Archives segments of one datasource; nothing is removed from where it is."""

    def __init__(
        self, spark: SparkSession, store: Store, copier: Copier, archive: str, datasource: str
    ) -> None:
        """Args:
        spark: the user's session, which can reach the archive.
        store: the catalog's table, for the definitions of schemas.
        copier: copies data.
        archive: the location of the archive.
        datasource: whose segments they are.
        """
        self._spark = spark
        self._store = store
        self._copier = copier
        self._archive = archive
        self._manifest = manifest_of(archive, datasource)

    def copy(self, candidates: Sequence[Candidate]) -> tuple[dict[str, Copied], dict[str, str]]:
        """Copies their data; gives what was copied, and what not with the reasons, by id."""
        problems = {each.id: problem for each in candidates if (problem := _unfit(each))}
        fit = [each for each in candidates if each.id not in problems]
        if not fit:
            return {}, problems
        places = [place_of(each.location or "") for each in fit]
        asked = pa.table(
            [
                list(range(len(fit))),
                [place.path for place in places],
                [place.format for place in places],
                [each.num_rows for each in fit],
                [target_of(self._archive, each.id, each.commit_id) for each in fit],
            ],
            schema=_ASKED,
        )
        told: Any = (
            self._spark.createDataFrame(asked)
            .repartition(min(len(fit), _MOST_TASKS))
            .mapInArrow(CopyData(self._copier), _TOLD_DDL)
            .toArrow()
            .to_pylist()
        )
        copied: dict[str, Copied] = {}
        for row in told:
            segment_id, problem = fit[row.pop("number")].id, row.pop("problem")
            if problem is None:
                copied[segment_id] = Copied(**row)
            else:
                problems[segment_id] = problem
        return copied, problems

    def add_to_manifest(
        self,
        candidates: Sequence[Candidate],
        copied: dict[str, Copied],
        version: int,
        caller: Caller,
        now: datetime,
    ) -> None:
        """Adds what was copied to the manifest, with the definitions of the schemas.

        What was found copied may have been added by a run that was stopped after that.
        """
        found = {each.id for each in candidates if not copied[each.id].fresh}
        listed = self._listed(sorted(found)) if found else set()
        rows = [each for each in candidates if (each.id, each.commit_id) not in listed]
        if not rows:
            return
        names = sorted({each.fingerprint for each in rows if each.fingerprint is not None})
        payloads = self._store.payloads_of(names, version)
        ddl = {name: read_stored(name, payload).ddl for name, payload in payloads.items()}
        table = pa.Table.from_pylist(
            [
                {
                    "segment_id": each.id,
                    "commit_id": each.commit_id,
                    "fingerprint": each.fingerprint,
                    "schema": ddl.get(each.fingerprint or ""),
                    "num_rows": each.num_rows,
                    "size_bytes": each.size_bytes,
                    "starts_at": each.starts_at,
                    "ends_at": each.ends_at,
                    "archived_from": each.location,
                    "archived_to": target_of(self._archive, each.id, each.commit_id),
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

    def _listed(self, segment_ids: Sequence[str]) -> set[tuple[str, str]]:
        """Which of these the manifest has already, each with its commit."""
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


def _unfit(candidate: Candidate) -> str | None:
    """Why the data of a segment cannot be archived, as far as its row says so."""
    if candidate.location is None:
        return "it has no location, so there is nothing to copy; drop it yourself"
    place = place_of(candidate.location)
    if place.format == _DELTA:
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
