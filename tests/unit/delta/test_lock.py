"""The lock beside a table excludes threads and processes, and goes with its holder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import catalog
from catalog.delta.location import TableLock, local_path
from catalog.environment import Deadline
from catalog.errors import GaveUp

PATIENCE = 60
HOLD = """
import sys
from pathlib import Path
from catalog.delta.location import TableLock
from catalog.environment import Deadline
with TableLock.of(Path(sys.argv[1])).held(Deadline(60)):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_by_another_process(table: Path) -> Iterator[subprocess.Popen[str]]:
    root = str(Path(catalog.__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(table)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": root},
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def is_free(table: Path) -> bool:
    try:
        with TableLock.of(table).held(Deadline(0.05)):
            return True
    except GaveUp:
        return False


def test_the_lock_is_a_file_beside_the_table(tmp_path: Path) -> None:
    with TableLock.of(tmp_path / "new" / "meta").held(Deadline(1)):
        assert [path.name for path in (tmp_path / "new").iterdir()] == [".meta.lock"]


def test_other_storage_needs_no_lock() -> None:
    lock = TableLock.of(None)
    with lock.held(Deadline(0.01)), lock.held(Deadline(0.01)):
        pass


@pytest.mark.parametrize("shared", [True, False])
def test_the_lock_excludes_another_thread(tmp_path: Path, shared: bool) -> None:
    first = TableLock.of(tmp_path / "meta")
    second = first if shared else TableLock.of(tmp_path / "meta")
    held, entered = threading.Event(), threading.Event()

    def other() -> bool:
        held.set()
        with second.held(Deadline(PATIENCE)):
            entered.set()
        return True

    with ThreadPoolExecutor(1) as pool:
        with first.held(Deadline(1)):
            call = pool.submit(other)
            assert held.wait(PATIENCE)
            assert not entered.wait(0.1)
        assert call.result(PATIENCE)
    assert entered.is_set()


def test_the_locks_of_two_tables_do_not_meet(tmp_path: Path) -> None:
    with TableLock.of(tmp_path / "one").held(Deadline(1)):
        assert is_free(tmp_path / "two")


def test_the_lock_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), TableLock.of(tmp_path / "meta").held(Deadline(1)):
        _ = 1 / 0
    assert is_free(tmp_path / "meta")


def test_whoever_waits_too_long_gives_up_and_names_the_file(tmp_path: Path) -> None:
    table = tmp_path / "meta"
    first, second = TableLock.of(table), TableLock.of(table)
    with (
        first.held(Deadline(1)),
        pytest.raises(GaveUp, match="nothing was written") as caught,
        second.held(Deadline(0.05)),
    ):
        pytest.fail("two hold the lock")
    assert caught.value.values["what"] == f"the lock {tmp_path / '.meta.lock'}"
    assert is_free(table)


def test_the_lock_excludes_another_process_until_that_is_done(tmp_path: Path) -> None:
    table = tmp_path / "meta"
    with held_by_another_process(table) as process:
        assert not is_free(table)
        process.communicate()
        assert process.returncode == 0
        assert is_free(table)


def test_the_lock_of_a_process_that_is_killed_is_free(tmp_path: Path) -> None:
    table = tmp_path / "meta"
    with held_by_another_process(table) as process:
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
        with TableLock.of(table).held(Deadline(PATIENCE)):
            assert process.returncode == -signal.SIGKILL


def test_a_process_that_came_through_a_link_meets_the_same_lock(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    through_link = local_path(f"file:{tmp_path}/link/meta")
    assert through_link is not None
    with held_by_another_process(tmp_path.resolve() / "real" / "meta"):
        assert not is_free(through_link)


def test_a_process_that_the_holder_starts_does_not_keep_the_lock(tmp_path: Path) -> None:
    table = tmp_path / "meta"
    with TableLock.of(table).held(Deadline(1)):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        assert is_free(table)
    finally:
        child.kill()
        child.wait(PATIENCE)
