"""Backfills beside publishers, droppers, cleaners and each other; backfills that are killed."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from catalog import Catalog, Segment, Settings
from tests.concurrency.backfiller import NotedFiles
from tests.concurrency.gates import Gate, Side, assert_promises
from tests.concurrency.processes import Process
from tests.spark.files import parquet
from tests.unit.builders import segment

Open = Callable[..., Catalog]
Start = Callable[..., Process]


def ddls(catalog: Catalog) -> dict[str, str | None]:
    rows = catalog.inspect.segment_schemas().select("segment_id", "ddl").collect()
    return {row["segment_id"]: row["ddl"] for row in rows}


@pytest.mark.exact
@pytest.mark.parametrize("point", ["inside", pytest.param("between", marks=pytest.mark.stress)])
def test_a_backfill_never_rewrites_what_was_published_dropped_or_replaced_meanwhile(
    free: Open, gate: Gate, tmp_path: Path, point: str
) -> None:
    path = parquet(tmp_path / "x.parquet", "a INT")
    other = parquet(tmp_path / "y.parquet", "other INT")
    users = free()
    names = ["orders/dropped", "orders/published", "orders/replaced", "orders/waits"]
    users.publish([Segment(name, location=path) for name in names])
    stopped = gate.inside("backfill") if point == "inside" else gate.between("backfill.read")
    slow = free(stopped)
    backfill = Side(lambda: slow.backfill())
    gate.await_reached()
    users.drop(["orders/dropped"])
    published = Segment("orders/published", "b STRING", 5, location=path)
    users.publish([published], on_existing="replace")
    users.publish([Segment("orders/replaced", location=other)], on_existing="replace")
    gate.open()
    report = backfill.result
    assert (report.completed, report.overtaken) == (1, 3)
    assert (report.retries >= 1) == (point == "inside")
    assert ddls(users) == {
        "orders/published": "b STRING",
        "orders/replaced": None,
        "orders/waits": "a INT",
    }
    assert users.backfill().completed == 1
    assert ddls(users)["orders/replaced"] == "other INT"
    assert_promises(users)


def test_two_backfills_complete_each_segment_once(free: Open, gate: Gate, tmp_path: Path) -> None:
    quick = free()
    path = parquet(tmp_path / "x.parquet", "a INT")
    quick.publish([Segment(f"orders/{n}", location=path) for n in range(6)])
    slow = free(gate.inside("backfill"))
    backfill = Side(lambda: slow.backfill(batch=3))
    gate.await_reached()
    assert quick.backfill().completed == 6
    gate.open()
    assert (backfill.result.completed, backfill.result.overtaken) == (0, 3)
    assert quick.segments().where("revision = 2").count() == 6
    assert_promises(quick)


def test_a_schema_retired_under_a_running_backfill_is_inserted_again(
    free: Open, gate: Gate, tmp_path: Path
) -> None:
    cleaner = free()
    cleaner.publish([segment("gone/1", "a INT")])
    cleaner.drop(["gone/1"])
    cleaner.publish([Segment("orders/1", location=parquet(tmp_path / "x.parquet", "a INT"))])
    slow = free(gate.inside("backfill"))
    backfill = Side(lambda: slow.backfill())
    gate.await_reached()
    assert len(cleaner.cleanup(grace=timedelta(0)).retired) == 1
    gate.open()
    assert (backfill.result.completed, backfill.result.retries >= 1) == (1, True)
    assert cleaner.cache().schema_of("orders/1").ddl == "a INT"
    assert_promises(cleaner)


# --- kills ---------------------------------------------------------------------------------------


def write_files(folder: Path, count: int) -> dict[str, tuple[str, int]]:
    """So many files of five schemas; the schema and the rows of each by the segment's id."""
    kinds = {n: (f"id BIGINT, v{n} STRING", n + 1) for n in range(5)}
    first = {n: parquet(folder / f"kind{n}.parquet", *kind) for n, kind in kinds.items()}
    expected = {}
    for number in range(count):
        path = folder / f"{number}.parquet"
        shutil.copyfile(first[number % 5], path)
        expected[f"files/{number}"] = kinds[number % 5]
    return expected


def killed_backfills(
    open_catalog: Open, start: Start, folder: Path, count: int, batch: int, kills: int
) -> None:
    """A backfill that is killed in the middle of a batch so many times, and then left alone."""
    reads = folder / "reads"
    reads.mkdir()
    catalog = open_catalog(settings=Settings(open_file=NotedFiles(str(reads))))
    expected = write_files(folder / "files", count)
    paths = {name: str(folder / "files" / f"{name.partition('/')[2]}.parquet") for name in expected}
    catalog.publish([Segment(name, location=path) for name, path in paths.items()])
    for number in range(kills):
        process = start("backfiller", catalog.location, reads, batch)
        lines = process.lines()
        # Killed when a batch has been read and its commit is about to run, or has just begun; and
        # after at least one was stored, so that what the last kill interrupted is.
        stages = iter([*["read", "stored"] * (number + 1), "read"])
        for stage in stages:
            assert next(lines) == {"stage": stage}
        process.kill()
        left = catalog.backfill(dry_run=True).waiting
        assert 0 < left < count
    report = catalog.backfill(batch=batch)
    assert (report.left, report.quarantined) == (0, ())

    rows = catalog.inspect.segment_schemas().select("segment_id", "ddl", "num_rows").collect()
    assert {row["segment_id"]: (row["ddl"], row["num_rows"]) for row in rows} == expected
    assert catalog.schemas().count() == 5
    assert catalog.segments().where("revision <> 2").count() == 0  # each stored once
    times = Counter(line for file in reads.iterdir() for line in file.read_text().splitlines())
    assert set(times) == set(paths.values())
    assert max(times.values()) <= 2
    # Only what was in flight at a kill was read twice.
    assert sum(times.values()) <= count + kills * batch
    assert_promises(catalog)


@pytest.mark.stress
def test_a_backfill_that_is_killed_goes_on_where_it_was(
    open_catalog: Open, start: Start, tmp_path: Path
) -> None:
    killed_backfills(open_catalog, start, tmp_path, count=300, batch=80, kills=1)


@pytest.mark.stress
def test_a_backfill_of_20000_files_killed_three_times_reads_none_more_than_twice(
    open_catalog: Open, start: Start, tmp_path: Path
) -> None:
    killed_backfills(open_catalog, start, tmp_path, count=20_000, batch=2_000, kills=3)
