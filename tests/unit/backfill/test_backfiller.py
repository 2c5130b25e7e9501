"""What becomes of a segment that waits for its schema, and of a batch of which some fail."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from catalog.backfill.backfiller import Backfiller, Counted
from catalog.backfill.completer import Completed, Storer
from catalog.backfill.model import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    BackfillReport,
    Completion,
    Trouble,
    Waiting,
    completed,
    troubled,
    waiting_of,
)
from catalog.contracts.enforcement import offences_among, violation
from catalog.contracts.model import Contract, Terms
from catalog.environment import Environment
from catalog.errors import CommitFailed, FingerprintCollision, GaveUp
from catalog.files.footer import Footer
from catalog.model import Segment, micros
from catalog.progress import Step
from catalog.schema import Schema

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
A, B = Schema.of("a INT"), Schema.of("b INT")


def waiting(segment_id: str = "orders/1", trouble: Trouble | None = None, **said: int) -> Waiting:
    return Waiting(Segment(segment_id, location=f"/{segment_id}", **said), "c1", trouble)


# --- one segment ---------------------------------------------------------------------------------


def test_a_row_reads_back_as_the_segment_that_waits() -> None:
    trouble = Trouble("no such file", 2, NOON, NOON + timedelta(hours=1))
    row = {
        "key": "orders/1",
        "commit_id": "c7",
        "num_rows": None,
        "size_bytes": 5,
        "location": "/x",
        "starts_at_micros": micros(NOON),
        "ends_at_micros": None,
        "payload": trouble.payload(),
    }
    segment = Segment("orders/1", size_bytes=5, location="/x", starts_at=NOON)
    assert waiting_of(row) == Waiting(segment, "c7", trouble)
    assert waiting_of(row | {"payload": None}).trouble is None


def test_a_footer_completes_what_the_segment_did_not_say() -> None:
    done = completed(waiting(), Footer(A, 3, 100), NOON)
    assert done.segment == Segment("orders/1", A, 3, 100, "/orders/1")
    assert (done.trouble, done.seen) == (None, "c1")


def test_a_footer_does_not_overwrite_what_the_segment_said() -> None:
    done = completed(waiting(num_rows=3, size_bytes=7), Footer(A, 3, 100), NOON)
    assert (done.segment.num_rows, done.segment.size_bytes) == (3, 7)


def test_a_footer_with_other_rows_is_trouble() -> None:
    done = completed(waiting(num_rows=4), Footer(A, 3, 100), NOON)
    assert done.segment.schema is None
    assert done.trouble is not None
    assert done.trouble.reason == "published with 4 rows, and the data has 3"


def test_an_inferred_schema_stays_marked_and_its_rows_may_be_unknown() -> None:
    done = completed(waiting(), Footer(A, None, 100, inferred=True), NOON)
    assert (done.segment.inferred, done.segment.num_rows) == (True, None)
    told = completed(waiting(num_rows=4), Footer(A, None, 100, inferred=True), NOON)
    assert (told.trouble, told.segment.num_rows) == (None, 4)


def test_the_pause_before_the_next_try_doubles_up_to_a_day() -> None:
    pauses, each = [], waiting()
    for _ in range(12):
        trouble = troubled(each, "broken", NOON).trouble
        assert trouble is not None
        pauses.append(trouble.retry_at - NOON)
        each = waiting(trouble=trouble)
    assert pauses[:3] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE]
    assert pauses[-1] == LONGEST_PAUSE
    assert each.trouble is not None
    assert (each.trouble.attempts, each.trouble.since) == (12, NOON)


def test_a_reason_is_kept_short_and_comes_back_from_its_document() -> None:
    trouble = troubled(waiting(), "é" * 5000, NOON).trouble
    assert trouble is not None
    assert len(trouble.reason) == 1000
    assert Trouble.of_payload(trouble.payload()) == trouble


# --- many ----------------------------------------------------------------------------------------


class Table:
    """Stores completions, but for those that it fails on."""

    def __init__(self, *poison: str) -> None:
        self.poison = poison
        self.commits: list[list[str]] = []
        self.gone: set[str] = set()
        self.claimed: set[str] = set()

    def commit(self, completions: Sequence[Completion]) -> Completed:
        names = [each.segment.id for each in completions]
        self.commits.append(names)
        if any(each.segment.id in self.poison and each.trouble is None for each in completions):
            raise CommitFailed("refused")
        claimed = frozenset(self.claimed & set(names))
        return Completed(len(self.commits), frozenset(names) - self.gone - claimed, 1, claimed)


def found(*names: str, schema: Schema = A) -> list[Completion]:
    return [completed(waiting(name), Footer(schema, 1, 1), NOON) for name in names]


def ids(completions: Sequence[Completion]) -> list[str]:
    return [each.segment.id for each in completions]


NAMES = [f"orders/{n}" for n in range(8)]


def test_a_batch_that_can_be_stored_is_one_commit() -> None:
    table = Table()
    tally = Storer(table.commit, lambda: NOON).store(found(*NAMES))
    assert (ids(tally.completed), table.commits) == (NAMES, [NAMES])
    assert (tally.version, tally.retries) == (1, 1)


@pytest.mark.parametrize("bad", NAMES)
def test_a_batch_that_fails_is_split_until_the_poison_is_alone(bad: str) -> None:
    table = Table(bad)
    tally = Storer(table.commit, lambda: NOON).store(found(*NAMES))
    assert sorted(ids(tally.completed)) == [name for name in NAMES if name != bad]
    (aside,) = tally.quarantined
    assert aside.segment.id == bad
    assert aside.trouble is not None
    assert aside.trouble.reason == "refused"
    assert len(table.commits) == 2 * 3 + 2  # two for each halving, the whole, and the quarantine


def test_a_collision_puts_all_segments_with_that_schema_aside_at_once() -> None:
    commits: list[list[str]] = []

    def commit(completions: Sequence[Completion]) -> Completed:
        commits.append(ids(completions))
        if any(each.segment.fingerprint == B.fingerprint for each in completions):
            raise FingerprintCollision("another definition", fingerprint=B.fingerprint)
        return Completed(1, frozenset(ids(completions)))

    tally = Storer(commit, lambda: NOON).store([*found("o/1"), *found("o/2", "o/3", schema=B)])
    assert (ids(tally.completed), ids(tally.quarantined)) == (["o/1"], ["o/2", "o/3"])
    assert commits == [["o/1", "o/2", "o/3"], ["o/1"], ["o/2", "o/3"]]


def test_what_breaks_a_contract_is_put_aside_with_what_is_wrong_with_it() -> None:
    commits: list[list[str]] = []
    terms = {"o": Terms("d", Contract(schema=A, enforcement="strict"))}

    def commit(completions: Sequence[Completion]) -> Completed:
        commits.append(ids(completions))
        checked = [each.segment for each in completions if each.trouble is None]
        if offences := offences_among(checked, terms):
            raise violation(offences)
        return Completed(1, frozenset(ids(completions)))

    tally = Storer(commit, lambda: NOON).store([*found("o/1"), *found("o/2", "o/3", schema=B)])
    assert (ids(tally.completed), ids(tally.quarantined)) == (["o/1"], ["o/2", "o/3"])
    assert commits == [["o/1", "o/2", "o/3"], ["o/1"], ["o/2", "o/3"]]
    trouble = tally.quarantined[0].trouble
    assert trouble is not None
    assert trouble.reason.startswith("breaks the contract of o: ")


def test_what_can_be_tried_again_is_raised_and_nobody_is_blamed() -> None:
    calls = 0

    def commit(completions: Sequence[Completion]) -> Completed:
        nonlocal calls
        calls += 1
        raise GaveUp("others were busy")

    with pytest.raises(GaveUp):
        Storer(commit, lambda: NOON).store(found(*NAMES))
    assert calls == 1


def test_a_table_that_takes_nothing_at_all_is_an_error_and_not_a_quarantine() -> None:
    def commit(completions: Sequence[Completion]) -> Completed:
        raise CommitFailed("disk full")

    with pytest.raises(CommitFailed, match="disk full"):
        Storer(commit, lambda: NOON).store(found(*NAMES))


def test_segments_that_others_changed_meanwhile_count_as_overtaken() -> None:
    table = Table()
    table.gone = {"orders/3"}
    tally = Storer(table.commit, lambda: NOON).store(found(*NAMES))
    assert ids(tally.overtaken) == ["orders/3"]
    assert len(tally.completed) == 7


def test_segments_that_an_operation_claims_are_neither_stored_nor_overtaken() -> None:
    table = Table()
    table.claimed = {"orders/3", "orders/4"}
    tally = Storer(table.commit, lambda: NOON).store(found(*NAMES))
    assert (ids(tally.claimed), tally.overtaken) == (["orders/3", "orders/4"], [])
    assert len(tally.completed) == 6


def test_nothing_to_store_is_no_commit() -> None:
    table = Table()
    assert Storer(table.commit, lambda: NOON).store([]).completed == []
    assert table.commits == []


def test_an_error_that_nobody_foresaw_is_split_too_and_a_lost_connection_is_not() -> None:
    table = Table()

    def commit(completions: Sequence[Completion]) -> Completed:
        if any(each.segment.id == "orders/3" and each.trouble is None for each in completions):
            raise TypeError("cannot be")
        return table.commit(completions)

    tally = Storer(commit, lambda: NOON).store(found(*NAMES))
    assert len(tally.completed) == 7
    assert tally.quarantined[0].trouble is not None
    assert tally.quarantined[0].trouble.reason == "cannot be"

    def lost(completions: Sequence[Completion]) -> Completed:
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        Storer(lost, lambda: NOON).store(found(*NAMES))


def test_a_payload_that_tells_of_no_trouble_is_none() -> None:
    assert Trouble.of_payload(None) is None
    assert Trouble.of_payload('{"other": 1}') is None


# --- a run ---------------------------------------------------------------------------------------


class Pages:
    """Stands for the search of the table: one page of waiting segments."""

    def __init__(self, *names: str) -> None:
        self.left = [waiting(name) for name in names]

    def count(self, now: datetime) -> Counted:
        return Counted(1, len(self.left), 0)

    def page(self, now: datetime, after: tuple[int, str], most: int) -> list[tuple[int, Waiting]]:
        taken, self.left = self.left[:most], self.left[most:]
        return [(0, each) for each in taken]


def run(
    describe: Any,
    table: Table,
    limit: int | None = None,
    batch: int = 100,
    steps: list[Step] | None = None,
) -> BackfillReport:
    environment = Environment(clock=lambda: NOON)
    context: Any = SimpleNamespace(environment=environment)
    call: Any = SimpleNamespace(caller=None, progress=([] if steps is None else steps).append)
    pages: Any = Pages(*NAMES)
    backfiller = Backfiller(
        context, call, lambda some, caller: table.commit(some), pages, describe, None
    )
    return backfiller.run(limit, batch, False)


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_a_limit_is_not_used_up_by_segments_that_operations_claim(batch: int) -> None:
    table = Table()
    table.claimed = {"orders/0", "orders/1", "orders/3"}
    report = run(lambda places: [Footer(A, 1, 1)] * len(places), table, limit=2, batch=batch)
    assert (report.waiting, report.claimed, report.overtaken) == (8, 3, 0)
    assert (report.completed, report.left) == (2, 3)


def test_a_backfill_of_nothing_but_claimed_segments_comes_to_its_end() -> None:
    table = Table()
    table.claimed = set(NAMES)
    steps: list[Step] = []
    report = run(lambda places: [Footer(A, 1, 1)] * len(places), table, 3, steps=steps)
    assert (report.completed, report.claimed, report.left) == (0, 8, 0)
    assert (steps[-1].done, steps[-1].total) == (8, 8)
