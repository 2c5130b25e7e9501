"""What one statement of a recovery removes."""

from __future__ import annotations

from catalog.operations.recovery import Leftover, batches


def left(name: str, commits: int) -> Leftover:
    return Leftover(name, [f"{name}-{n}" for n in range(commits)], [0])


def sizes(*found: Leftover) -> list[list[str]]:
    return [[each.operation for each in some] for some in batches(found)]


def test_the_rows_of_an_operation_are_never_divided() -> None:
    assert sizes() == []
    assert sizes(left("a", 1), left("b", 2)) == [["a", "b"]]
    assert sizes(left("a", 1), left("b", 10_000), left("c", 1)) == [["a"], ["b"], ["c"]]
    assert sizes(left("a", 2_500), left("b", 2_500), left("c", 1)) == [["a", "b"], ["c"]]


def test_one_statement_names_at_most_five_hundred_operations() -> None:
    many = [left(str(n), 1) for n in range(1_001)]
    assert [len(some) for some in batches(many)] == [500, 500, 1]
