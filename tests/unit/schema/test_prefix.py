"""Fingerprints as people type them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import AmbiguousFingerprint, InvalidInput, UnknownSchema
from catalog.schema.canonical import resolve_prefix

fingerprints = st.text("0123456789abcdef", min_size=32, max_size=32)
KNOWN = [f"abcd{digit}" + "0" * 27 for digit in "0123456"] + ["12345678" * 4]


@given(st.sets(fingerprints, min_size=1), st.data())
def test_a_whole_fingerprint_finds_itself(known: set[str], data: st.DataObject) -> None:
    one = data.draw(st.sampled_from(sorted(known)))
    assert resolve_prefix(one, known) == one
    assert resolve_prefix(one.upper(), known) == one


@pytest.mark.parametrize("typed", ["1234", "12345678", "abcd3", "ABCD3"])
def test_a_unique_beginning_finds_the_fingerprint(typed: str) -> None:
    assert resolve_prefix(typed, KNOWN).startswith(typed.lower())


def test_a_repeated_fingerprint_is_not_ambiguous() -> None:
    assert resolve_prefix("1234", [*KNOWN, *KNOWN]) == "12345678" * 4


@pytest.mark.parametrize(
    "typed", ["", "123", "12g4", "orders", "0x12", " 1234", "１２３４", "0" * 33]
)
def test_what_is_no_beginning_of_a_fingerprint_is_refused(typed: str) -> None:
    with pytest.raises(InvalidInput, match="4 to 32 hexadecimal digits"):
        resolve_prefix(typed, KNOWN)


def test_a_beginning_that_nothing_has_is_unknown() -> None:
    with pytest.raises(UnknownSchema, match="begins with 'ffff'"):
        resolve_prefix("ffff", KNOWN)


def test_an_ambiguous_beginning_names_five_candidates() -> None:
    with pytest.raises(AmbiguousFingerprint, match=r"7 fingerprints: .* and 2 more") as refused:
        resolve_prefix("abcd", reversed(KNOWN))
    assert refused.value.values["candidates"] == sorted(KNOWN)[1:6]
