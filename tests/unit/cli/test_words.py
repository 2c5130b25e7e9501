"""The command line: types of arguments, suggestions, help texts, exit codes of bad input."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from catalog import Epoch
from catalog.cli.arguments import (
    as_of_type,
    duration,
    moment,
    positive,
    seconds,
    setting,
)
from catalog.cli.command import Access
from catalog.cli.commands import BY_JOB, BY_NAME, COMMANDS, GROUPS, RENAMED
from catalog.cli.shell import job_parser, main, overview, run_job, shell_parser

ROOT = Path(__file__).parents[3]
# The words of the shell before it had groups.
OLD_WORDS = [
    *("init", "publish", "publish-files", "backfill", "drop", "declare", "put", "ensure"),
    *("remove", "rename", "register", "set-mode", "segments", "schemas", "schema-of"),
    *("datasources", "columns", "diff", "named", "versions", "named-schema", "still-works"),
    *("get", "objects", "types", "contracts", "contract set", "contract show", "contract remove"),
    *("operations", "operation show", "operation publish", "operation abort", "operation renew"),
    *("epoch", "advance", "history", "audit", "runs", "config list", "config get", "config set"),
    *("config unset", "tasks", "task show", "task cancel", "task resume", "poll", "retain"),
    *("cleanup", "recover", "verify", "maintain", "backup", "restore", "rollback", "rebucket"),
    *("sql", "report", "demo"),
]
WORDS = [
    *("init", "demo", "publish", "publish-files", "backfill", "drop", "segments", "schemas"),
    *("datasources", "schema-of", "columns", "diff", "sql", "poll", "stats", "report"),
    *("cleanup", "maintain", "verify", "upgrade"),
    *(f"objects {word}" for word in ("put", "ensure", "get", "list", "remove", "rename")),
    *("objects declare", "objects types", "names register", "names get", "names list"),
    *("names versions", "names set-mode", "names still-works"),
    *(f"contracts {word}" for word in ("set", "get", "remove", "list")),
    *(f"operations {word}" for word in ("list", "show", "publish", "abort", "renew")),
    *("operations epoch", "operations advance", "operations recover"),
    *(f"settings {word}" for word in ("list", "get", "set", "unset")),
    *(f"tasks {word}" for word in ("list", "show", "run", "resume", "cancel")),
    *(f"audit {word}" for word in ("history", "changes", "growth", "runs", "roll")),
    *(f"backups {word}" for word in ("create", "restore", "rollback", "rebucket")),
    *("retention apply", "retention rules"),
]
JOBS = [
    "publish",
    "publish-files",
    "backfill",
    "cleanup",
    "maintain",
    "recover",
    "retain",
    "verify",
    "poll",
    "backup",
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", timedelta(0)),
        ("90s", timedelta(seconds=90)),
        ("30m", timedelta(minutes=30)),
        ("1.5h", timedelta(minutes=90)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(days=14)),
        ("1d12h", timedelta(hours=36)),
    ],
)
def test_a_time_is_written_with_units(text: str, expected: timedelta) -> None:
    assert duration(text) == expected


def test_a_time_has_a_limit() -> None:
    for text in ("999999999999d", "40000d"):
        with pytest.raises(ArgumentTypeError, match="is more than 36500 days"):
            duration(text)


@pytest.mark.parametrize("text", ["", "7", "7 d", "d", "-1d", "1y", "1d!", "one day"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="is not a time"):
        duration(text)


def test_a_moment_without_a_zone_is_utc_and_a_number_is_a_version() -> None:
    assert moment("2024-01-31") == datetime(2024, 1, 31, tzinfo=UTC)
    assert moment("2024-01-31T12:00:00+02:00") == datetime(2024, 1, 31, 10, tzinfo=UTC)
    assert as_of_type("12") == 12
    assert as_of_type("2024-01-31") == datetime(2024, 1, 31, tzinfo=UTC)
    assert as_of_type("epoch:42") == Epoch(42)
    with pytest.raises(ArgumentTypeError, match="is not a time such as"):
        as_of_type("yesterday")
    with pytest.raises(ArgumentTypeError, match="is not a whole number above zero"):
        as_of_type("epoch:0")


def test_numbers_and_settings_are_checked() -> None:
    assert (positive("3"), seconds("2"), seconds("2m")) == (3, 2.0, 120.0)
    assert setting("spark.a=b=c") == ("spark.a", "b=c")
    for bad, kind in (("0", positive), ("x", positive), ("0", seconds), ("-1", seconds)):
        with pytest.raises(ArgumentTypeError):
            kind(bad)
    for text in ("spark.a", "a=b"):
        with pytest.raises(ArgumentTypeError, match="is not a setting"):
            setting(text)


@pytest.mark.parametrize(
    ("argv", "suggested"),
    [
        (["publsh", "x.csv"], "did you mean publish?"),
        (["schema_of", "a/b"], "did you mean schema-of?"),
        (["segments", "--locaton", "x"], "did you mean --location?"),
        (["publish", "x.csv", "--on-existing", "replac"], "did you mean replace?"),
        (["publish_files", "a", "b"], "did you mean publish-files?"),
        (["backfill", "--retry-quarantine"], "did you mean --retry-quarantined?"),
        (["operatoins", "list"], "did you mean operations?"),
        (["operations", "shwo", "7c1e"], "did you mean show?"),
        (["operations", "publish", "7c1e", "--epock", "3"], "did you mean --epoch?"),
        (["operations", "list", "--state", "opne"], "did you mean open?"),
        (["contracts", "set", "orders", "--enforcement", "strickt"], "did you mean strict?"),
    ],
)
def test_a_wrong_word_suggests_the_right_one(
    argv: list[str], suggested: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    assert suggested in capsys.readouterr().err


def test_a_word_like_no_other_suggests_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["xyzzy"]) == 2
    error = capsys.readouterr().err
    assert "invalid choice" in error
    assert "did you mean" not in error


def test_the_shell_has_the_words_that_people_expect() -> None:
    assert sorted(BY_NAME) == sorted(WORDS)


def test_the_overview_fits_on_a_screen_and_has_every_command() -> None:
    lines = overview().splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) < 90
    for command in COMMANDS:
        group, _, action = command.name.partition(" ")
        words = {line.split()[0]: line.split()[1:] for line in lines if line.startswith("  ")}
        assert action in words[group] if action else any(group in each for each in words.values())


@pytest.mark.parametrize("old", OLD_WORDS)
def test_an_old_word_is_still_a_command_or_is_answered_with_the_new_one(
    old: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if old in BY_NAME:
        assert old not in RENAMED
        return
    assert RENAMED[old] in BY_NAME
    for more in ([], ["x/1"], ["--location", "/data/meta"]):
        assert main([*old.split(), *more]) == 2
        said = f"error: `strata {old}` is now `strata {RENAMED[old]}`"
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["contract"], "`strata contract` is now `strata contracts`"),
        (["operation", "shwo", "7c1e"], "`strata operation` is now `strata operations`"),
        (["config", "--help"], "`strata config` is now `strata settings`"),
        (["segments", "--as-of-epoch", "3"], "`--as-of-epoch N` is now `--as-of epoch:N`"),
    ],
)
def test_a_part_of_an_old_command_is_answered_too(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_help_of_a_command_has_an_example_that_its_parser_takes(
    command, capsys: pytest.CaptureFixture[str]
) -> None:  # type: ignore[no-untyped-def]
    import shlex

    assert main([*command.name.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"strata {command.name} {command.example}".rstrip() in shown
    assert "exit codes: 0 done" in shown
    parsed = shell_parser().parse_args([*command.name.split(), *shlex.split(command.example)])
    assert parsed.command == command.name


def test_a_first_word_alone_lists_the_second_ones(capsys: pytest.CaptureFixture[str]) -> None:
    for group in GROUPS:
        assert main([group]) == 2
        said = "is now" if group in RENAMED else "arguments are required: ACTION"
        assert said in capsys.readouterr().err
        assert main([group, "--help"]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        under = [command for command in COMMANDS if command.name.startswith(f"{group} ")]
        assert len(under) > 1
        for command in under:
            assert f"{command.name.removeprefix(f'{group} ')} {command.summary}" in shown


def test_what_changes_something_is_recorded_and_takes_a_reason_and_a_deadline() -> None:
    for command in COMMANDS:
        writes = command.access is Access.WRITE
        parser = job_parser(command)
        assert command.recorded is writes, command.name
        assert {"reason", "deadline"}.issubset(a.dest for a in parser._actions) is writes


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["operations", "list"], {"state": None, "all": False}),
        (["operations", "show", "7c1e"], {"id": "7c1e"}),
        (["operations", "publish", "7c1e", "--epoch", "42"], {"id": "7c1e", "epoch": 42}),
        (["operations", "renew", "7c1e", "--lease", "2h"], {"lease": timedelta(hours=2)}),
        (["operations", "advance", "42", "--deadline", "5m"], {"epoch": 42, "deadline": 300.0}),
        (["operations", "recover"], {"keep": None, "dry_run": False}),
        (
            ["cleanup", "--as-task", "--lease", "1m"],
            {"as_task": True, "lease": timedelta(minutes=1)},
        ),
        (["tasks", "list", "--state", "running"], {"state": "running"}),
        (["tasks", "resume", "7c1e"], {"id": "7c1e", "as_task": True, "lease": None}),
        (["tasks", "cancel", "7c1e", "--reason", "x"], {"id": "7c1e", "reason": "x"}),
        (["retention", "apply"], {"datasource": None, "limit": 100_000, "dry_run": False}),
        (
            ["retention", "apply", "--datasource", "a", "--datasource", "b"],
            {"datasource": ["a", "b"]},
        ),
        (["retention", "apply", "--as-task"], {"as_task": True, "lease": None}),
        (["backups", "create", "/b/1", "--as-task"], {"as_task": True, "reason": ""}),
        (["objects", "put", "-"], {"file": "-"}),
        (["objects", "list"], {"type": None}),
        (["objects", "list", "table", "--as-of", "12"], {"type": "table", "as_of": 12}),
        (["objects", "list", "--as-of", "epoch:42"], {"as_of": Epoch(42)}),
        (["backups", "create", "/b/1", "--version", "7"], {"path": "/b/1", "version": 7}),
        (["backups", "restore", "/b/1", "--segment-buckets", "64"], {"segment_buckets": 64}),
        (["backups", "rollback", "2024-01-31"], {"version": datetime(2024, 1, 31, tzinfo=UTC)}),
        (
            ["backups", "rollback", "--backup", "/b/1", "--dry-run"],
            {"backup": "/b/1", "dry_run": True},
        ),
        (["objects", "remove", "table/a", "table/b"], {"keys": ["table/a", "table/b"]}),
    ],
)
def test_words_for_operations_and_objects_are_read(
    argv: list[str], expected: dict[str, object]
) -> None:
    arguments = vars(shell_parser().parse_args(argv))
    assert arguments["command"] in (argv[0], " ".join(argv[:2]))
    assert {name: arguments[name] for name in expected} == expected


@pytest.mark.parametrize(
    "argv",
    [
        ["operations", "list", "--state", "open", "--all"],
        ["operations", "abort"],
        ["operations", "publish", "7c1e", "--epoch", "0"],
        ["operations", "renew", "7c1e", "--lease", "tomorrow"],
        ["operations", "show", "7c1e", "--reason", "x"],
        ["operations", "advance"],
        ["operations", "advance", "-1"],
        ["operations", "recover", "--keep", "30"],
        ["retention", "apply", "--limit", "0"],
        ["objects", "put"],
        ["objects", "remove"],
        ["objects", "get", "table/a", "table/b"],
        ["backups", "create"],
        ["backups", "restore", "/b/1", "--segment-buckets", "0"],
        ["backups", "restore", "/b/1", "--record"],
        ["backups", "rollback"],
        ["backups", "rollback", "7", "--backup", "/b/1"],
        ["backups", "rollback", "yesterday"],
    ],
)
def test_what_a_word_does_not_take_is_refused(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    assert "error:" in capsys.readouterr().err


@pytest.mark.parametrize("name", JOBS)
def test_a_job_takes_the_arguments_of_the_command_and_says_how_it_is_submitted(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_job(name, ["--help"]) == 0
    script = f"{name.replace('-', '_')}.py"
    assert f"jobs/{script}" in capsys.readouterr().out
    assert (ROOT / "jobs" / script).is_file()
    ours = {a.dest for a in job_parser(BY_JOB[name])._actions}
    assert {"location", "actor", "record", "metrics_file", "output"} <= ours
    assert run_job(name, ["--no-such-option"]) == 2


def test_every_script_among_the_jobs_is_one_of_them() -> None:
    scripts = {file.stem for file in (ROOT / "jobs").glob("*.py")} - {"__init__"}
    assert scripts == {name.replace("-", "_") for name in JOBS}


def test_without_a_location_the_shell_fails_before_it_starts_spark(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path
) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("STRATA_LOCATION", raising=False)
    assert main(["segments"]) == 2
    shown = capsys.readouterr()
    assert "[INVALID_INPUT] No catalog was named" in shown.err
    assert "Starting Spark" not in shown.err
