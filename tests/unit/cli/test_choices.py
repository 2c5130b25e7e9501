"""Where settings come from: options over the environment over a file."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from catalog.cli.choices import Choices, from_environment, from_file, read_file
from catalog.cli.shell import choices_of, shell_parser
from catalog.errors import InvalidInput


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("LOCATION", "ACTOR", "REMOTE", "CONFIG", "PROPERTIES_FILE", "SESSION"):
        monkeypatch.delenv(f"STRATA_{name}", raising=False)
    return tmp_path


def parsed(*argv: str) -> Choices:
    return choices_of(shell_parser().parse_args(["segments", *argv]))


def test_an_option_wins_over_the_environment_and_that_over_the_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "strata.toml").write_text('location = "/file"\nactor = "file"\nremote = "sc://file"\n')
    assert parsed() == Choices("/file", "file", "sc://file")
    monkeypatch.setenv("STRATA_LOCATION", "/environment")
    monkeypatch.setenv("STRATA_ACTOR", "environment")
    assert parsed("--actor", "option") == Choices("/environment", "option", "sc://file")


def test_the_file_is_found_in_the_home_directory_too(home: Path) -> None:
    file = home / ".config" / "strata" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('location = "main.meta"\n')
    assert from_file(None, {}) == Choices(location="main.meta")
    assert from_file(None, {"STRATA_CONFIG": str(file)}).location == "main.meta"


def test_settings_of_the_catalog_come_from_the_environment_and_from_the_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / "strata.toml"
    file.write_text(
        'location = "/x"\n[settings]\n"cleanup.grace" = "7d"\n[settings.cleanup]\nlimit = 5\n'
    )
    monkeypatch.setenv("STRATA_CLEANUP_GRACE", "2d")
    monkeypatch.setenv("STRATA_SESSION", "s-1")
    found = parsed()
    assert (found.location, found.session, found.file) == ("/x", "s-1", str(file))
    assert found.given == {"cleanup.grace": timedelta(days=2)}
    assert found.fallback == {"cleanup.grace": timedelta(days=7), "cleanup.limit": 5}
    assert parsed("--session", "s-2").session == "s-2"


def test_nothing_is_chosen_where_nobody_said_anything(home: Path) -> None:
    assert parsed() == Choices()
    assert from_environment({"STRATA_LOCATION": ""}) == Choices()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('locaton = "/x"', "did you mean location"),
        ('zzz = "/x"', "known are location"),
        ('settings = "/x"', "must be a table"),
        ('[settings]\nzzz = "1"', "no setting"),
        ("[settings]\ndeadline = -1", "above zero"),
        ('[settings]\n"config.file" = "x"', "is adopted"),
        ("location = 3", "must be a text"),
        ('location = ""', "must be a text"),
        ("location = ", "not a TOML file"),
        ("location = \xff", "not a TOML file"),
    ],
)
def test_a_file_that_cannot_be_understood_is_refused(home: Path, text: str, message: str) -> None:
    file = home / "other.toml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidInput, match=message):
        read_file(file)


def test_a_file_that_was_named_must_be_there(home: Path) -> None:
    with pytest.raises(InvalidInput, match="no configuration file"):
        from_file("nowhere.toml", {})
