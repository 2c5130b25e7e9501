"""Names, references, rows as JSON, and how verify follows them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import CorruptSchema, InvalidName
from catalog.evolution import Mode
from catalog.names.model import (
    Dropped,
    NameHead,
    Reason,
    Version,
    check_name,
    name_bucket,
    parts_of,
    reference,
    version_key,
)
from catalog.verify.model import VersionStep
from catalog.verify.replay import NameReplay


@pytest.mark.parametrize("name", ["", "a/b", None, 3, "x" * 256, "a\nb", "a\x7f", "\ud800"])
def test_a_name_beyond_the_limits_is_refused(name: Any) -> None:
    with pytest.raises(InvalidName) as refused:
        check_name(name)
    assert refused.value.values == {"name": name}


@pytest.mark.parametrize("name", ["a", "orders@home", "ü b", "x" * 255, "current", "@"])
def test_a_name_within_the_limits_is_itself_and_is_found_in_its_keys(name: str) -> None:
    assert check_name(name) == name
    assert parts_of(version_key(name, 12)) == (name, 12)
    assert reference(f"{name}@12") == (name, 12)
    assert reference(f"{name}@current") == (name, None)
    assert 0 <= name_bucket(name) < 16


@pytest.mark.parametrize(
    "text",
    [
        *("a INT", "a", "a@", "@3", "a@b", "a/b@3", "a@3 ", "a@-1", "a@current INT", "a@1.5"),
        *("a STRING COMMENT 'x@3'", '{"type":"struct","fields":[]}', "a@1234567890"),
    ],
)
def test_other_texts_are_no_reference(text: str) -> None:
    assert reference(text) is None


_TEXT = st.text(max_size=8)
_REASONS = st.builds(
    Reason, _TEXT, _TEXT, st.none() | _TEXT, st.none() | _TEXT, _TEXT, st.integers(1)
)


@given(
    st.builds(
        Version,
        st.integers(1),
        _TEXT,
        st.booleans(),
        st.lists(_REASONS, max_size=3).map(tuple),
        st.booleans(),
        st.none() | st.integers(0),
        st.booleans(),
        _TEXT,
    )
)
def test_a_version_comes_back_from_its_row(version: Version) -> None:
    payload = version.payload()
    again = Version.from_payload("n/1", version.number, version.fingerprint, payload)
    assert again == version


@given(
    st.sampled_from(Mode),
    st.integers(1),
    st.dictionaries(_TEXT, st.builds(Dropped, _TEXT, st.integers(1)), max_size=3),
)
def test_a_name_comes_back_from_its_row(mode: Mode, number: int, gone: dict[str, Dropped]) -> None:
    head = NameHead(mode, number, number, gone)
    assert NameHead.from_payload("n", head.payload()) == head


@pytest.mark.parametrize("payload", [None, "", "[]", "{}", '{"mode":"x"}', '{"reasons":[1]}'])
def test_what_cannot_be_read_is_told(payload: str | None) -> None:
    with pytest.raises(CorruptSchema):
        NameHead.from_payload("n", payload)
    with pytest.raises(CorruptSchema):
        Version.from_payload("n/1", 1, "f", payload)


# --- verify ---------------------------------------------------------------------------------------


def named(current: int, breaking: int = 1, fingerprint: str = "f") -> dict[str, Any]:
    said = NameHead(Mode.BACKWARD, current, breaking).payload()
    return {"kind": "named", "key": "n", "fingerprint": fingerprint, "said": said}


def version(number: int, compatible: bool = True, fingerprint: str | None = "f") -> dict[str, Any]:
    said = Version(number, fingerprint or "", compatible).payload()
    return {"kind": "version", "key": f"n/{number}", "fingerprint": fingerprint, "said": said}


def step(at: int, *rows: dict[str, Any], gone: str = "") -> VersionStep:
    after: dict[Any, Any] = {(row["kind"], row["key"]): row for row in rows}
    return VersionStep(at, {**after, **({("version", gone): None} if gone else {})})


def problems(*steps: VersionStep) -> list[tuple[str, int]]:
    names = NameReplay()
    return [(each.promise, each.row["version"]) for s in steps for each in names.follow(s)]


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([step(1, named(1), version(1)), step(2, named(2), version(2))], []),
        ([step(1, named(1), version(1)), step(2, named(2, 2), version(2, False))], []),
        ([step(1, named(1), version(1)), step(2, named(2), version(2, False))], [("I4", 2)]),
        ([step(1, named(1), version(1)), step(2, named(1, 2))], [("I4", 2)]),
        ([step(1, named(1, fingerprint="g"), version(1))], [("I4", 1)]),
        ([step(1, named(2), version(2))], [("I3", 1)]),
        ([step(1, version(1))], [("I3", 1)]),
        ([step(1, named(1), version(1)), step(2, version(1))], [("I5", 2)]),
        ([step(1, named(1), version(1)), step(2, gone="n/1")], [("I5", 2), ("I3", 2)]),
        ([step(1, named(1), version(1, fingerprint=None))], [("I3", 1), ("I4", 1)]),
        ([step(1, {**named(1), "said": "x"}, version(1))], [("I5", 1)]),
    ],
)
def test_verify_follows_a_name_from_version_to_version(
    steps: list[VersionStep], found: list[tuple[str, int]]
) -> None:
    assert problems(*steps) == found


def test_what_is_there_at_first_is_not_judged() -> None:
    names = NameReplay()
    names.start(step(5, named(2, 2), version(1), version(2, False)))
    assert list(names.follow(step(6, named(3, 2), version(3)))) == []
