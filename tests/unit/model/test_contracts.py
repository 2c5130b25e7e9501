"""Nothing that a contract forbids commits while it stands, and each rule is needed for that."""

import pytest

from .contracts import (
    ABSENT,
    NONE,
    STRICT,
    Process,
    Row,
    Rules,
    Search,
    Table,
    backfiller,
    operation,
    publisher,
    search,
    setter,
)

STARTS = [Table(Row(terms)) for terms in (ABSENT, NONE, STRICT)]
CROWDS: dict[str, list[Process]] = {
    "publishers and a contract that comes and goes": [
        publisher("a", fits=False),
        publisher("b", fits=True, remembers=STRICT),
        publisher("c", fits=False),
        setter(STRICT, NONE, STRICT),
    ],
    "two who set it": [
        publisher("a", fits=False),
        publisher("b", fits=False),
        setter(STRICT, NONE),
        setter(NONE, STRICT),
    ],
    "an operation": [
        operation("o", fits=False),
        operation("p", fits=True),
        publisher("a", fits=False),
        setter(STRICT, NONE, STRICT),
    ],
    "a backfill": [
        backfiller("w", fits=False),
        operation("o", fits=False),
        publisher("a", fits=True),
        setter(NONE, STRICT),
    ],
}


def explore(crowd: str, rules: Rules) -> Search:
    return search(STARTS, CROWDS[crowd], rules)


@pytest.mark.parametrize("crowd", CROWDS)
def test_every_interleaving_keeps_the_contract_and_ends(crowd: str) -> None:
    found = explore(crowd, Rules())
    assert (found.broken, found.trace) == ("", ())
    assert found.states > 1_000
    assert found.ends > 0
    assert found.stuck == 0


@pytest.mark.parametrize(
    ("rules", "crowd"),
    [
        (Rules(delta_refuses_conflicts=False), "publishers and a contract that comes and goes"),
        (Rules(publish_carries_terms=False), "publishers and a contract that comes and goes"),
        (Rules(publish_compares_null=False), "publishers and a contract that comes and goes"),
        (Rules(publish_names_datasource=False), "publishers and a contract that comes and goes"),
        (Rules(publish_checks_what_it_learns=False), "two who set it"),
        (Rules(backfill_carries_terms=False), "a backfill"),
        (Rules(stage_expects_row=False), "an operation"),
        (Rules(stage_names_datasource=False), "an operation"),
        (Rules(set_minds_holds=False), "an operation"),
        (Rules(set_names_staged=False), "an operation"),
    ],
    ids=lambda value: next(
        (name for name, kept in value._asdict().items() if not kept)
        if isinstance(value, Rules)
        else iter([value])
    ),
)
def test_each_rule_is_needed(rules: Rules, crowd: str) -> None:
    found = explore(crowd, rules)
    assert found.broken == "contract"
    assert found.trace[-1][0].endswith("commits")
