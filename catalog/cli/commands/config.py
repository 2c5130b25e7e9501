"""The words for stored settings: config list, get, set, unset."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from catalog.cli.answer import Answer, Table
from catalog.cli.command import Access, Command, Work
from catalog.cli.commands.writing import add_why
from catalog.settings.durations import duration_text
from catalog.settings.keeper import SettingResult
from catalog.settings.known import known_setting
from catalog.settings.resolving import Layers, Setting
from catalog.settings.sorts import ANYTHING

_COLUMNS = ("name", "value", "source", "default", "changed_at", "changed_by", "help")


def _shown(value: Any) -> Any:
    return duration_text(value) if isinstance(value, timedelta) else value


def _row(setting: Setting) -> tuple[Any, ...]:
    value = _shown(setting.value)
    return (
        setting.name,
        # One column has one type, also on the faces that have none.
        value if value is None or isinstance(value, str) else json.dumps(value),
        setting.source.value,
        None if setting.default is None else str(_shown(setting.default)),
        setting.changed_at,
        setting.changed_by,
        setting.help,
    )


# --- list -----------------------------------------------------------------------------------------


def _no_arguments(parser: ArgumentParser) -> None:
    return None


def _list(work: Work) -> Answer:
    rows = tuple(_row(setting) for setting in work.catalog.settings())
    brief = ("name", "value", "source", "help")
    return Answer(tables={"settings": Table(_COLUMNS, rows, brief=brief)})


SETTINGS_LIST = Command(
    name="settings list",
    summary="list settings, with their values and where these are from",
    details=(
        "The first that says something counts: an option, the environment (STRATA_CLEANUP_GRACE\n"
        "is cleanup.grace), what is stored in the catalog, a configuration file that was not\n"
        "taken over yet, the default."
    ),
    example="settings list",
    access=Access.READ,
    arguments=_no_arguments,
    work=_list,
    long=False,
)

# --- get ------------------------------------------------------------------------------------------


def _name(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a name such as cleanup.grace")


def _get(work: Work) -> Answer:
    name = work.arguments.name
    nobody = Layers().setting(name)
    found = next((s for s in work.catalog.settings() if s.name == name), nobody)
    return Answer(facts=dict(zip(_COLUMNS, _row(found), strict=True)))


SETTINGS_GET = Command(
    name="settings get",
    summary="show one setting",
    example="settings get cleanup.grace",
    access=Access.READ,
    arguments=_name,
    work=_get,
    long=False,
)

# --- set and unset --------------------------------------------------------------------------------


def _set_arguments(parser: ArgumentParser) -> None:
    _name(parser)
    parser.add_argument("value", metavar="VALUE", help="such as 7d or 5000")
    add_why(parser)


def _set(work: Work) -> Answer:
    arguments = work.arguments
    result = work.catalog.set_setting(
        arguments.name,
        _read(arguments.name, arguments.value),
        reason=arguments.reason,
        deadline=arguments.deadline,
    )
    return _told(result)


def _read(name: str, text: str) -> Any:
    """What was written on the command line: JSON where any of it is allowed, else a text."""
    if known_setting(name).sort is not ANYTHING:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _told(result: SettingResult) -> Answer:
    return Answer(
        facts={
            "version": result.version,
            "commit_id": result.commit_id or None,
            "changed": len(result.changed),
            "retries": result.retries,
        },
        figures={"changed": len(result.changed), "conflicts_retried": result.retries},
    )


SETTINGS_SET = Command(
    name="settings set",
    summary="store a setting in the catalog, for everybody who opens it from now on",
    details=(
        "A secret is not kept: names under secret., and those that speak of passwords or tokens,\n"
        "take a reference, secret://scope/name. Names under app. are free for applications."
    ),
    example="settings set cleanup.grace 7d",
    access=Access.WRITE,
    arguments=_set_arguments,
    work=_set,
    recorded=True,
    long=False,
)


def _unset_arguments(parser: ArgumentParser) -> None:
    _name(parser)
    add_why(parser)


def _unset(work: Work) -> Answer:
    arguments = work.arguments
    return _told(
        work.catalog.unset_setting(
            arguments.name, reason=arguments.reason, deadline=arguments.deadline
        )
    )


SETTINGS_UNSET = Command(
    name="settings unset",
    summary="remove a stored setting, so that its default counts again",
    example="settings unset cleanup.grace",
    access=Access.WRITE,
    arguments=_unset_arguments,
    work=_unset,
    recorded=True,
    long=False,
)
