"""The schema, rows and bytes of a Delta table and of its partitions, from its log alone.

Spark replays the log from the newest checkpoint on, as Delta's protocol specifies. Where a writer
left out the statistics of its files, their rows are counted. It is not the `deltalake` package that
reads the log: that would need credentials of its own, where the session has them already, and knows
no file systems but its own (`hdfs:`, `dbfs:` and volumes among those that Spark has).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from catalog.delta.failures import condition_of, first_line
from catalog.errors import BrokenFile, InvalidSchema
from catalog.files.paths import escaped
from catalog.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOG = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")
_NEWER_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.[0-9a-f-]{36}\.(?:json|parquet)")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
# What Spark escapes in the names of partition folders.
_ESCAPED = re.compile(r"[\x01-\x1f\x7f\"#%'*/:=?\\{\[\]^]")

# Each folder in which a log is looked for is a request to the storage.
_MOST_FOLDERS = 500
# Whatever the session's settings: a commit that is left out makes another table.
_STRICT = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}

_VECTOR = "STRUCT<storageType STRING, pathOrInlineDv STRING, offset INT, cardinality BIGINT>"
_ACTIONS = (
    "add STRUCT<path STRING, partitionValues MAP<STRING, STRING>, size BIGINT, stats STRING, "
    f"deletionVector {_VECTOR}>, remove STRUCT<path STRING, deletionVector {_VECTOR}>, "
    "metaData STRUCT<schemaString STRING, partitionColumns ARRAY<STRING>>"
)


@dataclass(frozen=True)
class Part:
    """A partition, or all of a table that has none; `folder` is its path below the table."""

    folder: str
    num_rows: int
    size_bytes: int


@dataclass(frozen=True)
class TableLog:
    """A Delta table at one version."""

    root: str
    version: int
    schema: Schema
    partitioned: bool
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        # A table without partitions is one part, also while it has no files.
        if not self.partitioned and not self.parts:
            object.__setattr__(self, "parts", (Part("", 0, 0),))

    @cached_property
    def _by_folder(self) -> dict[str, Part]:
        return {part.folder: part for part in self.parts}

    def stated(self, folder: str = "") -> tuple[Schema, int, int]:
        """Schema, rows and bytes of the table, or of the partitions in a folder of it."""
        one, below = self._by_folder.get(folder), f"{folder}/"
        parts = (
            [one] if one else [p for p in self.parts if not folder or p.folder.startswith(below)]
        )
        if folder and not parts:
            raise BrokenFile(
                f"the Delta table {self.root} has no files in {folder} at version {self.version}",
                path=self.root,
            )
        return self.schema, sum(p.num_rows for p in parts), sum(p.size_bytes for p in parts)


class TableLogs:
    """The logs of Delta tables, each read once; for one piece of work, as tables move on."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._tables: dict[str, bool] = {}
        self._read: dict[tuple[str, int | None], TableLog | BrokenFile] = {}

    def stated(self, path: str, version: int | None) -> tuple[Schema, int, int]:
        """Schema, rows and bytes of the table or the partition at a path, at a version or now."""
        root = self.table_of(path)
        if root is None:
            raise BrokenFile(f"there is no Delta table at {path}", path=path)
        if (root, version) not in self._read:
            try:
                self._read[root, version] = read_log(self._spark, root, version)
            except BrokenFile as error:
                self._read[root, version] = error
        log = self._read[root, version]
        if isinstance(log, BrokenFile):
            raise log
        return log.stated(path.rstrip("/")[len(root) + 1 :])

    def table_of(self, path: str) -> str | None:
        """The root of the Delta table that is at a path, or that has a partition there."""
        roots = list(_roots(path))
        for root in roots:
            if self._tables.get(root):
                return root
        for root in roots:
            if root not in self._tables:
                self._tables[root] = is_table(self._spark, root)
            if self._tables[root]:
                return root
        return None


def _roots(path: str) -> Iterator[str]:
    """A path, and the folders above it as long as it may be a partition of a table there."""
    root = path.rstrip("/")
    while root:
        yield root
        root, _, last = root.rpartition("/")
        if "=" not in last:
            return


def is_table(spark: SparkSession, root: str) -> bool:
    """Whether a folder is a Delta table."""
    return any(map(_is_of_log, _names(spark, root)))


def tables_below(spark: SparkSession, root: str, files: Iterable[str]) -> list[str]:
    """The Delta tables in the folders of files, which are given by their paths below `root`.

    One listing looks for the logs in all folders but partitions; if there are more than 500, in the
    first 500 from the top.
    """
    folders: set[str] = set()
    for file in files:
        above = file.rpartition("/")[0]
        while above and above not in folders:
            folders.add(above)
            above = above.rpartition("/")[0]
    searched = sorted(
        (each for each in folders if "=" not in each.rpartition("/")[2]),
        key=lambda folder: (folder.count("/"), folder),
    )[:_MOST_FOLDERS]
    if not searched:
        return []
    # One path with a choice in it: among several paths, each would have to exist.
    choice = ",".join(escaped(each).replace(",", "\\,") for each in searched)
    found = _paths(spark, root, f"{escaped(root.rstrip('/'))}/{{{choice}}}/{_LOG}")
    return sorted({t for t, _, name in (path.rsplit("/", 2) for path in found) if _is_of_log(name)})


def _is_of_log(name: str) -> bool:
    """Whether a file of this name makes its folder the log of a table."""
    return bool(_COMMIT.fullmatch(name) or _CHECKPOINT.fullmatch(name))


def read_log(spark: SparkSession, root: str, version: int | None = None) -> TableLog:
    """The table at a version, or at the newest; raises `BrokenFile` if its log cannot be read."""
    names = _names(spark, root)
    wanted, checkpoint, commits = _chosen(root, names, version)
    try:
        return _replayed(spark, root, wanted, checkpoint, commits)
    except InvalidSchema as error:
        raise BrokenFile(f"the Delta table {root}: {error.message}", path=root) from error
    except Exception as error:
        # The failure of a task comes through Py4J as it is, unless the session is remote.
        if not isinstance(error, PySparkException) and type(error).__name__ != "Py4JJavaError":
            raise
        raise BrokenFile(
            f"the log of the Delta table {root} cannot be read: {first_line(error)}", path=root
        ) from error


def _names(spark: SparkSession, root: str) -> list[str]:
    """The names in a table's log; none if there is no log."""
    return [p.rpartition("/")[2] for p in _paths(spark, root, f"{escaped(root)}/{_LOG}")]


def _paths(spark: SparkSession, root: str, logs: str) -> list[str]:
    try:
        listed = spark.read.format("binaryFile").options(**_STRICT).load(logs).select("path")
        return [row["path"] for row in listed.collect()]
    except PySparkException as error:
        if condition_of(error).startswith("PATH_NOT_FOUND"):
            return []
        raise BrokenFile(
            f"the log of {root} cannot be listed: {first_line(error)}", path=root
        ) from error


def _chosen(
    root: str, names: Sequence[str], version: int | None
) -> tuple[int, list[str], list[str]]:
    """The version to read, and the files to replay for it: a checkpoint, and commits."""
    commits = {int(found[1]): name for name in names if (found := _COMMIT.fullmatch(name))}
    pieces: dict[int, list[re.Match[str]]] = {}
    for name in names:
        if found := _CHECKPOINT.fullmatch(name):
            pieces.setdefault(int(found[1]), []).append(found)
    whole = {n: some for n, some in pieces.items() if len(some) == int(some[0][3] or 1)}
    if not commits and not whole:
        raise BrokenFile(f"there is no Delta table at {root}", path=root)
    newest = max([*commits, *whole])
    wanted = newest if version is None else version
    if wanted > newest:
        raise BrokenFile(
            f"the Delta table {root} has no version {wanted}; the newest is {newest}", path=root
        )
    begin = max((n for n in whole if n <= wanted), default=-1)
    missing = [n for n in range(begin + 1, wanted + 1) if n not in commits]
    if missing:
        newer = any(_NEWER_CHECKPOINT.fullmatch(name) for name in names)
        why = (
            "its checkpoints are of a kind that is not read here (delta.checkpointPolicy=v2)"
            if newer
            else "it has expired"
        )
        raise BrokenFile(
            f"version {wanted} of the Delta table {root} cannot be read: commit {missing[0]} is "
            f"not in its log, {why}",
            path=root,
        )
    checkpoint = [found[0] for found in whole[begin]] if begin >= 0 else []
    return wanted, checkpoint, [commits[n] for n in range(begin + 1, wanted + 1)]


def _replayed(
    spark: SparkSession, root: str, version: int, checkpoint: list[str], commits: list[str]
) -> TableLog:
    actions = _actions(spark, root, checkpoint, commits)
    (newest,) = (
        actions.where("metaData IS NOT NULL")
        .agg(F.expr("max_by(metaData, version) AS metadata"))
        .collect()
    )
    metadata = newest["metadata"]
    if metadata is None or metadata["schemaString"] is None:
        raise BrokenFile(
            f"the log of the Delta table {root} does not say its schema up to version {version}; "
            "a commit may have been cut off",
            path=root,
        )
    schema = Schema.of(metadata["schemaString"])
    columns = list(metadata["partitionColumns"] or ())
    # With column mapping, partition values are kept under the physical names of columns.
    physical = {
        field.name: field.metadata.get("delta.columnMapping.physicalName", field.name)
        for field in schema.struct().fields
    }
    parts = []
    for row in _live(actions).collect():
        values = {entry["key"]: entry["value"] for entry in row["partition"]}
        named = [(n, values.get(physical.get(n, n), values.get(n))) for n in columns]
        folder = "/".join(f"{_escaped(name)}={_escaped(value)}" for name, value in named)
        rows = row["num_rows"]
        if rows is None:  # the writer left out statistics
            table = spark.read.format("delta").option("versionAsOf", version)
            rows = table.load(f"{root}/{folder}".rstrip("/")).count()
        parts.append(Part(folder, rows, row["size_bytes"]))
    ordered = tuple(sorted(parts, key=lambda part: part.folder))
    return TableLog(root, version, schema, bool(columns), ordered)


def _actions(
    spark: SparkSession, root: str, checkpoint: list[str], commits: list[str]
) -> DataFrame:
    log = f"{escaped(root)}/{_LOG}"
    number = "CAST(substr(_metadata.file_name, 1, 20) AS BIGINT) AS version"
    frames = []
    reader = spark.read.schema(_ACTIONS).options(mode="FAILFAST", **_STRICT)
    if commits:
        frames.append(reader.json([f"{log}/{name}" for name in commits]).selectExpr("*", number))
    if checkpoint:
        files = [f"{log}/{name}" for name in checkpoint]
        frames.append(reader.parquet(*files).selectExpr("*", number))
    return frames[0] if len(frames) == 1 else frames[0].unionAll(frames[1])


def _live(actions: DataFrame) -> DataFrame:
    """The sums over the live files of each partition."""
    file = "coalesce(add.path, remove.path)"
    vector = "coalesce(add.deletionVector, remove.deletionVector)"
    # A file that gets another deletion vector is removed with the old and added with the new one.
    last = (
        actions.where("add IS NOT NULL OR remove IS NOT NULL")
        .selectExpr(
            "add",
            f"row_number() OVER (PARTITION BY {file}, {vector}.storageType, "
            f"{vector}.pathOrInlineDv, {vector}.offset ORDER BY version DESC, "
            "add IS NULL) AS place",
        )
        .where("place = 1 AND add IS NOT NULL")
    )
    rows = (
        "CAST(get_json_object(add.stats, '$.numRecords') AS BIGINT) "
        "- coalesce(add.deletionVector.cardinality, 0)"
    )
    return (
        last.selectExpr(
            "array_sort(map_entries(add.partitionValues)) AS partition",
            f"{rows} AS num_rows",
            "add.size AS size_bytes",
        )
        .groupBy("partition")
        .agg(
            F.expr("IF(bool_or(num_rows IS NULL), NULL, sum(num_rows)) AS num_rows"),
            F.expr("sum(size_bytes) AS size_bytes"),
        )
    )


def _escaped(text: str | None) -> str:
    """The name of a partition folder as Spark writes it."""
    if not text:
        return _NO_VALUE
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)
