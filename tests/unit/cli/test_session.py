"""Starting Spark for the doors: what can be known of it without starting it."""

from __future__ import annotations

import multiprocessing
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from catalog.cli.session import fetching_alone, missing_jars

PACKAGE = {"spark.jars.packages": "io.delta:delta-spark_4.2_2.13:4.4.0"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def _hold(entered: Event, leave: Event) -> None:
    with fetching_alone(PACKAGE):
        entered.set()
        leave.wait(30)


def test_one_process_at_a_time_fetches_the_jars() -> None:
    context = multiprocessing.get_context("spawn")
    leave = context.Event()
    events = [context.Event(), context.Event()]
    processes = [context.Process(target=_hold, args=(event, leave)) for event in events]
    processes[0].start()
    assert events[0].wait(30)
    processes[1].start()
    assert not events[1].wait(3), "the second must wait while the first fetches"
    leave.set()
    assert events[1].wait(30)
    for process in processes:
        process.join(30)
        assert process.exitcode == 0


def test_nobody_waits_once_the_jars_are_there(home: Path) -> None:
    jars = home / ".ivy2.5.2" / "jars"
    jars.mkdir(parents=True)
    assert missing_jars(PACKAGE) == PACKAGE["spark.jars.packages"]
    (jars / "io.delta_delta-spark_4.2_2.13-4.4.0.jar").touch()
    assert missing_jars(PACKAGE) is None
    with fetching_alone(PACKAGE), fetching_alone(PACKAGE):
        assert not (home / ".strata-fetching.lock").exists()
