"""Operations and epochs keep their promises in every interleaving, and each rule is needed."""

import pytest

from .operation_crowds import LARGE, MIDDLE
from .operation_rows import (
    AFTER,
    PUBLISHED,
    Live,
    Rules,
    Table,
    live,
    operations,
    stable_epoch,
    staged_rows,
)
from .operation_scenarios import (
    DROP_K,
    LIVE_F,
    LIVE_K,
    PUT_K,
    RETIRED_F,
    SMALL,
    Cast,
    a_holder,
    a_lease,
    a_put_behind_a_drop,
    a_schema,
    a_schema_and_its_copy,
    an_epoch,
    an_epoch_and_an_insert,
    an_insert,
    an_overtaker,
    one_part_twice,
    parts_that_contradict,
    two_of_one_epoch,
    two_operations,
    two_parts,
    two_parts_behind_a_put,
    whole,
)
from .operations import Scenario, advancer, count_hopeless, epoch_publisher, search, tables


@pytest.mark.parametrize("cast", SMALL, ids=lambda cast: cast.__name__)
def test_the_protocol_keeps_its_promises_and_nobody_tries_for_ever_in(cast: Cast) -> None:
    found = search(cast(Rules()), Rules())

    assert (found.broken, found.trace, found.stuck) == ("", (), 0)
    assert found.ends > 0
    assert count_hopeless(cast(Rules()), Rules()) == 0


@pytest.mark.parametrize("name", MIDDLE)
def test_every_interleaving_keeps_the_promises_and_ends(name: str) -> None:
    scenario, at_least = MIDDLE[name]
    found = search(scenario, Rules())

    assert (found.broken, found.trace, found.stuck) == ("", (), 0)
    assert found.states > at_least
    assert found.ends > 0


@pytest.mark.stress
@pytest.mark.parametrize("name", LARGE)
def test_every_interleaving_of_many_keeps_the_promises_and_ends(name: str) -> None:
    found = search(LARGE[name], Rules())

    assert (found.broken, found.trace, found.stuck) == ("", (), 0)
    assert found.states > 500_000
    assert found.ends > 0


@pytest.mark.parametrize(
    "cast",
    [an_insert, two_operations, an_epoch, two_of_one_epoch, a_put_behind_a_drop, a_schema],
    ids=lambda cast: cast.__name__,
)
def test_beginning_and_committing_in_one_step_leaves_no_table_out(cast: Cast) -> None:
    scenario = cast(Rules())

    assert tables(scenario, Rules()) == tables(scenario, Rules(), in_one_step=False)


# --- what the search is about does happen --------------------------------------------------------


def row_of(table: Table, key: str) -> Live | None:
    return next((row for row in table if isinstance(row, Live) and row.key == key), None)


def published(table: Table) -> set[str]:
    return {row.key for row in operations(table).values() if row.state == PUBLISHED}


def test_operations_of_one_step_and_of_two_give_the_same_row() -> None:
    owners = (*whole("A"), *whole("B"), epoch_publisher("A", 1), epoch_publisher("B", 2))
    for steps in ((2,), (1, 2)):
        scenario = Scenario({"A": (PUT_K,), "B": (PUT_K,)}, (*owners, advancer(*steps)), LIVE_K)
        ends = [table for table in tables(scenario, Rules()) if published(table) == {"A", "B"}]

        # B cannot come first: behind B the floor of A is 2, and A wants 1.
        assert {row_of(table, "k") for table in ends} == {live("k", "B", 3)}


def test_a_key_that_is_created_and_dropped_leaves_nothing() -> None:
    owners = (*whole("A"), *whole("B"), epoch_publisher("A", 1), epoch_publisher("B", 1))
    scenario = Scenario({"A": (PUT_K,), "B": (DROP_K,)}, (*owners, advancer(1)))
    ends = [table for table in tables(scenario, Rules()) if published(table) == {"A", "B"}]

    assert None in {row_of(table, "k") for table in ends}


def test_a_key_that_is_dropped_and_put_again_begins_at_revision_one() -> None:
    reached = tables(a_put_behind_a_drop(Rules()), Rules())

    assert live("k", "B", 1) in {row_of(table, "k") for table in reached}


def test_a_plain_writer_goes_past_a_claim_that_is_decided_and_not_swept() -> None:
    reached = tables(an_insert(Rules()), Rules())

    past = [table for table in reached if row_of(table, "k") == live("k", "insert k 0")]
    assert any(staged_rows(table) for table in past)


def test_an_operation_is_published_at_once_after_one_that_it_was_queued_behind() -> None:
    reached = tables(two_parts_behind_a_put(Rules()), Rules())

    after = [table for table in reached if row_of(table, "k") == live("k", "B", 2)]
    assert any(stable_epoch(table) == 1 for table in after)
    assert any(row.base == AFTER for table in after for row in staged_rows(table))


def test_a_schema_is_retired_under_a_staged_row_and_restored() -> None:
    reached = tables(a_schema(Rules()), Rules())

    claimed = [table for table in reached if staged_rows(table)]
    assert any(RETIRED_F in table and LIVE_F not in table for table in claimed)
    assert any(RETIRED_F in table and LIVE_F in table for table in claimed)


# --- each rule is needed -------------------------------------------------------------------------


NEEDED: tuple[tuple[str, Cast, str], ...] = (
    ("delta_refuses_conflicts", one_part_twice, "I2"),
    ("stage_tracks_operation", two_parts, "late part"),
    ("stage_tracks_claims", two_operations, "two holders"),
    ("stage_tracks_base", an_insert, "base gone"),
    ("stage_expects_part", one_part_twice, "I2"),
    ("stage_respects_holds", a_holder, "base gone"),
    ("stage_joins_siblings", two_parts_behind_a_put, "base gone"),
    ("stage_expects_siblings", parts_that_contradict, "contradiction"),
    ("stage_expects_predecessor", a_put_behind_a_drop, "base gone"),
    ("stage_tracks_predecessor", a_put_behind_a_drop, "base gone"),
    ("stage_sets_floor", two_parts_behind_a_put, "base gone"),
    ("stage_carries_schemas", a_schema, "I3"),
    ("writers_respect_ready", an_epoch_and_an_insert, "base gone"),
    ("writers_respect_claims", an_insert, "base gone"),
    ("writers_track_claims", an_insert, "base gone"),
    ("decisions_track_operation", two_parts, "decided twice"),
    ("publish_reads_once", two_parts, "I4"),
    ("publish_checks_floor", two_parts_behind_a_put, "base gone"),
    ("ready_expects_epoch", an_epoch, "I8"),
    ("ready_tracks_epoch", an_epoch, "I8"),
    ("ready_bumps_epoch", an_epoch, "I8"),
    ("ready_checks_floor", an_overtaker, "base gone"),
    ("ready_is_final", an_epoch, "decided twice"),
    ("recover_expects_lease", a_lease, "renewed lease"),
    ("advance_expects_epoch", an_epoch, "I8"),
    ("advance_tracks_epoch", an_epoch, "I8"),
    ("advance_follows_order", two_of_one_epoch, "I4"),
    ("advance_counts_operations", two_of_one_epoch, "I4"),
    ("sweep_spares_ready", an_epoch_and_an_insert, "lost part"),
    ("cleanup_counts_staged", a_schema, "I3"),
    ("cleanup_reads_once", a_schema, "I3"),
    ("purge_matches_token", a_schema_and_its_copy, "I3"),
)

# To look at the base once more when publishing guards only against what is not in the protocol.
SPARE = ("publish_expects_base", "publish_tracks_base")


@pytest.mark.parametrize(("rule", "cast", "promise"), NEEDED)
def test_a_rule_that_is_left_out_breaks_a_promise(rule: str, cast: Cast, promise: str) -> None:
    rules = Rules(**{rule: False})
    found = search(cast(rules), rules)

    assert found.broken == promise
    assert found.trace[0][0] == "start"
    assert found.trace[-1][0].endswith("commits")


@pytest.mark.parametrize("rule", SPARE)
def test_claims_alone_keep_the_base_of_an_operation(rule: str) -> None:
    rules = Rules(**{rule: False})

    assert {search(cast(rules), rules).broken for cast in SMALL} == {""}


def test_every_rule_is_left_out_somewhere() -> None:
    assert sorted([*SPARE, *(rule for rule, _, _ in NEEDED)]) == sorted(Rules._fields)
