"""What of a group of callers can go into one commit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.commit.rows import schema_bucket, segment_bucket
from catalog.errors import DuplicateSegment, FingerprintCollision, InvalidInput, SegmentConflict
from catalog.model import Caller, Segment
from catalog.schema import Schema
from catalog.segments.batch import KnownSegment, batch_of, conflict, plan_group
from tests.unit.builders import batch, segment


def stored(made: Segment) -> KnownSegment:
    return KnownSegment(made.digest, "c0")


def forged(ddl: str, fingerprint: str) -> Schema:
    """A schema that claims the fingerprint of another: a collision, which nobody can make."""
    schema = Schema(Schema.of(ddl).json)
    schema.__dict__["fingerprint"] = fingerprint
    return schema


# --- one caller ----------------------------------------------------------------------------------


def test_a_batch_holds_each_segment_and_each_schema_once() -> None:
    one, two = segment("orders/1", "a INT"), segment("orders/2", "a int")
    made = batch_of([one, two], Caller("ann", "nightly"))
    assert list(made.segments.items()) == [("orders/1", one), ("orders/2", two)]
    assert made.fingerprints == (one.schema.fingerprint,)
    assert made.caller == Caller("ann", "nightly", figures={"segments": 2})


def test_a_batch_folds_segments_that_are_given_twice_alike() -> None:
    made = batch(segment(), segment("orders/2"), segment(ddl="a integer"))
    assert list(made.segments) == ["orders/1", "orders/2"]
    assert made.caller.figures == {"segments": 2}


def test_a_batch_refuses_an_id_with_two_contents() -> None:
    with pytest.raises(DuplicateSegment, match=r"orders/1 is given twice.*once") as caught:
        batch(segment(rows=1), segment("orders/2"), segment(rows=2))
    assert caught.value.values == {"segment_id": "orders/1"}


@pytest.mark.parametrize("value", [None, "orders/1", {"id": "orders/1"}])
def test_a_batch_refuses_what_is_no_segment(value: object) -> None:
    with pytest.raises(InvalidInput, match=f"not {type(value).__name__}") as caught:
        batch_of([value], Caller("ann"))  # type: ignore[list-item]
    assert caught.value.values == {"value": value}


def test_a_batch_refuses_two_definitions_with_one_fingerprint() -> None:
    other = forged("b INT", Schema.of("a INT").fingerprint)
    with pytest.raises(FingerprintCollision, match="nothing was written") as caught:
        batch(segment(), Segment("orders/2", other, 1))
    assert caught.value.values == {"fingerprint": Schema.of("a INT").fingerprint}


def test_a_batch_of_nothing_is_empty() -> None:
    made = batch_of([], Caller("ann"))
    assert (dict(made.segments), made.fingerprints) == ({}, ())


# --- a group -------------------------------------------------------------------------------------


def test_callers_with_different_segments_go_together() -> None:
    one, two = segment("orders/1"), segment("users/1", "b INT")
    plan = plan_group([batch(one, actor="ann"), batch(two, actor="bob")], {})
    assert (plan.accepted, plan.refused, plan.deferred) == ((0, 1), {}, ())
    assert plan.owner == {"orders/1": 0, "users/1": 1}


def test_an_id_that_two_callers_bring_alike_is_written_once_for_the_first() -> None:
    plan = plan_group([batch(actor="ann"), batch(segment(), segment("orders/2"), actor="bob")], {})
    assert plan.accepted == (0, 1)
    assert plan.owner == {"orders/1": 0, "orders/2": 1}
    assert {schema.ddl: actor for schema, actor in plan.schemas.values()} == {"a INT": "ann"}


def test_the_second_caller_with_other_content_is_put_off() -> None:
    second = batch(segment(rows=2), segment("orders/2", "b INT"))
    plan = plan_group([batch(segment(rows=1)), second, batch(segment(rows=1))], {})
    assert (plan.accepted, plan.refused, plan.deferred) == ((0, 2), {}, (1,))
    assert list(plan.segments) == ["orders/1"]
    assert [schema.ddl for schema, _ in plan.schemas.values()] == ["a INT"]
    assert plan.owner == {"orders/1": 0}


def test_a_caller_that_is_put_off_does_not_stand_in_the_way_of_later_ones() -> None:
    put_off = batch(segment(rows=2), segment("orders/2", rows=2))
    plan = plan_group([batch(), put_off, batch(segment("orders/2", rows=3))], {})
    assert (plan.accepted, plan.deferred) == ((0, 2), (1,))


def test_what_is_stored_with_other_content_is_refused_by_name() -> None:
    known = {"orders/1": stored(segment(rows=9)), "orders/2": stored(segment("orders/2"))}
    plan = plan_group([batch(segment(), segment("orders/2")), batch(segment("orders/3"))], known)
    assert (plan.accepted, plan.deferred) == ((1,), ())
    assert list(plan.refused) == [0]
    assert plan.refused[0].values == {"segment_ids": ("orders/1",), "count": 1}
    assert list(plan.segments) == ["orders/3"]


def test_what_is_stored_alike_is_accepted_again() -> None:
    plan = plan_group([batch()], {"orders/1": stored(segment())})
    assert (plan.accepted, plan.refused) == ((0,), {})


def test_a_refused_caller_does_not_put_off_the_next() -> None:
    known = {"orders/1": stored(segment(rows=9))}
    refused = batch(segment(), segment("orders/2", rows=1))
    plan = plan_group([refused, batch(segment("orders/2", rows=2))], known)
    assert (plan.accepted, list(plan.refused), plan.deferred) == ((1,), [0], ())


@pytest.mark.parametrize("bad", range(10))
def test_one_bad_caller_among_ten_fails_alone(bad: int) -> None:
    batches = [batch(segment(f"orders/{n}")) for n in range(10)]
    plan = plan_group(batches, {f"orders/{bad}": stored(segment(rows=9))})
    assert plan.accepted == tuple(n for n in range(10) if n != bad)
    assert list(plan.refused) == [bad]
    assert set(plan.segments) == {f"orders/{n}" for n in range(10) if n != bad}


def test_two_callers_with_one_fingerprint_for_two_definitions_do_not_share_a_commit() -> None:
    fingerprint = Schema.of("a INT").fingerprint
    other = Segment("orders/2", forged("b INT", fingerprint), 1)
    plan = plan_group([batch(segment()), batch(other)], {})
    assert plan.accepted == (0,)
    assert list(plan.segments) == ["orders/1"]


small_batches = st.lists(
    st.dictionaries(st.sampled_from("abcd"), st.integers(0, 1), min_size=1), max_size=5
)


@given(small_batches, st.dictionaries(st.sampled_from("abcd"), st.integers(0, 1)))
def test_a_batch_goes_in_whole_or_not_at_all(
    wanted: list[dict[str, int]], there: dict[str, int]
) -> None:
    batches = [batch(*(segment(f"o/{k}", rows=n) for k, n in w.items())) for w in wanted]
    known = {f"o/{k}": stored(segment(rows=n)) for k, n in there.items()}
    plan = plan_group(batches, known)
    assert sorted([*plan.accepted, *plan.refused, *plan.deferred]) == list(range(len(batches)))
    for index in plan.accepted:
        for key, item in batches[index].segments.items():
            assert plan.segments[key].digest == item.digest
            assert key not in known or known[key].digest == item.digest
            assert plan.owner[key] == min(i for i in plan.accepted if key in batches[i].segments)
    assert set(plan.segments) == {key for i in plan.accepted for key in batches[i].segments}
    assert set(plan.schemas) == {name for i in plan.accepted for name in batches[i].schemas}
    for index in plan.refused:
        assert any(
            known.get(key, item).digest != item.digest
            for key, item in batches[index].segments.items()
        )
    # Whoever is put off differs from somebody who came before and is in.
    for index in plan.deferred:
        assert any(
            key in batches[i].segments and batches[i].segments[key].digest != item.digest
            for i in plan.accepted
            if i < index
            for key, item in batches[index].segments.items()
        )


# --- what the statement has to know --------------------------------------------------------------


def test_a_plan_names_the_partitions_of_its_segments_of_claims_and_of_the_schemas() -> None:
    made = [segment("orders/1"), segment("orders/2", "b INT"), segment("users/1")]
    plan = plan_group([batch(*made)], {})
    assert plan.partitions(64) == {
        ("segment", segment_bucket("orders/1", 64)),
        ("segment", segment_bucket("users/1", 64)),
        *((kind, segment_bucket("orders/1", 64)) for kind in ("staged", "datasource")),
        *((kind, segment_bucket("users/1", 64)) for kind in ("staged", "datasource")),
        ("schema", schema_bucket(Schema.of("a INT").fingerprint)),
        ("schema", schema_bucket(Schema.of("b INT").fingerprint)),
    }


def test_a_plan_bounds_the_keys_of_each_kind() -> None:
    made = [segment("orders/5"), segment("orders/1", "b INT"), segment("Users/7", "c INT")]
    fingerprints = sorted(one.schema.fingerprint for one in made)
    assert plan_group([batch(*made)], {}).bounds() == {
        "schema": (fingerprints[0], fingerprints[-1]),
        "segment": ("Users/7", "orders/5"),
        "staged": ("", "orders/5"),
        "datasource": ("", "orders/5"),
    }


# --- the refusal ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "named"),
    [(1, "a0."), (5, "a0, a1, a2, a3, a4."), (6, "a0, a1, a2, a3, a4 and 1 more.")],
)
def test_a_conflict_names_at_most_five_and_counts_the_rest(count: int, named: str) -> None:
    ids = [f"a{n}" for n in range(count)]
    error = conflict(ids)
    assert isinstance(error, SegmentConflict)
    assert f"Published already with other content: {named} Nothing was written." in error.message
    assert 'on_existing="skip" or "replace"' in error.message
    assert error.values == {"segment_ids": tuple(ids), "count": count}


def test_a_conflict_of_a_large_frame_is_told_the_total() -> None:
    error = conflict(["a", "b", "c", "d", "e"], 1000)
    assert "a, b, c, d, e and 995 more." in error.message
    assert error.values["count"] == 1000
