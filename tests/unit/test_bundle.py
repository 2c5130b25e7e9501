"""The Databricks bundle: its files fit together, and its jobs take their parameters."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from catalog.cli.commands import BY_JOB
from catalog.cli.shell import job_parser

ROOT = Path(__file__).parents[2]
BUNDLE: dict[str, Any] = yaml.safe_load((ROOT / "databricks.yml").read_text(encoding="utf-8"))
FILES = sorted({file for glob in BUNDLE["include"] for file in ROOT.glob(glob)})
TEXTS = {file: file.read_text(encoding="utf-8") for file in [ROOT / "databricks.yml", *FILES]}
JOBS = {
    name: (file, job)
    for file in FILES
    for name, job in yaml.safe_load(TEXTS[file])["resources"]["jobs"].items()
}
TASKS = [
    pytest.param(file, job, task, id=f"{name}-{task['task_key']}")
    for name, (file, job) in JOBS.items()
    for task in job["tasks"]
]
_VARIABLE = re.compile(r"\$\{var\.(\w+)\}")


def filled(text: str, target: str) -> str:
    """A text with the bundle's variables as the target has them."""
    given = BUNDLE["targets"][target].get("variables", {})
    return _VARIABLE.sub(lambda m: given.get(m[1], BUNDLE["variables"][m[1]].get("default")), text)


def test_every_include_matches_files_and_every_resource_file_is_included() -> None:
    assert all(list(ROOT.glob(glob)) for glob in BUNDLE["include"])
    assert set(FILES) == set((ROOT / "conf" / "resources").iterdir())


def test_all_upkeep_is_scheduled() -> None:
    upkeep = ("backfill", "backup", "cleanup", "maintain", "recover", "retain", "verify")
    assert set(JOBS) == {f"strata_{job}" for job in upkeep}


@pytest.mark.parametrize("name", ["strata_backfill", "strata_retain", "strata_verify"])
def test_a_job_that_tells_of_something_found_is_not_tried_again(name: str) -> None:
    """A second backfill would succeed: what is in quarantine is not due again so soon."""
    assert [task.get("max_retries", 0) for task in JOBS[name][1]["tasks"]] == [0]


def test_every_variable_is_declared_and_used() -> None:
    used = {name for text in TEXTS.values() for name in _VARIABLE.findall(text)}
    assert used == set(BUNDLE["variables"])
    for target in BUNDLE["targets"].values():
        assert set(target["variables"]) <= used


@pytest.mark.parametrize("target", BUNDLE["targets"])
def test_every_variable_has_a_value_in_every_target(target: str) -> None:
    given = BUNDLE["targets"][target]["variables"]
    missing = [
        name
        for name, variable in BUNDLE["variables"].items()
        if name not in given and "default" not in variable
    ]
    assert missing == []


def test_one_target_is_for_development_and_one_for_production() -> None:
    modes = {name: target["mode"] for name, target in BUNDLE["targets"].items()}
    assert modes == {"dev": "development", "prod": "production"}
    assert [name for name, target in BUNDLE["targets"].items() if target.get("default")] == ["dev"]


@pytest.mark.parametrize(("file", "job", "task"), TASKS)
def test_a_task_runs_a_script_that_is_there_with_the_wheel_that_is_built(
    file: Path, job: dict[str, Any], task: dict[str, Any]
) -> None:
    script = (file.parent / task["spark_python_task"]["python_file"]).resolve()
    assert script.is_file()
    assert script.parent in [(ROOT / path).resolve() for path in BUNDLE["sync"]["paths"]]
    (artifact,) = BUNDLE["artifacts"].values()
    assert artifact["type"] == "whl"
    built = (ROOT / artifact["path"] / artifact["build"].rpartition(" -w ")[2]).resolve()
    wheels = [(file.parent / library["whl"]).resolve() for library in task["libraries"]]
    assert wheels == [built / "*.whl"]
    assert task["job_cluster_key"] in [c["job_cluster_key"] for c in job["job_clusters"]]


@pytest.mark.parametrize("target", BUNDLE["targets"])
@pytest.mark.parametrize(("file", "job", "task"), TASKS)
def test_a_script_takes_the_parameters_of_its_task(
    file: Path, job: dict[str, Any], task: dict[str, Any], target: str
) -> None:
    script = Path(task["spark_python_task"]["python_file"]).stem.replace("_", "-")
    words = [filled(word, target) for word in task["spark_python_task"]["parameters"]]
    arguments = job_parser(BY_JOB[script]).parse_args(words)
    assert arguments.location
    assert arguments.actor


@pytest.mark.parametrize("name", JOBS)
def test_a_job_has_a_schedule_a_time_limit_and_somebody_to_tell(name: str) -> None:
    file, job = JOBS[name]
    assert file.name == f"{job['tags']['job']}.job.yml"
    assert name == f"strata_{job['tags']['job']}"
    assert is_quartz(job["schedule"]["quartz_cron_expression"])
    assert job["schedule"]["timezone_id"]
    assert job["max_concurrent_runs"] == 1
    assert job["timeout_seconds"] > 0
    assert job["email_notifications"]["on_failure"] == ["${var.notify}"]


def is_quartz(expression: str) -> bool:
    """True for six or seven fields, of which one names no day: Quartz takes a day only once."""
    fields = expression.split()
    return len(fields) in (6, 7) and [fields[3], fields[5]].count("?") == 1


@pytest.mark.parametrize(
    ("expression", "fits"),
    [("0 0 2 * * ?", True), ("0 0 3 ? * SUN 2030", True), ("0 2 * * *", False)]
    + [(f"0 0 2 {day} * {weekday}", False) for day, weekday in product("*1", "*2")],
)
def test_a_quartz_expression_is_told_from_one_for_cron(expression: str, fits: bool) -> None:
    assert is_quartz(expression) is fits
