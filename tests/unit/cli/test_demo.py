"""The demo: what it refuses, and the commands that it leaves to try."""

from __future__ import annotations

import shlex
from argparse import Namespace
from pathlib import Path

import pytest

from catalog.cli.command import Work
from catalog.cli.commands.demo import demo, next_commands
from catalog.cli.shell import shell_parser
from catalog.errors import InvalidInput
from catalog.progress import silent


@pytest.mark.parametrize("there", ["strata", "none"])
def test_the_commands_to_try_next_can_be_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str
) -> None:
    home = tmp_path / "my demo"
    monkeypatch.setattr("shutil.which", lambda name: name if name == there else None)
    lines = next_commands(home)
    assert len(lines) == 3
    for line in lines:
        program, words = line.split(" -m catalog ") if there == "none" else line.split(" ", 1)
        assert shlex.split(program)[-1].rpartition("/")[2].startswith(("python", "strata"))
        parsed = shell_parser().parse_args(shlex.split(words))
        assert parsed.location == str(home / "meta")


def test_the_demo_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "meta").mkdir()
    given = Namespace(directory=tmp_path)
    with pytest.raises(InvalidInput, match="is not an empty directory"):
        demo.work(Work(None, given, silent, lambda _: None))  # type: ignore[arg-type]
