"""Registrations as plans: numbers, modes, merges, what was dropped and what breaks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog import Schema, compatibility, merged, superior
from catalog.errors import IncompatibleSchema, InvalidInput, SchemaConflict, UnknownName
from catalog.evolution import Mode
from catalog.names.model import NameHead, Version
from catalog.names.plan import NameHistory, Registration, plan
from catalog.schema.names import folded
from tests.unit.evolution.strategies import related
from tests.unit.names.book import Book, book

MODES = [str(mode) for mode in Mode]
# Which schema comes next, and whether its writer says what it started from.
ASKED = st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=12)

# --- numbers and repetitions ----------------------------------------------------------------------


def test_the_first_registration_is_version_1_with_the_mode_that_is_given() -> None:
    planned = plan(None, Registration("orders", Schema.of("a INT"), note="first"))
    assert planned.head == NameHead(Mode.BACKWARD, 1, 1)
    assert planned.version == Version(1, Schema.of("a INT").fingerprint, note="first")
    assert not planned.repeated
    full = plan(None, Registration("orders", Schema.of("a INT"), Mode.FULL, base=0))
    assert (full.head.mode, full.version.base, full.version.merged) == (Mode.FULL, 0, False)


def test_the_current_schema_again_is_no_change_and_an_older_one_gets_a_new_number() -> None:
    names = book("a INT")
    assert names.register("a INT").repeated
    assert names.register("a INT COMMENT 'other'", base=1).repeated
    assert names.register("a INT, b INT").version.number == 2
    back = names.register("a INT")
    assert (back.repeated, back.version.number) == (False, 3)
    assert back.version.fingerprint == names.written.versions[0].fingerprint


def test_a_mode_is_given_once_and_changed_elsewhere() -> None:
    names = book("a INT", mode="full")
    assert names.register("a INT, b INT", mode=Mode.FULL).version.number == 2
    with pytest.raises(InvalidInput, match="set_mode"):
        names.register("a INT", mode=Mode.NONE)


@pytest.mark.parametrize(("before", "base"), [((), 1), (("a INT",), 2)])
def test_a_base_that_is_not_there_is_refused(before: tuple[str, ...], base: int) -> None:
    with pytest.raises(UnknownName):
        book(*before).register("a INT, b INT", base=base)


# --- modes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "versions", "new", "paths"),
    [
        ("backward", ["a INT"], "a BIGINT", []),
        ("backward", ["a BIGINT"], "a INT", ["a"]),
        ("backward", ["a INT"], "a INT, b INT NOT NULL", ["b"]),
        ("backward", ["a INT"], "a STRING, b INT NOT NULL", ["a", "b"]),
        ("forward", ["a INT"], "a BIGINT", ["a"]),
        ("forward", ["a BIGINT"], "a INT", []),
        ("full", ["a INT"], "a INT, s STRUCT<x: INT>", []),
        ("full", ["a INT NOT NULL"], "b INT", ["a"]),
        ("none", ["a INT"], "a STRING", []),
        ("none", ["a INT, b INT", "a INT"], "a INT, b STRING", []),
        ("full", ["a INT", "a BIGINT"], "a BIGINT, b INT", []),
        ("full_transitive", ["a INT", "a BIGINT"], "a BIGINT, b INT", ["a"]),
        ("backward_transitive", ["a BIGINT", "b INT"], "a INT, b INT", ["a"]),
        ("forward_transitive", ["a INT", "a INT, b INT"], "a BIGINT", ["a"]),
    ],
)
def test_a_mode_decides_what_may_follow(
    mode: str, versions: list[str], new: str, paths: list[str]
) -> None:
    names = book(*versions, mode=mode)
    if not paths:
        planned = names.register(new)
        assert (planned.version.number, planned.version.forced) == (len(versions) + 1, False)
        return
    with pytest.raises(IncompatibleSchema) as refused:
        names.register(new)
    values = refused.value.values
    assert (values["name"], values["version"], values["mode"]) == (
        "orders",
        len(versions) + 1,
        mode,
    )
    assert [each["path"] for each in values["reasons"]] == paths
    forced = names.register(new, force=True).version
    assert forced.forced
    assert {each.path for each in forced.reasons} == set(paths)


def test_force_that_was_not_needed_is_not_recorded() -> None:
    assert not book("a INT").register("a BIGINT", force=True).version.forced


def test_reasons_name_the_newest_version_that_they_are_about_once() -> None:
    names = book("a BIGINT", "a BIGINT, b INT", "a BIGINT", mode="backward_transitive")
    with pytest.raises(IncompatibleSchema) as refused:
        names.register("a INT")
    assert [(each["path"], each["against"]) for each in refused.value.values["reasons"]] == [
        ("a", 3)
    ]
    assert "a was narrowed: old data may have values that do not fit (against version 3)" in str(
        refused.value
    )


# --- what breaks ----------------------------------------------------------------------------------


def test_compatible_is_recorded_whatever_the_mode_and_what_is_not_becomes_the_last_breaking() -> (
    None
):
    names = book("a INT", mode="none")
    assert names.register("a BIGINT").version.compatible
    assert names.written.head.last_breaking == 1
    broken = names.register("a STRING")
    assert (broken.version.compatible, broken.version.breaking) == (False, True)
    assert [each.path for each in broken.version.reasons] == ["a"]
    assert (broken.version.forced, broken.head.last_breaking) == (False, 3)
    assert names.register("a STRING, b INT").head.last_breaking == 3


def test_a_column_that_comes_back_narrower_breaks_with_the_version_that_had_it() -> None:
    names = book("a BIGINT, b INT", "b INT")
    back = names.register("a INT, b INT", force=True)
    assert (back.version.forced, back.version.compatible) == (True, False)
    assert [(each.path, each.kind, each.against) for each in back.version.reasons] == [
        ("a", "narrowed", 1)
    ]
    assert back.head.last_breaking == 3


# --- dropped columns ------------------------------------------------------------------------------


def test_dropped_columns_are_remembered_with_their_last_type_until_they_come_back() -> None:
    names = book("a INT, s STRUCT<x: INT, y: ARRAY<STRING>>", "a BIGINT, s STRUCT<x: INT>")
    assert names.dropped == {"s.y": ("array<string>", 2)}
    names.register("k INT")
    assert names.dropped == {
        "a": ("bigint", 3),
        "s": ("struct<x:int>", 3),
        "s.x": ("int", 3),
        "s.y": ("array<string>", 2),
    }
    names.register("k INT, a BIGINT, s STRUCT<y: ARRAY<STRING>>")
    assert names.dropped == {"s.x": ("int", 3)}


@pytest.mark.parametrize(
    ("was", "now", "paths"),
    [
        ("a INT", "a INT", []),
        ("a INT", "a STRING", ["a"]),
        ("a INT", "A INT", ["A"]),
        ("a INT", "a STRUCT<x: INT>", ["a"]),
        ("a ARRAY<INT>", "a ARRAY<STRING>", ["a.element"]),
        ("a STRUCT<x: INT>", "a STRUCT<x: STRING, y: INT>", ["a.x"]),
        ("a STRUCT<x: INT>", "a STRUCT<y: INT>", []),
        ("a MAP<INT, INT>", "a MAP<INT, STRUCT<q: INT>>", ["a.value"]),
        ("`a.b` INT", "`a.b` STRING", ["`a.b`"]),
    ],
)
@pytest.mark.parametrize("mode", ["backward", "full"])
def test_a_column_comes_back_only_as_what_may_follow_what_it_was(
    mode: str, was: str, now: str, paths: list[str]
) -> None:
    names = book(f"k INT, {was}", "k INT", mode=mode)
    if not paths:
        assert not names.register(f"k INT, {now}").version.forced
        return
    with pytest.raises(IncompatibleSchema) as refused:
        names.register(f"k INT, {now}")
    assert [each["path"] for each in refused.value.values["reasons"]] == paths
    assert "dropped by version 2" in str(refused.value)
    forced = names.register(f"k INT, {now}", force=True)
    assert (forced.version.forced, forced.version.breaking) == (True, True)
    assert not any(folded(path) == ("a",) for path in names.dropped)


@pytest.mark.parametrize(
    ("mode", "wider", "narrower", "other"),
    [
        ("backward", True, False, False),
        ("backward_transitive", True, False, False),
        ("forward", False, True, False),
        ("full", False, False, False),
        ("none", True, True, True),
    ],
)
def test_a_mode_judges_a_column_that_comes_back_as_one_that_stayed(
    mode: str, wider: bool, narrower: bool, other: bool
) -> None:
    for now, taken in (("BIGINT", wider), ("SMALLINT", narrower), ("STRING", other)):
        for names in (book("k INT, a INT", "k INT", mode=mode), book("k INT, a INT", mode=mode)):
            if taken:
                assert not names.register(f"k INT, a {now}").version.forced
            else:
                with pytest.raises(IncompatibleSchema):
                    names.register(f"k INT, a {now}")


# --- merges ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("versions", "given", "result"),
    [
        (["a INT", "a INT, b INT"], "a INT, c INT", "a INT, b INT, c INT"),
        (["a INT", "a BIGINT"], "a INT, c INT", "a BIGINT, c INT"),
        (["a INT, b INT", "a INT, b INT, c INT"], "a INT", "a INT, c INT"),
        (["a INT, b INT", "a INT"], "a INT, b INT, c INT", "a INT, c INT"),
        (["a INT, b INT", "a INT"], "a INT, b BIGINT, c INT", "a INT, c INT"),
        (
            ["k INT, s ARRAY<STRUCT<x: INT, y: INT>>", "k INT, s ARRAY<STRUCT<y: INT>>"],
            "k INT, s ARRAY<STRUCT<x: INT, y: INT, z: INT>>",
            "k INT, s ARRAY<STRUCT<y: INT, z: INT>>",
        ),
        # Each side dropped another half of a struct.
        (["k INT, s STRUCT<x: INT, y: INT>", "k INT, s STRUCT<x: INT>"], "k INT, s STRUCT<y: INT>",
         "k INT"),
        # Added and dropped again by others meanwhile: the drop is newer.
        (["a INT", "a INT, z INT", "a INT"], "a INT, z INT, c INT", "a INT, c INT"),
        # Who changed nothing asks for nothing.
        (["a INT", "a INT, b INT NOT NULL"], "a INT", "a INT, b INT NOT NULL"),
    ],
)  # fmt: skip
def test_what_was_made_from_an_older_version_is_merged_with_what_came_since(
    versions: list[str], given: str, result: str
) -> None:
    names = book(*versions)
    planned = names.register(given, base=1, force=True)
    assert planned.schema == Schema.of(result)
    assert planned.repeated == (Schema.of(result) == Schema.of(versions[-1]))
    if not planned.repeated:
        assert (planned.version.merged, planned.version.base) == (True, 1)


def test_a_column_that_was_dropped_before_the_base_may_come_back_in_a_merge() -> None:
    names = book("a INT, z INT", "a INT", "a INT, b INT")
    assert names.register("a INT, z INT", base=2).schema == Schema.of("a INT, b INT, z INT")


def test_two_first_registrations_are_merged_if_both_say_that_there_was_none() -> None:
    names = book("a INT")
    planned = names.register("b INT", base=0)
    assert planned.schema == Schema.of("a INT, b INT")
    assert planned.version.merged


@pytest.mark.parametrize(
    ("versions", "given", "paths"),
    [
        (["a INT", "a INT, b INT"], "a INT, b STRING", ["b"]),
        (["k INT, s STRUCT<x: INT>", "k INT"], "k INT, s STRUCT<x: INT, z: INT>", ["s.z"]),
        (["k INT, s STRUCT<x: INT>", "k INT, s STRUCT<x: INT, z: INT>"], "k INT", ["s.z"]),
        (["a INT, b INT", "a INT"], "b INT", []),
    ],
)
def test_what_does_not_merge_is_refused_with_its_columns(
    versions: list[str], given: str, paths: list[str]
) -> None:
    with pytest.raises(SchemaConflict) as refused:
        book(*versions).register(given, base=1, force=True)
    values = refused.value.values
    assert [each["path"] for each in values["conflicts"]] == paths
    assert (values["name"], values["base"], values["current"]) == ("orders", 1, len(versions))


# --- laws -----------------------------------------------------------------------------------------


def naive_breaking(history: NameHistory) -> int:
    """The last version that somebody since the last such version cannot be read in."""
    last = 1
    for number in range(2, history.head.current + 1):
        before = range(last, number)
        new = history.schema(number)
        if not all(compatibility(history.schema(old), new).backward for old in before):
            last = number
    return last


def naive_dropped(history: NameHistory) -> dict[tuple[str, ...], tuple[str, int]]:
    """Every column that was there once and is not now, by a look at every version."""
    gone: dict[tuple[str, ...], tuple[str, int]] = {}
    numbers = range(1, history.head.current + 1)
    now = {folded(column.path) for column in history.schema(numbers[-1]).columns}
    for number in numbers:
        for column in history.schema(number).columns:
            if folded(column.path) not in now:
                gone[folded(column.path)] = (column.type, number + 1)
    return gone


@settings(max_examples=150, deadline=None)
@given(related(6), st.sampled_from(MODES), ASKED)
def test_numbers_are_dense_and_what_a_name_says_follows_from_its_versions(
    schemas: tuple[Schema, ...], mode: str, asked: list[tuple[bool, int]]
) -> None:
    names = Book(mode)
    names.register(schemas[0])
    for based, index in asked:
        head = names.written.head
        base = max(1, head.current - index) if based else None
        before = names.written
        wanted: dict[str, Any] = {"base": base, "force": index % 2 == 0}
        try:
            planned = names.register(schemas[index], **wanted)
        except (IncompatibleSchema, SchemaConflict):
            assert names.written is before
            continue
        if planned.version.merged and not planned.repeated:
            gone = {folded(p) for p, each in head.dropped.items() if each.since > (base or 0)}
            assert not gone & {folded(column.path) for column in planned.schema.columns}
        # The same request again, after a lost answer say, changes nothing.
        assert names.register(schemas[index], **wanted).repeated
    history = names.written
    assert [version.number for version in history.versions] == [*range(1, history.head.current + 1)]
    assert history.head.last_breaking == naive_breaking(history)
    found = {folded(path): value for path, value in names.dropped.items()}
    assert found == naive_dropped(history)
    current = names.schema
    for number in range(history.head.last_breaking, history.head.current + 1):
        assert compatibility(history.schema(number), current).backward


@settings(max_examples=150, deadline=None)
@given(related(3), st.booleans())
def test_of_two_writers_who_only_add_the_second_ends_superior_to_both(
    schemas: tuple[Schema, ...], swapped: bool
) -> None:
    start = schemas[0]
    ours, theirs = (merged([start, each]) for each in schemas[1:])
    if ours.conflicts or theirs.conflicts:
        return
    first, second = (theirs, ours) if swapped else (ours, theirs)
    names = Book("backward")
    names.register(start)
    names.register(first.schema, base=1)
    try:
        planned = names.register(second.schema, base=1)
    except SchemaConflict:
        assert merged([first.schema, second.schema]).conflicts
        return
    assert superior(planned.schema, first.schema)
    assert superior(planned.schema, second.schema)
    other = Book("backward")
    other.register(start)
    other.register(second.schema, base=1)
    assert other.register(first.schema, base=1).schema == planned.schema
    assert other.written.head.last_breaking == names.written.head.last_breaking == 1
