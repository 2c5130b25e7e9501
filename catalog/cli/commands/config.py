"""The words for stored settings: config list, get, set, unset."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from catalog.cli.answer import Answer, Table, answer_of
from catalog.cli.command import Access, Command, Work
from catalog.cli.commands.writing import add_why
from catalog.settings.model import Layers, Setting, known_setting
from catalog.settings.types import ANYTHING, duration_text

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
    rows = tuple(_row(setting) for setting in work.catalog.settings.list())
    brief = ("name", "value", "source", "help")
    return Answer(tables={"settings": Table(_COLUMNS, rows, brief=brief)})


CONFIG_LIST = Command(
    name="config list",
    summary="list settings, with their values and where these are from",
    details=(
        "The first that says something counts: an option, the environment (STRATA_CLEANUP_GRACE\n"
        "is cleanup.grace), what is stored in the catalog, a configuration file that was not\n"
        "taken over yet, the default."
    ),
    example="config list",
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
    found = next((s for s in work.catalog.settings.list() if s.name == name), nobody)
    return Answer(facts=dict(zip(_COLUMNS, _row(found), strict=True)))


CONFIG_GET = Command(
    name="config get",
    summary="show one setting",
    example="config get cleanup.grace",
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
    result = work.catalog.settings.set(
        arguments.name,
        _read(arguments.name, arguments.value),
        reason=arguments.reason,
        deadline=arguments.deadline,
    )
    return answer_of(result)


def _read(name: str, text: str) -> Any:
    """What was written on the command line: JSON where any of it is allowed, else a text."""
    if known_setting(name).type is not ANYTHING:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


CONFIG_SET = Command(
    name="config set",
    summary="store a setting in the catalog, for everybody who opens it from now on",
    details=(
        "A secret is not kept: names under secret., and those that speak of passwords or tokens,\n"
        "take a reference, secret://scope/name. Names under app. are free for applications."
    ),
    example="config set cleanup.grace 7d",
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
    return answer_of(
        work.catalog.settings.unset(
            arguments.name, reason=arguments.reason, deadline=arguments.deadline
        )
    )


CONFIG_UNSET = Command(
    name="config unset",
    summary="remove a stored setting, so that its default counts again",
    example="config unset cleanup.grace",
    access=Access.WRITE,
    arguments=_unset_arguments,
    work=_unset,
    recorded=True,
    long=False,
)
