"""The command line: types of arguments, suggestions, help texts, exit codes of bad input."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from catalog.cli.commands import BY_NAME, COMMANDS
from catalog.cli.job import run_job
from catalog.cli.options import as_of, duration, moment, positive, seconds, setting
from catalog.cli.parsers import job_parser, shell_parser
from catalog.cli.shell import main

ROOT = Path(__file__).parents[3]
WORDS = [
    "init",
    "publish",
    "publish-files",
    "backfill",
    "drop",
    "segments",
    "schemas",
    "schema-of",
    "datasources",
    "columns",
    "diff",
    "history",
    "poll",
    "cleanup",
    "verify",
    "maintain",
    "sql",
    "demo",
    "report",
    "runs",
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
    assert as_of("12") == 12
    assert as_of("2024-01-31") == datetime(2024, 1, 31, tzinfo=UTC)
    with pytest.raises(ArgumentTypeError, match="is not a time such as"):
        as_of("yesterday")


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


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_help_of_a_command_has_an_example_that_its_parser_takes(
    command, capsys: pytest.CaptureFixture[str]
) -> None:  # type: ignore[no-untyped-def]
    import shlex

    assert main([command.name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"strata {command.example}" in shown
    assert "exit codes: 0 done" in shown
    parsed = shell_parser().parse_args(shlex.split(command.example))
    assert parsed.command == command.name


@pytest.mark.parametrize(
    "name", ["publish", "publish-files", "backfill", "cleanup", "maintain", "verify", "poll"]
)
def test_a_job_takes_the_arguments_of_the_command_and_says_how_it_is_submitted(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_job(name, ["--help"]) == 0
    script = f"{name.replace('-', '_')}.py"
    assert f"jobs/{script}" in capsys.readouterr().out
    assert (ROOT / "jobs" / script).is_file()
    ours = {a.dest for a in job_parser(BY_NAME[name])._actions}
    assert {"location", "actor", "record", "metrics_file", "output"} <= ours
    assert run_job(name, ["--no-such-option"]) == 2


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
