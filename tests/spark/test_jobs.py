"""Each job through the real spark-submit, from a built wheel, with the settings in conf/."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Segment
from tests.sessions import CONNECT, QUICK, ROOT, SHORT_LIVED
from tests.spark.files import parquet

pytestmark = pytest.mark.skipif(CONNECT, reason="spark-submit brings a session of its own")

Submit = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as it is shipped."""
    target = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(target)]
    subprocess.run([*command, str(ROOT)], check=True)
    (built,) = target.glob("strata_catalog-*.whl")
    return built


@pytest.fixture
def submit(wheel: Path, location: str, tmp_path: Path) -> Submit:
    def run(job: str, *argv: str) -> tuple[int, dict[str, Any]]:
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        environment.pop("SPARK_HOME", None)
        done = subprocess.run(
            [
                str(Path(sys.executable).parent / "spark-submit"),
                *("--properties-file", str(ROOT / "conf" / "local.conf")),
                *("--conf", f"spark.strata.location={location}"),
                *("--driver-java-options", SHORT_LIVED["spark.driver.extraJavaOptions"]),
                *(word for item in QUICK.items() for word in ("--conf", "=".join(item))),
                *("--py-files", str(wheel)),
                str(ROOT / "jobs" / f"{job}.py"),
                *(*argv, "--actor", "nightly", "--output", "json"),
            ],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        assert lines, done.stderr
        return done.returncode, json.loads(lines[-1])

    return run


def test_the_wheel_holds_all_that_a_job_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        entry_points = next(name for name in names if name.endswith("entry_points.txt"))
        assert b"strata = catalog.cli.shell:main" in archive.read(entry_points)
    for needed in ("cli/local.conf", "report/page.css", "report/page.js", "py.typed"):
        assert f"catalog/{needed}" in names
    assert not [name for name in names if name.startswith(("tests/", "jobs/"))]


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.stress)])
def test_jobs_run_under_spark_submit_and_are_recorded(
    submit: Submit, catalog: Catalog, spark: SparkSession, tmp_path: Path, every: bool
) -> None:
    """Each starts a Spark of its own, so only some are run unless there is time for every one."""
    manifest = tmp_path / "segments.jsonl"
    lines = [
        {"segment_id": f"orders/{n}", "schema": f"c{n} INT", "num_rows": n} for n in range(1, 4)
    ]
    manifest.write_text("\n".join(map(json.dumps, lines)))

    code, answer = submit("publish", str(manifest), "--reason", "nightly load")
    assert (code, answer["facts"]["inserted"]) == (0, 3)
    if every:
        code, answer = submit("poll", "--since", "0", "--every", "0.1", "--polls", "2")
        assert (code, answer["facts"]["before"], answer["facts"]["after"]) == (0, 1, 1)
    catalog.drop(["orders/1"])
    if every:
        code, answer = submit("cleanup", "--grace", "0")
        assert (code, answer["facts"]["retired"]) == (0, 1)
        data = parquet(tmp_path / "lake" / "1.parquet", "a INT", 3)
        code, answer = submit("publish_files", "files", data)
        assert (code, answer["facts"]["published"]) == (0, 1)
        catalog.publish([Segment("files/late", location=data)])
        code, answer = submit("backfill")
        assert (code, answer["facts"]["completed"]) == (0, 1)
        code, answer = submit("retain", "--dry-run")
        assert (code, answer["facts"]["segments"]) == (0, 0)
        code, answer = submit("maintain")
        assert (code, answer["facts"]["retention_seconds"]) == (0, 7 * 86400)

    report = catalog.verify(since=0)
    assert report.ok, report
    table = catalog.location.table("entries")
    spark.sql(f"UPDATE {table} SET num_rows = 99 WHERE kind = 'segment'").collect()
    code, answer = submit("verify")
    assert (code, answer["found"]) == (1, True)

    # A dry run, as that of retain, writes nothing.
    runs = catalog.audit.runs().orderBy("started_at").toArrow().to_pylist()
    assert [(run["job"], run["status"], run["actor"]) for run in runs] == [
        (job, "found" if job == "verify" else "done", "nightly")
        for job in (
            *("publish", "poll", "cleanup", "publish-files", "backfill", "maintain"),
            "verify",
        )
        if every or job in ("publish", "verify")
    ]
    named = {run for row in catalog.audit.history().collect() for run in row["runs"] or ()}
    assert named == {
        run["run_id"] for run in runs if run["job"] not in ("poll", "retain", "verify")
    }
