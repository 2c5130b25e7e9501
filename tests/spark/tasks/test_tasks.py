"""Tasks through the verbs of the catalog: run, fail, rest, resume, cancel; and those that exist."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Segment, Step
from catalog.delta.runs import DDL, TASKS_VIEW, Run
from catalog.errors import (
    InvalidInput,
    PathOccupied,
    ReadOnly,
    TaskBusy,
    TaskEnded,
    TaskLost,
    UnknownSchema,
    UnknownTask,
)
from catalog.tasks.kind import TaskKind, TaskStep, TaskWork, in_order
from catalog.tasks.kinds import TASKS
from tests.concurrency.gates import assert_promises
from tests.unit.builders import segment

Open = Callable[..., Catalog]
Work = Callable[[TaskWork], Mapping[str, Any]]
WHEN = datetime(2024, 1, 31, 12, tzinfo=UTC)


def own(*steps: tuple[str, Work], exclusive: str | None = None) -> TaskKind:
    made = in_order(*(TaskStep(name, run) for name, run in steps))
    return TaskKind("own", made, exclusive=exclusive, arguments={"n": int})


def count(work: TaskWork) -> Mapping[str, Any]:
    return {"counted": 1 + len(work.results)}


def row_of(catalog: Catalog, id: str) -> dict[str, Any]:
    (row,) = catalog.tasks.list().where(f"task_id = '{id}'").collect()
    return row.asDict(recursive=True)


@pytest.mark.connect
def test_a_task_runs_its_steps_and_its_row_tells_of_them(
    spark: SparkSession, catalog: Catalog
) -> None:
    assert catalog.tasks.list().collect() == []
    seen: list[Step] = []

    def publish(work: TaskWork) -> Mapping[str, Any]:
        work.progress(Step("publish", 1, 4))
        began = catalog.tasks.list("running").collect()[0]["seen_at"]
        # The heart beats while the step works, and writes down how far it has come.
        end = time.monotonic() + 90
        while (row := catalog.tasks.list("running").collect()[0])["seen_at"] == began:
            assert time.monotonic() < end, "the heart does not beat"
            time.sleep(0.1)
        assert (row["step"], row["done"], row["total"], row["steps"]) == ("publish", 1, 4, 2)
        assert row["seconds_left"] is not None
        result = work.catalog.publish([segment("orders/1")], **work.how)
        return {"inserted": result.inserted}

    kind = own(("publish", publish), ("count", count), exclusive="k")
    task = catalog.tasks.run(
        *(kind, {"n": 1}), lease=timedelta(seconds=3), reason="why", progress=seen.append
    )
    assert seen == [Step("publish", 1, 4)]
    assert task.results == {"publish": {"inserted": 1}, "count": {"counted": 2}}
    assert (task.state, task.attempt, task.owner) == ("done", 1, None)
    assert catalog.tasks.get(task.id) == task
    row = row_of(catalog, task.id)
    assert list(row) == list(TASKS_VIEW.columns)
    assert row["figures"] == {"inserted": 1.0, "counted": 2.0}
    assert (row["state"], row["steps_done"], row["steps"]) == ("done", 2, 2)
    # The row of the task is that of its run, and its commits name it.
    (run,) = catalog.audit.runs().collect()
    assert (run["run_id"], run["job"], run["status"]) == (task.id, "own", "done")
    (newest,) = catalog.audit.history(1).collect()
    assert (newest["runs"], newest["reasons"]) == ([task.id], ["why"])
    assert "tasks" in catalog.inspect.create_views("v_")[-1]
    assert spark.sql("SELECT state FROM v_tasks").collect()[0]["state"] == "done"
    # A task that is done is over: the same again is another one.
    assert catalog.tasks.run(own(), {"n": 1}).id != task.id


@pytest.mark.stress
def test_a_task_that_fails_rests_and_goes_on_where_it_stood(catalog: Catalog) -> None:
    ran: list[str] = []

    def once(work: TaskWork) -> Mapping[str, Any]:
        ran.append("once")
        return {}

    def fail(work: TaskWork) -> Mapping[str, Any]:
        raise RuntimeError("no disk")

    def refuse(work: TaskWork) -> Mapping[str, Any]:
        raise UnknownSchema("gone for good")

    def stop(work: TaskWork) -> Mapping[str, Any]:
        raise KeyboardInterrupt

    with pytest.raises(RuntimeError, match="no disk"):
        catalog.tasks.run(own(("once", once), ("then", fail)))
    (row,) = catalog.tasks.list("queued").collect()
    assert (row["error_condition"], row["error_message"]) == ("RuntimeError", "then: no disk")
    with pytest.raises(TaskBusy, match="failed with RuntimeError and rests until"):
        catalog.tasks.run(own(("once", once), ("then", count)))
    # Told to stop, it can be taken up at once; an error that cannot pass is the end of it.
    with pytest.raises(KeyboardInterrupt):
        catalog.tasks.resume(row["task_id"], kind=own(("once", once), ("then", stop)))
    with pytest.raises(UnknownSchema):
        catalog.tasks.run(own(("once", once), ("then", refuse)))
    assert catalog.tasks.get(row["task_id"]).state == "failed"
    task = catalog.tasks.resume(row["task_id"], kind=own(("once", once), ("then", count)))
    assert (task.state, task.attempt, task.error_condition) == ("done", 4, None)
    assert ran == ["once"]
    with pytest.raises(TaskEnded, match="is done"):
        catalog.tasks.resume(task.id, kind=own())
    with pytest.raises(InvalidInput, match="is a own, not a maintain"):
        catalog.tasks.resume(task.id, kind=TaskKind("maintain", in_order()))
    with pytest.raises(UnknownTask, match="no task named 'own'"):
        catalog.tasks.resume(task.id)
    # The last attempt is the last.
    with pytest.raises(RuntimeError):
        catalog.tasks.run(own(("then", fail)), {"n": 2}, max_attempts=1)
    (failed,) = catalog.tasks.list("failed").collect()
    # What has the same name and arguments and is not over stands for it.
    with pytest.raises(RuntimeError):
        catalog.tasks.run(own(("then", fail)), {"n": 2})
    with pytest.raises(TaskBusy, match="has its name and arguments and is queued"):
        catalog.tasks.resume(failed["task_id"], kind=own(("then", count)))


def test_a_task_that_is_cancelled_stops_at_its_next_beat(
    catalog: Catalog, open_catalog: Open
) -> None:
    other = open_catalog(actor="boss")
    left: list[str] = []

    def cancelled(work: TaskWork) -> Mapping[str, Any]:
        id = catalog.tasks.list("running").collect()[0]["task_id"]
        with pytest.raises(TaskBusy, match=r"only one task at a time is for 'k'.* is run by"):
            other.tasks.run(own(exclusive="k"), {"n": 2})
        with pytest.raises(TaskBusy, match="is run by"):
            other.tasks.resume(id, kind=own())
        other.tasks.cancel(id, reason="too slow")
        work.beat()
        left.append("it went on")
        return {}

    with pytest.raises(TaskLost, match="was cancelled by boss: too slow"):
        catalog.tasks.run(own(("work", cancelled), ("more", count), exclusive="k"))
    (row,) = catalog.tasks.list("cancelled").collect()
    assert (row["steps_done"], row["attempt"], row["owner"]) == (0, 2, None)
    assert left == []
    assert other.tasks.cancel(row["task_id"]).state == "cancelled"  # again is no change
    with pytest.raises(UnknownTask, match="no task nothing"):
        other.tasks.cancel("nothing")
    for bad, says in [
        ({"lease": timedelta(seconds=1)}, "at least 3 seconds"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"deadline": 0.0}, "deadline must be above zero"),
    ]:
        with pytest.raises(InvalidInput, match=says):
            catalog.tasks.run("cleanup", **bad)
    with pytest.raises(InvalidInput, match="state must be"):
        catalog.tasks.list("open")
    with pytest.raises(ReadOnly):
        open_catalog(read_only=True).tasks.run("cleanup")


def test_a_table_of_runs_of_an_earlier_release_gets_the_columns_of_tasks(
    spark: SparkSession, catalog: Catalog
) -> None:
    runs = catalog.location.table("runs")
    spark.sql(f"CREATE TABLE {runs} ({DDL}) USING DELTA TBLPROPERTIES ('strata.table' = 'runs')")
    catalog.audit.record(Run("old", "publish", {}, "ann", WHEN, WHEN))
    assert "v_tasks" not in catalog.inspect.create_views("v_")
    assert catalog.tasks.list().collect() == []
    assert catalog.audit.runs().collect()[0]["attempt"] is None
    with pytest.raises(UnknownTask):
        catalog.tasks.get("old")
    task = catalog.tasks.run(own(("count", count)))
    assert [row["task_id"] for row in catalog.tasks.list().collect()] == [task.id]
    properties = spark.sql(f"DESCRIBE DETAIL {runs}").collect()[0]["properties"]
    assert properties["delta.isolationLevel"] == "Serializable"
    # What an earlier release records still fits, and is no task.
    catalog.audit.record(Run("new", "publish", {}, "ann", WHEN, WHEN))
    assert {row["run_id"] for row in catalog.audit.runs().collect()} == {"old", "new", task.id}
    assert catalog.tasks.list().count() == 1


@pytest.mark.stress
def test_the_tasks_that_exist_do_what_the_verbs_do(catalog: Catalog, tmp_path: Path) -> None:
    catalog._context.spark.range(3).coalesce(1).write.parquet(str(tmp_path / "data"))
    files = {"datasource": "lake", "pattern": str(tmp_path / "data")}
    found = catalog.tasks.run("publish-files", files)
    assert found.results["publish files"]["published"] == 1
    (file,) = (tmp_path / "data").glob("*.parquet")
    for n in range(5):
        catalog.publish([Segment(f"bare/{n}", None, None, location=str(file))])
    kept = catalog.tasks.run("maintain", {"vacuum": False})
    ((kind, bucket),) = kept.results["plan"]["partitions"]
    assert list(kept.results) == ["plan", f"optimize {kind} {bucket}", "vacuum"]
    assert kept.results[f"optimize {kind} {bucket}"]["partitions_compacted"] == 1
    filled = catalog.tasks.run("backfill", {"limit": 3, "datasources": ["bare"]})
    assert list(filled.results) == ["segments 1"]
    assert filled.results["segments 1"]["completed"] == 3
    assert catalog.inspect.segments_without_schema().count() == 2
    catalog.publish([segment("orders/1", "other INT")])
    catalog.drop(["orders/1"])
    cleaned = catalog.tasks.run("cleanup", {"grace_seconds": 0})
    assert cleaned.results["cleanup"]["retired"] == 1
    assert catalog.tasks.run("recover").results["recover"]["aborted"] == 0
    assert catalog.tasks.run("retain").results["retain"]["retention_dropped"] == 0
    copied = catalog.tasks.run("backup", {"path": str(tmp_path / "backup")}).results["copy"]
    assert copied["version"] == catalog.version
    target = str(tmp_path / "wider")

    def beside(step: Step) -> None:
        if step.what == "restore: fill":  # somebody who does not know, or was not stopped
            catalog.publish([segment("late/1")])

    moved = catalog.tasks.run(
        "rebucket",
        {"path": str(tmp_path / "between"), "target": target, "segment_buckets": 5},
        progress=beside,
    ).results
    assert moved["restore"] == {"location": target, "segment_buckets": 5}
    assert moved["verify"] == {"violations": 0, "versions_since": 1}
    with Catalog.open(catalog._context.spark, target, read_only=True) as wider:
        assert wider.segments().count() == catalog.segments().count() - 1
    states = {row["name"]: row["state"] for row in catalog.tasks.list().collect()}
    assert states == dict.fromkeys(TASKS, "done")
    (row,) = catalog.tasks.list().where("name = 'backfill'").collect()
    assert json.loads(row["arguments"]) == {"datasources": ["bare"], "limit": 3}
    assert_promises(catalog)


def test_buckets_are_not_copied_to_where_there_is_no_room_for_them(
    catalog: Catalog, location: str, tmp_path: Path
) -> None:
    between = tmp_path / "between"
    arguments = {"path": str(between), "target": location, "segment_buckets": 5}
    with pytest.raises(PathOccupied, match="There is a catalog at"):
        catalog.tasks.run("rebucket", arguments)
    assert not between.exists()
