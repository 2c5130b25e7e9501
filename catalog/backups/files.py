"""A backup as files at a path: written, listed and read by Spark, so that any storage will do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pyspark.errors import PySparkException

from catalog.backups.digests import Content, contents, differences
from catalog.backups.manifest import Manifest
from catalog.delta.failures import condition_of, first_line
from catalog.delta.location import Location
from catalog.delta.opening import absolute
from catalog.delta.runs import RUNS
from catalog.errors import BackupNotFound, BrokenBackup, InvalidInput, PathOccupied

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# No table of a catalog has such a name: a backup can never be written over one.
_ENTRIES = "backup_entries"
_RUNS = "backup_runs"
_MANIFEST = "backup_manifest"
_OURS = re.compile(rf"/({_ENTRIES}|{_RUNS}|{_MANIFEST})/([^/]+/)?[^/]+$")
_MISSING = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")


class BackupFiles:
    """The files of one backup; a backup without a manifest does not exist.

    Everybody who tries to make it writes to directories of their own, and nothing is ever replaced.
    So a manifest always stands for files that are complete, whoever else was at work.
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
        """What the backup holds; none if it was never completed."""
        reader = self._session.read.option("recursiveFileLookup", "true")
        try:
            # Of several that were written in the same moment, one counts for everybody.
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
        if not rows:  # it was being written
            return None
        return Manifest.from_json(rows[0]["value"], self.path)

    def found(self) -> Manifest:
        """The same, for those who need it."""
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
            found = [
                row["path"] for row in paths.where(f"NOT path RLIKE '{_OURS.pattern}'").take(1)
            ]
        except PySparkException as error:
            condition = condition_of(error)
            if condition.split(".")[0] in _MISSING:
                return
            if not condition.startswith("DELTA_"):
                raise
            found = [self.path]  # a Delta table: it is not listed as files
        if found:
            raise PathOccupied(
                f"{self.path} holds something else already, such as {unquote(found[0])}; a backup "
                "needs a path of its own.",
                path=self.path,
            )

    # --- writing ----------------------------------------------------------------------------------

    def write_entries(self, rows: DataFrame, attempt: str) -> None:
        """Writes the rows of the catalog."""
        rows.orderBy("kind", "bucket", "key").write.parquet(f"{self.path}/{_ENTRIES}/{attempt}")

    def write_runs(self, rows: DataFrame, attempt: str) -> None:
        """Writes the recorded runs."""
        rows.orderBy("started_at", "run_id").write.parquet(f"{self.path}/{_RUNS}/{attempt}")

    def complete(self, manifest: Manifest) -> Manifest:
        """Completes the backup, unless somebody else has; returns the manifest that counts."""
        if self.manifest() is None:
            text = self._session.createDataFrame([(manifest.to_json(),)], "value STRING")
            # Spark moves the file to its place when it is whole.
            text.coalesce(1).write.text(f"{self.path}/{_MANIFEST}/{manifest.attempt}")
        return self.found()

    # --- reading ----------------------------------------------------------------------------------

    def entries(self, attempt: str) -> DataFrame:
        """The rows of the catalog."""
        return self._session.read.parquet(f"{self.path}/{_ENTRIES}/{attempt}")

    def runs(self, attempt: str) -> DataFrame:
        """The recorded runs."""
        return self._session.read.parquet(f"{self.path}/{_RUNS}/{attempt}")

    def check(self, manifest: Manifest) -> None:
        """Reads all files and compares them with the manifest."""
        try:
            wrong = differences(manifest.entries, self._count_entries(manifest))
            if manifest.runs is not None:
                found = content_of_runs(self.runs(manifest.attempt))
                wrong += differences({RUNS: manifest.runs}, {RUNS: found})
        except Exception as error:  # damaged files come in many exceptions, of Java's too
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

    def _count_entries(self, manifest: Manifest) -> dict[str, Content]:
        columns = manifest.columns
        return contents(self.entries(manifest.attempt), columns) if columns else {}


def content_of_runs(runs: DataFrame) -> Content:
    """How many runs there are, and what they say."""
    # A map cannot be hashed, as its entries have no order.
    hashed = [
        f"array_sort(map_entries({name}))" if kind.startswith("map<") else name
        for name, kind in runs.dtypes
    ]
    return contents(runs, hashed, f"'{RUNS}'").get(RUNS, Content(0, f"{0:016x}"))
