"""A backup as files at a path: written, listed and read by Spark, so that any storage will do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pyspark.errors import PySparkException

from catalog.errors import BackupNotFound, BrokenBackup, InvalidInput, PathOccupied
from catalog.preserve.digests import Content, contents, differences
from catalog.preserve.manifest import Manifest
from catalog.table.failures import condition_of, first_line
from catalog.table.location import Location
from catalog.table.opening import absolute
from catalog.table.runs import RUNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# No table of a catalog has such a name: a backup can never be written over one.
_ENTRIES = "backup_entries"
_RUNS = "backup_runs"
_MANIFEST = "backup_manifest"
_OURS = re.compile(rf"/({_ENTRIES}|{_RUNS}|{_MANIFEST})/[^/]+$")
_MISSING = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")


class BackupFiles:
    """The files of one backup; a backup without a manifest does not exist."""

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
        try:
            rows = self._session.read.text(f"{self.path}/{_MANIFEST}", wholetext=True).collect()
        except PySparkException as error:
            if condition_of(error).split(".")[0] in _MISSING:
                return None
            raise
        if not rows:  # it was being written
            return None
        if len(rows) > 1:
            raise BrokenBackup(
                f"The backup at {self.path} has {len(rows)} manifests; use another backup.",
                path=self.path,
            )
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

    def write_entries(self, rows: DataFrame) -> None:
        """Writes the rows of the catalog, in place of what a backup that was stopped has left."""
        rows.orderBy("kind", "bucket", "key").write.mode("overwrite").parquet(
            f"{self.path}/{_ENTRIES}"
        )

    def write_runs(self, rows: DataFrame) -> None:
        """Writes the recorded runs."""
        rows.orderBy("started_at", "run_id").write.mode("overwrite").parquet(f"{self.path}/{_RUNS}")

    def write_manifest(self, manifest: Manifest) -> None:
        """Completes the backup."""
        text = self._session.createDataFrame([(manifest.to_json(),)], "value STRING")
        # Spark moves the file to its place when it is whole.
        text.coalesce(1).write.mode("overwrite").text(f"{self.path}/{_MANIFEST}")

    # --- reading ----------------------------------------------------------------------------------

    def entries(self) -> DataFrame:
        """The rows of the catalog."""
        return self._session.read.parquet(f"{self.path}/{_ENTRIES}")

    def runs(self) -> DataFrame:
        """The recorded runs."""
        return self._session.read.parquet(f"{self.path}/{_RUNS}")

    def check(self, manifest: Manifest) -> None:
        """Reads all files and compares them with the manifest."""
        try:
            wrong = differences(manifest.entries, self.count_entries(manifest.columns))
            if manifest.runs is not None:
                wrong += differences({RUNS: manifest.runs}, {RUNS: self.count_runs()})
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

    def count_entries(self, columns: Sequence[str]) -> dict[str, Content]:
        """What the files hold of each kind."""
        return contents(self.entries(), columns) if columns else {}

    def count_runs(self) -> Content:
        """What the files hold of the runs."""
        return content_of_runs(self.runs())


def content_of_runs(runs: DataFrame) -> Content:
    """How many runs there are, and what they say."""
    # A map cannot be hashed, as its entries have no order.
    hashed = [
        f"array_sort(map_entries({name}))" if kind.startswith("map<") else name
        for name, kind in runs.dtypes
    ]
    return contents(runs, hashed, f"'{RUNS}'").get(RUNS, Content(0, f"{0:016x}"))
