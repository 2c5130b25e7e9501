"""Compatibility: each kind of change, the seven modes, and the laws that tie it to reading."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from catalog import Schema
from catalog.errors import InvalidInput
from catalog.evolution import Mode, compatibility, judge, superior
from catalog.evolution.projection import Leeway, refusals
from tests.unit.evolution.strategies import related

MANY = settings(max_examples=600, deadline=None)

# old, new, path, kind, backward, forward
CHANGES = [
    ("a INT", "a INT, b INT", "b", "added nullable", True, True),
    ("a INT", "a INT, b INT NOT NULL", "b", "added required", False, True),
    ("a INT, b INT", "a INT", "b", "dropped nullable", True, True),
    ("a INT, b INT NOT NULL", "a INT", "b", "dropped required", True, False),
    ("a INT", "a BIGINT", "a", "widened", True, False),
    ("a BIGINT", "a INT", "a", "narrowed", False, True),
    ("a DECIMAL(5, 2)", "a DECIMAL(7, 3)", "a", "widened", True, False),
    ("a DECIMAL(5, 2)", "a DECIMAL(7, 5)", "a", "retyped", False, False),
    ("a CHAR(3)", "a CHAR(4)", "a", "retyped", False, False),
    ("a CHAR(3)", "a VARCHAR(3)", "a", "widened", True, False),
    ("a VOID", "a STRUCT<x: INT>", "a", "widened", True, False),
    ("a ARRAY<INT>", "a VOID", "a", "narrowed", False, True),
    ("a INT NOT NULL", "a INT", "a", "made nullable", True, False),
    ("a INT", "a INT NOT NULL", "a", "made required", False, True),
    ("a INT", "a STRING", "a", "retyped", False, False),
    ("a INT", "a STRUCT<x: INT>", "a", "retyped", False, False),
    ("a INT", "A INT", "A", "respelled", False, False),
    ("a STRUCT<x: INT>", "a STRUCT<x: INT, y: INT>", "a.y", "added nullable", True, True),
    ("a ARRAY<INT>", "a ARRAY<BIGINT>", "a.element", "widened", True, False),
    ("a MAP<INT, STRUCT<x: DATE>>", "a MAP<INT, STRUCT<x: TIMESTAMP_NTZ>>", "a.value.x",
     "widened", True, False),
    ("a MAP<BIGINT, INT>", "a MAP<INT, INT>", "a.key", "narrowed", False, True),
    ("a MAP<STRUCT<x: INT>, INT>", "a MAP<STRUCT<x: INT, y: INT>, INT>", "a.key.y",
     "added nullable", True, False),
    ("a MAP<STRUCT<x: INT, y: INT>, INT>", "a MAP<STRUCT<x: INT>, INT>", "a.key.y",
     "dropped nullable", False, True),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "path", "kind", "backward", "forward"), CHANGES)
def test_a_change_has_a_kind_and_a_consequence(
    old: str, new: str, path: str, kind: str, backward: bool, forward: bool
) -> None:
    found = compatibility(old, new)
    (change,) = found.changes
    assert (change.path, change.kind, change.backward, change.forward) == (
        path,
        kind,
        backward,
        forward,
    )
    verdicts = {(True, True): "full", (True, False): "backward", (False, True): "forward"}
    assert found.verdict == verdicts.get((backward, forward), "none")
    assert path in str(change)
    assert change.reason in str(change)


def test_elements_and_values_have_nullability_of_their_own() -> None:
    element = '{"type":"array","elementType":"integer","containsNull":%s}'
    value = '{"type":"map","keyType":"string","valueType":"integer","valueContainsNull":%s}'
    for kind, path in ((element, "a.element"), (value, "a.value")):
        field = '{"type":"struct","fields":[{"name":"a","type":%s,"nullable":true}]}'
        strict, loose = (Schema.of(field % (kind % flag)) for flag in ("false", "true"))
        (change,) = compatibility(strict, loose).changes
        assert (change.path, change.kind) == (path, "made nullable")
        (change,) = compatibility(loose, strict).changes
        assert (change.path, change.kind) == (path, "made required")


def test_order_and_comments_are_no_change() -> None:
    assert compatibility("a INT, b DATE", "b DATE COMMENT 'x', a INT").changes == ()
    assert compatibility("a INT", "a INT").verdict == "full"


def test_several_changes_are_all_named() -> None:
    found = compatibility("a INT, b INT, c INT", "a BIGINT, c INT NOT NULL, d INT")
    assert [(each.path, each.kind.value) for each in found.changes] == [
        ("a", "widened"),
        ("c", "made required"),
        ("d", "added nullable"),
        ("b", "dropped nullable"),
    ]
    assert found.verdict == "none"


@MANY
@given(related(2))
def test_forward_is_backward_the_other_way_round(pair: tuple[Schema, ...]) -> None:
    a, b = pair
    assert compatibility(a, b).forward == compatibility(b, a).backward


@MANY
@given(related(2))
def test_backward_means_that_old_data_can_be_read(pair: tuple[Schema, ...]) -> None:
    old, new = pair
    assert compatibility(old, new).backward == (
        not refusals(old.struct(), new.struct(), Leeway(drop=True))
    )


@MANY
@given(related(2))
def test_a_superior_schema_is_one_that_reads_everything(pair: tuple[Schema, ...]) -> None:
    old, new = pair
    assert superior(new, old) == (not refusals(old.struct(), new.struct(), Leeway()))


@MANY
@given(related(2))
def test_no_change_means_equal(pair: tuple[Schema, ...]) -> None:
    a, b = pair
    assert (compatibility(a, b).changes == ()) == (a == b)


# --- modes ---

HISTORY = ["a INT NOT NULL", "a INT NOT NULL, b INT", "a BIGINT NOT NULL, b INT"]

# mode, new schema, may it follow HISTORY?
MODES = [
    ("none", "z DATE", True),
    ("backward", "a BIGINT, b INT", True),
    ("backward", "a BIGINT NOT NULL, b INT NOT NULL", False),
    ("backward_transitive", "a BIGINT", True),
    ("forward", "a INT NOT NULL, b INT", True),
    ("forward", "a BIGINT, b INT", False),
    ("forward_transitive", "a INT NOT NULL, b INT NOT NULL", True),
    ("forward_transitive", "a BIGINT NOT NULL", False),
    ("full", "a BIGINT NOT NULL, c DATE", True),
    ("full", "a INT NOT NULL", False),
    ("full_transitive", "a BIGINT NOT NULL, c DATE", False),
]


@pytest.mark.parametrize(("mode", "new", "allowed"), MODES)
def test_a_mode_judges_a_schema_against_a_history(mode: str, new: str, allowed: bool) -> None:
    judgement = judge(new, HISTORY, mode)
    assert judgement.ok is allowed
    assert judgement.ok is (not judgement.breaks)
    known = {Schema.of(each).fingerprint for each in HISTORY}
    assert {each.fingerprint for each in judgement.breaks} <= known


def test_only_transitive_modes_look_past_the_last_schema() -> None:
    history = ["a DATE", "a INT"]
    for mode in ("backward", "forward", "full"):
        assert judge("a INT", history, mode).ok
        (broken,) = judge("a INT", history, f"{mode}_transitive").breaks
        assert broken.fingerprint == Schema.of("a DATE").fingerprint


def test_anything_may_begin_a_history() -> None:
    assert all(judge("a INT", [], mode).ok for mode in Mode)


def test_an_unknown_mode_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidInput, match="backward_transitive"):
        judge("a INT", [], "sideways")
