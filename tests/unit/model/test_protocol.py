"""Publish, drop and clean-up keep I2, I3 and I7 in every interleaving, and each rule is needed."""

import pytest

from .protocol import (
    RETIRED,
    SCHEMA,
    SEGMENT,
    Rules,
    Search,
    Table,
    backfiller,
    broken_promise,
    cleaner,
    dropper,
    publisher,
    replacer,
    search,
    waiter,
)

STARTS: dict[str, Table] = {
    "empty": (),
    "live": ((SCHEMA, 1),),
    "retired": ((RETIRED, 1),),
    "live and retired": ((RETIRED, 1), (SCHEMA, 2)),
}


def explore(
    rules: Rules, publishes: str = "ab", drops: str = "a", runs: tuple[int, ...] = (2, 2)
) -> Search:
    """Search from every start; a letter is a segment id, a number the runs of one cleaner."""
    publishers = [publisher(segment, rules) for segment in publishes]
    droppers = [dropper(segment) for segment in drops]
    cleaners = [cleaner(n) for n in runs]
    return search(STARTS.values(), [*publishers, *droppers, *cleaners], rules)


@pytest.mark.parametrize(
    ("publishes", "drops", "runs", "at_least"),
    [
        pytest.param("ab", "a", (2, 2), 15_000, id="two publishers, a dropper, two cleaners"),
        pytest.param("aab", "ab", (2, 2), 120_000, id="three publishers, two of them of one id"),
        pytest.param("ab", "a", (2, 2, 2), 150_000, id="three cleaners"),
    ],
)
def test_every_interleaving_keeps_the_promises_and_ends(
    publishes: str, drops: str, runs: tuple[int, ...], at_least: int
) -> None:
    found = explore(Rules(), publishes, drops, runs)

    assert (found.broken, found.trace) == ("", ())
    assert found.states > at_least
    assert found.ends > 0
    assert found.stuck == 0


def explore_backfill(rules: Rules, runs: int = 2, cleaners: int = 2) -> Search:
    """A segment without a schema, who drops it, who says its schema, and two who find it."""
    return search(
        STARTS.values(),
        [
            waiter("a"),
            waiter("a"),
            replacer("a"),
            dropper("a"),
            backfiller("a", 2),
            backfiller("a", 1),
            publisher("b", rules),
            *[cleaner(runs)] * cleaners,
        ],
        rules,
    )


def test_every_interleaving_with_backfills_keeps_the_promises_and_ends() -> None:
    found = explore_backfill(Rules(), runs=1, cleaners=1)

    assert (found.broken, found.trace) == ("", ())
    assert found.states > 100_000
    assert found.ends > 0
    assert found.stuck == 0


@pytest.mark.parametrize(
    ("rules", "promise"),
    [
        pytest.param(Rules(backfill_carries_schema=False), "I3", id="it relies on a schema"),
        pytest.param(Rules(backfill_matches_token=False), "I2", id="it ignores what it has seen"),
        pytest.param(Rules(delta_refuses_conflicts=False), "I2", id="Delta refuses nothing"),
    ],
)
def test_a_backfill_that_breaks_a_rule_breaks_a_promise(rules: Rules, promise: str) -> None:
    assert explore_backfill(rules, runs=1, cleaners=1).broken == promise


@pytest.mark.parametrize(
    ("rules", "promise"),
    [
        pytest.param(Rules(delta_refuses_conflicts=False), "I2", id="Delta refuses nothing"),
        pytest.param(Rules(publish_carries_schema=False), "I3", id="a publish looks up its schema"),
        pytest.param(Rules(purge_matches_token=False), "I3", id="a purge ignores commit ids"),
        pytest.param(Rules(purge_spares_references=False), "I3", id="a purge ignores references"),
        pytest.param(
            Rules(retire_refuses_copies=False, retire_plans_around_copies=False),
            "I2",
            id="retiring ignores retired copies",
        ),
        pytest.param(
            Rules(retire_refuses_copies=False, retire_matches_token=False),
            "I2",
            id="retiring ignores new copies and commit ids",
        ),
    ],
)
def test_a_broken_rule_leads_to_a_broken_promise(rules: Rules, promise: str) -> None:
    found = explore(rules)

    assert found.broken == promise
    assert found.trace[0][0] == "start"
    action, table = found.trace[-1]
    assert action.endswith("commits")
    assert broken_promise(table, ()) == promise
    assert not any(broken_promise(earlier, ()) for _, earlier in found.trace[:-1])


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(
            Rules(retire_plans_around_copies=False, retire_matches_token=False),
            id="the check in ON alone",
        ),
        pytest.param(Rules(retire_refuses_copies=False), id="the plan and the commit id together"),
    ],
)
def test_retiring_never_makes_a_second_copy_with(rules: Rules) -> None:
    assert explore(rules).broken == ""


@pytest.mark.parametrize(
    ("table", "acknowledged", "promise"),
    [
        ((), (), ""),
        (((RETIRED, 1), (SCHEMA, 2), (SEGMENT + "a", 0)), ("a",), ""),
        (((RETIRED, 1), (SEGMENT + "a", 0)), ("a",), ""),
        (((SCHEMA, 1), (SCHEMA, 2)), (), "I2"),
        (((RETIRED, 1), (RETIRED, 2)), (), "I2"),
        (((SCHEMA, 1), (SEGMENT + "a", 0), (SEGMENT + "a", 0)), ("a",), "I2"),
        (((SEGMENT + "a", 0),), ("a",), "I3"),
        (((SCHEMA, 1), (SEGMENT + "a", 0)), ("a", "b"), "I7"),
    ],
)
def test_a_broken_promise_is_seen_in_the_table(
    table: Table, acknowledged: tuple[str, ...], promise: str
) -> None:
    assert broken_promise(table, acknowledged) == promise
