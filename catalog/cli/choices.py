"""Where a setting comes from: an option, the environment, a file, or Spark's configuration."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from catalog.errors import InvalidInput

FILE_VARIABLE = "STRATA_CONFIG"
FILES = (Path("strata.toml"), Path("~/.config/strata/config.toml"))
SPARK_LOCATION = "spark.strata.location"
SPARK_ACTOR = "spark.strata.actor"


@dataclass(frozen=True)
class Choices:
    """What a run is told from outside; none where nobody said anything.

    Attributes:
        location: the catalog's path or schema.
        actor: who changes are recorded for.
        remote: a Spark Connect server, `sc://host:port`.
        properties_file: Spark settings for a session that the shell starts itself.
    """

    location: str | None = None
    actor: str | None = None
    remote: str | None = None
    properties_file: str | None = None

    def over(self, other: Choices) -> Choices:
        """These choices, and another's where these say nothing."""
        return Choices(*(getattr(self, name) or getattr(other, name) for name in NAMES))


NAMES = tuple(field.name for field in fields(Choices))


def from_environment(environment: Mapping[str, str]) -> Choices:
    """`STRATA_LOCATION`, `STRATA_ACTOR` and so on."""
    return Choices(**{name: environment.get(f"STRATA_{name.upper()}") or None for name in NAMES})


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
    """The refusal of a run that was not told where the catalog is."""
    return InvalidInput(
        f"No catalog was named: give --location, set STRATA_LOCATION or {SPARK_LOCATION}, or write "
        "location = … into strata.toml."
    )


def read_file(file: Path) -> Choices:
    """Reads `location = "/data/meta"` and the like; a word that is not known is refused."""
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} is not a TOML file: {error}.", file=str(file)) from error
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error}.", file=str(file)) from error
    for name, value in document.items():
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(NAMES)}."
            raise InvalidInput(f"{file} has {name!r}: {hint}", file=str(file), name=name)
        if not isinstance(value, str) or not value:
            raise InvalidInput(
                f"{name} in {file} must be a text that is not empty, not {value!r}.",
                file=str(file),
                name=name,
            )
    return Choices(**document)
