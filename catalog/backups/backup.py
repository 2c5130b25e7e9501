"""Backups: one version of the catalog as files at a path, checked before it is complete.

Files are written, listed and read by Spark, so that any storage will do.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pyspark.errors import PySparkException

from catalog.backups.manifest import ContentDigest, Manifest, differences, digests_of
from catalog.context import Call
from catalog.delta.failures import condition_of, first_line
from catalog.delta.layout import (
    BUCKETS_PROPERTY,
    COLUMNS,
    LAYOUT_PROPERTY,
    RESTORED_PROPERTY,
    RESTORING_PROPERTY,
    TABLE_PROPERTIES,
    nulls,
    row_bucket_sql,
)
from catalog.delta.location import Location, absolute
from catalog.delta.runs import RUNS, RunLog
from catalog.delta.store import Detail, Store
from catalog.environment import Environment
from catalog.errors import BackupNotFound, BrokenBackup, InvalidInput, PathOccupied
from catalog.progress import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

# No table of a catalog has such a name: a backup is never written over one.
_ENTRIES = "backup_entries"
_RUNS = "backup_runs"
_MANIFEST = "backup_manifest"
_OURS = re.compile(rf"/({_ENTRIES}|{_RUNS}|{_MANIFEST})/([^/]+/)?[^/]+$")
_MISSING = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")
_STEPS = 4


@dataclass(frozen=True)
class BackupReport:
    """Contents of a backup, or of its dry run.

    Attributes:
        version: the version that was copied.
        entries: rows and digest of each kind.
        runs: the same of the recorded runs, if there are any.
        repeated: the path had a backup of this version already; it was only checked.
    """

    path: str
    version: int
    entries: dict[str, ContentDigest]
    runs: ContentDigest | None = None
    repeated: bool = False
    dry_run: bool = False

    @property
    def rows(self) -> int:
        """The number of rows of the catalog."""
        return sum(content.rows for content in self.entries.values())

    def facts(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "version": self.version,
            "rows": self.rows,
            "runs": 0 if self.runs is None else self.runs.rows,
            "repeated": self.repeated,
            "dry_run": self.dry_run,
        }

    def figures(self) -> dict[str, float]:
        return {"rows": self.rows}


# --- files ----------------------------------------------------------------------------------------


class BackupFiles:
    """The files of one backup; without a manifest there is no backup.

    Each attempt writes to directories of its own, and nothing is ever replaced. So the files of a
    manifest are complete, whatever other attempts do.
    """

    def __init__(self, session: SparkSession, path: str) -> None:
        place = Location.parse(path)
        if place.path is None:
            raise InvalidInput(
                f"A backup is written to a path, such as /data/backup or s3://…, not to {path!r}.",
                path=path,
            )
        self._session = session
        self.path = str(absolute(session, place))

    def manifest(self) -> Manifest | None:
        """The manifest; None if the backup was never completed."""
        reader = self._session.read.option("recursiveFileLookup", "true")
        try:
            # If several were written at the same moment, the first in this order is valid.
            rows = (
                reader.text(f"{self.path}/{_MANIFEST}", wholetext=True)
                .selectExpr("value", "_metadata.file_modification_time AS at")
                .orderBy("at", "value")
                .limit(1)
                .collect()
            )
        except PySparkException as error:
            if condition_of(error).split(".")[0] in _MISSING:
                return None
            raise
        # No rows while it is being written.
        return Manifest.from_json(rows[0]["value"], self.path) if rows else None

    def found(self) -> Manifest:
        """The manifest; raises `BackupNotFound` if there is none."""
        manifest = self.manifest()
        if manifest is None:
            raise BackupNotFound(
                f"There is no backup at {self.path}: it has no manifest. If a backup was stopped "
                "there, run it again.",
                path=self.path,
            )
        return manifest

    def check_free(self) -> None:
        """Refuses a path with files that are not those of a backup."""
        reader = self._session.read.format("binaryFile").option("recursiveFileLookup", "true")
        try:
            paths = reader.load(self.path).select("path")
            others = paths.where(f"NOT path RLIKE '{_OURS.pattern}'").take(1)
            found = [row["path"] for row in others]
        except PySparkException as error:
            condition = condition_of(error)
            if condition.split(".")[0] in _MISSING:
                return
            if not condition.startswith("DELTA_"):
                raise
            found = [self.path]  # a Delta table cannot be listed as files
        if found:
            raise PathOccupied(
                f"{self.path} holds something else already, such as {unquote(found[0])}; a backup "
                "needs a path of its own.",
                path=self.path,
            )

    def write_entries(self, rows: DataFrame, attempt: str) -> None:
        """Writes the rows of the catalog."""
        rows.orderBy("kind", "bucket", "key").write.parquet(f"{self.path}/{_ENTRIES}/{attempt}")

    def write_runs(self, rows: DataFrame, attempt: str) -> None:
        """Writes the recorded runs."""
        rows.orderBy("started_at", "run_id").write.parquet(f"{self.path}/{_RUNS}/{attempt}")

    def complete(self, manifest: Manifest) -> Manifest:
        """Completes the backup, unless another attempt has; returns the valid manifest."""
        if self.manifest() is None:
            text = self._session.createDataFrame([(manifest.to_json(),)], "value STRING")
            # Spark moves the file to its place when it is complete.
            text.coalesce(1).write.text(f"{self.path}/{_MANIFEST}/{manifest.attempt}")
        return self.found()

    def entries(self, attempt: str) -> DataFrame:
        """The rows of the catalog."""
        return self._session.read.parquet(f"{self.path}/{_ENTRIES}/{attempt}")

    def runs(self, attempt: str) -> DataFrame:
        """The recorded runs."""
        return self._session.read.parquet(f"{self.path}/{_RUNS}/{attempt}")

    def check(self, manifest: Manifest) -> None:
        """Reads all files and compares them with the manifest; raises `BrokenBackup`."""
        columns, attempt = manifest.columns, manifest.attempt
        try:
            entries = digests_of(self.entries(attempt), columns) if columns else {}
            wrong = differences(manifest.entries, entries)
            if manifest.runs is not None:
                wrong += differences(
                    {RUNS: manifest.runs}, {RUNS: digest_of_runs(self.runs(attempt))}
                )
        except Exception as error:  # damaged files raise many exceptions, also of Java
            raise BrokenBackup(
                f"The backup at {self.path} cannot be read: {first_line(error)}. Use another "
                "backup.",
                path=self.path,
            ) from error
        if wrong:
            raise BrokenBackup(
                f"The backup at {self.path} is damaged: it has {'; '.join(wrong)}. Use another "
                "backup.",
                path=self.path,
            )


def digest_of_runs(runs: DataFrame) -> ContentDigest:
    """Number and digest of recorded runs."""
    # A map cannot be hashed, as its entries have no order.
    hashed = [
        f"array_sort(map_entries({name}))" if kind.startswith("map<") else name
        for name, kind in runs.dtypes
    ]
    return digests_of(runs, hashed, f"'{RUNS}'").get(RUNS, ContentDigest(0, f"{0:016x}"))


def rows_of(files: BackupFiles, manifest: Manifest, buckets: int) -> DataFrame:
    """The rows of a backup with all columns of the table, for a catalog with these buckets."""
    rows = files.entries(manifest.attempt)
    return rows.selectExpr("*", *nulls(rows.columns)).selectExpr(
        *(
            f"{row_bucket_sql(buckets)} AS bucket" if column.name == "bucket" else column.name
            for column in COLUMNS
        )
    )


# --- making one -----------------------------------------------------------------------------------


class Backup:
    """Writes one backup. It changes nothing in the catalog and needs no lock or queue."""

    def __init__(
        self, store: Store, runs: RunLog, files: BackupFiles, call: Call, environment: Environment
    ) -> None:
        self._store = store
        self._runs = runs
        self._files = files
        self._call = call
        self._environment = environment

    def make(self, version: int, dry_run: bool) -> BackupReport:
        """Copies a version; an existing backup of the same version is only checked.

        Of several concurrent attempts, the first to write its manifest makes the backup; the
        others find it.
        """
        detail = self._store.detail()
        existing = self._files.manifest()
        if existing is not None:
            return self._repeated(existing, detail, version, dry_run)
        self._files.check_free()
        self._step("count", 0)
        rows = self._store.rows(version)
        entries = digests_of(rows, rows.columns)
        # The runs need no transaction with the catalog: one version of their table will do.
        log_store = self._runs.store if self._runs.exists() else None
        runs = None if log_store is None else log_store.rows(log_store.head().version)
        counted = None if runs is None else digest_of_runs(runs)
        report = BackupReport(self._files.path, version, entries, counted, dry_run=dry_run)
        if dry_run:
            return report
        self._step("copy", 1)
        attempt = self._environment.new_id()
        self._files.write_entries(rows, attempt)
        self._environment.at("backup.copied")
        if runs is not None:
            self._files.write_runs(runs, attempt)
        manifest = Manifest(
            layout=int(detail.properties[LAYOUT_PROPERTY]),
            segment_buckets=int(detail.properties[BUCKETS_PROPERTY]),
            table_id=detail.table_id,
            version=version,
            version_at=self._time_of(version),
            made_at=self._environment.clock(),
            actor=self._call.caller.actor,
            reason=self._call.caller.reason,
            columns=tuple(rows.columns),
            entries=entries,
            runs=counted,
            properties=_kept_properties(detail),
            attempt=attempt,
        )
        self._step("check", 2)
        self._check(manifest)
        self._environment.at("backup.checked")
        self._step("complete", 3)
        valid = self._files.complete(manifest)
        if valid.attempt != attempt:
            return self._repeated(valid, detail, version, dry_run)
        log.info("version %d backed up to %s: %d rows", version, report.path, report.rows)
        return report

    def _repeated(
        self, existing: Manifest, detail: Detail, version: int, dry_run: bool
    ) -> BackupReport:
        path = self._files.path
        if (existing.table_id, existing.version) != (detail.table_id, version):
            raise PathOccupied(
                f"{path} holds the backup of version {existing.version} of table "
                f"{existing.table_id}, and this is version {version} of {detail.table_id}. A "
                "backup is never replaced; choose another path.",
                path=path,
                version=existing.version,
            )
        self._files.check(existing)
        return BackupReport(path, version, dict(existing.entries), existing.runs, True, dry_run)

    def _time_of(self, version: int) -> datetime | None:
        rows = self._store.history().where(f"version = {int(version)}").select("timestamp")
        return next((row["timestamp"].astimezone() for row in rows.collect()), None)

    def _check(self, manifest: Manifest) -> None:
        """Reads back what was written, before the backup can be relied on."""
        try:
            self._files.check(manifest)
        except BrokenBackup as error:
            raise BrokenBackup(
                f"What was written to {self._files.path} is not what the catalog holds, so the "
                f"backup was not completed: {error.message}",
                path=self._files.path,
            ) from error

    def _step(self, what: str, done: int) -> None:
        self._call.progress(Step(f"backup: {what}", done, _STEPS))


def _kept_properties(detail: Detail) -> dict[str, str]:
    """The table properties that a restore sets again: those that Strata sets or owns."""
    replaced = {LAYOUT_PROPERTY, BUCKETS_PROPERTY, RESTORED_PROPERTY, RESTORING_PROPERTY}
    return {
        name: value
        for name, value in detail.properties.items()
        if name in TABLE_PROPERTIES or (name.startswith("strata.") and name not in replaced)
    }
