"""Where a run gets its settings from: options, the environment, a file, Spark's configuration."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from catalog.errors import InvalidInput
from catalog.settings.model import BY_NAME, FILE, checked

FILE_VARIABLE = "STRATA_CONFIG"
FILES = (Path("strata.toml"), Path("~/.config/strata/config.toml"))
SPARK_LOCATION = "spark.strata.location"
SPARK_ACTOR = "spark.strata.actor"
SPARK_SESSION = "spark.strata.session"
# The part of a file that is about the catalog, not about its location and the caller.
SETTINGS = "settings"
NAMES = ("location", "actor", "remote", "properties_file", "session")


@dataclass(frozen=True)
class Choices:
    """The settings of a run; none where nothing was given.

    Attributes:
        location: the catalog's path or schema.
        actor: who changes are recorded for.
        remote: a Spark Connect server, `sc://host:port`.
        properties_file: Spark settings for a session that the shell starts itself.
        session: an id of the caller's session, recorded with the actor.
        given: settings of the catalog in the environment; they win over stored ones.
        fallback: settings of the catalog in a file; stored ones win over them.
        file: that file.
    """

    location: str | None = None
    actor: str | None = None
    remote: str | None = None
    properties_file: str | None = None
    session: str | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    fallback: Mapping[str, Any] = field(default_factory=dict)
    file: str | None = None

    def over(self, other: Choices) -> Choices:
        """These choices, and those of another where these have none."""
        texts: dict[str, Any] = {n: getattr(self, n) or getattr(other, n) for n in NAMES}
        return Choices(
            **texts,
            given={**other.given, **self.given},
            fallback={**other.fallback, **self.fallback},
            file=self.file or other.file,
        )


def from_environment(environment: Mapping[str, str]) -> Choices:
    """`STRATA_LOCATION`, `STRATA_ACTOR` and so on; `STRATA_CLEANUP_GRACE` is `cleanup.grace`."""
    texts: dict[str, Any] = {name: environment.get(_variable(name)) or None for name in NAMES}
    said = {
        name: environment[_variable(name)]
        for name in BY_NAME
        if name != FILE and environment.get(_variable(name))
    }
    return Choices(**texts, given=checked(said))


def _variable(name: str) -> str:
    return f"STRATA_{name.upper().replace('.', '_')}"


def from_file(given: str | None, environment: Mapping[str, str] = os.environ) -> Choices:
    """The configuration file that was named, or the first of the usual ones that is there."""
    named = given or environment.get(FILE_VARIABLE)
    for file in [Path(named)] if named else _usual():
        if file.is_file():
            return read_file(file)
    if named:
        raise InvalidInput(f"There is no configuration file {named}.", file=named)
    return Choices()


def _usual() -> list[Path]:
    try:
        return [file.expanduser() for file in FILES]
    except RuntimeError:  # a user without a home directory
        return [file for file in FILES if not str(file).startswith("~")]


def no_location() -> InvalidInput:
    """The error of a run without a location."""
    return InvalidInput(
        f"No catalog was named: give --location, set STRATA_LOCATION or {SPARK_LOCATION}, or write "
        "location = … into strata.toml."
    )


def read_file(file: Path) -> Choices:
    """Reads `location = "/data/meta"` and the like; an unknown word is refused."""
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} is not a TOML file: {error}.", file=str(file)) from error
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error}.", file=str(file)) from error
    said = checked(_flat(document.pop(SETTINGS, {}), file))
    for name, value in document.items():
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, 1)
            known = ", ".join((*NAMES, SETTINGS))
            hint = f"did you mean {near[0]}?" if near else f"known are {known}."
            raise InvalidInput(f"{file} has {name!r}: {hint}", file=str(file), name=name)
        if not isinstance(value, str) or not value:
            raise InvalidInput(
                f"{name} in {file} must be a text that is not empty, not {value!r}.",
                file=str(file),
                name=name,
            )
    return Choices(**document, fallback=said, file=str(file.absolute()) if said else None)


def _flat(document: Any, file: Path, above: str = "") -> dict[str, Any]:
    """The settings of a file by their whole names: `[settings.cleanup]` and `grace = "7d"`."""
    if not isinstance(document, dict):
        raise InvalidInput(
            f"{SETTINGS} in {file} must be a table, such as [{SETTINGS}] with lines below it.",
            file=str(file),
        )
    found: dict[str, Any] = {}
    for name, value in document.items():
        whole = f"{above}{name}"
        found |= _flat(value, file, f"{whole}.") if isinstance(value, dict) else {whole: value}
    return found
