"""Backups: what they hold, what is refused, and how they come back."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession

from catalog import Catalog, Contract, Epoch, Object, Step
from catalog.delta.layout import LAYOUT
from catalog.delta.runs import Run
from catalog.environment import Environment
from catalog.errors import (
    BackupNotFound,
    BrokenBackup,
    CatalogReplaced,
    InvalidInput,
    LayoutTooNew,
    PathOccupied,
    RestoreUnfinished,
    VersionNotFound,
)
from tests.concurrency.conflicts import conflict
from tests.spark.operating import ready, refusal, staged
from tests.unit.builders import segment

Open = Callable[..., Catalog]


def filled(catalog: Catalog) -> None:
    """Something of every kind: live and retired schemas, objects, operations, an epoch, a run."""
    now = catalog._context.environment.clock()
    catalog.publish([segment(f"orders/{n}", f"a INT, b{n % 3} INT", n) for n in range(1, 7)])
    catalog.publish([segment("visits/1", "gone INT")])
    catalog.objects.put([Object("db/x", {"n": 1}), Object("table/x/y", {}, links=["db/x"])])
    staged(catalog, "done", id="done", publish=[segment("visits/2", "c INT")]).publish()
    staged(catalog, "open", id="open", publish=[segment("orders/8", "d INT")], drop=["orders/1"])
    ready(catalog, 4, "ready", id="ready", put=[Object("index/z", {})])
    catalog.operations.advance(3)
    catalog.audit.record(
        Run("run-1", "backup", {"a": 1}, "ann", now, now, figures={"x": 1.0, "y": 2.0})
    )
    catalog.drop(["visits/1"])
    catalog.cleanup(grace=timedelta(0))


def entries(catalog: Catalog) -> DataFrame:
    return catalog._context.store.rows(catalog.version)


def assert_same_rows(catalog: Catalog, rows: DataFrame) -> None:
    assert_df_equality(
        entries(catalog),
        rows,
        ignore_row_order=True,
        ignore_nullable=True,
        ignore_metadata=True,
    )


@pytest.mark.connect
def test_a_backup_of_everything_comes_back_after_all_is_lost(
    spark: SparkSession, open_catalog: Open, location: str, tmp_path: Path
) -> None:
    catalog = open_catalog(actor="tester")
    filled(catalog)
    path, steps = str(tmp_path / "backup"), list[Step]()
    counted = catalog.backups.create(path, dry_run=True)
    assert not Path(path).exists()
    report = catalog.backups.create(path, reason="before the move", progress=steps.append)
    assert (report.entries, report.runs) == (counted.entries, counted.runs)
    assert set(report.entries) >= {"segment", "schema", "retired", "staged", "epoch", "guard"}
    assert report.entries["segment"].rows == 7
    assert len(steps) == 4
    assert catalog.version == report.version
    version = catalog.publish([segment("orders/late")]).version
    assert catalog.backups.create(path, version=report.version).repeated
    refusal(catalog, PathOccupied, lambda: catalog.backups.create(path), "another version")
    refusal(catalog, PathOccupied, lambda: catalog.backups.create(location), "over the catalog")
    refusal(
        catalog, PathOccupied, lambda: catalog.backups.create(f"{location}/entries"), "over a table"
    )
    cache = catalog.cache()
    assert cache.version == version

    with pytest.raises(PathOccupied):
        Catalog.restore(spark, path, location)
    # Parts of operations under way know their buckets.
    with pytest.raises(InvalidInput, match="2 operations that are not decided"):
        Catalog.restore(spark, path, str(tmp_path / "other"), segment_buckets=3)
    assert not (tmp_path / "other").exists()
    kept = spark.createDataFrame(catalog._context.store.rows(report.version).toArrow())
    runs = catalog.audit.runs().toArrow().to_pylist()
    shutil.rmtree(location)
    restored = Catalog.restore(spark, path, location, actor="tester", reason="all is lost")
    assert (restored.rows, restored.runs, restored.repeated) == (report.rows, 1, False)
    assert Catalog.restore(spark, path, location).repeated
    again = open_catalog(actor="tester")
    assert_same_rows(again, kept)
    assert again.audit.runs().toArrow().to_pylist() == runs
    assert again.verify(since=0).ok

    # A poller that has outlived the table, even at the same version, sees the new one as a whole.
    assert cache.poll().reloaded
    assert cache.snapshot.content() == again.cache().snapshot.content()
    assert cache.datasources() == {"orders": 6, "visits": 1}
    # Operations go on where they were.
    assert again.operations.get("open").publish().state == "published"
    assert again.operations.advance(4).applied == ("ready",)
    # The steps before the backup are not in the history of the new table.
    assert again.inspect.objects(as_of=Epoch(3)).count() == 2
    refusal(
        again, VersionNotFound, lambda: again.inspect.objects(as_of=Epoch(2)), "before the backup"
    )
    assert again.verify(since=0).ok


def one_file(path: Path) -> Path:
    return sorted(path.rglob("*.parquet"))[0]


def with_files(source: Path, target: Path, change: Callable[[Path], None]) -> str:
    """A copy of a backup in which something was changed."""
    shutil.copytree(source, target)
    change(target)
    return str(target)


def cut_in_half(backup: Path) -> None:
    file = one_file(backup / "backup_entries")
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    for checksum in (backup / "backup_entries").rglob(".*.crc"):
        checksum.unlink()


def of_format(number: int) -> Callable[[Path], None]:
    def change(backup: Path) -> None:
        (file,) = (backup / "backup_manifest").rglob("part-*.txt")
        (file.parent / f".{file.name}.crc").unlink()
        file.write_text(json.dumps({**json.loads(file.read_text()), "strata_backup": number}))

    return change


def without_manifest(backup: Path) -> None:
    shutil.rmtree(backup / "backup_manifest")


@pytest.mark.stress
def test_a_backup_that_is_not_whole_is_refused_and_nothing_is_created(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    catalog.publish([segment("orders/1"), segment("visits/1", "b INT")])
    source, other = tmp_path / "backup", tmp_path / "other"
    catalog.backups.create(str(source))
    where = str(tmp_path / "restored")

    def swap(backup: Path) -> None:
        """As many rows of each kind, one of which says something else."""
        (attempt,) = (backup / "backup_entries").iterdir()
        rows = spark.read.parquet(str(attempt))
        changed = rows.selectExpr(
            *(
                "IF(kind = 'segment', 99, num_rows) AS num_rows" if name == "num_rows" else name
                for name in rows.columns
            )
        )
        changed.write.parquet(str(backup / "changed"))
        shutil.rmtree(attempt)
        (backup / "changed").rename(attempt)

    cases: list[tuple[str, Callable[[Path], None], type[Exception], str]] = [
        ("half", cut_in_half, BrokenBackup, "cannot be read"),
        ("file", lambda b: one_file(b / "backup_entries").unlink(), BrokenBackup, ""),
        ("rows", lambda b: shutil.rmtree(b / "backup_entries"), BrokenBackup, "cannot be read"),
        ("swap", swap, BrokenBackup, "the rows of kind segment have other contents"),
        ("manifest", without_manifest, BackupNotFound, "no backup at"),
        ("format", of_format(7), BrokenBackup, "format 7"),
    ]
    for name, change, kind, told in cases:
        path = with_files(source, tmp_path / f"broken-{name}", change)
        with pytest.raises(kind, match=told or None):
            Catalog.restore(spark, path, where)
        assert not Path(where).exists(), name
    with pytest.raises(BackupNotFound):
        Catalog.restore(spark, str(tmp_path / "nowhere"), where)
    with pytest.raises(InvalidInput, match="written to a path"):
        catalog.backups.create("main.backup")
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    with pytest.raises(PathOccupied, match=r"notes\.txt"):
        catalog.backups.create(str(other))

    # After one that was stopped before its manifest was written another one can be made there.
    stopped = tmp_path / "broken-manifest"
    assert catalog.backups.create(str(stopped)).repeated is False
    assert (
        Catalog.restore(spark, str(stopped), where).rows
        == catalog.backups.create(str(stopped)).rows
    )
    too_new = replace(LAYOUT, number=1)
    with pytest.raises(LayoutTooNew):
        Catalog.restore(spark, str(source), str(tmp_path / "third"), layout=too_new)


class Stop(BaseException):
    """As if the process had been killed."""


def stopping(point: str) -> Environment:
    def at(reached: str) -> None:
        if reached == point:
            raise Stop(point)

    return Environment(at=at, pause=lambda attempt: 0.0)


def await_true(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < end, "a poll in the background did not come"
        time.sleep(0.05)


def meeting(point: str, other: Callable[[], object]) -> Environment:
    """Lets somebody else do something at a point."""

    def at(reached: str) -> None:
        if reached == point:
            other()

    return Environment(at=at, pause=lambda attempt: 0.0)


@pytest.mark.stress
def test_a_restore_that_was_stopped_is_nobodys_catalog_until_it_is_run_again(
    spark: SparkSession, open_catalog: Open, location: str, tmp_path: Path
) -> None:
    catalog = open_catalog()
    catalog.publish([segment(f"source{n}/1", f"a{n % 2} INT", n) for n in range(1, 9)])
    catalog.objects.put(Object("db/x", {}))
    path, older = str(tmp_path / "backup"), str(tmp_path / "older")
    with pytest.raises(Stop):
        open_catalog(environment=stopping("backup.checked")).backups.create(path)
    with pytest.raises(BackupNotFound):
        Catalog.restore(spark, path, location + "2")
    # Two at once: whoever is second leaves what the first has completed, also if it is slow.
    slow = open_catalog(environment=meeting("backup.copied", lambda: catalog.backups.create(path)))
    assert slow.backups.create(path).repeated
    first = meeting("backup.checked", lambda: catalog.backups.create(older, version=1))
    with pytest.raises(PathOccupied, match="holds the backup of version 1"):
        open_catalog(environment=first).backups.create(older)
    cache = catalog.cache()
    remembered = cache.snapshot
    polling = catalog.cache(datasources=["source1", "source2"]).start(every=0.5)
    shutil.rmtree(location)

    for point in ("restore-backup.created", "restore-backup.filled", "restore-backup.compared"):
        with pytest.raises(Stop):
            Catalog.restore(spark, path, location, segment_buckets=3, environment=stopping(point))
        with pytest.raises(RestoreUnfinished, match="run it again"):
            open_catalog()
        # A poller keeps what it has.
        with pytest.raises(RestoreUnfinished):
            cache.poll()
        assert cache.snapshot is remembered
    for other, buckets in ((older, 3), (path, None)):
        with pytest.raises(RestoreUnfinished, match="another backup"):
            Catalog.restore(spark, other, location, segment_buckets=buckets)
    report = Catalog.restore(spark, path, location, segment_buckets=3)
    assert (report.segment_buckets, report.repeated) == (3, False)

    again = open_catalog()
    assert again.version == report.version
    assert cache.poll().reloaded
    assert cache.snapshot.content() == again.cache().snapshot.content()
    buckets = {row["bucket"] for row in entries(again).where("kind = 'segment'").collect()}
    assert buckets == {0, 1, 2}
    assert len(again.cache(datasources=["source1", "source2"]).snapshot) == 2
    # What was open before spreads segments otherwise: a cache learns it, a catalog refuses.
    await_true(lambda: polling.snapshot.position.table_id == again.table_id)
    assert len(polling.snapshot) == 2
    for work in (
        lambda: catalog.publish([segment(f"source{n}/2") for n in range(1, 9)]),
        lambda: catalog.drop([f"source{n}/1" for n in range(1, 9)]),
        lambda: catalog.drop(datasource="source2"),
        lambda: catalog.datasource_schema("source2"),
        lambda: catalog.objects.put(Object("table/z", {}, datasource="source2")),
        lambda: catalog.contracts.set("source2", Contract(schema="a0 INT", enforcement="warn")),
    ):
        refusal(again, CatalogReplaced, work)
    again.publish([segment("source9/1"), segment("source1/1", "a1 INT", 1)])
    await_true(lambda: polling.version == again.version)
    polling.stop()
    assert polling.last_error is None
    assert polling.datasources() == {"source1": 1, "source2": 1}
    assert again.drop(["source2/1"]).dropped == 1
    verified = again.verify(since=0)
    assert verified.ok, verified


@pytest.mark.stress
def test_a_restore_into_a_schema_has_its_views(
    spark: SparkSession, catalog: Catalog, schema_name: str, tmp_path: Path
) -> None:
    catalog.publish([segment("orders/1", rows=5)])
    path = str(tmp_path / "backup")
    catalog.backups.create(path)
    report = Catalog.restore(spark, path, schema_name)
    assert report.location == schema_name
    assert spark.sql(f"SELECT sum(num_rows) AS n FROM {schema_name}.segments").head() == (5,)
    changes = f"SELECT key FROM {schema_name}.changes WHERE kind = 'segment'"
    assert [row["key"] for row in spark.sql(changes).collect()] == ["orders/1"]
    # A view of what was there before knows nothing of the new table.
    opened = Catalog.open(spark, schema_name)
    opened.publish([segment("orders/2")])
    opened.audit.roll()
    opened.close()
    spark.sql(f"DROP TABLE {schema_name}.entries")
    Catalog.restore(spark, path, schema_name)
    assert [row["key"] for row in spark.sql(changes).collect()] == ["orders/1"]


@pytest.mark.stress
@pytest.mark.exact
def test_a_restore_settles_conflicts_and_lost_answers(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    catalog.publish([segment("orders/1"), segment("visits/1", "b INT")])
    path, where = str(tmp_path / "backup"), str(tmp_path / "restored")
    expected = catalog.backups.create(path)
    met: list[str] = []

    def at(point: str) -> None:
        if point == "restore-backup.begins" and point not in met:
            met.append(point)
            raise conflict("restore-backup")
        if point == "restore-backup.answered" and point not in met:
            met.append(point)
            raise ConnectionResetError("lost")

    environment = Environment(at=at, pause=lambda attempt: 0.0)
    assert Catalog.restore(spark, path, where, environment=environment).rows == expected.rows
    assert len(met) == 2
    restored = Catalog.open(spark, where)
    assert_same_rows(restored, entries(catalog))
    assert restored.verify(since=0).ok
    restored.close()
