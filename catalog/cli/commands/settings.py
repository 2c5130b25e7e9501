"""strata settings: settings that are stored in the catalog."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from catalog.cli.arguments import argument
from catalog.cli.command import Answer, Table, Work, answer_of, change, command
from catalog.settings.model import Layers, Setting, known_setting
from catalog.settings.types import ANYTHING, duration_text

_COLUMNS = ("name", "value", "source", "default", "changed_at", "changed_by", "help")
_NAME = argument("name", "a name such as cleanup.grace")


def _row(setting: Setting) -> tuple[Any, ...]:
    value = _plain(setting.value)
    return (
        setting.name,
        # One column has one type, in plain text too.
        value if value is None or isinstance(value, str) else json.dumps(value),
        setting.source.value,
        None if setting.default is None else str(_plain(setting.default)),
        setting.changed_at,
        setting.changed_by,
        setting.help,
    )


def _plain(value: Any) -> Any:
    return duration_text(value) if isinstance(value, timedelta) else value


@command(
    "settings list",
    "list settings, with their values and where these come from",
    details=(
        "The first source that has a value wins: an option, the environment (STRATA_CLEANUP_GRACE\n"
        "is cleanup.grace), the catalog, a configuration file that was not adopted yet, the\n"
        "default."
    ),
    long=False,
)
def settings_list(work: Work) -> Answer:
    rows = tuple(_row(setting) for setting in work.catalog.settings.list())
    brief = ("name", "value", "source", "help")
    return Answer(tables={"settings": Table(_COLUMNS, rows, brief=brief)})


@command("settings get", "show one setting", _NAME, example="cleanup.grace", long=False)
def settings_get(work: Work) -> Answer:
    name = work.arguments.name
    unset = Layers().setting(name)
    found = next((s for s in work.catalog.settings.list() if s.name == name), unset)
    return Answer(facts=dict(zip(_COLUMNS, _row(found), strict=True)))


@change(
    "settings set",
    "store a setting in the catalog, for everybody who opens it later",
    _NAME,
    argument("value", "such as 7d or 5000"),
    details=(
        "Secrets are not stored: names under secret., and names with words such as password or\n"
        "token, take a reference, secret://scope/name. Names under app. are free for applications."
    ),
    example="cleanup.grace 7d",
    long=False,
)
def settings_set(work: Work) -> Answer:
    name, text = work.arguments.name, work.arguments.value
    return answer_of(work.catalog.settings.set(name, _read(name, text), **work.why))


def _read(name: str, text: str) -> Any:
    """The value of an argument: JSON where the setting takes any value, else a text."""
    if known_setting(name).type is not ANYTHING:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


@change(
    "settings unset",
    "remove a stored setting, so that its default applies again",
    _NAME,
    example="cleanup.grace",
    long=False,
)
def settings_unset(work: Work) -> Answer:
    return answer_of(work.catalog.settings.unset(work.arguments.name, **work.why))
