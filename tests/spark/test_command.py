"""The console script as it is installed: a Spark of its own, quiet, and ended by signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from catalog import Catalog
from tests.sessions import CONNECT, QUICK, SHORT_LIVED
from tests.unit.builders import segment

pytestmark = pytest.mark.skipif(CONNECT, reason="it starts a Spark of its own")

STRATA = Path(sys.executable).parent / "strata"
PAIRS = {**SHORT_LIVED, **QUICK}.items()
SETTINGS = [word for pair in PAIRS for word in ("--conf", "=".join(pair))]


@contextmanager
def started(home: Path, *argv: str) -> Iterator[subprocess.Popen[str]]:
    """The shell in a process of its own, which ends with the test however that ends."""
    environment = {**os.environ, "STRATA_LOCATION": "./meta", "HOME": os.path.expanduser("~")}
    with subprocess.Popen(
        [str(STRATA), *argv, *SETTINGS, "--output", "json"],
        cwd=home,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> tuple[int, list[dict[str, Any]], str]:
    out, err = process.communicate(timeout=300)
    return process.returncode, [json.loads(line) for line in out.splitlines()], err


def test_the_shell_is_quiet_answers_in_lines_and_a_signal_ends_it_on_record(
    open_catalog: Callable[..., Catalog], tmp_path: Path
) -> None:
    catalog = open_catalog()
    catalog.publish([segment()])
    with started(tmp_path, "poll", "--since", "0", "--every", "1", "--record") as poll:
        assert poll.stdout is not None
        assert json.loads(poll.stdout.readline())["facts"]["added"] == 1
        # What was shown is recorded afterwards: with the next line the first one is.
        assert json.loads(poll.stdout.readline())["facts"]["added"] == 0
        poll.send_signal(signal.SIGTERM)
        code, answers, err = ended(poll)
    assert (code, answers[-1]["error"]["condition"]) == (130, "INTERRUPTED")
    # Nothing of what Spark writes when it starts, works and stops.
    said = ["Starting Spark, which takes about ten seconds …", "strata: [INTERRUPTED]"]
    assert [line for line in err.splitlines() if not line.startswith(tuple(said))] == []
    (run,) = catalog.audit.runs().collect()
    assert (run["job"], run["status"], run["figures"]["reached"]) == ("poll", "interrupted", 1)


def test_what_spark_says_is_shown_if_it_does_not_start(tmp_path: Path) -> None:
    with started(tmp_path, "init", "--conf", "spark.master=nonsense") as process:
        code, answers, err = ended(process)
    assert (code, answers[0]["error"]["condition"]) == (2, "UNSUITABLE_SESSION")
    assert "Master must either be yarn" in err


def test_a_server_that_nobody_runs_is_named_at_once(tmp_path: Path) -> None:
    process = subprocess.run(
        [str(STRATA), "segments", "--location", "x/y", "--remote", "sc://127.0.0.1:1"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert process.returncode == 2
    assert "No server answers at sc://127.0.0.1:1" in process.stderr
    process = subprocess.run(
        [sys.executable, "-m", "catalog", "segments", "--location", "x/y", "--remote", "http://x"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert process.returncode == 2
    assert "sc://host:port" in process.stderr


def test_a_reader_that_has_had_enough_is_no_failure(tmp_path: Path) -> None:
    command = f"{STRATA} demo --help | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
