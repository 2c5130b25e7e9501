"""Settings: names, values, and which of several counts."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import InvalidSetting
from catalog.settings.model import (
    BY_NAME,
    FILE,
    KNOWN,
    Layers,
    Source,
    StoredSetting,
    checked,
    known_setting,
)
from catalog.settings.store import adopting, setting, unsetting
from catalog.settings.types import duration_text, parse_duration

DAY = timedelta(days=1)


def stored(**payloads: str) -> dict[str, StoredSetting]:
    names = {name.replace("__", "."): payload for name, payload in payloads.items()}
    return {name: StoredSetting(name, payload, "c") for name, payload in names.items()}


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=36_500)))
def test_a_time_is_read_as_it_is_written(time: timedelta) -> None:
    assert parse_duration(duration_text(time)) == time


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_every_default_is_allowed_and_comes_back_from_storage(known: Any) -> None:
    if known.default is not None:
        value = known.check(known.default)
        assert known.from_payload(known.payload(value)) == value == known.default
    assert known.help
    assert not known.help.endswith(".")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("cleanup.grace", "7d", 7 * DAY),
        ("cleanup.grace", "0", timedelta(0)),
        ("cleanup.grace", 2 * DAY, 2 * DAY),
        ("cleanup.limit", "50", 50),
        ("deadline", "90s", 90.0),
        ("deadline", 1.5, 1.5),
        ("deadline", "30", 30.0),
        ("app.team", "data", "data"),
        ("app.limits.big", {"a": [1]}, {"a": [1]}),
        ("secret.lake", "secret://prod/lake", "secret://prod/lake"),
        ("secret.lake", "secret://ann@example.com/lake-1.x", "secret://ann@example.com/lake-1.x"),
        ("app.db_password", "secret://prod/db", "secret://prod/db"),
    ],
)
def test_values_are_taken_as_people_write_them(name: str, value: Any, expected: Any) -> None:
    known = known_setting(name)
    assert known.check(value) == expected
    assert known.from_payload(known.payload(expected)) == expected


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("cleanup.grac", "7d", "Did you mean cleanup.grace"),
        ("zzz", "7d", "Known are deadline"),
        (7, "7d", "no setting 7"),
        ("app.", "x", "no setting"),
        ("app.A B", "x", "no setting"),
        ("app." + "x" * 300, "x", "no setting"),
        ("cleanup.grace", "7 days", "a time such as"),
        ("cleanup.grace", -DAY, "a time such as"),
        ("cleanup.grace", "99999d", "more than"),
        ("cleanup.grace", 7, "a time such as"),
        ("cleanup.limit", 0, "whole number above zero"),
        ("cleanup.limit", True, "whole number above zero"),
        ("cleanup.limit", "1e3", "whole number above zero"),
        ("deadline", 0, "above zero"),
        ("deadline", float("nan"), "above zero"),
        ("deadline", "soon", "not a time"),
        ("app.x", None, "null"),
        ("app.x", float("inf"), "not a JSON value"),
        ("app.x", "y" * 5000, "4000"),
        ("secret.lake", "hunter2", "secret://scope/name"),
        ("secret.lake", "secret://prod/my pass", "secret://scope/name"),
        ("secret.lake", "secret://prod/hunter2!", "secret://scope/name"),
        ("app.api_key", "hunter2", "secret://scope/name"),
        ("app.db.token", "hunter2", "secret://scope/name"),
        (FILE, "/etc/strata.toml", "is adopted"),
    ],
)
def test_bad_names_and_values_are_refused_with_what_is_allowed(
    name: Any, value: Any, message: str
) -> None:
    with pytest.raises(InvalidSetting, match=message) as refused:
        checked({name: value})
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("given_", "kept", "file", "expected"),
    [
        ({}, {}, {}, (DAY, Source.DEFAULT)),
        ({}, {}, {"cleanup.grace": 2 * DAY}, (2 * DAY, Source.FILE)),
        ({}, {"cleanup__grace": '"3d"'}, {"cleanup.grace": 2 * DAY}, (3 * DAY, Source.STORED)),
        (
            {"cleanup.grace": 4 * DAY},
            {"cleanup__grace": '"3d"'},
            {"cleanup.grace": 2 * DAY},
            (4 * DAY, Source.GIVEN),
        ),
        # Once a file was taken over, it is only for where the catalog is.
        ({}, {"config__file": '"f"'}, {"cleanup.grace": 2 * DAY}, (DAY, Source.DEFAULT)),
        ({}, {"config__file": '"f"', "cleanup__grace": '"3d"'}, {}, (3 * DAY, Source.STORED)),
    ],
)
def test_the_first_that_says_something_counts(
    given_: dict[str, Any], kept: dict[str, str], file: dict[str, Any], expected: Any
) -> None:
    found = Layers(given_, stored(**kept), file).setting("cleanup.grace")
    assert (found.value, found.source, found.default) == (*expected, DAY)


def test_all_settings_are_listed_also_those_that_this_release_does_not_understand() -> None:
    kept = stored(app__team='"data"', later__thing="5", cleanup__limit='"many"')
    listed = {each.name: each for each in Layers(stored=kept).all()}
    assert listed.keys() == {*BY_NAME, "app.team", "later.thing", "cleanup.limit"}
    assert listed["app.team"].value == "data"
    assert (listed["later.thing"].value, listed["later.thing"].source) == ("5", Source.STORED)
    assert listed["cleanup.limit"].value == '"many"'
    with pytest.raises(InvalidSetting, match=r"cleanup\.limit"):
        Layers(stored=kept).setting("cleanup.limit")
    with pytest.raises(InvalidSetting, match="not JSON"):
        Layers(stored=stored(deadline="{")).setting("deadline")


def test_a_file_is_taken_over_once_and_never_over_what_is_stored() -> None:
    decide = adopting({"cleanup.grace": 2 * DAY, "cleanup.limit": 5}, "/etc/strata.toml")
    assert decide({}) == {
        "cleanup.grace": '"2d"',
        "cleanup.limit": "5",
        FILE: json.dumps("/etc/strata.toml"),
    }
    assert decide(stored(cleanup__grace='"9d"')).keys() == {"cleanup.limit", FILE}
    assert decide(stored(config__file='"other"')) == {}
    assert setting({"cleanup.limit": 5})({}) == {"cleanup.limit": "5"}
    assert unsetting("deadline")({}) == {"deadline": None}
